//! The model of the conversation: sends requests and summary questions, and reports how they end.

use std::sync::Arc;
use std::time::Duration;

use pal_background::TimedExchange;
use pal_context::{SummaryQuestion, SummaryReply};
use pal_engine::{
    BrokenResponse, GuessedWindow, ModelResponse, RequestOutcome, SummaryExchange, TokenObservation,
};
use pal_events::{AgentEvent, BlockGrowth, ResponseProgress};
use pal_model::text::group_digits;
use pal_model::{BlockType, ContentBlock, ContextOverflow, MediaKind, ModelCard, RequestSource, Usage};
use pal_process::CancelToken;
use pal_provider::{
    ExchangeEnd, ExchangeStep, ProviderConnection, ProviderExchange, RequestEncoder, SharedPrefix,
};
use pal_settings::{CostAlerts, LearnedFactors, LearnedWindow, LearnedWindows};
use pal_view::Request;
use pal_wire::{BlockDelta, FailureKind, ProviderFailure, ResponseEvent as Heard};
use smol_str::SmolStr;

use crate::event_sink::EventSink;
use crate::failure_advice::next_step;
use crate::model_fallback::ModelFallback;

/// Characters kept of an answer that is too large.
const KEPT_CHARS: usize = 4_000;

/// Interval of progress notices while a summary is written (§4.17).
const PROGRESS_INTERVAL: Duration = Duration::from_secs(15);

/// The model that answers the conversation.
pub(crate) struct ConversationModel {
    pub(crate) connection: Arc<ProviderConnection>,
    pub(crate) encoder: RequestEncoder,
    pub(crate) card: ModelCard,
    /// Windows that providers stated.
    pub(crate) windows: LearnedWindows,
    /// Correction factors of token estimates.
    pub(crate) factors: LearnedFactors,
    /// Window that the prefix is made for after a refusal in this session.
    pub(crate) lowered_window: Option<u64>,
    /// Time spent waiting for the provider since the prompt.
    pub(crate) time_waited: Duration,
    /// Reports every step of a response.
    pub(crate) reports_progress: bool,
    /// Prices from which on the user is warned.
    pub(crate) alerts: CostAlerts,
    /// Budget of all sessions of a day, in US dollars; none without one, or if the user has lifted it.
    pub(crate) daily_max: Option<f64>,
    /// Reports no progress of summaries, while one is written in the background.
    pub(crate) is_quiet: bool,
    /// The model to go on with if this one is overloaded.
    pub(crate) fallback: Option<ModelFallback>,
}

/// Prefix that a fork's first request shares with the other forks of the same response: the first of them writes it to
/// the cache, the others read it.
fn shared_prefix(request: &Request) -> Option<SharedPrefix> {
    request.shared_blocks()?;
    let ttl = request.breakpoints().last()?.ttl;
    let lifetime = Duration::from_millis(ttl.milliseconds());
    Some(SharedPrefix { fingerprint: request.shared_fingerprint(), lifetime })
}

impl ConversationModel {
    /// Stores the window that the provider stated; returns the notice for the user.
    pub(crate) fn learn_window(&self, window: u64) -> Option<String> {
        let ModelCard { model, window: promised, .. } = &self.card;
        let remembered = self.remember_window(LearnedWindow::stated(window))?;
        Some(format!(
            "the server accepts {} tokens for {model}, not {} as its model card says ({remembered}). To set it yourself, \
             write to models.toml in the home directory: [models.\"{model}\"] window = {window}",
            group_digits(window),
            group_digits(*promised),
        ))
    }

    /// Stores the window to assume after refusals that stated none; returns the warning for the user.
    pub(crate) fn learn_guessed_window(&self, guessed: &GuessedWindow) -> Option<String> {
        let GuessedWindow { window, accepted, refused } = *guessed;
        let learned = LearnedWindow { window, accepted: Some(accepted), refused: Some(refused) };
        let remembered = self.remember_window(learned)?;
        let ModelCard { model, window: promised, .. } = &self.card;
        Some(format!(
            "the server refuses about {} tokens for {model} and does not say how many it accepts; its model card says {}. \
             Contexts stay below {} tokens from now on ({remembered}). To set the window yourself, write \
             max_context_tokens = N to settings.toml, or [models.\"{model}\"] window = N to models.toml in the home \
             directory",
            group_digits(refused),
            group_digits(*promised),
            group_digits(window),
        ))
    }

