//! Event logs of Copilot CLI.
//!
//! One event a record. A message of the model carries its text and its calls; results are events of their own.
//! Only the written tokens of a call are logged, so the size of the prompt is not known here.

use std::borrow::Cow;

use pal_model::{Origin, Usage, array_items};

use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::aside::Reason;
use crate::blocks::{self, quoted, reminder, text_block};
use crate::builder::{Builder, Place, Said};
use crate::format::Format;
use crate::pick::{count, is_true, pick_or_none, string};
use crate::records::{self, Record};
use crate::step::{Act, Boundary, Session};

const NAMES: [&str; 5] = ["type", "timestamp", "id", "data", "agentId"];

/// Reads an event log.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<Session<'_>, ImportError> {
    let mut reader =
        Reader { builder: Builder::new(Format::Copilot), model: "".into(), id_of_call: FxHashMap::default() };
    let seen = records::each(source, &NAMES, strict, |found| match found {
        Ok(record) => reader.record(&record),
        Err(bad) => reader.builder.session.steps.push(bad),
    })?;
    reader.builder.session.seen = seen;
    Ok(reader.builder.finish())
}

struct Reader<'a> {
    builder: Builder<'a>,
    model: Cow<'a, str>,
    /// The raw id of the first message of each call.
    id_of_call: FxHashMap<&'a str, Option<&'a str>>,
}

impl<'a> Reader<'a> {
    fn record(&mut self, record: &Record<'a, { NAMES.len() }>) {
        let [kind, timestamp, id, data, agent] = record.fields;
        let at = string(timestamp).and_then(|at| at.parse().ok());
        let place = Place { line: record.line, at, foreign: id, text: record.text };
        let data = data.unwrap_or("{}");
        let kind = string(kind).unwrap_or("record".into());
        let [parent_call] = pick_or_none(data, &["parentToolCallId"]);
        if string(parent_call).or(string(agent)).is_some() {
            return self.builder.aside(place, kind, Reason::Sidechain);
        }
        match kind.as_ref() {
            "session.start" => self.start(place, data),
            "session.model_change" => {
                let [model] = pick_or_none(data, &["newModel"]);
                self.model = string(model).unwrap_or_default();
                let model = self.model.clone();
                self.builder.model_change(place, "session.model_change", &model);
            }
            "session.title_changed" => {
                let [title] = pick_or_none(data, &["title"]);
                self.builder.session.about.title = string(title).map(Cow::into_owned);
                self.builder.aside(place, kind, Reason::Bookkeeping);
            }
            "session.compaction_complete" => self.compaction(place, data),
            "system.message" => {
                let [content] = pick_or_none(data, &["content"]);
                if self.builder.session.system.is_empty() {
                    self.builder.session.system.extend(string(content));
                }
                self.builder.aside(place, kind, Reason::Beside);
            }
            "system.notification" => {
                let [content] = pick_or_none(data, &["content"]);
                self.note(place, kind, string(content).as_deref());
            }
            "user.message" => self.user(place, data),
            "assistant.message" => self.assistant(place, data),
            "tool.execution_complete" => self.result(place, data),
            _ if kind.contains('.') || kind == "abort" => {
                self.builder.aside(place, kind, Reason::Bookkeeping);
            }
            _ => self.builder.aside(place, kind, Reason::UnknownRecord),
        }
    }

    fn start(&mut self, place: Place<'a>, data: &'a str) {
        let [id, version, context] = pick_or_none(data, &["sessionId", "copilotVersion", "context"]);
        let [cwd] = pick_or_none(context.unwrap_or("{}"), &["cwd"]);
        let about = &mut self.builder.session.about;
        about.foreign_id = string(id).map(Cow::into_owned);
        about.version = string(version).map(Cow::into_owned);
        about.cwd = string(cwd).map(Cow::into_owned);
        self.builder.aside(place, "session.start", Reason::Bookkeeping);
    }

    fn note(&mut self, place: Place<'a>, what: Cow<'a, str>, text: Option<&str>) {
        match text {
            Some(text) => {
                let content = reminder(text).into();
                self.builder.push(place, Act::Attachment { what, content, raw: Some(place.text) });
            }
            None => self.builder.aside(place, what, Reason::NothingForTheModel),
        }
    }

