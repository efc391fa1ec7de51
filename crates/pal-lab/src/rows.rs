//! The policies that are compared, by name: ours, and those of other agents from the constants that they publish.

use pal_context::Policy;
use pal_context::thrifty::Thrift;
use pal_model::Card;
use pal_replay::{Before, Options};
use pal_view::{Limits, Threshold, WindowSettings};

use crate::peers::{PRUNE, SLIDE, SLIDE_FROM};

/// A policy under its name.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// What it does, in a few words.
    pub about: &'static str,
    /// Whether it is one of ours.
    pub is_ours: bool,
    settle: fn(&mut Options),
    /// Tokens from which on it may do something that `none` does not do, at a window; none if it may at any size.
    acts_from: fn(&Limits) -> Option<u64>,
}

/// Without any layer, compacted only where nothing fits any more.
pub(crate) const NONE: &str = "none";
/// What others are compared with.
pub(crate) const CLASSIC: &str = "classic";

/// Tokens at which some compact or clear, whatever the window.
const EARLY: u64 = 100_000;

/// All of them, in the order in which they are told.
pub const ROWS: &[Row] = &[
    Row {
        name: NONE,
        about: "everything is sent as it was said; compacts only where it would not fit any more",
        is_ours: true,
        settle: |_| {},
        acts_from: |limits| limits.auto_compact,
    },
    Row {
        name: "birth",
        about: "`none`, but large results go to disk and verbose ones are condensed before they are first sent",
        is_ours: true,
        settle: |options| {
            options.layers = Policy { spill: true, condense: true, ..Policy::none() };
        },
        acts_from: |_| None,
    },
    Row {
        name: CLASSIC,
        about: "our layers by their thresholds, compaction 33 K below the window",
        is_ours: true,
        settle: |options| options.layers = Policy::classic(),
        acts_from: |_| None,
    },
    Row {
        name: "thrifty",
        about: "our layers by what they cost from here on, losses included",
        is_ours: true,
        settle: |options| options.layers = Policy::thrifty(Thrift::STANDARD),
        acts_from: |_| None,
    },
    Row {
        name: "compact-50",
        about: "compacts at 50 % of the window (gemini-cli)",
        is_ours: false,
        settle: |options| options.threshold = Threshold::Percent(50.0),
        acts_from: |limits| Some(limits.effective / 2),
    },
    Row {
        name: "compact-80",
        about: "compacts at 80 % (goose)",
        is_ours: false,
        settle: |options| options.threshold = Threshold::Percent(80.0),
        acts_from: |limits| Some(limits.effective * 80 / 100),
    },
    Row {
        name: "compact-85",
        about: "compacts at 85 % (qwen-code, deepagents)",
        is_ours: false,
        settle: |options| options.threshold = Threshold::Percent(85.0),
        acts_from: |limits| Some(limits.effective * 85 / 100),
    },
    Row {
        name: "compact-90",
        about: "compacts at 90 % (codex, cline, letta, zed)",
        is_ours: false,
        settle: |options| options.threshold = Threshold::Percent(90.0),
        acts_from: |limits| Some(limits.effective * 90 / 100),
    },
    Row {
        name: "compact-100k",
        about: "compacts at 100 K tokens, whatever the window",
        is_ours: false,
        settle: |options| options.threshold = Threshold::Used(EARLY),
        acts_from: |limits| limits.auto_compact.map(|at| at.min(EARLY)),
    },
    Row {
        name: "clear-100k",
        about: "clears all but 3 results from 100 K tokens on (langchain)",
        is_ours: false,
        settle: |options| {
            options.layers = Policy { pressure: true, pressure_keep: 3, ..Policy::none() };
            options.warning = Some(EARLY);
        },
        acts_from: |limits| Some(limits.warning.min(EARLY)),
    },
    Row {
        name: "prune-40k",
        about: "clears results behind the newest 40 K tokens of them, where that frees 20 K (opencode)",
        is_ours: false,
        settle: |options| options.before = Some(Before(&PRUNE)),
        acts_from: |limits| limits.auto_compact.map(|at| at.min(40_000)),
    },
    Row {
        name: "slide-100k",
        about: "drops the oldest rounds from 100 K tokens on until 70 K are left, without a summary",
        is_ours: false,
        settle: |options| options.before = Some(Before(&SLIDE)),
        acts_from: |limits| limits.auto_compact.map(|at| at.min(SLIDE_FROM)),
    },
];

/// The row with this name.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

impl Row {
    /// How a recording is replayed under it.
    pub(crate) fn options(&self, base: &Options) -> Options {
        let mut options = Options {
            policy: pal_replay::Policy::Classic,
            layers: Policy::none(),
            auto_compact: true,
            ..base.clone()
        };
        (self.settle)(&mut options);
        options
    }

    /// Tokens below which a session is the same under this row and under `none`.
    pub(crate) fn acts_from(&self, card: &Card) -> Option<u64> {
        (self.acts_from)(&Limits::new(card, &WindowSettings::STANDARD))
    }
}
