//! OpenAI's side of the simulator: Responses, Chat Completions and the list of models.
//!
//! Requests are read strictly into the same blocks that the Messages side knows, the same model answers them, and the
//! answer is spoken in OpenAI's forms. Nothing is stored between requests but the cache: a request that refers to an
//! earlier response is told that there is none.

mod cache;
mod compare;
mod error;
mod read_chat;
mod read_responses;
mod said;
mod speak_chat;
mod speak_responses;
mod turn;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use pal_model::{Caching, Card, Cards, Timestamp, Usage};
use pal_wire::Dialect;
use serde_json::{Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use self::cache::{Cache, Rendered, Served};
use self::compare::Responses;
use self::error::Refusal;
use self::said::{Outcome, items};
use self::speak_responses::Echo;
use self::turn::{Keep, Turn};
use crate::answer::{Fitted, Limits, fit};
use crate::facts::{Kind, Memo};
use crate::http::{MAX_BODY_BYTES, authorize, json_reply};
use crate::ids::Ids;
use crate::seal::{Sealer, Thought};
use crate::settings::Settings;
use crate::speak;
use crate::tokens;
use crate::{CacheStory, Chunk, Ending, Exchange, HttpRequest, Model, Reply};

/// What of the simulator both sides share.
pub(crate) struct Desk<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) model: &'a mut dyn Model,
    pub(crate) memo: &'a mut Memo,
    pub(crate) ids: &'a mut Ids,
    pub(crate) sealer: Sealer,
}

/// A request on its way.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) now: Timestamp,
    pub(crate) request: &'a HttpRequest<'a>,
    /// Which request it is, counted from 1.
    pub(crate) number: u64,
    /// Its id.
    pub(crate) id: &'a str,
}

/// What OpenAI's side remembers.
#[derive(Default)]
pub(crate) struct OpenAi {
    cache: Cache,
    responses: Responses,
}

/// The dialect of a request, if it is one for OpenAI's side. Both vendors list models under one path; who asks without
/// a version of Anthropic's is a client of OpenAI's.
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

impl OpenAi {
    /// Answers a request.
    pub(crate) fn handle(&mut self, desk: &mut Desk<'_>, asked: Asked<'_>) -> Reply {
        let mut reply =
            self.route(desk, asked).unwrap_or_else(|refusal| json_reply(refusal.status, refusal.to_json()));
        reply.headers.push(("x-request-id", asked.id.to_owned()));
        reply.headers.push(("openai-version", "2020-10-01".to_owned()));
        reply
    }

    fn route(&mut self, desk: &mut Desk<'_>, asked: Asked<'_>) -> Result<Reply, Refusal> {
        let request = asked.request;
        let path = request.route();
        let expected = if is_models(path) { "GET" } else { "POST" };
        if request.method != expected {
            let message = format!(
                "Not allowed to {} on {path} (HINT: Perhaps you meant to use a different HTTP method?)",
                request.method
            );
            return Err(Refusal {
                status: 405,
                code: None,
                param: None,
                ..Refusal::invalid("", "", message)
            });
        }
        let scope = authorize(request, desk.settings.keys.as_deref()).map_err(|_| unauthorized(request))?;
        if let Some(rest) = path.strip_prefix("/v1/models") {
            return models(&desk.settings.cards, rest.trim_start_matches('/'));
        }
        let body = read_body(request.body)?;
        let model = match body.get("model") {
            Some(Value::String(model)) => model,
            Some(Value::Null) | None => return Err(Refusal::missing("model")),
            Some(_) => return Err(Refusal::mistyped("model", "a string")),
        };
        let card = find(&desk.settings.cards, model)?;
        let is_chat = path == "/v1/chat/completions";
        let turn = if is_chat {
            read_chat::read(&body, &card)?
        } else {
            read_responses::read(&body, &card, desk.sealer)?
        };
        let job = Job { asked, scope, card: &card, turn: &turn, body: &body, is_chat };
        self.answer(desk, &job)
    }

