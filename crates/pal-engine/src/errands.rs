//! What the driver has done for it by whoever holds the connection to a provider.

use pal_context::{FileRead, FileWanted, Question, Reply};
use pal_model::{Block, ResponseId, Timestamp, Usage};
use pal_view::Request;
use smol_str::SmolStr;

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
    /// There was no answer.
    Failed(String),
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
