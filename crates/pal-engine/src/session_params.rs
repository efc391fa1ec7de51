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
        let (_, decision) = choose_ttl(&self.view, &config.policy, config.cache.ttl_preference, Some(now));
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
        let (ttl, _) = choose_ttl(&self.view, &config.policy, config.cache.ttl_preference, Some(now));
        let effort = output_member(&config.cache, self.spent_before_boundary());
        let asked = LAYERS.iter().filter_map(|layer| match self.plan(*layer, config, now).kind {
            ActionKind::AskProvider { member, value } => Some((SmolStr::new_static(member), value)),
            _ => None,
        });
        let is_unmarked = config.cache.breakpoints_off;
        RequestParams {
            members: effort.into_iter().chain(asked).collect(),
            ttl,
            without_breakpoints: is_unmarked,
            shared_blocks: self.shared_blocks,
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
            Some((request, ttl)) if request.model == self.view.lens().card.name => RequestParams {
                members: request
                    .members
                    .iter()
                    .filter_map(|(name, value)| validate_logged_member(name, value).ok())
                    .collect(),
                ttl,
                without_breakpoints: config.cache.breakpoints_off,
                shared_blocks: 0,
            },
            _ => self.params(config, now),
        }
    }

    /// Tokens of the task up to the newest compaction: all that was produced or read for the first time. None without a
    /// compaction, because then the provider sees them itself.
    fn spent_before_boundary(&self) -> Option<u64> {
        self.view.branch().iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Boundary(boundary) => {
                let totals = &boundary.snapshot.totals;
                let new = [totals.input_tokens, totals.cache_creation_input_tokens, totals.output_tokens];
                Some(new.into_iter().fold(0, u64::saturating_add))
            }
            _ => None,
        })
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

/// Request member with the reasoning effort and the task budget. `spent` are the tokens of a compacted past, which the
/// provider no longer sees.
pub(crate) fn output_member(cache: &CacheSettings, spent: Option<u64>) -> Option<(SmolStr, SharedText)> {
    let mut fields = Vec::new();
    if let Some(effort) = &cache.effort {
        let mut field = String::from(r#""effort":"#);
        pal_model::escape_into(&mut field, effort);
        fields.push(field);
    }
    if let Some(total) = cache.task_budget {
        let remaining =
            spent.map_or(String::new(), |spent| format!(r#","remaining":{}"#, total.saturating_sub(spent)));
        fields.push(format!(r#""task_budget":{{"type":"tokens","total":{total}{remaining}}}"#));
    }
    let value = format!("{{{}}}", fields.join(","));
    (!fields.is_empty()).then(|| (SmolStr::new_static("output_config"), SharedText::from(value)))
}