    fn answer(&mut self, desk: &mut Desk<'_>, job: &Job<'_>) -> Result<Reply, Refusal> {
        let rendered = job.render(desk.memo);
        let limit = job.card.prompt_limit();
        if rendered.tokens > limit {
            return Err(job.too_long(rendered.tokens, limit));
        }
        let least = job.card.min_cacheable;
        let now = job.asked.now;
        let served = match job.card.caching {
            Caching::Breakpoints => self.cache.serve_breakpoints(now, &rendered, job.turn, least),
            Caching::Automatic | Caching::Marks => {
                self.cache.serve_automatic(now, &rendered, job.turn, least)
            }
        };
        let fitted = job.ask(desk, rendered.tokens);
        let thought = Thought {
            id: 0,
            previous: 0,
            model: xxh3_64(job.card.model.as_bytes()),
            is_bound: false,
            scope: job.scope,
            tokens: 0,
        };
        let comparison =
            job.body.pointer("/prompt_cache_options/comparison_response_id").and_then(Value::as_str);
        let outcome = Outcome {
            id: desk.ids.id(if job.is_chat { "chatcmpl" } else { "resp" }),
            model: job.card.model.to_string(),
            created: now.milliseconds().div_euclid(1_000),
            items: items(&fitted, desk.ids, desk.sealer, thought),
            stop_reason: fitted.stop_reason.to_owned(),
            output_tokens: fitted.tokens(),
            reasoning_tokens: fitted.thinking_tokens(),
            diagnostics: comparison.map(|id| self.responses.compare(id, job.turn, &rendered, &served)),
            served,
        };
        self.responses.push(&outcome.id, job.turn, &rendered);
        let served = &outcome.served;
        let pace = desk.settings.pace;
        let start = pace.first_byte(served.uncached + outcome.written(), served.read);
        self.cache.write(now, now.after(start), &served.writes);
        Ok(job.speak(&outcome, start, pace.speaking(outcome.output_tokens)))
    }
}

/// A request that was read.
struct Job<'a> {
    asked: Asked<'a>,
    /// Who asks.
    scope: u64,
    card: &'a Card,
    turn: &'a Turn,
    body: &'a Value,
    is_chat: bool,
}

