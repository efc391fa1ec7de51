//! OpenAI endpoints of the simulator: Responses, Chat Completions and models.
//!
//! Requests are validated and parsed into Messages blocks, answered by the same model, and encoded in
//! OpenAI's formats. Only the cache and comparison data persist between requests: `previous_response_id` is
//! always unknown.

mod cache_comparison;
mod chat_request;
mod chat_response;
mod openai_cache;
mod openai_error;
mod openai_outcome;
mod openai_request;
mod responses_request;
mod responses_response;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use pal_model::{CacheMode, ModelCard, ModelCatalog, Timestamp, TokenGeneration, Usage};
use pal_wire::Dialect;
use serde_json::{Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use self::cache_comparison::RememberedResponses;
use self::openai_cache::{OpenAiCache, OpenAiCacheLookup, RenderedRequest};
use self::openai_error::OpenAiError;
use self::openai_outcome::{OpenAiOutcome, items};
use self::openai_request::{OpenAiCacheTtl, OpenAiRequest};
use self::responses_response::ResponseEcho;
use crate::block_facts::{BlockKind, BlockMemo};
use crate::block_signatures::{BlockSigner, ThinkingClaims};
use crate::fitted_answer::{FitLimits, FittedAnswer, fit_answer};
use crate::http_request::{BODY_BYTES_MAX, authorize, json_reply};
use crate::id_generator::IdGenerator;
use crate::messages_response;
use crate::sim_settings::SimSettings;
use crate::token_counts;
use crate::{CacheOutcome, HttpReply, HttpRequest, ModelExchange, ReplyChunk, ReplyEnding, SimulatedModel};

/// Parts of the simulated provider that both vendors' endpoints share.
pub(crate) struct ProviderParts<'a> {
    pub(crate) settings: &'a SimSettings,
    pub(crate) model: &'a mut dyn SimulatedModel,
    pub(crate) memo: &'a mut BlockMemo,
    pub(crate) ids: &'a mut IdGenerator,
    pub(crate) sealer: BlockSigner,
}

/// A request with its arrival time, number and id.
#[derive(Clone, Copy)]
pub(crate) struct NumberedRequest<'a> {
    pub(crate) now: Timestamp,
    pub(crate) request: &'a HttpRequest<'a>,
    /// Request number, counted from 1.
    pub(crate) number: u64,
    /// Request id.
    pub(crate) id: &'a str,
}

/// State of the OpenAI endpoints.
#[derive(Default)]
pub(crate) struct OpenAiProvider {
    cache: OpenAiCache,
    responses: RememberedResponses,
}

/// Dialect of a request to an OpenAI endpoint. Both vendors list models under one path: requests without an
/// `anthropic-version` header are OpenAI's.
pub(crate) fn dialect(request: &HttpRequest<'_>) -> Option<Dialect> {
    let path = request.route();
    match path {
        "/v1/responses" => Some(Dialect::Responses),
        "/v1/chat/completions" => Some(Dialect::Chat),
        _ if is_models(path) && request.header("anthropic-version").is_none() => Some(Dialect::Chat),
        _ => None,
    }
}

