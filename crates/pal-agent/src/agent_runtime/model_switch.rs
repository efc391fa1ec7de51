//! The change to the fallback model and back.

use pal_engine::{EngineError, Session, SessionConfig};
use pal_model::{Decision, DecisionKind};
use pal_provider::RequestEncoder;

use crate::agent_runtime::AgentRuntime;
use crate::model_fallback::ModelFallback;
use crate::options::ModelProfile;

impl AgentRuntime<'_> {
    /// Goes on with the fallback model if the last request failed for lack of capacity; false if there is none left.
    pub(crate) fn fall_back_to_model(&mut self, session: &mut Session, config: &mut SessionConfig) -> bool {
        let Some((main, other)) = self.model.fallback.as_mut().and_then(ModelFallback::activate) else {
            return false;
        };
        let (main, other) = (main.lens.card.model.clone(), other.clone());
        self.events.warning(format!(
            "{main} is overloaded; {} answers the rest of this prompt (--fallback-model)",
            other.lens.card.model
        ));
        config.max_tokens = config.max_tokens.min(other.run.output_tokens_max);
        self.answer_with(other, session, config);
        true
    }

    /// Returns to the model of the session after a prompt that the fallback model finished.
    pub(crate) fn return_from_fallback(
        &mut self,
        session: &mut Session,
        config: &mut SessionConfig,
    ) -> Result<(), EngineError> {
        let Some(main) = self.model.fallback.as_mut().and_then(ModelFallback::deactivate) else {
            return Ok(());
        };
        let model = main.lens.card.model.clone();
        self.answer_with(main, session, config);
        // A session that is continued later takes the model of the newest entry.
        let reason = format!("{model} answers the next prompt: the fallback model was for one prompt");
        let kind = DecisionKind::Model { model };
        session.decide(&Decision { kind, reason, cost: Default::default() }, self.clock.now())?;
        Ok(())
    }

    /// Sends the next requests to another model. The session records the change with its next request.
    fn answer_with(&mut self, profile: ModelProfile, session: &mut Session, config: &mut SessionConfig) {
        let ModelProfile { lens, limits, cache, .. } = profile;
        let dialect = self.model.connection.endpoint().dialect();
        self.model.encoder = RequestEncoder::new(&lens.card, dialect, session.cache_key());
        self.model.card = lens.card.clone();
        self.project.prompt.switch_model(&lens.card, limits.window);
        self.switches.set_limits(&limits);
        (config.limits, config.cache) = (limits, cache);
        self.switches.apply(config);
        session.switch_model(lens);
    }
}