    /// Stores a window; returns whether it is remembered, as text, or none if it was known.
    fn remember_window(&self, window: LearnedWindow) -> Option<String> {
        match self.windows.learn(self.connection.endpoint().address(), &self.card.model, window) {
            Ok(false) => None,
            Ok(true) => Some(String::from("remembered for this server")),
            Err(error) => Some(format!("it cannot be remembered: {error}")),
        }
    }

    /// Limits answers to what the provider accepts; returns the notice for the user.
    pub(crate) fn learn_output_limit(&mut self, tokens: u64) -> String {
        let promised = std::mem::replace(&mut self.card.max_output, tokens);
        let model = &self.card.model;
        format!(
            "the server accepts answers of {} tokens for {model}, not {} as its model card says. To set it for all \
             sessions, write to models.toml in the home directory: [models.\"{model}\"] max_output = {tokens}",
            group_digits(tokens),
            group_digits(promised),
        )
    }

    /// Stores how many tokens the provider counts for what was estimated.
    pub(crate) fn observe_tokens(&self, observation: &TokenObservation) {
        let TokenObservation { estimated, reported } = *observation;
        let endpoint = self.connection.endpoint().address();
        // The next session estimates without it.
        if let Err(error) = self.factors.observe(endpoint, &self.card.model, estimated, reported) {
            tracing::debug!(%error, "a correction factor cannot be stored");
        }
    }

