//! Compared policies by name: those of this project, and those of other agents, rebuilt from the constants they publish.

use crate::replay::{ExtraLayer, ReplayOptions};
use pal_context::ContextPolicy;
use pal_context::cost_aware::CostAwareSettings;
use pal_model::ModelCard;
use pal_view::{CompactionThreshold, WindowLimits, WindowSettings};

use crate::comparison::peer_policies::{PRUNE, SLIDE, SLIDE_FROM};

/// A policy under its name.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRow {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// Description in a few words.
    pub about: &'static str,
    /// True if it is a policy of this project.
    pub is_ours: bool,
    settle: fn(&mut ReplayOptions),
    /// Tokens from which on it may do something that `none` does not do, at a window; none if it may at any size.
    acts_from: fn(&WindowLimits) -> Option<u64>,
}

/// Without any layer, compacted only where nothing fits any more.
pub(crate) const NONE: &str = "none";
/// Baseline of all comparisons.
pub(crate) const THRESHOLD: &str = "threshold";

/// Tokens at which some compact or clear, whatever the window.
const EARLY: u64 = 100_000;

/// All rows, in the order of the report.
pub const POLICY_ROWS: &[PolicyRow] = &[
    PolicyRow {
        name: NONE,
        about: "everything is sent as it was said; compacts only where it would not fit any more",
        is_ours: true,
        settle: |_| {},
        acts_from: |limits| limits.auto_compact,
    },
    PolicyRow {
        name: "birth",
        about: "`none`, but large results go to disk and verbose ones are condensed before they are first sent",
        is_ours: true,
        settle: |options| {
            options.layers = ContextPolicy { spill: true, condense: true, ..ContextPolicy::none() };
        },
        acts_from: |_| None,
    },
    PolicyRow {
        name: THRESHOLD,
        about: "our layers by their thresholds, compaction 33 K below the window",
        is_ours: true,
        settle: |options| options.layers = ContextPolicy::threshold(),
        acts_from: |_| None,
    },
    PolicyRow {
        name: "cost-aware",
        about: "our layers by what they cost from here on, losses included",
        is_ours: true,
        settle: |options| options.layers = ContextPolicy::cost_aware(CostAwareSettings::STANDARD),
        acts_from: |_| None,
    },
    PolicyRow {
        name: "compact-50",
        about: "compacts at 50 % of the window (gemini-cli)",
        is_ours: false,
        settle: |options| options.threshold = CompactionThreshold::Percent(50.0),
        acts_from: |limits| Some(limits.effective / 2),
    },
    PolicyRow {
        name: "compact-80",
        about: "compacts at 80 % (goose)",
        is_ours: false,
        settle: |options| options.threshold = CompactionThreshold::Percent(80.0),
        acts_from: |limits| Some(limits.effective * 80 / 100),
    },
    PolicyRow {
        name: "compact-85",
        about: "compacts at 85 % (qwen-code, deepagents)",
        is_ours: false,
        settle: |options| options.threshold = CompactionThreshold::Percent(85.0),
        acts_from: |limits| Some(limits.effective * 85 / 100),
    },
    PolicyRow {
        name: "compact-90",
        about: "compacts at 90 % (codex, cline, letta, zed)",
        is_ours: false,
        settle: |options| options.threshold = CompactionThreshold::Percent(90.0),
        acts_from: |limits| Some(limits.effective * 90 / 100),
    },
    PolicyRow {
        name: "compact-100k",
        about: "compacts at 100 K tokens, whatever the window",
        is_ours: false,
        settle: |options| options.threshold = CompactionThreshold::Used(EARLY),
        acts_from: |limits| limits.auto_compact.map(|at| at.min(EARLY)),
    },
    PolicyRow {
        name: "clear-100k",
        about: "clears all but 3 results from 100 K tokens on (langchain)",
        is_ours: false,
        settle: |options| {
            options.layers = ContextPolicy {
                pressure: true,
                early_clear: true,
                pressure_keep: 3,
                ..ContextPolicy::none()
            };
            options.warning = Some(EARLY);
        },
        acts_from: |limits| Some(limits.warning.min(EARLY)),
    },
    PolicyRow {
        name: "prune-40k",
        about: "clears results behind the newest 40 K tokens of them, where that frees 20 K (opencode)",
        is_ours: false,
        settle: |options| options.before = Some(ExtraLayer(&PRUNE)),
        acts_from: |limits| limits.auto_compact.map(|at| at.min(40_000)),
    },
    PolicyRow {
        name: "slide-100k",
        about: "drops the oldest rounds from 100 K tokens on until 70 K are left, without a summary",
        is_ours: false,
        settle: |options| options.before = Some(ExtraLayer(&SLIDE)),
        acts_from: |limits| limits.auto_compact.map(|at| at.min(SLIDE_FROM)),
    },
];

/// The row with this name.
pub fn find_policy_row(name: &str) -> Option<&'static PolicyRow> {
    POLICY_ROWS.iter().find(|row| row.name == name)
}

impl PolicyRow {
    /// Options of a replay under it.
    pub(crate) fn options(&self, base: &ReplayOptions) -> ReplayOptions {
        let mut options = ReplayOptions {
            policy: crate::replay::ReplayPolicy::Threshold,
            layers: ContextPolicy::none(),
            auto_compact: true,
            ..base.clone()
        };
        (self.settle)(&mut options);
        options
    }

    /// Tokens below which a session is the same under this row and under `none`.
    pub(crate) fn acts_from(&self, card: &ModelCard) -> Option<u64> {
        (self.acts_from)(&WindowLimits::new(card, &WindowSettings::STANDARD))
    }
}
