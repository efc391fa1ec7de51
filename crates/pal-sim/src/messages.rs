//! The Messages endpoint and the one that counts: judge, read, look up, ask, write, report.

use bytes::Bytes;
use pal_model::{Card, Text};
use pal_wire::{ApiError, Endpoint, ErrorKind, Reading, check_request};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::answer::{Fitted, Limits, Writer, fit};
use crate::binding::{self, Judge, bind};
use crate::compaction::beside_nothing;
use crate::edits::{self, Edit};
use crate::http::{Headers, MAX_BODY_BYTES, json_reply};
use crate::recent::Print;
use crate::reply::{CacheStory, Difference};
use crate::request::{Wanted, read_prompt};
use crate::seal::Thought;
use crate::settings::Signatures;
use crate::simulator::{Incoming, Simulator};
use crate::speak::{self, Response};
use crate::threads::{Asker, Part};
use crate::turn::{Outcome, Turn};
use crate::usage::{self, Beside};
use crate::{Chunk, Ending, Exchange, HttpRequest, Reply, models};

impl Simulator {
    /// Answers a request that may be part of a thread.
    pub(crate) fn threaded(&mut self, incoming: Incoming<'_>) -> Result<Reply, ApiError> {
        let Some(part) = Part::read(incoming.request.body) else {
            return self.messages(incoming, Endpoint::Messages);
        };
        let headers = Headers::read(incoming.request)?;
        let card = self.settings.cards.find(part.string("model").as_deref().unwrap_or_default()).card;
        check_request(incoming.request.body, &headers.rules(&card, Endpoint::Messages))?;
        let asker = Asker { now: incoming.now, scope: incoming.scope };
        let whole = self.threads.resolve(&part, headers.betas_hash, asker)?;
        let request = HttpRequest { body: whole.body.as_bytes(), ..*incoming.request };
        let reply = self.messages(Incoming { request: &request, ..incoming }, Endpoint::Messages)?;
        self.threads.hold(whole, &reply, asker);
        Ok(reply)
    }

    /// Answers, or counts.
    pub(crate) fn messages(&mut self, incoming: Incoming<'_>, endpoint: Endpoint) -> Result<Reply, ApiError> {
        let headers = Headers::read(incoming.request)?;
        let reading = Reading::new(incoming.request.body, MAX_BODY_BYTES)?;
        let card = self.judged(&reading, &headers, endpoint)?;
        let mut turn = self.read(incoming, headers, card, &reading)?;
        check_abilities(&turn)?;
        turn.deleted_tokens = edits::settle(&mut turn.prompt, &turn.card);
        turn.sent_tokens = turn.prompt.tokens(turn.card.generation);
        if let Some(wanted) = &turn.wanted.edits {
            turn.applied = edits::clear(&mut turn.prompt, wanted, &turn.card, &mut self.memo);
        }
        match endpoint {
            Endpoint::CountTokens => Ok(count(&turn)),
            Endpoint::Messages => self.answer(turn),
        }
    }

    /// The card of the model that a request names, if the request is right for it.
    fn judged(&self, reading: &Reading<'_>, headers: &Headers, endpoint: Endpoint) -> Result<Card, ApiError> {
        let model = reading.root().get_text("model").map(|model| model.decoded()).unwrap_or_default();
        match models::find(&self.settings.cards, &model) {
            Ok(card) => reading.check(&headers.rules(&card, endpoint)).map(|_| card),
            // Without a model to judge by, the newest one's rules say what is wrong.
            Err(_) if model.is_empty() => {
                let card = self.settings.cards.find("claude-opus-5-5").card;
                let judged = reading.check(&headers.rules(&card, endpoint));
                Err(judged.err().unwrap_or_else(|| invalid("model: Field required")))
            }
            Err(unknown) => Err(unknown),
        }
    }

