//! The Messages endpoint and the one that counts: judge, read, look up, ask, write, report.

use std::time::Duration;

use bytes::Bytes;
use pal_model::{Card, Text, Timestamp, Usage};
use pal_wire::{ApiError, Endpoint, ErrorKind, Node, Reading};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::answer::{Fitted, Limits, Writer, fit};
use crate::binding::Chain;
use crate::cache::Served;
use crate::facts::Kind;
use crate::http::{Headers, MAX_BODY_BYTES, json_reply};
use crate::prompt::Prompt;
use crate::reply::CacheStory;
use crate::request::{Thinking, Wanted, read_prompt};
use crate::seal::Thought;
use crate::simulator::{Incoming, Simulator};
use crate::speak::{self, Response};
use crate::usage::{self, Beside};
use crate::{Chunk, Ending, Exchange, Reply, models};

/// A request that was judged and read.
struct Turn<'a> {
    incoming: Incoming<'a>,
    headers: Headers,
    card: Card,
    wanted: Wanted<'a>,
    prompt: Prompt<'a>,
    chain: Chain,
}

/// An answer, before it is spoken.
struct Outcome {
    blocks: Vec<Text>,
    fitted: Fitted,
    usage: Usage,
    served: Served,
    extras: Vec<(&'static str, String)>,
}

impl Simulator {
    /// Answers, or counts.
    pub(crate) fn messages(&mut self, incoming: Incoming<'_>, endpoint: Endpoint) -> Result<Reply, ApiError> {
        let headers = Headers::read(incoming.request)?;
        let reading = Reading::new(incoming.request.body, MAX_BODY_BYTES)?;
        let body = reading.root();
        let model = body.get_text("model").map(|model| model.decoded()).unwrap_or_default();
        let card = models::find(&self.settings.cards, &model);
        // Without a known model, what is wrong with the rest is said first.
        let judged_by = card.as_ref().map_or_else(|_| self.settings.cards.find(&model).card, Card::clone);
        let judged = reading.check(&headers.rules(&judged_by, endpoint));
        let card = match card {
            Ok(card) => card,
            Err(_) if model.is_empty() => {
                return Err(judged.err().unwrap_or_else(|| invalid("model: Field required")));
            }
            Err(unknown) => return Err(unknown),
        };
        judged?;
        let wanted = Wanted::read(body, &card, headers.betas_hash);
        let prompt = read_prompt(body, &card, &wanted, incoming.scope, &mut self.memo);
        let mut turn = Turn { incoming, headers, card, wanted, prompt, chain: Chain::after_head(0) };
        self.prepare(&mut turn, body)?;
        match endpoint {
            Endpoint::CountTokens => Ok(count(&turn)),
            Endpoint::Messages => self.answer(turn),
        }
    }

    fn prepare(&mut self, _turn: &mut Turn<'_>, _body: Node<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    fn answer(&mut self, mut turn: Turn<'_>) -> Result<Reply, ApiError> {
        let rendered = turn.prompt.render(&turn.card);
        check_window(&turn, rendered.tokens)?;
        let served = self.cache.serve(turn.incoming.now, &rendered, turn.card.look_back);
        let fitted = self.ask(&turn, rendered.tokens);
        let blocks = self.writer(&mut turn).blocks(&fitted);
        let usage = usage::totals(&served, fitted.tokens());
        let outcome = Outcome { blocks, fitted, usage, served, extras: Vec::new() };
        Ok(self.speak(&turn, outcome))
    }

    /// What the model says to the prompt, within the limits of the request.
    fn ask(&mut self, turn: &Turn<'_>, prompt_tokens: u64) -> Fitted {
        let max_tokens = turn.wanted.max_tokens.unwrap_or(0);
        if max_tokens == 0 {
            return Fitted { stop_reason: "max_tokens", ..Fitted::default() };
        }
        let thinks = thinks(turn);
        let mut ask = turn.prompt.ask(&turn.card.model);
        ask.max_tokens = max_tokens;
        ask.thinks = thinks;
        let answer = self.model.answer(&ask);
        let limits = Limits {
            max_tokens,
            room: turn.card.window.saturating_sub(prompt_tokens),
            stop_sequences: &turn.wanted.stop_sequences,
            thinks,
            generation: turn.card.generation,
        };
        fit(answer, &limits)
    }

