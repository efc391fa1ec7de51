//! Rollouts of Codex.
//!
//! What the model said and heard are `response_item` records; most events repeat it for the display. A rollout
//! does not name its responses: one lasts from its first item to the event that counts its tokens. Reasoning is
//! readable by its provider only and is kept aside.

mod items;

use std::borrow::Cow;
use std::collections::VecDeque;

use pal_model::{Origin, Timestamp, Usage, unescape};
use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::aside::Reason;
use crate::blocks::{self, quoted, text_block};
use crate::format::Format;
use crate::pick::{count, pick_or_none, string};
use crate::records::{self, Record as Found};
use crate::responses::{Counted, Reported, Responses};
use crate::step::{Act, Boundary, Seen, Session, Step};

const NAMES: [&str; 3] = ["timestamp", "type", "payload"];

/// Reads a rollout.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<Session<'_>, ImportError> {
    let mut reader = Reader::default();
    reader.session.about.program = Format::Codex.program().into();
    let seen = records::each(source, &NAMES, strict, |found| match found {
        Ok(found) => reader.record(&found),
        Err(bad) => reader.session.steps.push(bad),
    })?;
    reader.session.seen = Seen { rewinds: reader.session.seen.rewinds, ..seen };
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader<'a> {
    session: Session<'a>,
    model: Cow<'a, str>,
    responses: Responses<'a>,
    /// The response that is being given.
    open: Option<usize>,
    /// The raw totals of the newest count: an equal one repeats it.
    totals: Option<&'a str>,
    /// Size of the context, as last counted.
    context_tokens: Option<u64>,
    boundaries: Vec<usize>,
    /// Texts of people that no event has repeated yet.
    said: FxHashMap<String, u64>,
    /// Texts of people in events that no item has said yet, with the step that is held for each.
    shown: FxHashMap<String, VecDeque<(usize, String)>>,
}

/// One record with its place.
#[derive(Clone, Copy)]
struct Record<'a> {
    line: u64,
    at: Option<Timestamp>,
    text: &'a str,
    payload: &'a str,
}

impl<'a> Reader<'a> {
    fn record(&mut self, found: &Found<'a, { NAMES.len() }>) {
        let [timestamp, kind, payload] = found.fields;
        let at = string(timestamp).and_then(|at| at.parse().ok());
        let record = Record { line: found.line, at, text: found.text, payload: payload.unwrap_or("{}") };
        match string(kind).as_deref() {
            Some("response_item") => self.item(record),
            Some("event_msg") => self.event(record),
            Some("session_meta") => self.meta(record),
            Some("turn_context") => {
                let [model] = pick_or_none(record.payload, &["model"]);
                self.model = string(model).unwrap_or(std::mem::take(&mut self.model));
                self.aside(record, "turn_context", Reason::Bookkeeping);
            }
            Some("compacted") => self.compacted(record),
            Some("world_state") => self.aside(record, "world_state", Reason::Bookkeeping),
            kind => {
                let kind = kind.unwrap_or("record").to_owned();
                self.aside(record, kind, Reason::UnknownRecord);
            }
        }
    }

    fn meta(&mut self, record: Record<'a>) {
        let names = ["id", "session_id", "cwd", "cli_version", "base_instructions", "instructions"];
        let [id, session_id, cwd, version, base, instructions] = pick_or_none(record.payload, &names);
        // A resumed session repeats it; the first stands.
        if self.session.about.foreign_id.is_none() {
            let about = &mut self.session.about;
            about.foreign_id = string(id).or(string(session_id)).map(Cow::into_owned);
            about.cwd = string(cwd).map(Cow::into_owned);
            about.version = string(version).map(Cow::into_owned);
            let [text] = pick_or_none(base.unwrap_or("{}"), &["text"]);
            self.session.system.extend(string(text).or(string(base)).or(string(instructions)));
        }
        self.aside(record, "session_meta", Reason::Bookkeeping);
    }

    fn push(&mut self, record: Record<'a>, act: Act<'a>) {
        self.session.steps.push(Step { line: record.line, at: record.at, foreign: None, act });
    }