    /// What a person typed, or what Copilot put in the same place.
    fn user(&mut self, place: Place<'a>, data: &'a str) {
        let [content, sent, source] = pick_or_none(data, &["content", "transformedContent", "source"]);
        if string(source).is_some_and(|source| source != "user") {
            let text = string(content).or(string(sent));
            return self.note(place, "user.message".into(), text.as_deref());
        }
        let Some(text) = content.filter(|text| string(Some(text)).is_some()) else {
            return self.note(place, "user.message".into(), string(sent).as_deref());
        };
        // What was sent has the date before it: the record is kept for that.
        self.builder.aside(place, "user.message", Reason::Beside);
        self.builder.user(place, Origin::Person, &[text_block(text)]);
    }

    fn assistant(&mut self, place: Place<'a>, data: &'a str) {
        let names = [
            "messageId",
            "model",
            "content",
            "toolRequests",
            "outputTokens",
            "reasoningText",
            "reasoningOpaque",
            "apiCallId",
        ];
        let [id, model, content, requests, written, reasoning, opaque, call] = pick_or_none(data, &names);
        let mut blocks: Vec<String> =
            content.filter(|text| string(Some(text)).is_some()).map(text_block).into_iter().collect();
        let mut calls = Vec::new();
        for request in requests.and_then(|requests| array_items(requests).ok()).unwrap_or_default() {
            let [id, name, arguments] = pick_or_none(request, &["toolCallId", "name", "arguments"]);
            let name = string(name).unwrap_or_default();
            let id = string(id).unwrap_or_default();
            blocks.push(blocks::tool_use(&id, &name, arguments.unwrap_or("{}")));
            calls.push(name);
        }
        if reasoning.or(opaque).is_some() || blocks.is_empty() {
            self.builder.aside(place, "assistant.message", Reason::Reasoning);
        }
        if blocks.is_empty() {
            return;
        }
        // One call may give several messages; the first of them names the response.
        let id = match call {
            Some(call) => *self.id_of_call.entry(call).or_insert(id),
            None => id,
        };
        let said = Said {
            response: string(id),
            model: string(model).unwrap_or(self.model.clone()),
            blocks,
            calls,
            usage: Usage { output_tokens: count(written).unwrap_or(0), ..Usage::default() },
            stop_reason: None,
        };
        self.builder.assistant(place, said);
    }

    fn result(&mut self, place: Place<'a>, data: &'a str) {
        let [id, success, result, error] = pick_or_none(data, &["toolCallId", "success", "result", "error"]);
        let [content] = pick_or_none(result.unwrap_or("{}"), &["content"]);
        let [message] = pick_or_none(error.unwrap_or("{}"), &["message"]);
        let is_text = |raw: &&str| raw.starts_with('"');
        let content = match content.filter(is_text).or(message.filter(is_text)) {
            Some(content) => Cow::Borrowed(content),
            None => quoted(result.or(error).unwrap_or_default()).into(),
        };
        let id = string(id).unwrap_or_default();
        self.builder.results(place, &[blocks::tool_result(&id, &content, !is_true(success))]);
    }

    fn compaction(&mut self, place: Place<'a>, data: &'a str) {
        let names =
            ["summaryContent", "preCompactionTokens", "postCompactionTokens", "preCompactionMessagesLength"];
        let [summary, before, after, messages] = pick_or_none(data, &names);
        let Some(summary) = string(summary) else {
            return self.builder.aside(place, "session.compaction_complete", Reason::NoSummary);
        };
        let text = format!("The conversation before this point was summarised:\n\n{summary}");
        let boundary = Boundary {
            trigger: "auto".into(),
            summary: blocks::list([text_block(&quoted(&text)).as_str()]).into(),
            tokens_before: count(before),
            tokens_after: count(after),
            messages_summarised: count(messages),
            ..Boundary::default()
        };
        self.builder.boundary(place, "session.compaction_complete", boundary);
    }
}
