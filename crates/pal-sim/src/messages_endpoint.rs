//! The Messages and count_tokens endpoints: validate, parse, look up the cache, run the model, encode,
//! record.

use bytes::Bytes;
use pal_model::{ModelCard, SharedText};
use pal_wire::{ApiError, ApiErrorKind, MessagesEndpoint, RequestDocument, check_request};
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::block_signatures::ThinkingClaims;
use crate::bound_thinking::{self, ThinkingValidator, validate_thinking};
use crate::cache_diagnostics::PromptFingerprint;
use crate::context_edits::{self, ContextEdit};
use crate::fitted_answer::{BlockWriter, FitLimits, FittedAnswer, fit_answer};
use crate::http_reply::{CacheOutcome, PromptDifference};
use crate::http_request::{BODY_BYTES_MAX, RequestHeaders, json_reply};
use crate::message_threads::{ThreadCaller, ThreadRequest};
use crate::messages_request::{MessagesOptions, read_prompt};
use crate::messages_response::{self, MessagesResponse};
use crate::messages_turn::{MessagesOutcome, MessagesTurn};
use crate::provider_compaction::usage_without_message;
use crate::sim_settings::SignaturePolicy;
use crate::simulated_provider::{IncomingRequest, SimulatedProvider};
use crate::usage_json::{self, UsageExtras};
use crate::{HttpReply, HttpRequest, ModelExchange, ReplyChunk, ReplyEnding, models_endpoint};

impl SimulatedProvider {
    /// Answers a request that may continue a thread.
    pub(crate) fn answer_threaded(&mut self, incoming: IncomingRequest<'_>) -> Result<HttpReply, ApiError> {
        let Some(part) = ThreadRequest::read(incoming.request.body) else {
            return self.messages(incoming, MessagesEndpoint::Messages);
        };
        let headers = RequestHeaders::read(incoming.request)?;
        let card = self.settings.cards.find(part.string("model").as_deref().unwrap_or_default()).card;
        check_request(incoming.request.body, &headers.rules(&card, MessagesEndpoint::Messages))?;
        let asker = ThreadCaller { now: incoming.now, scope: incoming.scope };
        let whole = self.threads.resolve(&part, headers.betas_hash, asker)?;
        let request = HttpRequest { body: whole.body.as_bytes(), ..*incoming.request };
        let reply =
            self.messages(IncomingRequest { request: &request, ..incoming }, MessagesEndpoint::Messages)?;
        self.threads.store(whole, &reply, asker);
        Ok(reply)
    }

    /// Answers a request, or counts its tokens.
    pub(crate) fn messages(
        &mut self,
        incoming: IncomingRequest<'_>,
        endpoint: MessagesEndpoint,
    ) -> Result<HttpReply, ApiError> {
        let headers = RequestHeaders::read(incoming.request)?;
        let reading = RequestDocument::new(incoming.request.body, BODY_BYTES_MAX)?;
        let card = self.validated_card(&reading, &headers, endpoint)?;
        let mut turn = self.read(incoming, headers, card, &reading)?;
        check_capabilities(&turn)?;
        turn.deleted_tokens = context_edits::remove_unrendered(&mut turn.prompt, &turn.card);
        turn.sent_tokens = turn.prompt.tokens(turn.card.generation);
        if let Some(wanted) = &turn.options.edits {
            turn.applied = context_edits::clear(&mut turn.prompt, wanted, &turn.card, &mut self.memo);
        }
        match endpoint {
            MessagesEndpoint::CountTokens => Ok(count(&turn)),
            MessagesEndpoint::Messages => self.answer(turn),
        }
    }

    /// Card of the requested model, if the request is valid for it.
    fn validated_card(
        &self,
        reading: &RequestDocument<'_>,
        headers: &RequestHeaders,
        endpoint: MessagesEndpoint,
    ) -> Result<ModelCard, ApiError> {
        let model = reading.root().get_text("model").map(|model| model.decoded()).unwrap_or_default();
        match models_endpoint::find(&self.settings.cards, &model) {
            Ok(card) => reading.check(&headers.rules(&card, endpoint)).map(|_| card),
            // Without a model, the newest model's rules find the error.
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
        incoming: IncomingRequest<'a>,
        headers: RequestHeaders,
        card: ModelCard,
        reading: &'a RequestDocument<'_>,
    ) -> Result<MessagesTurn<'a>, ApiError> {
        let body = reading.root();
        let wanted = MessagesOptions::read(body, &card, headers.betas_hash);
        let mut prompt = read_prompt(body, &card, &wanted, incoming.scope, &mut self.memo);
        let head = bound_thinking::head(&prompt);
        let mut judge = ThinkingValidator {
            sealer: self.sealer,
            learned: (self.settings.signatures == SignaturePolicy::Learn).then_some(&mut self.learned),
            model: xxh3_64(card.model.as_bytes()),
            is_bound: card.can.bound_thinking,
            scope: incoming.scope,
            drops: wanted.drops_thinking,
        };
        let (chain, dropped) = validate_thinking(&mut prompt, head, &mut judge)?;
        Ok(MessagesTurn {
            incoming,
            headers,
            card,
            options: wanted,
            prompt,
            fingerprint: PromptFingerprint::default(),
            diagnostics: None,
            difference: None,
            head,
            chain,
            dropped,
            sent_tokens: 0,
            applied: Vec::new(),
            deleted_tokens: 0,
        })
    }

