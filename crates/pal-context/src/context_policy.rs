//! Policy settings of the layers, and budgets scaled to the window.

use std::collections::BTreeMap;
use std::time::Duration;

use pal_view::{WindowLimits, window_scale};
use smol_str::SmolStr;

use crate::condense::CondenseModes;
use crate::pause_history::PauseHistory;
use crate::policy_figures::FittedFigures;

/// Settings of the layers. All fields are given explicitly.
#[derive(Clone, PartialEq, Debug)]
pub struct ContextPolicy {
    /// Spills large tool results and pastes to disk.
    pub spill: bool,
    /// Condenses verbose tool results before they are first sent.
    pub condense: bool,
    /// Hides redundant calls.
    pub snip: bool,
    /// Clears old results when the cache is cold.
    pub cold_clear: bool,
    /// Lets the provider clear old results, if the card supports it.
    pub warm_clear: bool,
    /// Clears old results under pressure, if the provider cannot.
    pub pressure: bool,
    /// Clears a warm cache before the window is full (by the provider or under pressure), not only where the
    /// request would not fit otherwise: the cleared prompt is written to the cache again.
    pub early_clear: bool,
    /// Folds old stretches.
    pub fold: bool,
    /// Lets the provider summarize, if the card supports it.
    pub provider_compaction: bool,
    /// Compacts only after the provider refused a request as too long, not at the threshold.
    pub reactive_only: bool,
    /// Asks the small model for the summary after a refusal, if its window holds the conversation.
    pub reactive_small_model: bool,
    /// Model that writes the summaries of compactions, if its window holds the conversation; `None` for the
    /// conversation's own.
    pub compaction_model: Option<SmolStr>,
    /// Condition for condensing, by format.
    pub condense_modes: CondenseModes,
    /// Target characters of a condensed result; a listing has twice as many.
    pub condense_characters: u64,
    /// Maximum characters of a tool result before it is spilled.
    pub spill_characters: u64,
    /// Overrides of `spill_characters` by tool.
    pub spill_characters_by_tool: BTreeMap<SmolStr, u64>,
    /// Maximum characters of all results in one message.
    pub spill_characters_of_message: u64,
    /// Maximum characters of a user text before it is spilled.
    pub spill_characters_of_user: u64,
    /// Idle time after which the cache counts as cold.
    pub cold_after: Duration,
    /// Results kept by a cold clear.
    pub cold_keep: usize,
    /// Number of live results at which cache edits begin.
    pub cache_edit_from: usize,
    /// Results kept by a cache edit.
    pub cache_edit_keep: usize,
    /// Results kept by a clear under pressure.
    pub pressure_keep: usize,
    /// Messages at the end that are never snipped.
    pub snip_keep_messages: usize,
    /// Percentage of the effective window at which folding begins.
    pub fold_from_percent: u64,
    /// Percentage of the effective window at which a request waits for the fold.
    pub fold_drain_percent: u64,
    /// Files that a compaction restores.
    pub restoration: RestorationBudget,
    /// Tokens of verbatim lines that a compaction restores because the agent works with their names, on a full window.
    pub restored_line_tokens: u64,
    /// Compacts in a pause, shortly before the cache expires, where that is expected to pay (§10.5).
    pub idle_compaction: bool,
    /// Settings of the cost-aware policy (§10.5), which decides by price what to clear and compact; `None`
    /// for thresholds alone.
    pub cost_aware: Option<CostAwareSettings>,
}

/// Default target characters of a condensed result.
pub const CONDENSE_CHARACTERS: u64 = 4_000;

