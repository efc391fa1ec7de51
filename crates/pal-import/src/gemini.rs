//! Reader of Gemini CLI sessions: one object with all messages or, in newer versions, a header and one
//! message per line.
//!
//! An assistant message carries text, calls and their results. In JSONL a message is rewritten as more of it
//! is known; the last version counts.

use std::borrow::Cow;

use pal_model::{MessageOrigin, Usage, array_items};
use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::content_blocks::{self, quoted, text_block};
use crate::import_step::{ParsedSession, SourceCounts, StepAction};
use crate::internal_records::InternalReason;
use crate::raw_fields::{count, pick_or_none, string};
use crate::session_builder::{ImportedMessage, RecordContext, SessionBuilder};
use crate::session_format::{SessionFormat, single_object};
use crate::source_records;

const HEADER: [&str; 4] = ["sessionId", "projectHash", "messages", "summary"];

/// Parses a session.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<ParsedSession<'_>, ImportError> {
    let mut reader = GeminiReader { builder: SessionBuilder::new(SessionFormat::Gemini) };
    if let Some(object) =
        single_object(source).filter(|object| pick_or_none(object, &["messages"])[0].is_some())
    {
        reader.header(object);
        let messages = pick_or_none(object, &["messages"])[0].unwrap_or("[]");
        let messages = array_items(messages).unwrap_or_default();
        let lines = source.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        reader.builder.session.counts =
            SourceCounts { lines, records: messages.len() as u64, ..SourceCounts::default() };
        for (field, raw) in pal_model::object_fields(object).unwrap_or_default() {
            if field != "messages" {
                let place = RecordContext { line: 1, at: None, foreign: None, text: raw };
                reader.builder.push_internal(place, field.into_owned(), InternalReason::Bookkeeping);
            }
        }
        for (number, message) in messages.into_iter().enumerate() {
            reader.message(number as u64 + 1, message);
        }
        return Ok(reader.builder.finish());
    }
    let mut found_records = Vec::new();
    let mut last_of: FxHashMap<&str, usize> = FxHashMap::default();
    let seen = source_records::read_records(source, &["id"], strict, |found| {
        if let Ok(record) = &found
            && let [Some(id)] = record.fields
        {
            last_of.insert(id, found_records.len());
        }
        found_records.push(found);
    })?;
    reader.builder.session.counts = seen;
    for (at, found) in found_records.into_iter().enumerate() {
        match found {
            Err(bad) => reader.builder.session.steps.push(bad),
            Ok(record) => {
                let is_last = record.fields[0].is_none_or(|id| last_of.get(id) == Some(&at));
                reader.line(record.line, record.text, is_last);
            }
        }
    }
    Ok(reader.builder.finish())
}

struct GeminiReader<'a> {
    builder: SessionBuilder<'a>,
}

impl<'a> GeminiReader<'a> {
    fn header(&mut self, object: &'a str) {
        let [id, _, _, summary] = pick_or_none(object, &HEADER);
        let about = &mut self.builder.session.about;
        about.foreign_id = string(id).map(Cow::into_owned);
        about.title = string(summary).map(Cow::into_owned);
    }

    fn line(&mut self, number: u64, text: &'a str, is_last: bool) {
        let [session, project, ..] = pick_or_none(text, &HEADER);
        let place = RecordContext { line: number, at: None, foreign: None, text };
        if session.is_some() && project.is_some() {
            self.header(text);
            self.builder.push_internal(place, "header", InternalReason::Bookkeeping);
        } else if is_last {
            self.message(number, text);
        } else {
            self.builder.push_internal(place, "replayed", InternalReason::Replayed);
        }
    }

