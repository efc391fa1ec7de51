//! Options of a replay.

use std::fmt;
use std::path::PathBuf;

use pal_context::Layer;
use pal_model::ModelCatalog;
use pal_view::{CacheTtl, CompactionThreshold};

/// Options of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The models that exist.
    pub cards: ModelCatalog,
    /// Ask this model instead of the recording's own.
    pub model: Option<String>,
    /// Window of every model, if it differs from the cards.
    pub window: Option<u64>,
    /// Policy.
    pub policy: ReplayPolicy,
    /// Settings of that policy's layers.
    pub layers: pal_context::ContextPolicy,
    /// TTL of all cache breakpoints; none for the choice of a cost-aware policy, and for the recorded TTL under all others.
    pub cache_ttl: Option<CacheTtl>,
    /// True if the context is compacted when it is full.
    pub auto_compact: bool,
    /// Where that is.
    pub threshold: CompactionThreshold,
    /// Where old results are cleared under pressure, if not at the model's own warning.
    pub warning: Option<u64>,
    /// Layers that decide before our own.
    pub before: Option<ExtraLayer>,
    /// True if it may be compacted at all, also when the provider finds it too long.
    pub may_compact: bool,
    /// Whose words summaries are.
    pub compact_with: ReplaySummarizer,
    /// Session notes under a policy of our own; none for no notes.
    pub notes: Option<ReplayNotes>,
    /// The folder that keeps the log; without one it is gone afterwards.
    pub out: Option<PathBuf>,
    /// When the session is closed and opened again.
    pub restart: RestartPoint,
}

impl ReplayOptions {
    /// The shipped models, as it was recorded, without restarts, nothing kept.
    pub fn plain() -> ReplayOptions {
        ReplayOptions {
            cards: ModelCatalog::built_in(),
            model: None,
            window: None,
            policy: ReplayPolicy::None,
            layers: pal_context::ContextPolicy::none(),
            cache_ttl: None,
            auto_compact: false,
            threshold: CompactionThreshold::Standard,
            warning: None,
            before: None,
            may_compact: true,
            compact_with: ReplaySummarizer::Extractive,
            notes: None,
            out: None,
            restart: RestartPoint::Never,
        }
    }
}

/// A layer that imitates another agent and acts before this project's layers, for comparison. Only its decisions count.
#[derive(Clone, Copy)]
pub struct ExtraLayer(pub &'static dyn Layer);

impl fmt::Debug for ExtraLayer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Before").field(&self.0.name()).finish()
    }
}

/// Policy of a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayPolicy {
    /// None: the boundaries and decisions of the recording stay, and there are no others.
    None,
    /// The layers, each by its thresholds; the recording's own boundaries and decisions are left out.
    Threshold,
    /// The layers, by price; the recording's own boundaries and decisions are left out.
    CostAware,
}

/// Whose words the summaries of a replay are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplaySummarizer {
    /// Extracted from the request.
    Extractive,
    /// The recording's own, where it has one.
    Recorded,
}

/// Session notes in a replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayNotes {
    /// Writer.
    pub by: ReplayNoteWriter,
    /// True if the whole file is rewritten each time instead of edited.
    pub writes_whole: bool,
    /// When.
    pub cadence: pal_context::NotesCadence,
}

/// Writer of session notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplayNoteWriter {
    /// A fork of the conversation.
    Fork,
    /// The agent itself, with answers that make calls anyway.
    Main,
}

impl ReplayPolicy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ReplayPolicy::None => "none",
            ReplayPolicy::Threshold => "threshold",
            ReplayPolicy::CostAware => "cost-aware",
        }
    }
}

/// Points at which a session is closed and reopened. Its requests must not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestartPoint {
    /// Never.
    Never,
    /// Before every request.
    EveryTurn,
    /// Before one request in N.
    OneIn(u64),
}

impl RestartPoint {
    /// True if there is one before the request with this number.
    pub(crate) fn comes_before(self, number: u64) -> bool {
        match self {
            RestartPoint::Never => false,
            RestartPoint::EveryTurn => true,
            RestartPoint::OneIn(turns) => number.is_multiple_of(turns.max(1)),
        }
    }
}
