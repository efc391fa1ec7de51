//! Refusals because of length (§4.16): what the provider's own figures say about its window, and the way to a request
//! that fits.
//!
//! The card may promise a larger window than the server has. So the figures of a refusal lower the limits of the
//! session, and the context is reduced under those limits: with a model once, then without one, as often as that makes
//! it smaller.

use pal_context::{CompactionTrigger, SummaryMethod};
use pal_model::text::group_digits;
use pal_model::{ContextOverflow, EntryDraft, Timestamp};

use crate::{CompactionResult, EngineError, Session, SessionConfig, SessionHost};

/// Size to reduce a refused context to if the provider stated no limit, in percent.
const GUESSED_PERCENT: u64 = 75;
/// Size below a stated limit that the next request keeps free for errors of our estimate, in percent.
const MARGIN_PERCENT: u64 = 3;
/// Minimum tokens of an answer for which a request is sent again with a smaller answer instead of a smaller prompt.
const ANSWER_TOKENS_MIN: u64 = 1_024;
/// Tokens left free when an answer is made to fit exactly.
const ANSWER_MARGIN: u64 = 16;

/// A window that the provider stated in a refusal.
#[derive(Clone, Copy)]
pub(crate) struct StatedWindow {
    /// In tokens as the session counts them.
    pub(crate) window: u64,
    /// In tokens as the provider counts them.
    pub(crate) provider_tokens: u64,
}

/// Answer tokens that fit beside the refused prompt; none if the prompt itself has to shrink.
pub(crate) fn fitting_answer(overflow: &ContextOverflow) -> Option<u64> {
    let room = overflow.answer_room()?.checked_sub(ANSWER_MARGIN)?;
    (room >= ANSWER_TOKENS_MIN && Some(room) < overflow.output).then_some(room)
}

/// Window, in tokens as the session counts them, after the provider refused a context that it counts as `size`.
pub(crate) fn window_after_refusal(size: u64, overflow: &ContextOverflow) -> u64 {
    let below = |share: u64| size.saturating_mul(share) / 100;
    let stated = match (overflow.prompt, overflow.window) {
        // The provider counts other tokens than we do: its limit is that share of what we sent.
        (Some(prompt), Some(window)) if prompt > 0 => {
            Some((window as f64 * size as f64 / prompt as f64) as u64)
        }
        (None, Some(window)) => Some(window),
        _ => None,
    };
    match stated {
        Some(window) if window < size => window - window * MARGIN_PERCENT / 100,
        // The prompt alone would have fit: the answer did not.
        Some(window) if overflow.output.is_some() && overflow.prompt.is_some() => window,
        _ => below(GUESSED_PERCENT),
    }
    .max(1)
}

impl Session {
    /// Lowers the limits to what a refusal says.
    pub(crate) fn lower_limits(
        &self,
        overflow: &ContextOverflow,
        config: &mut SessionConfig,
        stated: &mut Option<StatedWindow>,
    ) {
        let window = window_after_refusal(self.view.size().tokens, overflow);
        config.limits = config.limits.lowered_to(window);
        if let Some(provider_tokens) = overflow.window.filter(|tokens| *tokens < self.view.lens().card.window)
        {
            *stated = Some(StatedWindow { window, provider_tokens });
        }
    }

    /// Limits all answers, those of summaries included, to what the provider accepts for the model.
    pub(crate) fn limit_answers(&mut self, limit: u64) {
        let mut lens = self.view.lens().clone();
        lens.card.max_output = lens.card.max_output.min(limit);
        self.switch_model(lens);
    }

