//! What the driver has done for it by whoever holds the connection to a provider.

use pal_context::{FileRead, FileWanted, Notes, Order, Question, Reply, World};
use pal_model::{Block, Boundary, Prefix, ResponseId, Timestamp, Usage};
use pal_view::{Request, View};
use smol_str::SmolStr;

use crate::Announced;

/// Errands outside of the session.
pub trait Errands {
    /// Sends a request of the conversation.
    fn send(&mut self, outgoing: &Outgoing<'_>) -> Outcome;

    /// Asks a model for a summary, with these beta headers.
    fn ask(&mut self, question: &Question, betas: &[SmolStr], now: Timestamp) -> Asked;

    /// Reads a file as it is now.
    fn read_file(&mut self, wanted: &FileWanted) -> FileRead;

    /// Tells the user something, in one line.
    fn notice(&mut self, line: &str);

    /// Whether somebody wants everything to stop.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// What was shown of the answer does not count: another one takes its place.
    fn void(&mut self) {}

    /// The time; `earlier` is what it was when the work at hand began, and all that a replay needs to know.
    fn now(&mut self, earlier: Timestamp) -> Timestamp {
        earlier
    }

    /// What is to be known before a compaction.
    fn before_compaction(&mut self, _order: &Order, _view: &View) -> BeforeCompaction {
        BeforeCompaction::default()
    }

    /// What goes into the log behind a compaction.
    fn after_compaction(&mut self, _boundary: &Boundary, _view: &View) -> AfterCompaction {
        AfterCompaction::default()
    }
}

/// What is to be known before a compaction.
#[derive(Clone, Debug, Default)]
pub struct BeforeCompaction {
    /// A hook that forbids it for now, by name.
    pub blocked_by: Option<String>,
    /// What hooks add to the instructions for a summary.
    pub instructions: Option<String>,
    /// What may be put back into sight besides files.
    pub world: World,
    /// Notes of the session, where they are kept.
    pub notes: Option<Notes>,
}

/// What goes into the log behind a compaction.
#[derive(Clone, Debug, Default)]
pub struct AfterCompaction {
    /// What stands before the messages from now on, where it is to be put together anew.
    pub prefix: Option<Prefix>,
    /// What the model is told, as attachments: their sort and their text.
    pub notes: Vec<(&'static str, String)>,
    /// Everything that the model can draw on: a compaction makes it forget what it was told.
    pub announcement: Option<Announced>,
}

/// A request of the conversation on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing<'a> {
    /// The request.
    pub request: &'a Request,
    /// The beta headers.
    pub betas: &'a [SmolStr],
    /// The answer before it, as the provider knows it: it is asked to say what it could not read of that.
    pub previous: Option<&'a ResponseId>,
    /// When it leaves.
    pub now: Timestamp,
}

/// What became of a request of the conversation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was answered.
    Answered(Answered),
    /// The provider found it too long.
    TooLong {
        /// Its tokens, where the provider said so.
        have: Option<u64>,
        /// The limit, where the provider said so.
        limit: Option<u64>,
        /// What the provider said.
        message: String,
    },
    /// The provider refused a picture or a document, and why.
    MediaRefused(String),
    /// An answer began and broke off.
    Broke(Broke),
    /// There was no answer.
    Failed(String),
}

/// An answer that began and broke off.
#[derive(Clone, Debug)]
pub struct Broke {
    /// What arrived of it. Its id and model are those that it began with, its usage what was known by then.
    pub answered: Answered,
    /// Why it broke off.
    pub why: String,
    /// Whether to end the run: another answer would go the same way.
    pub is_final: bool,
}

/// An answer of a model.
#[derive(Clone, Debug)]
pub struct Answered {
    /// Its id.
    pub response: ResponseId,
    /// The model that answered.
    pub model: SmolStr,
    /// What it said.
    pub blocks: Vec<Block>,
    /// What it took.
    pub usage: Usage,
    /// What it cost, in US dollars.
    pub cost: Option<f64>,
    /// Why it stopped.
    pub stop_reason: Option<SmolStr>,
    /// Tokens that the provider cleared of the context before the model saw it.
    pub cleared_tokens: u64,
    /// Why the provider could not read what it had cached, in its own word; `none` if it could, none if it did not say.
    pub cache_miss: Option<SmolStr>,
}

/// What came of a question, and what it took.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What came of it.
    pub reply: Reply,
    /// The answer's id, usage and price, where there was an answer.
    pub answered: Option<(ResponseId, Usage, Option<f64>)>,
}
