//! How a recording is replayed.

use std::fmt;
use std::path::PathBuf;

use pal_context::Layer;
use pal_model::Cards;
use pal_view::Threshold;

/// How a recording is replayed.
#[derive(Clone, Debug)]
pub struct Options {
    /// The models that exist.
    pub cards: Cards,
    /// Ask this model instead of the recording's own.
    pub model: Option<String>,
    /// The window of every model, where it shall be another one.
    pub window: Option<u64>,
    /// Who decides what the model sees.
    pub policy: Policy,
    /// What the layers of that policy do.
    pub layers: pal_context::Policy,
    /// Whether the context is compacted when it is full.
    pub auto_compact: bool,
    /// Where that is.
    pub threshold: Threshold,
    /// Where old results are cleared under pressure, if not at the model's own warning.
    pub warning: Option<u64>,
    /// Who else decides, before our own layers.
    pub before: Option<Before>,
    /// Whether it may be compacted at all, also when the provider finds it too long.
    pub may_compact: bool,
    /// Whose words summaries are.
    pub compact_with: CompactWith,
    /// Who keeps notes of the session under a policy of our own, and how; none for nobody.
    pub notes: Option<NoteTaking>,
    /// The folder that keeps the log; without one it is gone afterwards.
    pub out: Option<PathBuf>,
    /// When the session is closed and opened again.
    pub restart: Restart,
}

impl Options {
    /// The shipped models, as it was recorded, without restarts, nothing kept.
    pub fn plain() -> Options {
        Options {
            cards: Cards::shipped(),
            model: None,
            window: None,
            policy: Policy::None,
            layers: pal_context::Policy::none(),
            auto_compact: false,
            threshold: Threshold::Standard,
            warning: None,
            before: None,
            may_compact: true,
            compact_with: CompactWith::Extractive,
            notes: None,
            out: None,
            restart: Restart::Never,
        }
    }
}

/// A layer that is not one of ours and acts before them: another agent's way, to compare with. Only its decisions count.
#[derive(Clone, Copy)]
pub struct Before(pub &'static dyn Layer);

impl fmt::Debug for Before {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Before").field(&self.0.name()).finish()
    }
}

/// Who decides what the model sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Nobody: the boundaries and decisions of the recording stay, because reality had them, and there are no others.
    None,
    /// The layers, each by its thresholds; the recording's own boundaries and decisions are left out.
    Classic,
    /// The layers, by price; the recording's own boundaries and decisions are left out.
    Thrifty,
}

/// Whose words the summaries of a replay are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactWith {
    /// Drawn from what was sent.
    Extractive,
    /// The recording's own, where it has one.
    Recorded,
}

/// How notes of a session are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoteTaking {
    /// Who writes them.
    pub by: NotesBy,
    /// Whether the whole file is written anew each time, instead of edited.
    pub writes_whole: bool,
    /// When.
    pub cadence: pal_context::NotesCadence,
}

/// Who writes notes of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotesBy {
    /// A fork of the conversation.
    Fork,
    /// The agent itself, with answers that make calls anyway.
    Main,
}

impl Policy {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Classic => "classic",
            Policy::Thrifty => "thrifty",
        }
    }
}

/// When a session is closed and opened again. What it sends must not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// Never.
    Never,
    /// Before every request.
    EveryTurn,
    /// Before one request in so many.
    OneIn(u64),
}

impl Restart {
    /// Whether there is one before the request with this number.
    pub(crate) fn comes_before(self, number: u64) -> bool {
        match self {
            Restart::Never => false,
            Restart::EveryTurn => true,
            Restart::OneIn(turns) => number.is_multiple_of(turns.max(1)),
        }
    }
}
