//! What the requests of a session carry besides their content, and what of it is fixed (§5.8).

use pal_context::cache::latched_lifetime;
use pal_context::{LAYERS, Standing, What};
use pal_model::{Decision, DecisionKind, Source, Text, Timestamp};
use smol_str::SmolStr;

use crate::{Engine, EngineError, Session};

/// The latch that holds the beta headers.
const BETAS_LATCH: &str = "betas";

impl Session {
    /// Fixes what is still to be fixed: for how long marks last, and which beta headers are sent.
    pub(crate) fn latch(&mut self, engine: &Engine, now: Timestamp) -> Result<(), EngineError> {
        let (_, decision) = latched_lifetime(self.view.state(), &Source::main(), engine.cache.eligibility);
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
        let (lifetime, _) = latched_lifetime(self.view.state(), &Source::main(), engine.cache.eligibility);
        let effort = engine.cache.effort.as_ref().map(|effort| {
            let mut value = String::from(r#"{"effort":"#);
            pal_model::escape_into(&mut value, effort);
            value.push('}');
            ("output_config", Text::from(value))
        });
        let asked = LAYERS.iter().filter_map(|layer| match self.plan(*layer, engine, now).what {
            What::AskProvider { member, value } => Some((member, value)),
            _ => None,
        });
        Standing { members: effort.into_iter().chain(asked).collect(), lifetime }
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
        latched.split(',').filter(|beta| !beta.is_empty()).map(SmolStr::new).collect()
    }
}
