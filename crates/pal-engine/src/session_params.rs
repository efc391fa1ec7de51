//! Parameters of a session's requests besides their content, and which of them are latched (§5.8).

use pal_context::cache::choose_ttl;
use pal_context::{ActionKind, LAYERS, RequestParams, validate_logged_member};
use pal_model::{Decision, DecisionKind, EntryBody, RequestRecord, SharedText, Timestamp};
use pal_view::CacheTtl;
use smol_str::SmolStr;

use crate::{CacheSettings, EngineError, Session, SessionConfig};

/// Name of the latch with the beta headers.
const BETAS_LATCH: &str = "betas";

impl Session {
    /// Latches the cache TTL and the beta headers if they are not latched yet.
    pub(crate) fn latch(&mut self, config: &SessionConfig, now: Timestamp) -> Result<(), EngineError> {
        let (_, decision) = choose_ttl(&self.view, &config.policy, config.cache.eligibility, Some(now));
        if let Some(decision) = decision {
            self.decide(&decision, now)?;
        }
        let betas = self.betas(config);
        if betas != self.latched_betas() {
            let value = betas.join(",");
            let reason = format!("beta headers that are sent from now on: {value}");
            let kind = DecisionKind::Latch { name: SmolStr::new_static(BETAS_LATCH), value };
            self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        }
        Ok(())
    }

    /// Parameters of requests sent now.
    pub(crate) fn params(&self, config: &SessionConfig, now: Timestamp) -> RequestParams {
        let (ttl, _) = choose_ttl(&self.view, &config.policy, config.cache.eligibility, Some(now));
        let effort = effort_member(&config.cache);
        let asked = LAYERS.iter().filter_map(|layer| match self.plan(*layer, config, now).kind {
            ActionKind::AskProvider { member, value } => Some((SmolStr::new_static(member), value)),
            _ => None,
        });
        let is_unmarked = config.cache.breakpoints_off;
        RequestParams {
            members: effort.into_iter().chain(asked).collect(),
            ttl,
            without_breakpoints: is_unmarked,
        }
    }

    /// Parameters of a fork: those of the conversation's last request to this model, whatever the settings say
    /// now, since anything else would miss the cache.
    pub(crate) fn fork_params(&self, config: &SessionConfig, now: Timestamp) -> RequestParams {
        let last = self.view.branch().iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() => Some(request),
            _ => None,
        });
        let ttl = |request: &RequestRecord| request.cache_ttl.as_deref().and_then(CacheTtl::from_name);
        match last.and_then(|request| Some((request, ttl(request)?))) {
            Some((request, ttl)) if request.model == self.view.lens().card.model => RequestParams {
                members: request
                    .members
                    .iter()
                    .filter_map(|(name, value)| validate_logged_member(name, value).ok())
                    .collect(),
                ttl,
                without_breakpoints: config.cache.breakpoints_off,
            },
            _ => self.params(config, now),
        }
    }

    /// Beta headers: the latched ones plus those of the model card.
    pub(crate) fn betas(&self, config: &SessionConfig) -> Vec<SmolStr> {
        let mut betas = self.latched_betas();
        betas.extend(
            config.cache.betas.iter().filter(|beta| !betas.contains(beta)).cloned().collect::<Vec<_>>(),
        );
        betas
    }

    fn latched_betas(&self) -> Vec<SmolStr> {
        let latched = self.view.state().latches.get(BETAS_LATCH).map_or("", String::as_str);
        // A name from a log goes into a header only if it looks like a beta name.
        let is_name = |beta: &&str| {
            !beta.is_empty()
                && beta.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        latched.split(',').filter(is_name).map(SmolStr::new).collect()
    }
}

/// Request member with the reasoning effort.
pub(crate) fn effort_member(cache: &CacheSettings) -> Option<(SmolStr, SharedText)> {
    let effort = cache.effort.as_ref()?;
    let mut value = String::from(r#"{"effort":"#);
    pal_model::escape_into(&mut value, effort);
    value.push('}');
    Some((SmolStr::new_static("output_config"), SharedText::from(value)))
}