    /// Sends a request of the conversation and streams its answer as events.
    pub(crate) fn exchange(
        &mut self,
        request: &Request,
        betas: &[SmolStr],
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> ProviderExchange {
        let call = self.encoder.encode(request, betas);
        let dialect = self.connection.endpoint().dialect();
        let mut timed =
            TimedExchange::begin(RequestSource::main(), &self.card, dialect, request.max_tokens());
        let within = timed.span().entered();
        let reports_progress = self.reports_progress;
        let exchange = self.connection.exchange_in_turn(call, shared_prefix(request), cancel, &mut |step| {
            timed.hear(&step);
            if reports_progress
                && let ExchangeStep::Event(heard) = &step
                && let Some(progress) = response_progress(heard)
            {
                events.send(AgentEvent::Progress(Box::new(progress)));
            }
            match step {
                ExchangeStep::Event(Heard::BlockDelta { delta: BlockDelta::Text(text), .. }) => {
                    events.send(AgentEvent::Text(text.clone()))
                }
                ExchangeStep::Event(Heard::BlockDelta { delta: BlockDelta::Thinking(text), .. }) => {
                    events.send(AgentEvent::Thinking(text.clone()));
                }
                ExchangeStep::Waiting(wait) => events.send(AgentEvent::Waiting {
                    why: wait.failure.message.clone(),
                    attempt: wait.attempt,
                    of: wait.max_attempts,
                    left: wait.remaining,
                }),
                ExchangeStep::Event(_) | ExchangeStep::Tick(_) => {}
            }
        });
        drop(within);
        self.report(timed.end(&exchange, &self.card), events);
        exchange
    }

    /// Asks for a summary, and reports every 15 s that it is being written.
    pub(crate) fn summarize(
        &mut self,
        question: &SummaryQuestion,
        betas: &[SmolStr],
        cancel: &CancelToken,
        events: &mut EventSink<'_>,
    ) -> SummaryExchange {
        let dialect = self.connection.endpoint().dialect();
        let call = match &question.card {
            None => self.encoder.encode(&question.request, betas),
            Some(card) => RequestEncoder::new(card, dialect, None).encode(&question.request, betas),
        };
        let card = question.card.as_deref().unwrap_or(&self.card).clone();
        let mut told = Duration::ZERO;
        let how = question.method.name();
        let is_quiet = self.is_quiet;
        if !is_quiet {
            events.send(AgentEvent::Notice(format!("{} writes a summary ({how})", card.model)));
        }
        let max_tokens = question.request.max_tokens();
        let mut timed = TimedExchange::begin(RequestSource::from_name("compact"), &card, dialect, max_tokens);
        let within = timed.span().entered();
        let exchange = self.connection.exchange(call, cancel, &mut |step| {
            timed.hear(&step);
            if let ExchangeStep::Tick(passed) = step
                && passed >= told + PROGRESS_INTERVAL
                && !is_quiet
            {
                told = passed;
                events.send(AgentEvent::Notice(format!(
                    "the summary is being written, for {} s now",
                    passed.as_secs()
                )));
            }
        });
        drop(within);
        self.report(timed.end(&exchange, &card), events);
        summary_exchange(exchange, &card)
    }

    fn report(&mut self, (took, event): (Duration, AgentEvent), events: &mut EventSink<'_>) {
        self.time_waited += took;
        events.send(event);
    }

    /// Classifies an ended exchange for the session.
    pub(crate) fn outcome(&mut self, exchange: ProviderExchange) -> RequestOutcome {
        let ProviderExchange { started, blocks, end } = exchange;
        if let Some(fallback) = &mut self.fallback {
            fallback.observe(&end);
        }
        match end {
            ExchangeEnd::Finished(finished) => RequestOutcome::Answered(ModelResponse {
                blocks,
                cost: self.card.cost(&finished.usage),
                cleared_tokens: finished.cleared_tokens(),
                cache_miss: finished.cache_miss(),
                response: finished.response,
                model: finished.model,
                usage: finished.usage,
                stop_reason: finished.stop_reason,
            }),
            // Some servers refuse a request only after the start of a response, without any content.
            ExchangeEnd::Failed(failure) => match failure.kind {
                FailureKind::TooLong(overflow) if blocks.is_empty() => {
                    self.lowered_window = overflow.window.or(self.lowered_window);
                    RequestOutcome::TooLong { overflow, message: failure.message }
                }
                FailureKind::TooLarge if blocks.is_empty() => RequestOutcome::TooLarge(failure.message),
                FailureKind::Invalid | FailureKind::NotFound
                    if blocks.is_empty() && !refused_media(&failure.message).is_empty() =>
                {
                    RequestOutcome::MediaRefused {
                        media: refused_media(&failure.message),
                        message: failure.message,
                    }
                }
                FailureKind::AnswerTooLarge => {
                    self.broke(started, first_words(&blocks), with_next_step(&failure), true)
                }
                kind => {
                    let is_final = kind == FailureKind::Deadline;
                    self.broke(started, blocks, with_next_step(&failure), is_final)
                }
            },
            ExchangeEnd::Cancelled => self.broke(started, blocks, String::from("interrupted"), false),
        }
    }

    /// Outcome of a broken answer. Its usage is that of its start.
    fn broke(
        &self,
        started: Option<pal_wire::ResponseStart>,
        blocks: Vec<ContentBlock>,
        why: String,
        is_final: bool,
    ) -> RequestOutcome {
        let Some(started) = started else { return RequestOutcome::Failed(why) };
        let usage: Usage = started.usage;
        let answered = ModelResponse {
            cost: self.card.cost(&usage),
            response: started.response,
            model: started.model,
            blocks,
            usage,
            stop_reason: None,
            cleared_tokens: 0,
            cache_miss: None,
        };
        RequestOutcome::Broke(BrokenResponse { answered, why, is_final })
    }
}

/// Step of a response for events; none for a failure, which other events report.
fn response_progress(heard: &Heard) -> Option<ResponseProgress> {
    Some(match heard {
        Heard::Started(started) => ResponseProgress::Started {
            response: started.response.clone(),
            model: started.model.clone(),
            usage: started.usage.clone(),
        },
        Heard::BlockStart { index, kind, tool, call } => ResponseProgress::BlockStarted {
            index: *index,
            kind: kind.name().unwrap_or("unknown"),
            tool: tool.clone(),
            call: call.clone(),
        },
        Heard::BlockDelta { index, delta } => ResponseProgress::BlockGrew {
            index: *index,
            growth: match delta {
                BlockDelta::Text(text) => BlockGrowth::Text(text.clone()),
                BlockDelta::Thinking(text) => BlockGrowth::Thinking(text.clone()),
                BlockDelta::Input(text) => BlockGrowth::Input(text.clone()),
            },
        },
        Heard::Block { index, block } => ResponseProgress::BlockEnded { index: *index, block: block.clone() },
        Heard::Finished(finished) => ResponseProgress::Finished {
            stop_reason: finished.stop_reason.clone(),
            usage: finished.usage.clone(),
        },
        Heard::Failed(_) => return None,
    })
}

/// Classifies an ended exchange about a summary.
fn summary_exchange(exchange: ProviderExchange, card: &ModelCard) -> SummaryExchange {
    // What was known at the start of a response that broke off is paid, too.
    let begun = exchange.started.map(|started| {
        let cost = card.cost(&started.usage);
        (started.response, started.usage, cost)
    });
    match exchange.end {
        ExchangeEnd::Finished(finished) => {
            let cost = card.cost(&finished.usage);
            let reply = SummaryReply::of_answer(exchange.blocks, finished.stop_reason.as_deref());
            SummaryExchange { reply, answered: Some((finished.response, finished.usage, cost)) }
        }
        ExchangeEnd::Failed(failure) => {
            let reply = match failure.kind {
                FailureKind::TooLong(overflow) => SummaryReply::TooLong(overflow),
                FailureKind::TooLarge => SummaryReply::TooLong(ContextOverflow::UNKNOWN),
                _ => SummaryReply::Failed(failure.message),
            };
            SummaryExchange { reply, answered: begun }
        }
        ExchangeEnd::Cancelled => {
            SummaryExchange { reply: SummaryReply::Failed(String::from("interrupted")), answered: begun }
        }
    }
}

/// Start of an answer that is too large to keep: every later request would contain it.
fn first_words(blocks: &[ContentBlock]) -> Vec<ContentBlock> {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    let texts: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
    let beginning: String = texts.iter().flat_map(|text| text.chars()).take(KEPT_CHARS).collect();
    match beginning.trim() {
        "" => Vec::new(),
        beginning => vec![ContentBlock::text(&format!(
            "{beginning}\n[The rest of this answer was dropped: it was too large.]"
        ))],
    }
}

/// Returns the kinds of media that an error is about. Providers have no code for it.
fn refused_media(message: &str) -> Vec<MediaKind> {
    let message = message.to_lowercase();
    let words: Vec<&str> = message.split(|letter: char| !letter.is_alphanumeric()).collect();
    let names = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let named = MediaKind::ALL.into_iter().filter(|kind| match kind {
        MediaKind::Image => names(&["image", "images", "vision"]),
        MediaKind::Document => names(&["pdf", "pdfs", "document", "documents"]),
    });
    let named: Vec<MediaKind> = named.collect();
    if named.is_empty() && names(&["media", "multimodal"]) { MediaKind::ALL.to_vec() } else { named }
}

fn with_next_step(failure: &ProviderFailure) -> String {
    let request = match &failure.request_id {
        Some(id) => format!(" (request {id})"),
        None => String::new(),
    };
    format!("{}{request}; {}", failure.message.trim_end_matches('.'), next_step(failure.kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_kind_of_media() {
        use MediaKind::{Document, Image};
        let cases: [(&str, &[MediaKind]); 9] = [
            ("messages.3.content.0.image.source: image exceeds 5 MB maximum", &[Image]),
            ("image input is not supported - hint: you may need to provide the mmproj", &[Image]),
            ("A maximum of 100 PDF pages may be provided.", &[Document]),
            ("The document and the image could not be read", &[Image, Document]),
            ("At most 0 media items may be provided; this is not a multimodal model", &[Image, Document]),
            ("messages: roles must alternate", &[]),
            ("messages.1.content.0.image_url: unsupported", &[Image]),
            ("service_tier: not available; see the documentation to provision it", &[]),
            ("The documented limits of your revision are lower", &[]),
        ];
        for (message, kinds) in cases {
            assert_eq!(refused_media(message), kinds, "{message}");
        }
    }
}
