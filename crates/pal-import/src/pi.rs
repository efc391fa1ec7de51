//! Reader of pi sessions.
//!
//! One message per record. A compaction names the first record it keeps, by index or id; that range becomes
//! the boundary's preserved range.

use std::borrow::Cow;

use pal_model::{MessageOrigin, PreservedPlacement, Usage, array_items, unescape};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ImportError;
use crate::content_blocks::{self, quoted, text_block};
use crate::import_step::{BoundaryDraft, ParsedSession, SourceCounts};
use crate::internal_records::InternalReason;
use crate::raw_fields::{count, is_true, pick_or_none, string};
use crate::session_builder::{ImportedMessage, RecordContext, SessionBuilder};
use crate::session_format::SessionFormat;
use crate::source_records::{self, SourceRecord};

const NAMES: [&str; 5] = ["type", "timestamp", "id", "parentId", "message"];

/// Parses a session.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<ParsedSession<'_>, ImportError> {
    let mut reader = PiReader {
        builder: SessionBuilder::new(SessionFormat::Pi),
        model: "".into(),
        first_steps: Vec::new(),
        step_of: FxHashMap::default(),
        prompt_parents: FxHashSet::default(),
    };
    let seen = source_records::read_records(source, &NAMES, strict, |found| match found {
        Ok(record) => reader.record(&record),
        Err(bad) => reader.builder.session.steps.push(bad),
    })?;
    let rewinds = reader.builder.session.counts.rewinds;
    reader.builder.session.counts = SourceCounts { rewinds, ..seen };
    Ok(reader.builder.finish())
}

struct PiReader<'a> {
    builder: SessionBuilder<'a>,
    model: Cow<'a, str>,
    /// First step of each record, by index.
    first_steps: Vec<usize>,
    /// First step of each record, by raw id.
    step_of: FxHashMap<&'a str, usize>,
    /// Raw parent ids of typed prompts.
    prompt_parents: FxHashSet<&'a str>,
}

impl<'a> PiReader<'a> {
    fn record(&mut self, record: &SourceRecord<'a, { NAMES.len() }>) {
        let [kind, timestamp, id, parent, message] = record.fields;
        let at = string(timestamp).and_then(|at| at.parse().ok());
        let place = RecordContext { line: record.line, at, foreign: id, text: record.text };
        self.first_steps.push(self.builder.next_step());
        if let Some(id) = id {
            self.step_of.insert(id, self.builder.next_step());
        }
        let kind = string(kind).unwrap_or("record".into());
        match kind.as_ref() {
            "session" => self.header(place),
            "message" => self.message(place, message.unwrap_or("{}"), parent),
            "compaction" => self.compaction(place),
            "model_change" => {
                let [model] = pick_or_none(place.text, &["modelId"]);
                self.model = string(model).unwrap_or_default();
                let model = self.model.clone();
                self.builder.model_change(place, "model_change", &model);
            }
            "session_info" => {
                let [name] = pick_or_none(place.text, &["name"]);
                self.builder.session.about.title = string(name).map(Cow::into_owned);
                self.builder.push_internal(place, kind, InternalReason::Bookkeeping);
            }
            "branch_summary" => {
                let [summary] = pick_or_none(place.text, &["summary"]);
                self.attachment(place, kind, summary);
            }
            "custom_message" => {
                let [content] = pick_or_none(place.text, &["content"]);
                let parts = parts(content.unwrap_or("[]"));
                let words: Vec<Cow<'_, str>> = parts.iter().filter_map(|part| string(part.text)).collect();
                let literal = quoted(&words.join("\n"));
                self.attachment(place, kind, (!words.is_empty()).then_some(literal.as_str()));
            }
            "thinking_level_change" | "label" | "custom" => {
                self.builder.push_internal(place, kind, InternalReason::Bookkeeping);
            }
            _ => self.builder.push_internal(place, kind, InternalReason::UnknownRecord),
        }
    }

    fn attachment(&mut self, place: RecordContext<'a>, what: Cow<'a, str>, literal: Option<&str>) {
        match literal {
            Some(literal) if literal.starts_with('"') => self.builder.attachment(place, what, literal),
            _ => self.builder.push_internal(place, what, InternalReason::NothingForTheModel),
        }
    }