    fn read<'a>(
        &mut self,
        incoming: Incoming<'a>,
        headers: Headers,
        card: Card,
        reading: &'a Reading<'_>,
    ) -> Result<Turn<'a>, ApiError> {
        let body = reading.root();
        let wanted = Wanted::read(body, &card, headers.betas_hash);
        let mut prompt = read_prompt(body, &card, &wanted, incoming.scope, &mut self.memo);
        let head = binding::head(&prompt);
        let mut judge = Judge {
            sealer: self.sealer,
            learned: (self.settings.signatures == Signatures::Learn).then_some(&mut self.learned),
            model: xxh3_64(card.model.as_bytes()),
            is_bound: card.can.bound_thinking,
            scope: incoming.scope,
            drops: wanted.drops_thinking,
        };
        let (chain, dropped) = bind(&mut prompt, head, &mut judge)?;
        Ok(Turn {
            incoming,
            headers,
            card,
            wanted,
            prompt,
            print: Print::default(),
            diagnosed: None,
            differs: None,
            head,
            chain,
            dropped,
            sent_tokens: 0,
            applied: Vec::new(),
            deleted_tokens: 0,
        })
    }

    fn answer(&mut self, mut turn: Turn<'_>) -> Result<Reply, ApiError> {
        let tokens = turn.prompt.tokens(turn.card.generation);
        // A history that is too long to be summarised shows in the stop reason instead.
        if turn.wanted.compaction.is_none() {
            check_window(&turn, tokens)?;
        }
        turn.print = turn.printed();
        turn.diagnosed = self.diagnosed(&turn);
        turn.differs = self.differs(&turn);
        if let Some(instructions) = turn.wanted.compaction.clone() {
            let outcome = self.compact_on_demand(&turn, instructions.as_deref());
            return Ok(self.speak(turn, outcome));
        }
        let compacted = self.compact_at_threshold(&mut turn, tokens);
        if compacted.is_some() {
            // The next request is compared with what is left.
            turn.print = turn.printed();
        }
        if let Some(compacted) = compacted.as_ref().filter(|compacted| compacted.pauses) {
            let mut usage = beside_nothing();
            usage.iterations = Some(vec![compacted.pass.clone()]);
            let fitted = Fitted { stop_reason: "compaction", ..Fitted::default() };
            let blocks = vec![Text::from(compacted.block.as_str())];
            let outcome = Outcome::message(blocks, fitted, usage, compacted.served.clone());
            return Ok(self.speak(turn, outcome));
        }
        let rendered = turn.prompt.render(&turn.card);
        let mut served = self.cache.serve(turn.incoming.now, &rendered, turn.card.look_back);
        let fitted = self.ask(&turn, rendered.tokens);
        let mut blocks = self.writer(&mut turn).blocks(&fitted);
        let mut usage = usage::totals(&served, fitted.tokens());
        let message = usage::pass("message", &served, fitted.tokens());
        if let Some(compacted) = compacted {
            blocks.insert(0, Text::from(compacted.block));
            usage.iterations = Some(vec![compacted.pass, message]);
            served.writes.extend(compacted.served.writes);
        } else if turn.headers.is_beta {
            usage.iterations = Some(vec![message]);
        }
        let outcome = Outcome::message(blocks, fitted, usage, served);
        Ok(self.speak(turn, outcome))
    }

    /// What the model says to the prompt, within the limits of the request.
    fn ask(&mut self, turn: &Turn<'_>, prompt_tokens: u64) -> Fitted {
        let max_tokens = turn.wanted.max_tokens.unwrap_or(0);
        if max_tokens == 0 {
            return Fitted { stop_reason: "max_tokens", ..Fitted::default() };
        }
        let thinks = turn.thinks();
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

    /// Puts an answer into bytes with their times, and remembers what is to be remembered of it.
    fn speak(&mut self, turn: Turn<'_>, outcome: Outcome) -> Reply {
        let Incoming { now, number, id, scope, .. } = turn.incoming;
        let served = &outcome.served;
        let pace = self.settings.pace;
        let start = pace.first_byte(served.uncached + served.written_1h + served.written_5m, served.read);
        let speaking = pace.speaking(outcome.usage.output_tokens);
        self.cache.write(now, now.after(start), &served.writes);
        let response = self.response(&turn, &outcome);
        self.recent.remember(scope, &response.id, turn.print);
        let (content_type, chunks) = if turn.wanted.streams {
            ("text/event-stream; charset=utf-8", speak::chunks(speak::frames(&response), start, speaking))
        } else {
            let bytes = Bytes::from(speak::whole(&response));
            ("application/json", vec![Chunk { at: start + speaking, bytes }])
        };
        Reply {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            chunks,
            ending: Ending::Whole,
            exchange: Some(Exchange {
                number,
                request: id.to_owned(),
                response: response.id,
                model: response.model,
                stop_reason: outcome.stop_reason.to_owned(),
                cost: turn.card.cost(&outcome.usage),
                cache: CacheStory {
                    marks: served.marks,
                    steps_back: served.steps_back,
                    written: served.writes.len(),
                    known: served.known,
                    lapsed: served.lapsed,
                    differs: turn.differs,
                },
                usage: outcome.usage,
            }),
        }
    }

    fn response(&mut self, turn: &Turn<'_>, outcome: &Outcome) -> Response {
        let beside = Beside {
            model: &turn.card.model,
            thinking_tokens: outcome.thinking_tokens,
            is_fast: turn.wanted.is_fast,
            geo: turn.wanted.geo.as_deref().unwrap_or("us"),
            deleted_tokens: turn.card.can.cache_edits.then_some(turn.deleted_tokens),
        };
        Response {
            id: self.ids.id("msg"),
            model: turn.card.model.to_string(),
            blocks: outcome.blocks.clone(),
            stop_reason: Some(outcome.stop_reason.to_owned()),
            stop_sequence: outcome.stop_sequence.clone(),
            usage: usage::to_json(&outcome.usage, &beside),
            extras: extras(turn, outcome),
        }
    }

    /// Where the request first differs from the one that it names, for our own record: the wire says only in which layer.
    fn differs(&self, turn: &Turn<'_>) -> Option<Difference> {
        let previous = turn.wanted.previous.as_ref().and_then(|previous| previous.as_deref())?;
        self.recent.differs(turn.incoming.scope, previous, &turn.print)
    }

    /// The `diagnostics` of the answer, where the request asks for them.
    fn diagnosed(&self, turn: &Turn<'_>) -> Option<Value> {
        let previous = turn.wanted.previous.as_ref().filter(|_| turn.card.can.cache_diagnostics)?;
        let diagnose = |previous| self.recent.diagnose(turn.incoming.scope, previous, &turn.print);
        Some(previous.as_deref().map_or(Value::Null, diagnose))
    }
}

