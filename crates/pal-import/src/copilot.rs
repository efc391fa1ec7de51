//! Reader of Copilot CLI event logs.
//!
//! One event per record. An assistant message carries text and calls; results are separate events. Only
//! output tokens are logged, so the prompt size is unknown.

use std::borrow::Cow;

use pal_model::{MessageOrigin, Usage, array_items};

use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::content_blocks::{self, quoted, reminder, text_block};
use crate::import_step::{BoundaryDraft, ParsedSession, StepAction};
use crate::internal_records::InternalReason;
use crate::raw_fields::{count, is_true, pick_or_none, string};
use crate::session_builder::{ImportedMessage, RecordContext, SessionBuilder};
use crate::session_format::SessionFormat;
use crate::source_records::{self, SourceRecord};

const NAMES: [&str; 5] = ["type", "timestamp", "id", "data", "agentId"];

/// Parses an event log.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<ParsedSession<'_>, ImportError> {
    let mut reader = CopilotReader {
        builder: SessionBuilder::new(SessionFormat::Copilot),
        model: "".into(),
        id_of_call: FxHashMap::default(),
    };
    let seen = source_records::read_records(source, &NAMES, strict, |found| match found {
        Ok(record) => reader.record(&record),
        Err(bad) => reader.builder.session.steps.push(bad),
    })?;
    reader.builder.session.counts = seen;
    Ok(reader.builder.finish())
}

struct CopilotReader<'a> {
    builder: SessionBuilder<'a>,
    model: Cow<'a, str>,
    /// Raw id of the first message of each API call.
    id_of_call: FxHashMap<&'a str, Option<&'a str>>,
}

impl<'a> CopilotReader<'a> {
    fn record(&mut self, record: &SourceRecord<'a, { NAMES.len() }>) {
        let [kind, timestamp, id, data, agent] = record.fields;
        let at = string(timestamp).and_then(|at| at.parse().ok());
        let place = RecordContext { line: record.line, at, foreign: id, text: record.text };
        let data = data.unwrap_or("{}");
        let kind = string(kind).unwrap_or("record".into());
        let [parent_call] = pick_or_none(data, &["parentToolCallId"]);
        if string(parent_call).or(string(agent)).is_some() {
            return self.builder.push_internal(place, kind, InternalReason::Sidechain);
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
                self.builder.push_internal(place, kind, InternalReason::Bookkeeping);
            }
            "session.compaction_complete" => self.compaction(place, data),
            "system.message" => {
                let [content] = pick_or_none(data, &["content"]);
                if self.builder.session.system.is_empty() {
                    self.builder.session.system.extend(string(content));
                }
                self.builder.push_internal(place, kind, InternalReason::CarriedByNeighbour);
            }
            "system.notification" => {
                let [content] = pick_or_none(data, &["content"]);
                self.note(place, kind, string(content).as_deref());
            }
            "user.message" => self.user(place, data),
            "assistant.message" => self.assistant(place, data),
            "tool.execution_complete" => self.result(place, data),
            _ if kind.contains('.') || kind == "abort" => {
                self.builder.push_internal(place, kind, InternalReason::Bookkeeping);
            }
            _ => self.builder.push_internal(place, kind, InternalReason::UnknownRecord),
        }
    }

    fn start(&mut self, place: RecordContext<'a>, data: &'a str) {
        let [id, version, context] = pick_or_none(data, &["sessionId", "copilotVersion", "context"]);
        let [cwd] = pick_or_none(context.unwrap_or("{}"), &["cwd"]);
        let about = &mut self.builder.session.about;
        about.foreign_id = string(id).map(Cow::into_owned);
        about.version = string(version).map(Cow::into_owned);
        about.cwd = string(cwd).map(Cow::into_owned);
        self.builder.push_internal(place, "session.start", InternalReason::Bookkeeping);
    }

    fn note(&mut self, place: RecordContext<'a>, what: Cow<'a, str>, text: Option<&str>) {
        match text {
            Some(text) => {
                let content = reminder(text).into();
                self.builder.push(place, StepAction::Attachment { what, content, raw: Some(place.text) });
            }
            None => self.builder.push_internal(place, what, InternalReason::NothingForTheModel),
        }
    }

    /// A user message: typed text, or text inserted by Copilot.
    fn user(&mut self, place: RecordContext<'a>, data: &'a str) {
        let [content, sent, source] = pick_or_none(data, &["content", "transformedContent", "source"]);
        if string(source).is_some_and(|source| source != "user") {
            let text = string(content).or(string(sent));
            return self.note(place, "user.message".into(), text.as_deref());
        }
        let Some(text) = content.filter(|text| string(Some(text)).is_some()) else {
            return self.note(place, "user.message".into(), string(sent).as_deref());
        };
        // The text sent also has a date, so the record is stored too.
        self.builder.push_internal(place, "user.message", InternalReason::CarriedByNeighbour);
        self.builder.user(place, MessageOrigin::Person, &[text_block(text)]);
    }

    fn assistant(&mut self, place: RecordContext<'a>, data: &'a str) {
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
            blocks.push(content_blocks::tool_use(&id, &name, arguments.unwrap_or("{}")));
            calls.push(name);
        }
        if reasoning.or(opaque).is_some() || blocks.is_empty() {
            self.builder.push_internal(place, "assistant.message", InternalReason::Reasoning);
        }
        if blocks.is_empty() {
            return;
        }
        // One API call may give several messages; the first names the response.
        let id = match call {
            Some(call) => *self.id_of_call.entry(call).or_insert(id),
            None => id,
        };
        let said = ImportedMessage {
            response: string(id),
            model: string(model).unwrap_or(self.model.clone()),
            blocks,
            calls,
            usage: Usage { output_tokens: count(written).unwrap_or(0), ..Usage::default() },
            stop_reason: None,
        };
        self.builder.assistant(place, said);
    }

    fn result(&mut self, place: RecordContext<'a>, data: &'a str) {
        let [id, success, result, error] = pick_or_none(data, &["toolCallId", "success", "result", "error"]);
        let [content] = pick_or_none(result.unwrap_or("{}"), &["content"]);
        let [message] = pick_or_none(error.unwrap_or("{}"), &["message"]);
        let is_text = |raw: &&str| raw.starts_with('"');
        let content = match content.filter(is_text).or(message.filter(is_text)) {
            Some(content) => Cow::Borrowed(content),
            None => quoted(result.or(error).unwrap_or_default()).into(),
        };
        let id = string(id).unwrap_or_default();
        self.builder.results(place, &[content_blocks::tool_result(&id, &content, !is_true(success))]);
    }

    fn compaction(&mut self, place: RecordContext<'a>, data: &'a str) {
        let names =
            ["summaryContent", "preCompactionTokens", "postCompactionTokens", "preCompactionMessagesLength"];
        let [summary, before, after, messages] = pick_or_none(data, &names);
        let Some(summary) = string(summary) else {
            return self.builder.push_internal(
                place,
                "session.compaction_complete",
                InternalReason::NoSummary,
            );
        };
        let text = format!("The conversation before this point was summarised:\n\n{summary}");
        let boundary = BoundaryDraft {
            trigger: "auto".into(),
            summary: content_blocks::list([text_block(&quoted(&text)).as_str()]).into(),
            tokens_before: count(before),
            tokens_after: count(after),
            messages_summarised: count(messages),
            ..BoundaryDraft::default()
        };
        self.builder.boundary(place, "session.compaction_complete", boundary);
    }
}