    fn header(&mut self, place: RecordContext<'a>) {
        let [id, cwd, version, model] = pick_or_none(place.text, &["id", "cwd", "version", "modelId"]);
        let about = &mut self.builder.session.about;
        about.foreign_id = string(id).map(Cow::into_owned);
        about.cwd = string(cwd).map(Cow::into_owned);
        about.version = version.map(|version| version.trim_matches('"').to_owned());
        self.model = string(model).unwrap_or_default();
        self.builder.push_internal(place, "session", InternalReason::Bookkeeping);
    }

    fn message(&mut self, place: RecordContext<'a>, message: &'a str, parent: Option<&'a str>) {
        let [role, content] = pick_or_none(message, &["role", "content"]);
        let content = content.unwrap_or("[]");
        match string(role).as_deref() {
            Some("user") => {
                let blocks: Vec<String> =
                    parts(content).iter().filter_map(PiMessagePart::user_block).collect();
                if let Some(parent) = parent.filter(|parent| *parent != "null")
                    && !self.prompt_parents.insert(parent)
                {
                    self.builder.session.counts.rewinds += 1;
                }
                self.builder.user(place, MessageOrigin::Person, &blocks);
            }
            Some("assistant") => self.assistant(place, message, content),
            Some("toolResult") => {
                let [id, is_error] = pick_or_none(message, &["toolCallId", "isError"]);
                let id = string(id).unwrap_or_default();
                let blocks: Vec<String> =
                    parts(content).iter().filter_map(PiMessagePart::user_block).collect();
                let blocks = content_blocks::list(blocks.iter().map(String::as_str));
                self.builder.results(place, &[content_blocks::tool_result(&id, &blocks, is_true(is_error))]);
            }
            Some("bashExecution") => self.bash(place, message),
            Some(role @ ("custom" | "hookMessage" | "branchSummary" | "compactionSummary")) => {
                let what = role.to_owned().into();
                let [summary] = pick_or_none(message, &["summary"]);
                let words: Vec<Cow<'_, str>> =
                    parts(content).iter().filter_map(|part| string(part.text)).collect();
                let literal = if words.is_empty() {
                    summary.map(str::to_owned)
                } else {
                    Some(quoted(&words.join("\n")))
                };
                self.attachment(place, what, literal.as_deref());
            }
            _ => self.builder.push_internal(place, "message", InternalReason::UnknownRecord),
        }
    }

    fn assistant(&mut self, place: RecordContext<'a>, message: &'a str, content: &'a str) {
        let names = ["model", "usage", "stopReason", "api", "responseId"];
        let [model, usage, stop_reason, api, id] = pick_or_none(message, &names);
        // Other providers' reasoning cannot be sent as thinking.
        let is_signed_here =
            string(api).is_none_or(|api| api.contains("anthropic") || api.contains("bedrock"));
        let (mut blocks, mut calls) = (Vec::new(), Vec::new());
        for part in parts(content) {
            match part.kind.as_ref() {
                "toolCall" => {
                    let name = string(part.name).unwrap_or_default();
                    let id = string(part.id).unwrap_or_default();
                    blocks.push(content_blocks::tool_use(&id, &name, part.arguments.unwrap_or("{}")));
                    calls.push(name);
                }
                "thinking" if is_signed_here && string(part.signature).is_some() => {
                    blocks.push(part.thinking_block());
                }
                "thinking" => {
                    self.builder.push_internal_part(place, "thinking", part.raw, InternalReason::Reasoning)
                }
                _ => blocks.extend(part.user_block()),
            }
        }
        if blocks.is_empty() {
            return self.builder.push_internal(place, "assistant", InternalReason::NothingForTheModel);
        }
        let stop_reason = string(stop_reason).map(|reason| match reason.as_ref() {
            "stop" => "end_turn".into(),
            "toolUse" => "tool_use".into(),
            "length" => "max_tokens".into(),
            _ => reason,
        });
        let said = ImportedMessage {
            response: string(id),
            model: string(model).unwrap_or(self.model.clone()),
            blocks,
            calls,
            usage: usage.map(parse_usage).unwrap_or_default(),
            stop_reason,
        };
        self.builder.assistant(place, said);
    }