    fn writer<'s>(&'s mut self, turn: &'s mut Turn<'_>) -> Writer<'s> {
        let thought = Thought {
            id: 0,
            previous: 0,
            model: xxh3_64(turn.card.model.as_bytes()),
            is_bound: turn.card.can.bound_thinking,
            scope: turn.incoming.scope,
            tokens: 0,
        };
        Writer {
            ids: &mut self.ids,
            sealer: self.sealer,
            memo: &mut self.memo,
            chain: &mut turn.chain,
            thought,
            shows_thinking: turn.wanted.shows_thinking,
        }
    }

    /// Puts an answer into bytes with their times, and writes what the cache is to remember.
    fn speak(&mut self, turn: &Turn<'_>, outcome: Outcome) -> Reply {
        let Outcome { blocks, fitted, usage, served, extras } = outcome;
        let beside = Beside {
            model: &turn.card.model,
            thinking_tokens: fitted.thinking_tokens(),
            is_fast: turn.wanted.is_fast,
            geo: turn.wanted.geo.as_deref().unwrap_or("us"),
        };
        let response = Response {
            id: self.ids.id("msg"),
            model: turn.card.model.to_string(),
            blocks,
            stop_reason: Some(fitted.stop_reason.to_owned()),
            stop_sequence: fitted.stop_sequence,
            usage: usage::to_json(&usage, &beside),
            extras,
        };
        let pace = self.settings.pace;
        let start = pace.first_byte(served.uncached + served.written_1h + served.written_5m, served.read);
        let speaking = pace.speaking(usage.output_tokens);
        self.cache.write(turn.incoming.now, later(turn.incoming.now, start), &served.writes);
        let (content_type, chunks) = if turn.wanted.streams {
            ("text/event-stream; charset=utf-8", speak::chunks(speak::frames(&response), start, speaking))
        } else {
            let bytes = Bytes::from(speak::whole(&response));
            ("application/json", vec![Chunk { at: start + speaking, bytes }])
        };
        let cost = turn.card.cost(&usage);
        Reply {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            chunks,
            ending: Ending::Whole,
            exchange: Some(Exchange {
                number: turn.incoming.number,
                request: turn.incoming.id.to_owned(),
                response: response.id,
                model: response.model,
                stop_reason: fitted.stop_reason.to_owned(),
                usage,
                cost,
                cache: CacheStory {
                    marks: served.marks,
                    steps_back: served.steps_back,
                    written: served.writes.len(),
                },
            }),
        }
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_milliseconds(now.milliseconds().saturating_add(by))
}

fn count(turn: &Turn<'_>) -> Reply {
    let tokens = turn.prompt.tokens(turn.card.generation);
    json_reply(200, json!({"input_tokens": tokens}).to_string())
}

/// A prompt has to fit the window. Models without any context management are taken for those that want room for the
/// whole answer beforehand.
fn check_window(turn: &Turn<'_>, tokens: u64) -> Result<(), ApiError> {
    let window = turn.card.window;
    let is_old = window <= 200_000 && turn.card.can.context_management.is_empty();
    let max_tokens = turn.wanted.max_tokens.unwrap_or(0);
    if is_old && !turn.headers.may_exceed_window && tokens + max_tokens > window {
        return Err(invalid(format!(
            "input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > {window}, \
             decrease input length or `max_tokens` and try again"
        )));
    }
    if tokens > window {
        return Err(invalid(format!("prompt is too long: {tokens} tokens > {window} maximum")));
    }
    Ok(())
}

/// Whether the model thinks before this answer.
fn thinks(turn: &Turn<'_>) -> bool {
    match turn.wanted.thinking {
        Thinking::Never => false,
        Thinking::Adaptive | Thinking::Budget(_) => true,
        Thinking::BetweenTools => {
            let last = turn.prompt.rendered().last();
            last.is_some_and(|piece| piece.facts.kind == Kind::ToolResult)
        }
    }
}