    fn answer(&mut self, mut turn: MessagesTurn<'_>) -> Result<HttpReply, ApiError> {
        let tokens = turn.prompt.tokens(turn.card.generation);
        // A history too long to summarize shows in the stop reason instead.
        if turn.options.compaction.is_none() {
            check_window(&turn, tokens)?;
        }
        turn.fingerprint = turn.fingerprint();
        turn.diagnostics = self.diagnostics(&turn);
        turn.difference = self.first_difference(&turn);
        if let Some(instructions) = turn.options.compaction.clone() {
            let outcome = self.compact_on_demand(&turn, instructions.as_deref());
            return Ok(self.encode_reply(turn, outcome));
        }
        let compacted = self.compact_at_threshold(&mut turn, tokens);
        if compacted.is_some() {
            // The next request is compared with the compacted prompt.
            turn.fingerprint = turn.fingerprint();
        }
        if let Some(compacted) = compacted.as_ref().filter(|compacted| compacted.pauses) {
            let mut usage = usage_without_message();
            usage.iterations = Some(vec![compacted.pass.clone()]);
            let fitted = FittedAnswer { stop_reason: "compaction", ..FittedAnswer::default() };
            let blocks = vec![SharedText::from(compacted.block.as_str())];
            let outcome = MessagesOutcome::message(blocks, fitted, usage, compacted.lookup.clone());
            return Ok(self.encode_reply(turn, outcome));
        }
        let rendered = turn.prompt.render(&turn.card);
        let mut served = self.cache.look_up(turn.incoming.now, &rendered, turn.card.look_back);
        let fitted = self.ask_model(&turn, rendered.tokens);
        let mut blocks = self.writer(&mut turn).blocks(&fitted);
        let mut usage = usage_json::totals(&served, fitted.tokens());
        usage.server_tool_use = usage_json::server_tool_use(&blocks);
        let message = usage_json::pass("message", &served, fitted.tokens());
        if let Some(compacted) = compacted {
            blocks.insert(0, SharedText::from(compacted.block));
            usage.iterations = Some(vec![compacted.pass, message]);
            served.writes.extend(compacted.lookup.writes);
        } else if turn.headers.is_beta {
            usage.iterations = Some(vec![message]);
        }
        let outcome = MessagesOutcome::message(blocks, fitted, usage, served);
        Ok(self.encode_reply(turn, outcome))
    }

    /// Asks the model, within the limits of the request.
    fn ask_model(&mut self, turn: &MessagesTurn<'_>, prompt_tokens: u64) -> FittedAnswer {
        let max_tokens = turn.options.max_tokens.unwrap_or(0);
        if max_tokens == 0 {
            return FittedAnswer { stop_reason: "max_tokens", ..FittedAnswer::default() };
        }
        let thinks = turn.thinks();
        let mut ask = turn.prompt.to_model_prompt(&turn.card.model);
        ask.max_tokens = max_tokens;
        ask.thinks = thinks;
        let answer = self.model.answer(&ask);
        let limits = FitLimits {
            max_tokens,
            room: turn.card.window.saturating_sub(prompt_tokens),
            stop_sequences: &turn.options.stop_sequences,
            thinks,
            generation: turn.card.generation,
        };
        fit_answer(answer, &limits)
    }

