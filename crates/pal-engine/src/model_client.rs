//! The model behind a session: requests that leave, and what becomes of them.

use pal_context::{SummaryQuestion, SummaryReply};
use pal_model::{ContentBlock, ContextOverflow, MediaKind, ResponseId, Timestamp, Usage};
use pal_view::Request;
use smol_str::SmolStr;

/// Sends requests to a model.
pub trait ModelClient {
    /// Sends a request of the conversation and waits for its outcome.
    fn send(&mut self, outgoing: &OutgoingRequest<'_>) -> RequestOutcome;

    /// Asks a model for a summary, with these beta headers.
    fn ask(&mut self, question: &SummaryQuestion, betas: &[SmolStr], now: Timestamp) -> SummaryExchange;

    /// Notes that the provider accepts only `window` tokens for this model, less than its card says. Called after a
    /// request of that size was accepted.
    fn learn_window(&mut self, _window: u64) {}

    /// Notes that the provider refused contexts without stating its window, and accepted a smaller one.
    fn learn_guessed_window(&mut self, _window: &GuessedWindow) {}

    /// Notes that the provider accepts only answers of `tokens` tokens for this model, less than its card says.
    fn learn_output_limit(&mut self, _tokens: u64) {}

    /// Takes in how many tokens the provider counts for content that was estimated.
    fn observe_tokens(&mut self, _observation: &TokenObservation) {}

    /// Returns whether the user has cancelled the work under way.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Window to assume after refusals that stated none, in tokens as the session counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuessedWindow {
    /// Window to assume.
    pub window: u64,
    /// Largest context that was accepted.
    pub accepted: u64,
    /// Smallest context that was refused.
    pub refused: u64,
}

/// Raw estimate and reported tokens of the same content.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TokenObservation {
    /// Tokens by the uncorrected estimator.
    pub estimated: f64,
    /// Tokens by the provider.
    pub reported: u64,
}

/// A request of the conversation, ready to send.
#[derive(Clone, Debug)]
pub struct OutgoingRequest<'a> {
    /// The request.
    pub request: &'a Request,
    /// The beta headers.
    pub betas: &'a [SmolStr],
    /// Id of the previous response; the provider reports what it could not read from its cache.
    pub previous: Option<&'a ResponseId>,
    /// Time of sending.
    pub now: Timestamp,
}

/// Outcome of a request.
#[derive(Clone, Debug)]
pub enum RequestOutcome {
    /// The complete response.
    Answered(ModelResponse),
    /// The request exceeds the model's limit.
    TooLong {
        /// Figures of the refusal.
        overflow: ContextOverflow,
        /// Error message of the provider.
        message: String,
    },
    /// The request has too many bytes, which says nothing about the window; error message of the provider.
    TooLarge(String),
    /// The provider rejected images or documents.
    MediaRefused {
        /// Kinds of media that the refusal names.
        media: Vec<MediaKind>,
        /// Error message of the provider.
        message: String,
    },
    /// The response started and broke off.
    Broke(BrokenResponse),
    /// No response arrived; why.
    Failed(String),
}

/// A response that started and broke off.
#[derive(Clone, Debug)]
pub struct BrokenResponse {
    /// The part that arrived. Id and model are those of the start; usage is what was known by then.
    pub answered: ModelResponse,
    /// Error message.
    pub why: String,
    /// Whether to end the run because another attempt would fail the same way.
    pub is_final: bool,
}

/// A model's response.
#[derive(Clone, Debug)]
pub struct ModelResponse {
    /// Response id.
    pub response: ResponseId,
    /// Model that responded.
    pub model: SmolStr,
    /// Content blocks.
    pub blocks: Vec<ContentBlock>,
    /// Token usage.
    pub usage: Usage,
    /// Price in US dollars, if known.
    pub cost: Option<f64>,
    /// Stop reason.
    pub stop_reason: Option<SmolStr>,
    /// Tokens that the provider cleared from the context before the model saw it.
    pub cleared_tokens: u64,
    /// The provider's reason for a cache miss: `none` for a hit, absent if it did not say.
    pub cache_miss: Option<SmolStr>,
}

/// A summary request's reply, with its usage.
#[derive(Clone, Debug)]
pub struct SummaryExchange {
    /// The reply.
    pub reply: SummaryReply,
    /// Response id, usage and price, if there was a response.
    pub answered: Option<(ResponseId, Usage, Option<f64>)>,
}
