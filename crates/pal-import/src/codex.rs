//! Reader of Codex rollouts.
//!
//! Conversation content is in `response_item` records; most events repeat it for display. A rollout does not
//! name its responses: one lasts from its first item to the event that counts its tokens. Reasoning is
//! readable by its provider only and becomes an `internal` entry.

mod rollout_items;

use std::borrow::Cow;
use std::collections::VecDeque;

use pal_model::{MessageOrigin, Timestamp, Usage, unescape};
use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::content_blocks::{self, quoted, text_block};
use crate::import_step::{BoundaryDraft, ImportStep, ParsedSession, SourceCounts, StepAction};
use crate::internal_records::InternalReason;
use crate::raw_fields::{count, pick_or_none, string};
use crate::response_tracker::{ResponseReport, ResponseTracker, UsageFigure};
use crate::session_format::SessionFormat;
use crate::source_records::{self, SourceRecord as Found};

const NAMES: [&str; 3] = ["timestamp", "type", "payload"];

/// Parses a rollout.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<ParsedSession<'_>, ImportError> {
    let mut reader = CodexReader::default();
    reader.session.about.program = SessionFormat::Codex.program().into();
    let seen = source_records::read_records(source, &NAMES, strict, |found| match found {
        Ok(found) => reader.record(&found),
        Err(bad) => reader.session.steps.push(bad),
    })?;
    reader.session.counts = SourceCounts { rewinds: reader.session.counts.rewinds, ..seen };
    Ok(reader.finish())
}

/// Parses the tokens of one response.
pub(crate) fn last_usage(raw: &str) -> Usage {
    rollout_items::usage(raw)
}

#[derive(Default)]
struct CodexReader<'a> {
    session: ParsedSession<'a>,
    model: Cow<'a, str>,
    responses: ResponseTracker<'a>,
    /// Current response.
    open: Option<usize>,
    /// Raw totals of the newest count; an equal count repeats it.
    totals: Option<&'a str>,
    /// Context tokens, as last counted.
    context_tokens: Option<u64>,
    boundaries: Vec<usize>,
    /// User texts not repeated by an event yet.
    said: FxHashMap<String, u64>,
    /// User texts in events not repeated by an item yet, with the step reserved for each.
    shown: FxHashMap<String, VecDeque<(usize, String)>>,
}

/// One record with its position.
#[derive(Clone, Copy)]
struct RolloutRecord<'a> {
    line: u64,
    at: Option<Timestamp>,
    text: &'a str,
    payload: &'a str,
}

impl<'a> CodexReader<'a> {
    fn record(&mut self, found: &Found<'a, { NAMES.len() }>) {
        let [timestamp, kind, payload] = found.fields;
        let at = string(timestamp).and_then(|at| at.parse().ok());
        let record =
            RolloutRecord { line: found.line, at, text: found.text, payload: payload.unwrap_or("{}") };
        match string(kind).as_deref() {
            Some("response_item") => self.item(record),
            Some("event_msg") => self.event(record),
            Some("session_meta") => self.meta(record),
            Some("turn_context") => {
                let [model] = pick_or_none(record.payload, &["model"]);
                self.model = string(model).unwrap_or(std::mem::take(&mut self.model));
                self.push_internal(record, "turn_context", InternalReason::Bookkeeping);
            }
            Some("compacted") => self.compacted(record),
            Some("world_state") => self.push_internal(record, "world_state", InternalReason::Bookkeeping),
            kind => {
                let kind = kind.unwrap_or("record").to_owned();
                self.push_internal(record, kind, InternalReason::UnknownRecord);
            }
        }
    }

    fn meta(&mut self, record: RolloutRecord<'a>) {
        let names = ["id", "session_id", "cwd", "cli_version", "base_instructions", "instructions"];
        let [id, session_id, cwd, version, base, instructions] = pick_or_none(record.payload, &names);
        // A resumed session repeats it; the first one counts.
        if self.session.about.foreign_id.is_none() {
            let about = &mut self.session.about;
            about.foreign_id = string(id).or(string(session_id)).map(Cow::into_owned);
            about.cwd = string(cwd).map(Cow::into_owned);
            about.version = string(version).map(Cow::into_owned);
            let [text] = pick_or_none(base.unwrap_or("{}"), &["text"]);
            self.session.system.extend(string(text).or(string(base)).or(string(instructions)));
        }
        self.push_internal(record, "session_meta", InternalReason::Bookkeeping);
    }

    fn push(&mut self, record: RolloutRecord<'a>, act: StepAction<'a>) {
        self.session.steps.push(ImportStep { line: record.line, at: record.at, foreign: None, act });
    }