    fn aside(&mut self, record: Record<'a>, what: impl Into<Cow<'a, str>>, reason: Reason) {
        self.session.steps.push(Step::aside(record.line, record.at, what, record.text, reason));
    }

    /// The next step belongs to the response that is being given.
    fn in_response(&mut self) -> Cow<'a, str> {
        let step = self.session.steps.len();
        let at = match self.open {
            Some(at) => at,
            None => {
                let id = format!("codex-{}", self.responses.len() + 1);
                self.responses.open(id.into(), step)
            }
        };
        self.open = Some(at);
        let reported = Reported { model: self.model.clone(), usage: Counted::Nothing, stop_reason: None };
        self.responses.extend(at, step, reported);
        format!("codex-{}", at + 1).into()
    }

    fn assistant(&mut self, record: Record<'a>, block: &str, calls: Vec<Cow<'a, str>>) {
        let response = self.in_response();
        let (model, content) = (self.model.clone(), blocks::list([block]).into());
        self.push(record, Act::Assistant { response, model, content, calls });
    }

    fn result(&mut self, record: Record<'a>, origin: Origin, block: &str) {
        self.push(record, Act::User { origin, content: blocks::list([block]).into(), results: 1 });
    }

    fn item(&mut self, record: Record<'a>) {
        let [kind, role] = pick_or_none(record.payload, &["type", "role"]);
        match (string(kind).unwrap_or_default().as_ref(), string(role).unwrap_or_default().as_ref()) {
            ("message", "assistant") => {
                let texts = items::texts(record.payload);
                if texts.is_empty() {
                    self.in_response();
                    return self.aside(record, "message", Reason::NothingForTheModel);
                }
                let parts: Vec<String> = texts.iter().map(|text| text_block(text)).collect();
                let response = self.in_response();
                let content = blocks::list(parts.iter().map(String::as_str)).into();
                let model = self.model.clone();
                self.push(record, Act::Assistant { response, model, content, calls: Vec::new() });
            }
            ("message", "user") => self.user(record),
            ("message", role) => {
                let what = if role.is_empty() { "message".into() } else { role.to_owned() };
                let parts = pal_model::defuse_json(&items::blocks(record.payload)).into_owned();
                self.push(record, Act::Attachment { what: what.into(), content: parts.into(), raw: None });
            }
            ("reasoning", _) => {
                self.in_response();
                self.aside(record, "reasoning", Reason::Reasoning);
            }
            ("function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call", _) => {
                let (name, block) = items::call(record.payload);
                self.assistant(record, &block, vec![name.into()]);
            }
            ("function_call_output" | "custom_tool_call_output" | "tool_search_output", _) => {
                let block = items::output(record.payload);
                self.result(record, Origin::Tool, &block);
            }
            ("web_search_call", _) => {
                // The provider ran it, and its result is not in the rollout; the call needs one all the same.
                let id = format!("web_search_{}", record.line);
                let [action] = pick_or_none(record.payload, &["action"]);
                let call = blocks::tool_use(&id, "web_search", action.unwrap_or("{}"));
                self.assistant(record, &call, vec!["web_search".into()]);
                let note = quoted("The provider searched; what it found is not in the imported session.");
                self.result(record, Origin::Synthetic, &blocks::tool_result(&id, &note, false));
            }
            (kind, _) => {
                let kind = kind.to_owned();
                self.aside(record, kind, Reason::UnknownRecord);
            }
        }
    }

    /// A message on the user's side: what a person typed, and what Codex wrote in the same place.
    fn user(&mut self, record: Record<'a>) {
        self.close();
        let [content] = pick_or_none(record.payload, &["content"]);
        let content = content.unwrap_or("[]");
        let (mut typed, mut added) = (Vec::new(), Vec::new());
        let mut text = String::new();
        for (block, words) in items::user_blocks(content) {
            if items::is_typed(&words) {
                text.push_str(&words);
                typed.push(block);
            } else {
                added.push(block);
            }
        }
        if !added.is_empty() {
            let content = blocks::list(added.iter().map(String::as_str));
            let content = pal_model::defuse_json(&content).into_owned().into();
            self.push(record, Act::Attachment { what: "environment".into(), content, raw: None });
        }
        if !typed.is_empty() {
            let content = blocks::list(typed.iter().map(String::as_str)).into();
            match self.shown.get_mut(text.trim()).and_then(VecDeque::pop_front) {
                Some(_) => {}
                None => *self.said.entry(text.trim().to_owned()).or_default() += 1,
            }
            self.push(record, Act::User { origin: Origin::Person, content, results: 0 });
        }
        if typed.is_empty() && added.is_empty() {
            self.aside(record, "message", Reason::NothingForTheModel);
        }
    }

    fn event(&mut self, record: Record<'a>) {
        let [kind] = pick_or_none(record.payload, &["type"]);
        let kind = string(kind).unwrap_or("event".into());
        match kind.as_ref() {
            "token_count" => {
                self.token_count(record.payload);
                self.aside(record, kind, Reason::Bookkeeping);
            }
            "user_message" => self.user_event(record),
            "agent_message" | "agent_reasoning" | "context_compacted" => {
                self.aside(record, kind, Reason::Doubled);
            }
            "task_started" | "task_complete" | "turn_aborted" => {
                self.close();
                self.aside(record, kind, Reason::Bookkeeping);
            }
            _ => self.aside(record, kind, Reason::Bookkeeping),
        }
    }

    /// An event that shows what a person typed: a record says it, too, unless that was lost.
    fn user_event(&mut self, record: Record<'a>) {
        let [message] = pick_or_none(record.payload, &["message"]);
        let text = message.and_then(unescape).unwrap_or_default();
        self.aside(record, "user_message", Reason::Doubled);
        match self.said.get_mut(text.trim()).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None if items::is_typed(&text) => {
                let step = self.session.steps.len();
                let place = self.shown.entry(text.trim().to_owned()).or_default();
                place.push_back((step, text.into_owned()));
                self.push(record, Act::Nothing);
            }
            None => {}
        }
    }

    /// Ends the response that is being given with what it took.
    fn token_count(&mut self, payload: &'a str) {
        let [info] = pick_or_none(payload, &["info"]);
        let [last, totals] = pick_or_none(info.unwrap_or("{}"), &["last_token_usage", "total_token_usage"]);
        let Some(last) = last else { return };
        let usage = items::usage(last);
        if usage.context_tokens() == 0 {
            // Behind a compaction only the new size is told.
            let [total] = pick_or_none(last, &["total_tokens"]);
            if let Some(step) = self.boundaries.last()
                && let Act::Boundary(boundary) = &mut self.session.steps[*step].act
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
            self.in_response();
        }
        if let Some(at) = self.open.take() {
            self.responses.took(at, usage);
        }
    }

    /// The response that is being given ends without a count.
    fn close(&mut self) {
        if let Some(at) = self.open.take() {
            self.responses.took(at, Usage::default());
        }
    }

    fn compacted(&mut self, record: Record<'a>) {
        self.close();
        let [message, history] = pick_or_none(record.payload, &["message", "replacement_history"]);
        let summary = items::summary(string(message).as_deref(), history);
        let reason = if summary.is_some() { Reason::Beside } else { Reason::NoSummary };
        self.aside(record, "compacted", reason);
        if let Some(summary) = summary {
            self.boundaries.push(self.session.steps.len());
            let boundary = Boundary {
                trigger: "auto".into(),
                summary: blocks::list([text_block(&quoted(&summary)).as_str()]).into(),
                tokens_before: self.context_tokens,
                ..Boundary::default()
            };
            self.push(record, Act::Boundary(Box::new(boundary)));
        }
    }

    fn finish(mut self) -> Session<'a> {
        self.close();
        for (step, text) in std::mem::take(&mut self.shown).into_values().flatten() {
            let content = quoted(&text).into();
            self.session.steps[step].act = Act::User { origin: Origin::Person, content, results: 0 };
        }
        let mut session = self.session;
        session.steps = self.responses.insert_into(session.steps, &self.boundaries, &[]);
        session
    }
}
