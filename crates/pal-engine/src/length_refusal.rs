//! Refusals because of length (§4.16): what the provider's own figures say about its window, and the way to a request
//! that fits.
//!
//! The card may promise a larger window than the server has. So the figures of a refusal lower the limits of the
//! session, and the context is reduced under those limits: with a model once, then without one, as often as that makes
//! it smaller. Without figures, the largest accepted and the smallest refused size bound the window.

use pal_context::{CompactionTrigger, SummaryMethod};
use pal_model::text::group_digits;
use pal_model::{ContextOverflow, EntryDraft, Timestamp};

use crate::{CompactionResult, EngineError, GuessedWindow, Session, SessionConfig, SessionHost};

/// Size to reduce a refused context to if the provider stated no limit, in percent.
const GUESSED_PERCENT: u64 = 75;
/// Size below a stated limit that the next request keeps free for errors of our estimate, in percent.
const MARGIN_PERCENT: u64 = 3;
/// Minimum tokens of an answer for which a request is sent again with a smaller answer instead of a smaller prompt.
const ANSWER_TOKENS_MIN: u64 = 1_024;
/// Tokens left free when an answer is made to fit exactly.
const ANSWER_MARGIN: u64 = 16;

/// Largest refused size that proves a smaller window than the card's, in percent of that window: above it, an estimate
/// may be wrong.
const PROOF_PERCENT: u64 = 80;

/// Sizes that bound a window that the provider does not state, in tokens as the session counts them.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct WindowBounds {
    /// Largest size that was accepted; 0 if none was.
    pub(crate) accepted: u64,
    /// Smallest size that was refused.
    pub(crate) refused: u64,
}

impl WindowBounds {
    /// Window to assume: never less than what was accepted.
    pub(crate) fn window(self) -> u64 {
        let below = |percent: u64| self.refused.saturating_mul(percent) / 100;
        let accepted = if self.accepted < self.refused { self.accepted } else { 0 };
        below(GUESSED_PERCENT).max(accepted.min(below(100 - MARGIN_PERCENT))).max(1)
    }
}

/// Findings about the provider's window from the refusals of one request.
#[derive(Clone, Copy, Default)]
pub(crate) struct RefusalFindings {
    pub(crate) stated: Option<StatedWindow>,
    /// Size of the last context that was refused without a stated window, in tokens as the session counts them.
    refused: Option<u64>,
    /// Window assumed so that the prefix became smaller.
    prefix_window: Option<u64>,
}

impl RefusalFindings {
    /// Window to assume after a request of at most `accepted` tokens was accepted; none without a refusal that
    /// stated no window.
    pub(crate) fn guessed_window(&self, accepted: u64) -> Option<GuessedWindow> {
        let bounds = WindowBounds { accepted, refused: self.refused? };
        let window = bounds.window().min(self.prefix_window.unwrap_or(u64::MAX));
        Some(GuessedWindow { window, accepted, refused: bounds.refused })
    }

    /// Window in which a context that was made smaller than the refused one is sent although it does not leave the
    /// usual room: the assumed window may be too small. None if the provider stated its window.
    pub(crate) fn window_for_attempt(&self, size: u64) -> Option<u64> {
        let refused = self.refused.filter(|_| self.stated.is_none())?;
        (size < refused).then(|| size + size / 20 + 2 * ANSWER_TOKENS_MIN)
    }
}

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

/// Window, in tokens as the session counts them, after the provider refused a context of `bounds.refused` tokens.
pub(crate) fn window_after_refusal(bounds: WindowBounds, overflow: &ContextOverflow) -> u64 {
    let size = bounds.refused;
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
        _ => bounds.window(),
    }
    .max(1)
}

impl Session {
    /// Lowers the limits to what a refusal says.
    pub(crate) fn lower_limits(
        &mut self,
        overflow: &ContextOverflow,
        config: &mut SessionConfig,
        findings: &mut RefusalFindings,
    ) {
        let bounds = WindowBounds { accepted: self.accepted_tokens, refused: self.view.size().tokens };
        let window = window_after_refusal(bounds, overflow);
        config.limits = config.limits.lowered_to(window);
        match overflow.window {
            Some(provider_tokens) if provider_tokens < self.view.lens().card.window => {
                findings.stated = Some(StatedWindow { window, provider_tokens });
            }
            Some(_) => {}
            // It was accepted before: that says nothing about the window, unless it happens again.
            None if bounds.refused <= bounds.accepted => self.accepted_tokens = 0,
            None => findings.refused = Some(bounds.refused),
        }
    }

    /// Keeps what the refusals of an accepted request say about the window, for this session and later ones.
    pub(crate) fn keep_findings(
        &self,
        findings: &RefusalFindings,
        config: &mut SessionConfig,
        host: &mut dyn SessionHost,
    ) {
        if let Some(StatedWindow { window, provider_tokens }) = findings.stated {
            config.limits = config.limits.lowered_to(window);
            host.learn_window(provider_tokens);
        }
        if let Some(guessed) = findings.guessed_window(self.accepted_tokens) {
            // Estimates vary: a later refusal of a larger context says nothing new.
            let is_news = guessed.window < config.limits.window;
            config.limits = config.limits.lowered_to(guessed.window);
            let proven = self.view.lens().card.window.saturating_mul(PROOF_PERCENT) / 100;
            if is_news && findings.stated.is_none() && guessed.refused <= proven {
                host.learn_guessed_window(&guessed);
            }
        }
    }

    /// Continues with the prefix for small windows, where nothing else can be left out of a context that was refused
    /// without figures; returns false if the prefix is that one already.
    pub(crate) fn shrink_prefix(
        &mut self,
        findings: &mut RefusalFindings,
        config: &mut SessionConfig,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<bool, EngineError> {
        let mut window = config.limits.window;
        while findings.refused.is_some() && window > 1 {
            window = window.saturating_mul(GUESSED_PERCENT) / 100;
            if self.use_smaller_prefix(window, now, host)? {
                findings.prefix_window = Some(window);
                config.limits = config.limits.lowered_to(window);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends the prefix for a window, if it is smaller than the one in use.
    pub(crate) fn use_smaller_prefix(
        &mut self,
        window: u64,
        now: Timestamp,
        host: &mut dyn SessionHost,
    ) -> Result<bool, EngineError> {
        let Some(prefix) = host.smaller_prefix(&self.view, window) else { return Ok(false) };
        host.notice("the window is small: continuing with a shorter system prompt and fewer tools");
        self.append(EntryDraft::prefix(&prefix), now)?;
        Ok(true)
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
        // A prefix that is made for a larger window goes first: nothing of the conversation is lost by it. The provider's own
        // figure says best how large its window is.
        let window = overflow.window.unwrap_or(config.limits.window);
        if self.use_smaller_prefix(window, now, host)? {
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
        EngineError::TooLong {
            message,
            tokens: group_digits(self.view.size().tokens),
            fixed_tokens: group_digits(self.view.fixed_tokens() as u64),
        }
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
        let window_after_refusal = |refused, overflow: &ContextOverflow| {
            window_after_refusal(WindowBounds { accepted: 0, refused }, overflow)
        };
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
    fn accepted_and_refused_sizes_bound_a_window_without_figures() {
        let window = |accepted, refused| WindowBounds { accepted, refused }.window();
        assert_eq!(window(0, 40_000), 30_000);
        assert_eq!(window(10_000, 40_000), 30_000);
        assert_eq!(window(35_000, 40_000), 35_000);
        assert_eq!(window(39_999, 40_000), 38_800, "below what was refused");
        assert_eq!(window(50_000, 40_000), 30_000, "what was accepted before is refused now");
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