    fn writer<'s>(&'s mut self, turn: &'s mut MessagesTurn<'_>) -> BlockWriter<'s> {
        let thought = ThinkingClaims {
            id: 0,
            previous: 0,
            model: xxh3_64(turn.card.model.as_bytes()),
            is_bound: turn.card.can.bound_thinking,
            scope: turn.incoming.scope,
            tokens: 0,
        };
        BlockWriter {
            ids: &mut self.ids,
            sealer: self.sealer,
            memo: &mut self.memo,
            chain: &mut turn.chain,
            thought,
            shows_thinking: turn.options.shows_thinking,
        }
    }

    /// Encodes an answer into timed chunks and updates the cache and the recent prompts.
    fn encode_reply(&mut self, turn: MessagesTurn<'_>, outcome: MessagesOutcome) -> HttpReply {
        let IncomingRequest { now, number, id, scope, .. } = turn.incoming;
        let served = &outcome.lookup;
        let pace = self.settings.pace;
        let start = pace.first_byte(served.uncached + served.written_1h + served.written_5m, served.read);
        let speaking = pace.output_time(outcome.usage.output_tokens);
        self.cache.write(now, now.after(start), &served.writes);
        let response = self.response(&turn, &outcome);
        self.recent.remember(scope, &response.id, turn.fingerprint);
        let (content_type, chunks) = if turn.options.streams {
            (
                "text/event-stream; charset=utf-8",
                messages_response::chunks(messages_response::encode_events(&response), start, speaking),
            )
        } else {
            let bytes = Bytes::from(messages_response::encode_whole(&response));
            ("application/json", vec![ReplyChunk { at: start + speaking, bytes }])
        };
        HttpReply {
            status: 200,
            headers: vec![("content-type", content_type.to_owned())],
            chunks,
            ending: ReplyEnding::Whole,
            exchange: Some(ModelExchange {
                number,
                request: id.to_owned(),
                response: response.id,
                model: response.model,
                stop_reason: outcome.stop_reason.to_owned(),
                cost: turn.card.cost(&outcome.usage),
                cache: CacheOutcome {
                    marks: served.marks,
                    steps_back: served.steps_back,
                    written: served.writes.len(),
                    known: served.known,
                    lapsed: served.lapsed,
                    differs: turn.difference,
                },
                usage: outcome.usage,
            }),
        }
    }

    fn response(&mut self, turn: &MessagesTurn<'_>, outcome: &MessagesOutcome) -> MessagesResponse {
        let beside = UsageExtras {
            model: &turn.card.model,
            thinking_tokens: outcome.thinking_tokens,
            is_fast: turn.options.is_fast,
            geo: turn.options.geo.as_deref().unwrap_or("us"),
            deleted_tokens: turn.card.can.cache_edits.then_some(turn.deleted_tokens),
        };
        MessagesResponse {
            id: self.ids.id("msg"),
            model: turn.card.model.to_string(),
            blocks: outcome.blocks.clone(),
            stop_reason: Some(outcome.stop_reason.to_owned()),
            stop_sequence: outcome.stop_sequence.clone(),
            usage: usage_json::to_json(&outcome.usage, &beside),
            extras: extras(turn, outcome),
        }
    }

    /// First difference from the request it names, for our own records: the wire format only names the layer.
    fn first_difference(&self, turn: &MessagesTurn<'_>) -> Option<PromptDifference> {
        let previous = turn.options.previous.as_ref().and_then(|previous| previous.as_deref())?;
        self.recent.first_difference_from(turn.incoming.scope, previous, &turn.fingerprint)
    }

    /// `diagnostics` of the answer, if the request asks for them.
    fn diagnostics(&self, turn: &MessagesTurn<'_>) -> Option<Value> {
        let previous = turn.options.previous.as_ref().filter(|_| turn.card.can.cache_diagnostics)?;
        let diagnose = |previous| self.recent.diagnose(turn.incoming.scope, previous, &turn.fingerprint);
        Some(previous.as_deref().map_or(Value::Null, diagnose))
    }
}

/// Response members besides content and usage.
fn extras(turn: &MessagesTurn<'_>, outcome: &MessagesOutcome) -> Vec<(&'static str, String)> {
    let mut extras = Vec::new();
    if let Some(diagnosed) = &turn.diagnostics {
        extras.push(("diagnostics", diagnosed.to_string()));
    }
    if !turn.dropped.is_empty() {
        let dropped = turn.dropped.iter().map(
            |dropped| json!({"type": "thinking_dropped", "path": dropped.path, "reason": dropped.reason}),
        );
        extras.push(("input_transformations", Value::from_iter(dropped).to_string()));
    }
    if turn.options.edits.is_some() {
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
    ApiError::new(ApiErrorKind::InvalidRequest, message)
}

fn count(turn: &MessagesTurn<'_>) -> HttpReply {
    let mut count = json!({"input_tokens": turn.prompt.tokens(turn.card.generation)});
    if turn.options.edits.is_some() {
        count["context_management"] = json!({"original_input_tokens": turn.sent_tokens});
    }
    json_reply(200, count.to_string())
}

/// Checks that the model supports what the headers enable.
fn check_capabilities(turn: &MessagesTurn<'_>) -> Result<(), ApiError> {
    let can = &turn.card.can;
    if turn.options.compaction.is_some() && !can.provider_compaction {
        return Err(invalid("compaction: not supported for this model"));
    }
    for edit in turn.options.edits.iter().flatten() {
        let name = match edit {
            ContextEdit::ClearToolUses(_) => "clear_tool_uses_20250919",
            ContextEdit::ClearThinking { .. } => "clear_thinking_20251015",
            ContextEdit::Compact { .. } => "compact_20260112",
        };
        if !can.context_management.iter().any(|known| known == name) {
            return Err(invalid(format!(
                "context_management.edits: `{name}` is not supported for this model"
            )));
        }
    }
    Ok(())
}

/// Checks that the prompt fits the window. Models without context management count as those that reserve room
/// for the whole answer.
fn check_window(turn: &MessagesTurn<'_>, tokens: u64) -> Result<(), ApiError> {
    let window = turn.card.window;
    let is_old = window <= 200_000 && turn.card.can.context_management.is_empty();
    let max_tokens = turn.options.max_tokens.unwrap_or(0);
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