fn is_models(path: &str) -> bool {
    path.strip_prefix("/v1/models").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl OpenAiProvider {
    /// Answers a request, or returns its error as a reply.
    pub(crate) fn handle(&mut self, parts: &mut ProviderParts<'_>, asked: NumberedRequest<'_>) -> HttpReply {
        let mut reply =
            self.route(parts, asked).unwrap_or_else(|refusal| json_reply(refusal.status, refusal.to_json()));
        reply.headers.push(("x-request-id", asked.id.to_owned()));
        reply.headers.push(("openai-version", "2020-10-01".to_owned()));
        reply
    }

    fn route(
        &mut self,
        parts: &mut ProviderParts<'_>,
        asked: NumberedRequest<'_>,
    ) -> Result<HttpReply, OpenAiError> {
        let request = asked.request;
        let path = request.route();
        let expected = if is_models(path) { "GET" } else { "POST" };
        if request.method != expected {
            let message = format!(
                "Not allowed to {} on {path} (HINT: Perhaps you meant to use a different HTTP method?)",
                request.method
            );
            return Err(OpenAiError {
                status: 405,
                code: None,
                param: None,
                ..OpenAiError::invalid("", "", message)
            });
        }
        let scope = authorize(request, parts.settings.keys.as_deref()).map_err(|_| unauthorized(request))?;
        if let Some(rest) = path.strip_prefix("/v1/models") {
            return models(&parts.settings.cards, rest.trim_start_matches('/'));
        }
        let body = read_body(request.body)?;
        let model = match body.get("model") {
            Some(Value::String(model)) => model,
            Some(Value::Null) | None => return Err(OpenAiError::missing("model")),
            Some(_) => return Err(OpenAiError::mistyped("model", "a string")),
        };
        let card = find(&parts.settings.cards, model)?;
        let is_chat = path == "/v1/chat/completions";
        let turn = if is_chat {
            chat_request::read(&body, &card)?
        } else {
            responses_request::read(&body, &card, parts.sealer)?
        };
        let job = OpenAiTurn { asked, scope, card: &card, turn: &turn, body: &body, is_chat };
        self.answer(parts, &job)
    }

    fn answer(
        &mut self,
        parts: &mut ProviderParts<'_>,
        job: &OpenAiTurn<'_>,
    ) -> Result<HttpReply, OpenAiError> {
        let rendered = job.render(parts.memo);
        let limit = job.card.prompt_limit();
        if rendered.tokens > limit {
            return Err(job.too_long(rendered.tokens, limit));
        }
        let least = job.card.min_cacheable;
        let now = job.asked.now;
        let served = match job.card.caching {
            CacheMode::Hybrid => self.cache.look_up_breakpoints(now, &rendered, job.turn, least),
            CacheMode::Automatic | CacheMode::Explicit => {
                self.cache.look_up_automatic(now, &rendered, job.turn, least)
            }
        };
        let fitted = job.ask_model(parts, rendered.tokens);
        let thought = ThinkingClaims {
            id: 0,
            previous: 0,
            model: xxh3_64(job.card.model.as_bytes()),
            is_bound: false,
            scope: job.scope,
            tokens: 0,
        };
        let comparison =
            job.body.pointer("/prompt_cache_options/comparison_response_id").and_then(Value::as_str);
        let outcome = OpenAiOutcome {
            id: parts.ids.id(if job.is_chat { "chatcmpl" } else { "resp" }),
            model: job.card.model.to_string(),
            created: now.milliseconds().div_euclid(1_000),
            items: items(&fitted, parts.ids, parts.sealer, thought),
            stop_reason: fitted.stop_reason.to_owned(),
            output_tokens: fitted.tokens(),
            reasoning_tokens: fitted.thinking_tokens(),
            diagnostics: comparison.map(|id| self.responses.compare(id, job.turn, &rendered, &served)),
            lookup: served,
        };
        self.responses.push(&outcome.id, job.turn, &rendered);
        let served = &outcome.lookup;
        let pace = parts.settings.pace;
        let start = pace.first_byte(served.uncached + outcome.written(), served.read);
        self.cache.write(now, now.after(start), &served.writes);
        Ok(job.encode_reply(&outcome, start, pace.output_time(outcome.output_tokens)))
    }
}

/// A parsed request with its context.
struct OpenAiTurn<'a> {
    asked: NumberedRequest<'a>,
    /// Hash of the client's key.
    scope: u64,
    card: &'a ModelCard,
    turn: &'a OpenAiRequest,
    body: &'a Value,
    is_chat: bool,
}