impl Job<'_> {
    /// The prompt as the cache sees it. Who asks, which model and with which parameters is part of every hash.
    fn render(&self, memo: &mut Memo) -> Rendered {
        let turn = self.turn;
        let start = format!("{} {} {:?} {:?}", self.scope, turn.model, turn.wish.key, turn.parameters);
        let seed = xxh3_128(start.as_bytes());
        let mut rendered = Rendered::default();
        for piece in &turn.pieces {
            let facts =
                if piece.place == turn::Place::Tool { memo.tool(&piece.raw) } else { memo.block(&piece.raw) };
            let frame = if piece.ends_item && facts.kind != Kind::Tool { tokens::MESSAGE_TOKENS } else { 0 };
            rendered.push(seed, piece, &facts, facts.tokens(self.card.generation) + frame);
        }
        rendered
    }

    fn too_long(&self, have: u64, limit: u64) -> Refusal {
        if self.is_chat {
            let message = format!(
                "This model's maximum context length is {limit} tokens. However, your messages resulted in {have} tokens. Please reduce the length of the messages."
            );
            return Refusal::invalid("context_length_exceeded", "messages", message);
        }
        let message =
            "Your input exceeds the context window of this model. Please adjust your input and try again.";
        Refusal::invalid("context_length_exceeded", "input", message)
    }

    /// What the model says to the prompt, within the limits of the request.
    fn ask(&self, desk: &mut Desk<'_>, prompt_tokens: u64) -> Fitted {
        if self.body.get("prewarm") == Some(&Value::Bool(true)) {
            return Fitted { stop_reason: "end_turn", ..Fitted::default() };
        }
        let turn = self.turn;
        let max_tokens = turn.max_tokens.unwrap_or(self.card.max_output).min(self.card.max_output);
        let answer = desk.model.answer(&turn.ask(max_tokens));
        let stops: Vec<Cow<'_, str>> = turn.stops.iter().map(|stop| Cow::Borrowed(stop.as_str())).collect();
        let limits = Limits {
            max_tokens,
            room: self.card.window.saturating_sub(prompt_tokens),
            stop_sequences: &stops,
            thinks: turn.thinks(),
            generation: self.card.generation,
        };
        fit(answer, &limits)
    }

    /// Puts an answer into bytes with their times.
    fn speak(&self, outcome: &Outcome, start: Duration, speaking: Duration) -> Reply {
        let echo = self.echo();
        let wants_usage = self.body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true));
        let (content_type, chunks) = if self.turn.streams {
            let frames = if self.is_chat {
                speak_chat::frames(outcome, wants_usage)
            } else {
                speak_responses::frames(outcome, &echo)
            };
            ("text/event-stream; charset=utf-8", speak::chunks(frames, start, speaking))
        } else {
            let whole = if self.is_chat {
                speak_chat::whole(outcome)
            } else {
                speak_responses::whole(outcome, &echo)
            };
            ("application/json", vec![Chunk { at: start + speaking, bytes: Bytes::from(whole.to_string()) }])
        };
        Reply {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            chunks,
            ending: Ending::Whole,
            exchange: Some(self.exchange(outcome)),
        }
    }

    fn echo(&self) -> Echo<'_> {
        let include =
            self.body.get("include").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wish = &self.turn.wish;
        Echo {
            body: self.body,
            effort: &self.turn.parameters.effort,
            includes_encrypted: include.iter().any(|name| name == "reasoning.encrypted_content"),
            summarizes: self.body.pointer("/reasoning/summary").is_some_and(|summary| !summary.is_null()),
            cache_options: (self.card.caching == Caching::Breakpoints).then(|| {
                json!({
                    "mode": if wish.is_implicit { "implicit" } else { "explicit" },
                    "ttl": if wish.keep > Keep::HalfHour { "12h" } else { "30m" },
                    "comparison_response_id": self.body.pointer("/prompt_cache_options/comparison_response_id"),
                })
            }),
        }
    }

    fn exchange(&self, outcome: &Outcome) -> Exchange {
        let Served { read, written_short, written_long, uncached, marks, known, lapsed, writes } =
            &outcome.served;
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
        };
        Exchange {
            number: self.asked.number,
            request: self.asked.id.to_owned(),
            response: outcome.id.clone(),
            model: outcome.model.clone(),
            stop_reason: outcome.stop_reason.clone(),
            cost: self.card.cost(&usage),
            usage,
            cache: CacheStory {
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

fn read_body(body: &[u8]) -> Result<Value, Refusal> {
    if body.len() > MAX_BODY_BYTES {
        let message = "The request body is larger than this endpoint takes.";
        return Err(Refusal { status: 413, code: None, param: None, ..Refusal::invalid("", "", message) });
    }
    let body: Option<Value> = serde_json::from_slice(body).ok();
    body.filter(Value::is_object).ok_or_else(|| {
        let message = "We could not parse the JSON body of your request. The API expects a JSON payload.";
        Refusal { code: None, param: None, ..Refusal::invalid("", "", message) }
    })
}

fn unauthorized(request: &HttpRequest<'_>) -> Refusal {
    let message = match request.header("authorization") {
        Some(_) => "Incorrect API key provided.",
        None => {
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth."
        }
    };
    Refusal { status: 401, param: None, ..Refusal::invalid("invalid_api_key", "", message) }
}

/// The card of a model that this side has.
fn find(cards: &Cards, model: &str) -> Result<Card, Refusal> {
    let found = cards.find(model);
    if found.notice.is_none() && found.card.caching != Caching::Marks {
        return Ok(found.card);
    }
    let message = format!("The model `{model}` does not exist or you do not have access to it.");
    Err(Refusal { param: None, ..Refusal::not_found(Some("model_not_found"), "", message) })
}

/// The models of this side, or one of them.
fn models(cards: &Cards, name: &str) -> Result<Reply, Refusal> {
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