    /// A command run by the user: the input and its output.
    fn bash(&mut self, place: RecordContext<'a>, message: &'a str) {
        let names = ["command", "output", "excludeFromContext"];
        let [command, output, excluded] = pick_or_none(message, &names);
        if is_true(excluded) {
            return self.builder.push_internal(place, "bashExecution", InternalReason::NothingForTheModel);
        }
        let command = string(command).unwrap_or_default();
        self.builder.user(place, MessageOrigin::Person, &[text_block(&quoted(&format!("!{command}")))]);
        let output = format!("The command printed:\n{}", string(output).unwrap_or_default());
        self.builder.user(place, MessageOrigin::Agent, &[text_block(&quoted(&output))]);
    }

    fn compaction(&mut self, place: RecordContext<'a>) {
        let names = ["summary", "tokensBefore", "firstKeptEntryIndex", "firstKeptEntryId"];
        let [summary, before, index, id] = pick_or_none(place.text, &names);
        let Some(summary) = string(summary) else {
            return self.builder.push_internal(place, "compaction", InternalReason::NoSummary);
        };
        let head = match (id, count(index)) {
            (Some(id), _) => self.step_of.get(id).copied(),
            (None, Some(index)) => self.first_steps.get(index as usize).copied(),
            (None, None) => None,
        };
        // The compaction record itself is already counted; kept records precede it.
        let tail = self.builder.next_step().checked_sub(1);
        let preserved = head.zip(tail).filter(|(head, tail)| head <= tail);
        let text = format!("The conversation before this point was summarised:\n\n{summary}");
        let boundary = BoundaryDraft {
            trigger: "auto".into(),
            summary: content_blocks::list([text_block(&quoted(&text)).as_str()]).into(),
            tokens_before: count(before),
            preserved: preserved.map(|(head, tail)| (head, tail, PreservedPlacement::AfterSummary)),
            ..BoundaryDraft::default()
        };
        self.builder.boundary(place, "compaction", boundary);
    }
}

/// One part of a message.
struct PiMessagePart<'a> {
    raw: &'a str,
    kind: Cow<'a, str>,
    text: Option<&'a str>,
    thinking: Option<&'a str>,
    signature: Option<&'a str>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: Option<&'a str>,
    data: Option<&'a str>,
    media_type: Option<&'a str>,
}

fn parts(content: &str) -> Vec<PiMessagePart<'_>> {
    let items =
        if content.starts_with('"') { vec![content] } else { array_items(content).unwrap_or_default() };
    items.into_iter().map(PiMessagePart::new).collect()
}

impl<'a> PiMessagePart<'a> {
    fn new(raw: &'a str) -> PiMessagePart<'a> {
        let names =
            ["type", "text", "thinking", "thinkingSignature", "id", "name", "arguments", "data", "mimeType"];
        let [kind, text, thinking, signature, id, name, arguments, data, media_type] =
            pick_or_none(raw, &names);
        let text = if raw.starts_with('"') { Some(raw) } else { text };
        let kind = string(kind).unwrap_or_default();
        PiMessagePart { raw, kind, text, thinking, signature, id, name, arguments, data, media_type }
    }

    /// Text or image block; anything else as JSON text. `None` for empty text.
    fn user_block(&self) -> Option<String> {
        match (self.text.filter(|text| unescape(text).is_some()), self.data, self.media_type) {
            (Some("\"\""), ..) => None,
            (Some(text), ..) => Some(text_block(text)),
            (None, Some(data), Some(media_type)) => Some(content_blocks::image_data(media_type, data)),
            _ => Some(text_block(&quoted(self.raw))),
        }
    }

    fn thinking_block(&self) -> String {
        let (thinking, signature) = (self.thinking.unwrap_or("\"\""), self.signature.unwrap_or("\"\""));
        format!(r#"{{"type":"thinking","thinking":{thinking},"signature":{signature}}}"#)
    }
}

fn parse_usage(raw: &str) -> Usage {
    let [input, output, read, written] = pick_or_none(raw, &["input", "output", "cacheRead", "cacheWrite"]);
    Usage {
        input_tokens: count(input).unwrap_or(0),
        output_tokens: count(output).unwrap_or(0),
        cache_read_input_tokens: count(read).unwrap_or(0),
        cache_creation_input_tokens: count(written).unwrap_or(0),
        ..Usage::default()
    }
}