    /// Reduces a context that the provider refused; returns false if nothing is left to leave out.
    pub(crate) fn reduce(
        &mut self,
        reduction: &mut ContextReduction,
        overflow: &ContextOverflow,
        config: &SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<bool, EngineError> {
        // A prefix that is made for a larger window goes first: nothing of the conversation is lost by it.
        if let Some(prefix) = host.smaller_prefix(&self.view) {
            host.notice("the window is small: continuing with a shorter system prompt and fewer tools");
            self.append(EntryDraft::prefix(&prefix), now)?;
            return Ok(true);
        }
        // Both are estimates: a size that rests on reported usage cannot be compared with one that does not.
        let before = self.view.estimate();
        self.shorten_waiting(config, now, host)?;
        let is_smaller = self.view.estimate() < before;
        if is_smaller && !config.limits.fill(self.view.size().tokens).auto_compact {
            return Ok(true);
        }
        while let Some(step) = reduction.next_step() {
            let mut order = config.compaction_request(CompactionTrigger::Reactive);
            match step {
                ReductionStep::WithModel => self.drain(overflow.prompt, config, now, host)?,
                ReductionStep::WithoutModel => order.methods = Some(vec![SummaryMethod::Extractive]),
            }
            match self.compact(order, config, now, host)? {
                CompactionResult::Blocked(hook) => {
                    return Err(EngineError::Full(format!(
                        "the provider finds the request too long, and the hook `{hook}` forbids compaction: change the \
                         hook, or start anew"
                    )));
                }
                CompactionResult::Done { .. } | CompactionResult::Refused(_) => {}
            }
            if self.view.estimate() < before {
                return Ok(true);
            }
            if matches!(step, ReductionStep::WithoutModel) {
                break;
            }
        }
        Ok(false)
    }

    /// Error for a request that stays too long.
    pub(crate) fn too_long(&self, message: String) -> EngineError {
        EngineError::TooLong { message, fixed_tokens: group_digits(self.view.fixed_tokens() as u64) }
    }
}

/// Maximum reductions for one request. Each one makes the context smaller; this bounds what a server that refuses
/// everything can cost.
const REDUCTIONS_MAX: u32 = 12;

/// Progress of the reductions for one request: one with a model, then without.
#[derive(Default)]
pub(crate) struct ContextReduction {
    steps: u32,
}

#[derive(Clone, Copy)]
enum ReductionStep {
    WithModel,
    WithoutModel,
}

impl ContextReduction {
    fn next_step(&mut self) -> Option<ReductionStep> {
        self.steps += 1;
        match self.steps {
            1 => Some(ReductionStep::WithModel),
            step if step <= REDUCTIONS_MAX => Some(ReductionStep::WithoutModel),
            _ => None,
        }
    }

    /// Notice before the next reduction.
    pub(crate) fn notice(&self, why: &str) -> String {
        match self.steps {
            0 => format!("{why}: compacting"),
            _ => format!("still, {why}: compacting without a model"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_the_figures_of_the_refusal() {
        let stated = |prompt, window| ContextOverflow { prompt, window, ..ContextOverflow::UNKNOWN };
        // The provider counts as we do; it counts half of what we do; it says only the limit.
        assert_eq!(window_after_refusal(40_000, &stated(Some(40_000), Some(32_768))), 31_785);
        assert_eq!(window_after_refusal(80_000, &stated(Some(40_000), Some(32_768))), 63_570);
        assert_eq!(window_after_refusal(40_000, &stated(None, Some(32_768))), 31_785);
        // A limit above what we count, or none: it was refused all the same.
        assert_eq!(window_after_refusal(20_000, &stated(None, Some(32_768))), 15_000);
        assert_eq!(window_after_refusal(40_000, &ContextOverflow::UNKNOWN), 30_000);
        assert_eq!(window_after_refusal(0, &ContextOverflow::UNKNOWN), 1);
    }

    #[test]
    fn an_answer_that_does_not_fit_is_made_smaller() {
        let together = |prompt, output, window| ContextOverflow {
            prompt: Some(prompt),
            output: Some(output),
            window: Some(window),
            output_limit: None,
        };
        assert_eq!(fitting_answer(&together(190_000, 21_000, 200_000)), Some(9_984));
        // Too little would be left, or the provider counts the prompt alone.
        assert_eq!(fitting_answer(&together(199_500, 21_000, 200_000)), None);
        assert_eq!(fitting_answer(&together(201_000, 21_000, 200_000)), None);
        let alone =
            ContextOverflow { prompt: Some(190_000), window: Some(200_000), ..ContextOverflow::UNKNOWN };
        assert_eq!(fitting_answer(&alone), None);
    }
}
