//! Corrects token estimates by the usage that responses report (§10.7).
//!
//! Factors are frozen in the log, so that a resumed session estimates the same. Those of earlier sessions are taken over
//! when a session starts; for a model whose tokenizer is unknown, the first usage of the session decides otherwise.

use pal_model::{Decision, DecisionKind, Timestamp, TokenGeneration, Usage};
use pal_view::{Calibration, ContextSize, CorrectionFactor};

use crate::{EngineError, ModelResponse, Session, SessionHost, TokenObservation};

/// Compares the size of a context before it was sent with the reported usage; none if they do not compare.
fn observation(sent: &ContextSize, usage: &Usage) -> Option<TokenObservation> {
    if !usage.has_prompt() || sent.freed > 0 {
        return None;
    }
    let known = sent.anchor.as_ref().map_or(0, |anchor| anchor.tokens);
    let reported = usage.prompt_tokens().checked_sub(known).filter(|grown| *grown > 0)?;
    Some(TokenObservation { estimated: sent.estimated, reported })
}

impl Session {
    /// Freezes the correction factor of the session's model, unless it has one.
    pub fn freeze_factor(
        &mut self,
        factor: CorrectionFactor,
        reason: String,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let model = self.view.lens().card.model.clone();
        if factor == CorrectionFactor::ONE || self.view.state().factors.contains_key(&model) {
            return Ok(());
        }
        let kind = DecisionKind::Factors { factors: [(model, u32::from(factor))].into() };
        self.decide(&Decision { kind, reason, cost: Default::default() }, now).map(|_| ())
    }

    /// Learns from the usage of an answered request; `sent` is the size of the context before it.
    pub(crate) fn observe_usage(
        &mut self,
        sent: &ContextSize,
        answered: &ModelResponse,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<(), EngineError> {
        // Cleared content is not in the reported prompt, unseen content not in the estimate.
        let is_unseen = self.view.prefix().is_some_and(|prefix| prefix.unseen_tokens > 0);
        if answered.cleared_tokens > 0 || is_unseen || !self.view.lens().estimator.is_fitted() {
            return Ok(());
        }
        let Some(observation) = observation(sent, &answered.usage) else { return Ok(()) };
        host.observe_tokens(&observation);
        let generation = self.view.lens().card.generation;
        if generation != TokenGeneration::Neutral {
            return Ok(());
        }
        let mut calibration = Calibration::default();
        calibration.observe(observation.estimated, observation.reported);
        let factor = calibration.factor_for(generation);
        let reason = format!("the first usage reported is {:.2} times the estimate", factor.as_f64());
        self.freeze_factor(factor, reason, now)
    }
}