    fn message(&mut self, number: u64, text: &'a str) {
        let names = ["id", "timestamp", "type", "content", "message"];
        let [id, timestamp, kind, content, message] = pick_or_none(text, &names);
        let at = string(timestamp).and_then(|at| at.parse().ok());
        let place = RecordContext { line: number, at, foreign: id, text };
        let kind = string(kind).unwrap_or("record".into());
        let content = content.or(message);
        match kind.as_ref() {
            "user" => self.builder.user(place, MessageOrigin::Person, &texts(content)),
            "gemini" => self.assistant(place, content),
            "info" | "error" | "warning" => {
                let content = content_blocks::list(texts(content).iter().map(String::as_str));
                self.builder.push_internal(place, kind, InternalReason::CarriedByNeighbour);
                self.builder.push(place, StepAction::Shown { content: content.into() });
            }
            _ => self.builder.push_internal(place, kind, InternalReason::UnknownRecord),
        }
    }

    fn assistant(&mut self, place: RecordContext<'a>, content: Option<&'a str>) {
        let [model, tokens, calls, thoughts] =
            pick_or_none(place.text, &["model", "tokens", "toolCalls", "thoughts"]);
        if let Some(thoughts) = thoughts.filter(|thoughts| *thoughts != "[]") {
            self.builder.push_internal_part(place, "thoughts", thoughts, InternalReason::Reasoning);
        }
        let mut blocks = texts(content);
        let (mut names, mut results) = (Vec::new(), Vec::new());
        for call in calls.and_then(|calls| array_items(calls).ok()).unwrap_or_default() {
            let [id, name, input, result, status] =
                pick_or_none(call, &["id", "name", "args", "result", "status"]);
            let id = string(id).unwrap_or_default();
            let name = string(name).unwrap_or_default();
            blocks.push(content_blocks::tool_use(&id, &name, input.unwrap_or("{}")));
            names.push(name);
            if let Some(result) = result {
                let is_error = string(status).is_some_and(|status| status != "success");
                results.push(content_blocks::tool_result(&id, &answer(result), is_error));
            }
        }
        if blocks.is_empty() {
            return self.builder.push_internal(place, "gemini", InternalReason::NothingForTheModel);
        }
        let said = ImportedMessage {
            response: None,
            model: string(model).unwrap_or_default(),
            blocks,
            calls: names,
            usage: tokens.map(parse_usage).unwrap_or_default(),
            stop_reason: None,
        };
        self.builder.assistant(place, said);
        if !results.is_empty() {
            self.builder.results(place, &results);
        }
    }
}

/// Text blocks of content: a string, a part, or a list of parts.
fn texts(content: Option<&str>) -> Vec<String> {
    let Some(content) = content else { return Vec::new() };
    let parts =
        if content.starts_with('[') { array_items(content).unwrap_or_default() } else { vec![content] };
    let block = |part: &str| {
        let [text] = if part.starts_with('"') { [Some(part)] } else { pick_or_none(part, &["text"]) };
        match text {
            Some(text) => string(Some(text)).is_some().then(|| text_block(text)),
            None => (part.starts_with('{') && part != "{}").then(|| text_block(&quoted(part))),
        }
    };
    parts.into_iter().filter_map(block).collect()
}

/// Text of a call's result, as a raw string.
fn answer(result: &str) -> Cow<'_, str> {
    if result.starts_with('"') {
        return result.into();
    }
    let parts = if result.starts_with('[') { array_items(result).unwrap_or_default() } else { vec![result] };
    if let [part] = parts[..] {
        let [response] = pick_or_none(part, &["functionResponse"]);
        let [response] = pick_or_none(response.unwrap_or("{}"), &["response"]);
        let [output, error] = pick_or_none(response.unwrap_or("{}"), &["output", "error"]);
        if let Some(output) = output.or(error).filter(|output| output.starts_with('"')) {
            return output.into();
        }
    }
    quoted(result).into()
}

/// Usage in our terms: Gemini includes cache reads in the prompt tokens.
fn parse_usage(raw: &str) -> Usage {
    let [input, output, cached, thoughts] = pick_or_none(raw, &["input", "output", "cached", "thoughts"]);
    let (input, cached) = (count(input).unwrap_or(0), count(cached).unwrap_or(0));
    Usage {
        input_tokens: input.saturating_sub(cached),
        cache_read_input_tokens: cached.min(input),
        output_tokens: count(output).unwrap_or(0).saturating_add(count(thoughts).unwrap_or(0)),
        ..Usage::default()
    }
}
