//! Corrects token estimates by the usage that responses report (§10.7).
//!
//! Factors are frozen in the log, so that a resumed session estimates the same. Those of earlier sessions are taken over
//! when a session starts; for a model whose tokenizer is unknown, the first usage of the session decides otherwise.

use pal_model::{Decision, DecisionKind, Timestamp, TokenGeneration, Usage};
use pal_view::{Calibration, ContextSize, CorrectionFactor};

use crate::{EngineError, ModelResponse, Session, SessionHost, TokenObservation};

/// Smallest share of the estimate that a first usage can be, in percent: below it, the server has left out part of the prompt.
const PLAUSIBLE_PERCENT: f64 = 60.0;
/// Share of the estimate below which usage that does not grow proves that the server cuts prompts, in percent.
const CUT_PERCENT: f64 = 75.0;
/// Estimated growth that must show in the usage.
const VISIBLE_GROWTH: f64 = 512.0;

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

    /// Window of a server that silently leaves out what does not fit: the prompt grew, its usage did not. Local servers do so
    /// (Ollama); for models of known providers the question does not arise.
    pub(crate) fn silent_window(&self, sent: &ContextSize, answered: &ModelResponse) -> Option<u64> {
        if self.view.lens().card.generation != TokenGeneration::Neutral || answered.cleared_tokens > 0 {
            return None;
        }
        let earlier = sent.anchor.as_ref().filter(|_| sent.freed == 0)?.usage.prompt_tokens();
        let reported = answered.usage.prompt_tokens();
        let has_grown = reported > earlier + earlier / 100;
        let is_cut = (reported as f64) < self.view.estimate() * CUT_PERCENT / 100.0;
        (answered.usage.has_prompt() && sent.estimated >= VISIBLE_GROWTH && !has_grown && is_cut)
            .then_some(reported)
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
        let generation = self.view.lens().card.generation;
        let is_neutral = generation == TokenGeneration::Neutral;
        if is_neutral && (observation.reported as f64) < observation.estimated * PLAUSIBLE_PERCENT / 100.0 {
            return Ok(());
        }
        host.observe_tokens(&observation);
        if !is_neutral {
            return Ok(());
        }
        let mut calibration = Calibration::default();
        calibration.observe(observation.estimated, observation.reported);
        let factor = calibration.factor_for(generation);
        let reason = format!("the first usage reported is {:.2} times the estimate", factor.as_f64());
        self.freeze_factor(factor, reason, now)
    }
}
