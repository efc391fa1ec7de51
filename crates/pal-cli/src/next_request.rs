//! Parameters of a session's next request besides its content: those of earlier requests, else those of the settings.
//!
//! A log may come from anywhere. A parameter of it goes into a request only if its name is known and its value is complete
//! JSON, so that no log can write a body or a header of its own.

use pal_agent::ttl_preference;
use pal_context::RequestParams;
use pal_context::cache::choose_ttl;
use pal_model::{EntryBody, LogEntry, ModelCard, RequestRecord, SharedText, escape_into};
use pal_report::{clip_line, sanitize};
use pal_view::{CacheTtl, View};
use pal_wire::Beta;
use smol_str::SmolStr;

use crate::notices::print_notice;
use crate::settings::Settings;

/// Request member that contains the effort.
const OUTPUT: &str = "output_config";
/// Columns of a name from a log in notices.
const NAME_COLUMNS: usize = 60;

/// Parameters of a request besides its content.
#[derive(Debug, Default)]
pub(crate) struct NextRequestParams {
    pub(crate) params: RequestParams,
    /// Beta headers of the session and of the model card.
    pub(crate) betas: Vec<SmolStr>,
    /// Parameters of the log that were left out, with the reason.
    pub(crate) notices: Vec<String>,
}

impl NextRequestParams {
    /// Parameters of the request that follows `before`. A request to another model is ignored, since its parameters were
    /// meant for that model.
    pub(crate) fn after_request(
        before: Option<&RequestRecord>,
        view: &View,
        card: &ModelCard,
        settings: &Settings,
    ) -> NextRequestParams {
        let before = before.filter(|request| request.model == card.name);
        let mut carried = NextRequestParams::default();
        if let Some(before) = before {
            carried.take_members(before);
            carried.take_betas(before);
        }
        // A request rendered by pal has no effort if it names none; for imported ones the effort is unknown.
        let is_whole = before.is_some_and(|before| before.fingerprint.is_some());
        let members = &mut carried.params.members;
        if let Some(effort) = settings.effort.as_deref().filter(|_| !is_whole)
            && !members.iter().any(|(name, _)| *name == OUTPUT)
        {
            members.insert(0, (SmolStr::new_static(OUTPUT), effort_json(effort)));
        }
        let named = before.and_then(|before| CacheTtl::from_name(before.cache_ttl.as_ref()?));
        let (latched, _) = choose_ttl(view, &settings.context_policy(), ttl_preference(settings), None);
        carried.params.ttl = named.unwrap_or(latched);
        for beta in pal_wire::beta_headers(card) {
            carried.add_beta(SmolStr::new_static(beta));
        }
        carried
    }

    /// Prints what was left out to standard error.
    pub(crate) fn print_notices(&self) {
        for notice in &self.notices {
            print_notice(notice);
        }
    }

    fn take_members(&mut self, before: &RequestRecord) {
        for (name, value) in &before.members {
            match pal_context::validate_logged_member(name, value) {
                Ok(member) => self.params.members.push(member),
                Err(why) => self.leave_out("member", name, why),
            }
        }
    }

    fn take_betas(&mut self, before: &RequestRecord) {
        for beta in &before.betas {
            if beta.trim() == beta && Beta::from_header(beta).is_some() {
                self.add_beta(beta.clone());
            } else {
                self.leave_out("beta header", beta, "unknown header");
            }
        }
    }

    fn add_beta(&mut self, beta: SmolStr) {
        if !self.betas.contains(&beta) {
            self.betas.push(beta);
        }
    }

    fn leave_out(&mut self, what: &str, name: &str, why: &str) {
        let name = clip_line(&sanitize(name), NAME_COLUMNS);
        self.notices.push(format!("left out the {what} `{name}` of the log: {why}"));
    }
}

/// The conversation request at an index of a branch, or the last one before it.
pub(crate) fn request_at(branch: &[LogEntry], at: usize) -> Option<&RequestRecord> {
    let (before, after) = branch.split_at(at.min(branch.len()));
    after.first().into_iter().chain(before.iter().rev()).find_map(|entry| match &entry.body {
        EntryBody::Request(request) if request.source.is_conversation() => Some(request),
        _ => None,
    })
}

fn effort_json(effort: &str) -> SharedText {
    let mut value = String::from(r#"{"effort":"#);
    escape_into(&mut value, effort);
    value.push('}');
    SharedText::from(value)
}