    fn push_internal(
        &mut self,
        record: RolloutRecord<'a>,
        what: impl Into<Cow<'a, str>>,
        reason: InternalReason,
    ) {
        self.session.steps.push(ImportStep::internal(record.line, record.at, what, record.text, reason));
    }

    /// Assigns the next step to the current response.
    fn extend_response(&mut self) -> Cow<'a, str> {
        let step = self.session.steps.len();
        let at = match self.open {
            Some(at) => at,
            None => {
                let id = format!("codex-{}", self.responses.len() + 1);
                self.responses.open(id.into(), step)
            }
        };
        self.open = Some(at);
        let reported =
            ResponseReport { model: self.model.clone(), usage: UsageFigure::Nothing, stop_reason: None };
        self.responses.extend(at, step, reported);
        format!("codex-{}", at + 1).into()
    }

    fn assistant(&mut self, record: RolloutRecord<'a>, block: &str, calls: Vec<Cow<'a, str>>) {
        let response = self.extend_response();
        let (model, content) = (self.model.clone(), content_blocks::list([block]).into());
        self.push(record, StepAction::Assistant { response, model, content, calls });
    }

    fn result(&mut self, record: RolloutRecord<'a>, origin: MessageOrigin, block: &str) {
        self.push(
            record,
            StepAction::User { origin, content: content_blocks::list([block]).into(), results: 1 },
        );
    }

    fn item(&mut self, record: RolloutRecord<'a>) {
        let [kind, role] = pick_or_none(record.payload, &["type", "role"]);
        match (string(kind).unwrap_or_default().as_ref(), string(role).unwrap_or_default().as_ref()) {
            ("message", "assistant") => {
                let texts = rollout_items::texts(record.payload);
                if texts.is_empty() {
                    self.extend_response();
                    return self.push_internal(record, "message", InternalReason::NothingForTheModel);
                }
                let parts: Vec<String> = texts.iter().map(|text| text_block(text)).collect();
                let response = self.extend_response();
                let content = content_blocks::list(parts.iter().map(String::as_str)).into();
                let model = self.model.clone();
                self.push(record, StepAction::Assistant { response, model, content, calls: Vec::new() });
            }
            ("message", "user") => self.user(record),
            ("message", role) => {
                let what = if role.is_empty() { "message".into() } else { role.to_owned() };
                let parts =
                    pal_model::escape_tags_in_json(&rollout_items::blocks(record.payload)).into_owned();
                self.push(
                    record,
                    StepAction::Attachment { what: what.into(), content: parts.into(), raw: None },
                );
            }
            ("reasoning", _) => {
                self.extend_response();
                self.push_internal(record, "reasoning", InternalReason::Reasoning);
            }
            ("function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call", _) => {
                let (name, block) = rollout_items::call(record.payload);
                self.assistant(record, &block, vec![name.into()]);
            }
            ("function_call_output" | "custom_tool_call_output" | "tool_search_output", _) => {
                let block = rollout_items::output(record.payload);
                self.result(record, MessageOrigin::Tool, &block);
            }
            ("web_search_call", _) => {
                // The provider ran it and the rollout has no result; the call needs one.
                let id = format!("web_search_{}", record.line);
                let [action] = pick_or_none(record.payload, &["action"]);
                let call = content_blocks::tool_use(&id, "web_search", action.unwrap_or("{}"));
                self.assistant(record, &call, vec!["web_search".into()]);
                let note = quoted("The provider searched; what it found is not in the imported session.");
                self.result(
                    record,
                    MessageOrigin::Synthetic,
                    &content_blocks::tool_result(&id, &note, false),
                );
            }
            (kind, _) => {
                let kind = kind.to_owned();
                self.push_internal(record, kind, InternalReason::UnknownRecord);
            }
        }
    }

    /// A user message: typed text and text inserted by Codex.
    fn user(&mut self, record: RolloutRecord<'a>) {
        self.close();
        let [content] = pick_or_none(record.payload, &["content"]);
        let content = content.unwrap_or("[]");
        let (mut typed, mut added) = (Vec::new(), Vec::new());
        let mut text = String::new();
        for (block, words) in rollout_items::user_blocks(content) {
            if rollout_items::is_typed(&words) {
                text.push_str(&words);
                typed.push(block);
            } else {
                added.push(block);
            }
        }
        if !added.is_empty() {
            let content = content_blocks::list(added.iter().map(String::as_str));
            let content = pal_model::escape_tags_in_json(&content).into_owned().into();
            self.push(record, StepAction::Attachment { what: "environment".into(), content, raw: None });
        }
        if !typed.is_empty() {
            let content = content_blocks::list(typed.iter().map(String::as_str)).into();
            match self.shown.get_mut(text.trim()).and_then(VecDeque::pop_front) {
                Some(_) => {}
                None => *self.said.entry(text.trim().to_owned()).or_default() += 1,
            }
            self.push(record, StepAction::User { origin: MessageOrigin::Person, content, results: 0 });
        }
        if typed.is_empty() && added.is_empty() {
            self.push_internal(record, "message", InternalReason::NothingForTheModel);
        }
    }

    fn event(&mut self, record: RolloutRecord<'a>) {
        let [kind] = pick_or_none(record.payload, &["type"]);
        let kind = string(kind).unwrap_or("event".into());
        match kind.as_ref() {
            "token_count" => {
                self.token_count(record.payload);
                self.push_internal(record, kind, InternalReason::Bookkeeping);
            }
            "user_message" => self.user_event(record),
            "agent_message" | "agent_reasoning" | "context_compacted" => {
                self.push_internal(record, kind, InternalReason::Repeated);
            }
            "task_started" | "task_complete" | "turn_aborted" => {
                self.close();
                self.push_internal(record, kind, InternalReason::Bookkeeping);
            }
            _ => self.push_internal(record, kind, InternalReason::Bookkeeping),
        }
    }

    /// An event that displays typed text; an item repeats it unless that was lost.
    fn user_event(&mut self, record: RolloutRecord<'a>) {
        let [message] = pick_or_none(record.payload, &["message"]);
        let text = message.and_then(unescape).unwrap_or_default();
        self.push_internal(record, "user_message", InternalReason::Repeated);
        match self.said.get_mut(text.trim()).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None if rollout_items::is_typed(&text) => {
                let step = self.session.steps.len();
                let place = self.shown.entry(text.trim().to_owned()).or_default();
                place.push_back((step, text.into_owned()));
                self.push(record, StepAction::Reserved);
            }
            None => {}
        }
    }

    /// Ends the current response with its usage.
    fn token_count(&mut self, payload: &'a str) {
        let [info] = pick_or_none(payload, &["info"]);
        let [last, totals] = pick_or_none(info.unwrap_or("{}"), &["last_token_usage", "total_token_usage"]);
        let Some(last) = last else { return };
        let usage = rollout_items::usage(last);
        if usage.context_tokens() == 0 {
            // After a compaction, only the new size is reported.
            let [total] = pick_or_none(last, &["total_tokens"]);
            if let Some(step) = self.boundaries.last()
                && let StepAction::Boundary(boundary) = &mut self.session.steps[*step].act
            {
                boundary.tokens_after = boundary.tokens_after.or(count(total));
            }
            return;
        }
        if self.totals.is_some() && self.totals == totals {
            return;
        }
        self.totals = totals;
        self.context_tokens = Some(usage.context_tokens());
        if self.open.is_none() {
            self.extend_response();
        }
        if let Some(at) = self.open.take() {
            self.responses.set_usage(at, usage);
        }
    }

    /// Ends the current response without usage.
    fn close(&mut self) {
        if let Some(at) = self.open.take() {
            self.responses.set_usage(at, Usage::default());
        }
    }

    fn compacted(&mut self, record: RolloutRecord<'a>) {
        self.close();
        let [message, history] = pick_or_none(record.payload, &["message", "replacement_history"]);
        let summary = rollout_items::summary(string(message).as_deref(), history);
        let reason =
            if summary.is_some() { InternalReason::CarriedByNeighbour } else { InternalReason::NoSummary };
        self.push_internal(record, "compacted", reason);
        if let Some(summary) = summary {
            self.boundaries.push(self.session.steps.len());
            let boundary = BoundaryDraft {
                trigger: "auto".into(),
                summary: content_blocks::list([text_block(&quoted(&summary)).as_str()]).into(),
                tokens_before: self.context_tokens,
                ..BoundaryDraft::default()
            };
            self.push(record, StepAction::Boundary(Box::new(boundary)));
        }
    }

    fn finish(mut self) -> ParsedSession<'a> {
        self.close();
        for (step, text) in std::mem::take(&mut self.shown).into_values().flatten() {
            let content = quoted(&text).into();
            self.session.steps[step].act =
                StepAction::User { origin: MessageOrigin::Person, content, results: 0 };
        }
        let mut session = self.session;
        session.steps = self.responses.insert_into(session.steps, &self.boundaries, &[]);
        session
    }
}