impl OpenAiTurn<'_> {
    /// Renders the request for the cache. Client, model and parameters seed every hash.
    fn render(&self, memo: &mut BlockMemo) -> RenderedRequest {
        let turn = self.turn;
        let start = format!("{} {} {:?} {:?}", self.scope, turn.model, turn.caching.key, turn.parameters);
        let seed = xxh3_128(start.as_bytes());
        let mut rendered = RenderedRequest::default();
        for piece in &turn.pieces {
            let facts = if piece.place == openai_request::BlockPlacement::Tool {
                memo.tool(&piece.raw)
            } else {
                memo.block(&piece.raw)
            };
            let frame = if piece.ends_item && facts.kind != BlockKind::Tool {
                token_counts::MESSAGE_TOKENS
            } else {
                0
            };
            rendered.push(seed, piece, &facts, facts.tokens(self.card.generation) + frame);
        }
        rendered
    }

    fn too_long(&self, have: u64, limit: u64) -> OpenAiError {
        if self.is_chat {
            let message = format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {have} tokens. Please reduce the length of the messages."
            );
            return OpenAiError::invalid("context_length_exceeded", "messages", message);
        }
        let message =
            "Your input exceeds the context window of this model. Please adjust your input and try again.";
        OpenAiError::invalid("context_length_exceeded", "input", message)
    }

    /// Asks the model, within the limits of the request.
    fn ask_model(&self, parts: &mut ProviderParts<'_>, prompt_tokens: u64) -> FittedAnswer {
        if self.body.get("prewarm") == Some(&Value::Bool(true)) {
            return FittedAnswer { stop_reason: "end_turn", ..FittedAnswer::default() };
        }
        let turn = self.turn;
        let max_tokens = turn.max_tokens.unwrap_or(self.card.max_output).min(self.card.max_output);
        let answer = parts.model.answer(&turn.to_model_prompt(max_tokens));
        let stops: Vec<Cow<'_, str>> = turn.stops.iter().map(|stop| Cow::Borrowed(stop.as_str())).collect();
        let limits = FitLimits {
            max_tokens,
            room: self.card.window.saturating_sub(prompt_tokens),
            stop_sequences: &stops,
            thinks: turn.thinks(),
            generation: self.card.generation,
        };
        fit_answer(answer, &limits)
    }

    /// Encodes an answer into timed chunks.
    fn encode_reply(&self, outcome: &OpenAiOutcome, start: Duration, speaking: Duration) -> HttpReply {
        let echo = self.echo();
        let wants_usage = self.body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
        let (content_type, chunks) = if self.turn.streams {
            let frames = if self.is_chat {
                chat_response::encode_events(outcome, wants_usage)
            } else {
                responses_response::encode_events(outcome, &echo)
            };
            ("text/event-stream; charset=utf-8", messages_response::chunks(frames, start, speaking))
        } else {
            let whole = if self.is_chat {
                chat_response::encode_whole(outcome)
            } else {
                responses_response::encode_whole(outcome, &echo)
            };
            (
                "application/json",
                vec![ReplyChunk { at: start + speaking, bytes: Bytes::from(whole.to_string()) }],
            )
        };
        HttpReply {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            chunks,
            ending: ReplyEnding::Whole,
            exchange: Some(self.exchange(outcome)),
        }
    }

    fn echo(&self) -> ResponseEcho<'_> {
        let include =
            self.body.get("include").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wish = &self.turn.caching;
        ResponseEcho {
            body: self.body,
            effort: &self.turn.parameters.effort,
            includes_encrypted: include.iter().any(|name| name == "reasoning.encrypted_content"),
            summarizes: self.body.pointer("/reasoning/summary").is_some_and(|summary| !summary.is_null()),
            cache_options: (self.card.caching == CacheMode::Hybrid).then(|| {
                json!({
                    "mode": if wish.is_implicit { "implicit" } else { "explicit" },
                    "ttl": if wish.ttl > OpenAiCacheTtl::HalfHour { "12h" } else { "30m" },
                    "comparison_response_id": self.body.pointer("/prompt_cache_options/comparison_response_id"),
                })
            }),
        }
    }

    fn exchange(&self, outcome: &OpenAiOutcome) -> ModelExchange {
        let OpenAiCacheLookup { read, written_short, written_long, uncached, marks, known, lapsed, writes } =
            &outcome.lookup;
        let usage = Usage {
            input_tokens: *uncached,
            cache_creation_input_tokens: written_short + written_long,
            cache_read_input_tokens: *read,
            output_tokens: outcome.output_tokens,
            cache_creation: Some(pal_model::CacheCreation {
                ephemeral_5m_input_tokens: *written_short,
                ephemeral_1h_input_tokens: *written_long,
            }),
            iterations: None,
            server_tool_use: None,
            basis: Default::default(),
        };
        ModelExchange {
            number: self.asked.number,
            request: self.asked.id.to_owned(),
            response: outcome.id.clone(),
            model: outcome.model.clone(),
            stop_reason: outcome.stop_reason.clone(),
            cost: self.card.cost(&usage),
            usage,
            cache: CacheOutcome {
                marks: *marks,
                steps_back: None,
                written: writes.len(),
                known: *known,
                lapsed: *lapsed,
                differs: None,
            },
        }
    }
}

fn read_body(body: &[u8]) -> Result<Value, OpenAiError> {
    if body.len() > BODY_BYTES_MAX {
        let message = "The request body is larger than this endpoint takes.";
        return Err(OpenAiError {
            status: 413,
            code: None,
            param: None,
            ..OpenAiError::invalid("", "", message)
        });
    }
    let body: Option<Value> = serde_json::from_slice(body).ok();
    body.filter(Value::is_object).ok_or_else(|| {
        let message = "We could not parse the JSON body of your request. The API expects a JSON payload.";
        OpenAiError { code: None, param: None, ..OpenAiError::invalid("", "", message) }
    })
}

fn unauthorized(request: &HttpRequest<'_>) -> OpenAiError {
    let message = match request.header("authorization") {
        Some(_) => "Incorrect API key provided.",
        None => {
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth."
        }
    };
    OpenAiError { status: 401, param: None, ..OpenAiError::invalid("invalid_api_key", "", message) }
}

/// Card of an OpenAI model, or of a model that the user's table describes; fails if the model is unknown.
fn find(cards: &ModelCatalog, model: &str) -> Result<ModelCard, OpenAiError> {
    let found = cards.find(model);
    let is_own = found.card.generation == TokenGeneration::Neutral;
    if found.notice.is_none() && (is_own || found.card.caching != CacheMode::Explicit) {
        return Ok(found.card);
    }
    let message = format!("The model `{model}` does not exist or you do not have access to it.");
    Err(OpenAiError { param: None, ..OpenAiError::not_found(Some("model_not_found"), "", message) })
}

/// Lists the OpenAI models, or describes one.
fn models(cards: &ModelCatalog, name: &str) -> Result<HttpReply, OpenAiError> {
    let info = |name: &str| json!({"id": name, "object": "model", "created": 0, "owned_by": "openai"});
    let json = match name {
        "" => {
            let data: Vec<Value> = cards.names().filter(|name| find(cards, name).is_ok()).map(info).collect();
            json!({"object": "list", "data": data})
        }
        name => info(&find(cards, name)?.model),
    };
    Ok(json_reply(200, json.to_string()))
}
