//! What the requests of a session carry besides their content, and what of it is fixed (§5.8).

use pal_context::cache::lifetime_of;
use pal_context::{LAYERS, Standing, What, carried_member};
use pal_model::{Body, Decision, DecisionKind, RequestSent, Text, Timestamp};
use pal_view::CacheLifetime;
use smol_str::SmolStr;

use crate::{CacheSettings, Engine, EngineError, Session};

/// The latch that holds the beta headers.
const BETAS_LATCH: &str = "betas";

impl Session {
    /// Fixes what is still to be fixed: for how long marks last, and which beta headers are sent.
    pub(crate) fn latch(&mut self, engine: &Engine, now: Timestamp) -> Result<(), EngineError> {
        let (_, decision) = lifetime_of(&self.view, &engine.policy, engine.cache.eligibility, Some(now));
        if let Some(decision) = decision {
            self.decide(&decision, now)?;
        }
        let betas = self.betas(engine);
        if betas != self.latched_betas() {
            let value = betas.join(",");
            let reason = format!("beta headers that are sent from now on: {value}");
            let kind = DecisionKind::Latch { name: SmolStr::new_static(BETAS_LATCH), value };
            self.decide(&Decision { kind, reason, cost: Default::default() }, now)?;
        }
        Ok(())
    }

    /// What requests that leave now carry besides their content.
    pub(crate) fn standing(&self, engine: &Engine, now: Timestamp) -> Standing {
        let (lifetime, _) = lifetime_of(&self.view, &engine.policy, engine.cache.eligibility, Some(now));
        let effort = effort_member(&engine.cache);
        let asked = LAYERS.iter().filter_map(|layer| match self.plan(*layer, engine, now).what {
            What::AskProvider { member, value } => Some((SmolStr::new_static(member), value)),
            _ => None,
        });
        let is_unmarked = engine.cache.marks_off;
        Standing { members: effort.into_iter().chain(asked).collect(), lifetime, is_unmarked }
    }

    /// What a fork carries: exactly what the conversation's last request of this model carried, whatever the settings say
    /// by now, or it would be another request.
    pub(crate) fn fork_standing(&self, engine: &Engine, now: Timestamp) -> Standing {
        let last = self.view.branch().iter().rev().find_map(|entry| match &entry.body {
            Body::Request(request) if request.source.is_conversation() => Some(request),
            _ => None,
        });
        let lifetime = |request: &RequestSent| request.lifetime.as_deref().and_then(CacheLifetime::named);
        match last.and_then(|request| Some((request, lifetime(request)?))) {
            Some((request, lifetime)) if request.model == self.view.lens().card.model => Standing {
                members: request
                    .members
                    .iter()
                    .filter_map(|(name, value)| carried_member(name, value).ok())
                    .collect(),
                lifetime,
                is_unmarked: engine.cache.marks_off,
            },
            _ => self.standing(engine, now),
        }
    }

    /// The beta headers: those that were sent before, and what the model's card asks for.
    pub(crate) fn betas(&self, engine: &Engine) -> Vec<SmolStr> {
        let mut betas = self.latched_betas();
        betas.extend(
            engine.cache.betas.iter().filter(|beta| !betas.contains(beta)).cloned().collect::<Vec<_>>(),
        );
        betas
    }

    fn latched_betas(&self) -> Vec<SmolStr> {
        let latched = self.view.state().latches.get(BETAS_LATCH).map_or("", String::as_str);
        // What stands in a log goes into a header only if it looks like the name of a beta.
        let is_name = |beta: &&str| {
            !beta.is_empty()
                && beta.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        latched.split(',').filter(is_name).map(SmolStr::new).collect()
    }
}

/// The member of a request that says how hard the model shall think.
pub(crate) fn effort_member(cache: &CacheSettings) -> Option<(SmolStr, Text)> {
    let effort = cache.effort.as_ref()?;
    let mut value = String::from(r#"{"effort":"#);
    pal_model::escape_into(&mut value, effort);
    value.push('}');
    Some((SmolStr::new_static("output_config"), Text::from(value)))
}
