//! What the next request of a session carries besides its content: what the session's requests carried before, and what
//! the settings say where those say nothing.
//!
//! A log is a file like any other and may come from anywhere. What of it would go into a request as it stands is taken
//! only if we know its name and it is whole JSON, so that no log can write a body or a header of its own.

use pal_context::Standing;
use pal_context::cache::lifetime_of;
use pal_model::{Body, Card, Entry, RequestSent, Text, escape_into};
use pal_view::{CacheLifetime, View};
use pal_wire::Beta;
use smol_str::SmolStr;

use crate::aside;
use crate::colour::clipped;
use crate::settings::Settings;
use crate::stored::{eligibility, policy};
use crate::table::harmless;

/// The member that holds the effort.
const OUTPUT: &str = "output_config";
/// So much of a name from a log is shown.
const NAME_COLUMNS: usize = 60;

/// What a request carries besides its content.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) standing: Standing,
    /// The beta headers that the session sends, and those that the model's card asks for.
    pub(crate) betas: Vec<SmolStr>,
    /// What of the log was left out, and why.
    pub(crate) notices: Vec<String>,
}

impl Carried {
    /// What a request carries that is like the one `before`. A request to another model says nothing: what it carried
    /// was meant for that one.
    pub(crate) fn like(
        before: Option<&RequestSent>,
        view: &View,
        card: &Card,
        settings: &Settings,
    ) -> Carried {
        let before = before.filter(|request| request.model == card.model);
        let mut carried = Carried::default();
        if let Some(before) = before {
            carried.take_members(before);
            carried.take_betas(before);
        }
        // A request that we rendered had no effort if it names none; of others only what is named is known.
        let is_whole = before.is_some_and(|before| before.fingerprint.is_some());
        let members = &mut carried.standing.members;
        if let Some(effort) = settings.effort.as_deref().filter(|_| !is_whole)
            && !members.iter().any(|(name, _)| *name == OUTPUT)
        {
            members.insert(0, (SmolStr::new_static(OUTPUT), with_effort(effort)));
        }
        let named = before.and_then(|before| CacheLifetime::named(before.lifetime.as_ref()?));
        let (latched, _) = lifetime_of(view, &policy(settings), eligibility(settings), None);
        carried.standing.lifetime = named.unwrap_or(latched);
        for beta in pal_wire::betas(card) {
            carried.add_beta(SmolStr::new_static(beta));
        }
        carried
    }

    /// Tells on standard error what was left out.
    pub(crate) fn tell(&self) {
        for notice in &self.notices {
            aside::tell(notice);
        }
    }

    fn take_members(&mut self, before: &RequestSent) {
        for (name, value) in &before.members {
            match pal_context::carried_member(name, value) {
                Ok(member) => self.standing.members.push(member),
                Err(why) => self.leave_out("member", name, why),
            }
        }
    }

    fn take_betas(&mut self, before: &RequestSent) {
        for beta in &before.betas {
            if beta.trim() == beta && Beta::from_header(beta).is_some() {
                self.add_beta(beta.clone());
            } else {
                self.leave_out("beta header", beta, "pal knows no such header");
            }
        }
    }

    fn add_beta(&mut self, beta: SmolStr) {
        if !self.betas.contains(&beta) {
            self.betas.push(beta);
        }
    }

    fn leave_out(&mut self, what: &str, name: &str, why: &str) {
        let name = clipped(&harmless(name), NAME_COLUMNS);
        self.notices.push(format!("the {what} `{name}` of the log is left out: {why}"));
    }
}

/// The request at a place of a branch, or the last one of the conversation before it.
pub(crate) fn request_at(branch: &[Entry], at: usize) -> Option<&RequestSent> {
    let (before, after) = branch.split_at(at.min(branch.len()));
    after.first().into_iter().chain(before.iter().rev()).find_map(|entry| match &entry.body {
        Body::Request(request) if request.source.is_conversation() => Some(request),
        _ => None,
    })
}

/// A key that steers all requests of a session, its forks and branches included, to one cache of the provider.
pub(crate) fn cache_key(branch: &[Entry]) -> Option<String> {
    branch.first().map(|entry| format!("pal-{}", entry.id))
}

fn with_effort(effort: &str) -> Text {
    let mut value = String::from(r#"{"effort":"#);
    escape_into(&mut value, effort);
    value.push('}');
    Text::from(value)
}