impl ContextPolicy {
    /// The `threshold` policy: acts at fixed thresholds.
    pub fn threshold() -> ContextPolicy {
        ContextPolicy {
            spill: true,
            condense: true,
            snip: false,
            cold_clear: true,
            warm_clear: true,
            pressure: true,
            early_clear: false,
            fold: false,
            provider_compaction: false,
            reactive_only: false,
            reactive_small_model: false,
            compaction_model: None,
            condense_modes: CondenseModes::STANDARD,
            condense_characters: CONDENSE_CHARACTERS,
            spill_characters: 50_000,
            spill_characters_by_tool: BTreeMap::new(),
            spill_characters_of_message: 200_000,
            spill_characters_of_user: 200_000,
            cold_after: Duration::from_secs(60 * 60),
            cold_keep: 5,
            cache_edit_from: 12,
            cache_edit_keep: 5,
            pressure_keep: 3,
            snip_keep_messages: 20,
            fold_from_percent: 90,
            fold_drain_percent: 95,
            restoration: RestorationBudget::STANDARD,
            restored_line_tokens: 1_000,
            idle_compaction: false,
            cost_aware: None,
        }
    }

    /// The `cost-aware` policy: takes the cheapest move from here on; the thresholds hold as limits.
    pub fn cost_aware(thrift: CostAwareSettings) -> ContextPolicy {
        ContextPolicy {
            cost_aware: Some(thrift),
            idle_compaction: true,
            cold_keep: 3,
            restoration: RestorationBudget::SPREAD,
            ..ContextPolicy::threshold()
        }
    }

    /// No layers: everything is sent unchanged.
    pub fn none() -> ContextPolicy {
        ContextPolicy {
            spill: false,
            condense: false,
            cold_clear: false,
            warm_clear: false,
            pressure: false,
            ..ContextPolicy::threshold()
        }
    }
}

/// Settings of the cost-aware policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CostAwareSettings {
    /// Weight of re-reading removed content, from 0 to 1: 0.5 is its expected cost, 0 ignores it, 1 doubles
    /// it.
    pub loss_weight: f64,
    /// Allows keep-alive requests, which only keep the cache warm.
    pub cache_keepalive: bool,
    /// Expectations before the session has shown its own figures.
    pub figures: FittedFigures,
    /// Earlier pauses that `figures` account for.
    pub pause_history: PauseHistory,
}

impl CostAwareSettings {
    /// Default settings.
    pub const STANDARD: CostAwareSettings = CostAwareSettings {
        loss_weight: 0.5,
        cache_keepalive: false,
        figures: FittedFigures::SHIPPED,
        pause_history: PauseHistory::EMPTY,
    };

    /// Settings that expect pauses such as those of earlier sessions. `self` must not account for a history yet.
    pub fn with_pause_history(self, history: &PauseHistory) -> CostAwareSettings {
        let turn_pauses = history.expected_shares(self.figures.turn_pauses);
        let figures = FittedFigures { turn_pauses, ..self.figures };
        CostAwareSettings { figures, pause_history: *history, ..self }
    }

    /// Multiplier for the expected price of a loss.
    pub(crate) fn weight(self) -> f64 {
        2.0 * self.loss_weight.clamp(0.0, 1.0)
    }
}

/// How much of the files in use a compaction restores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestorationBudget {
    /// Maximum number of files.
    pub files: usize,
    /// Tokens of all files together, on a full window.
    pub tokens: u64,
    /// Tokens of one file, on a full window.
    pub file_tokens: u64,
}

impl RestorationBudget {
    /// Few files, each as long as a file may be (§4.10).
    pub const STANDARD: RestorationBudget =
        RestorationBudget { files: 5, tokens: 50_000, file_tokens: 5_000 };
    /// More files, of each the part that was in use: what a file costs to carry grows with its length, what a call costs that reads it
    /// again hardly does.
    pub const SPREAD: RestorationBudget = RestorationBudget { files: 25, tokens: 12_000, file_tokens: 1_500 };
}

/// Token budgets, scaled to the window (§0.4).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WindowBudgets {
    scale: f64,
}

impl WindowBudgets {
    /// Budgets for a window.
    pub fn new(limits: &WindowLimits) -> WindowBudgets {
        WindowBudgets { scale: window_scale(limits.window) }
    }

    /// Tokens for all pins together.
    pub fn pins(&self) -> u64 {
        self.scale(8_000)
    }

    /// Scales a budget, given for a window of 200,000 tokens, to this window.
    pub fn scale(&self, tokens: u64) -> u64 {
        (tokens as f64 * self.scale) as u64
    }
}