/// What is said about an answer as a whole, besides its usage.
fn extras(turn: &Turn<'_>, outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut extras = Vec::new();
    if let Some(diagnosed) = &turn.diagnosed {
        extras.push(("diagnostics", diagnosed.to_string()));
    }
    if !turn.dropped.is_empty() {
        let dropped = turn.dropped.iter().map(
            |dropped| json!({"type": "thinking_dropped", "path": dropped.path, "reason": dropped.reason}),
        );
        extras.push(("input_transformations", Value::from_iter(dropped).to_string()));
    }
    if turn.wanted.edits.is_some() {
        extras.push(("context_management", json!({"applied_edits": turn.applied}).to_string()));
    }
    if outcome.stop_reason == "refusal" {
        let details = json!({
            "type": "refusal",
            "category": "general_harms",
            "explanation": "The model was told to refuse this request.",
        });
        extras.push(("stop_details", details.to_string()));
    }
    extras
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

fn count(turn: &Turn<'_>) -> Reply {
    let mut count = json!({"input_tokens": turn.prompt.tokens(turn.card.generation)});
    if turn.wanted.edits.is_some() {
        count["context_management"] = json!({"original_input_tokens": turn.sent_tokens});
    }
    json_reply(200, count.to_string())
}

/// What a header switches on, the model still has to be able to do.
fn check_abilities(turn: &Turn<'_>) -> Result<(), ApiError> {
    let can = &turn.card.can;
    if turn.wanted.compaction.is_some() && !can.provider_compaction {
        return Err(invalid("compaction: not supported for this model"));
    }
    for edit in turn.wanted.edits.iter().flatten() {
        let name = match edit {
            Edit::ClearToolUses(_) => "clear_tool_uses_20250919",
            Edit::ClearThinking { .. } => "clear_thinking_20251015",
            Edit::Compact { .. } => "compact_20260112",
        };
        if !can.context_management.iter().any(|known| known == name) {
            return Err(invalid(format!(
                "context_management.edits: `{name}` is not supported for this model"
            )));
        }
    }
    Ok(())
}

/// A prompt has to fit the window. Models without any context management are taken for those that want room for the
/// whole answer beforehand.
fn check_window(turn: &Turn<'_>, tokens: u64) -> Result<(), ApiError> {
    let window = turn.card.window;
    let is_old = window <= 200_000 && turn.card.can.context_management.is_empty();
    let max_tokens = turn.wanted.max_tokens.unwrap_or(0);
    if tokens > window {
        return Err(invalid(format!("prompt is too long: {tokens} tokens > {window} maximum")));
    }
    if is_old && !turn.headers.may_exceed_window && tokens + max_tokens > window {
        return Err(invalid(format!(
            "input length and `max_tokens` exceed context limit: {tokens} + {max_tokens} > {window}, \
             decrease input length or `max_tokens` and try again"
        )));
    }
    Ok(())
}
