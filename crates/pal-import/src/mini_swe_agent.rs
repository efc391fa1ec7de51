//! Reader of mini-swe-agent trajectories: one object with all messages.
//!
//! The first user message is the task; later ones are command output. Commands stay in the assistant text.

use std::borrow::Cow;

use pal_model::{MessageOrigin, Timestamp, Usage, array_items};

use crate::content_blocks::{self, is_object, quoted, text_block};
use crate::import_step::{ParsedSession, SourceCounts};
use crate::internal_records::InternalReason;
use crate::raw_fields::{count, pick_or_none, string};
use crate::session_builder::{ImportedMessage, RecordContext, SessionBuilder};
use crate::session_format::{SessionFormat, single_object};

/// Parses a trajectory.
pub(crate) fn read(source: &[u8]) -> ParsedSession<'_> {
    let mut builder = SessionBuilder::new(SessionFormat::MiniSweAgent);
    let object = single_object(source).unwrap_or("{}");
    let [messages, id, info] = pick_or_none(object, &["messages", "instance_id", "info"]);
    let [version] = pick_or_none(info.unwrap_or("{}"), &["mini_version"]);
    builder.session.about.foreign_id = string(id).map(Cow::into_owned);
    builder.session.about.title = string(id).map(Cow::into_owned);
    builder.session.about.version = string(version).map(Cow::into_owned);
    let messages = array_items(messages.unwrap_or("[]")).unwrap_or_default();
    let lines = source.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    builder.session.counts =
        SourceCounts { lines, records: messages.len() as u64, ..SourceCounts::default() };
    for (field, raw) in pal_model::object_fields(object).unwrap_or_default() {
        if field != "messages" {
            let place = RecordContext { line: 1, at: None, foreign: None, text: raw };
            builder.push_internal(place, field.into_owned(), InternalReason::Bookkeeping);
        }
    }
    let mut has_task = false;
    for (number, message) in messages.into_iter().enumerate() {
        read_message(&mut builder, number as u64 + 1, message, &mut has_task);
    }
    builder.finish()
}

fn read_message<'a>(builder: &mut SessionBuilder<'a>, number: u64, message: &'a str, has_task: &mut bool) {
    let names = ["role", "content", "timestamp", "extra", "tool_calls", "tool_call_id"];
    let [role, content, timestamp, extra, calls, call_id] = pick_or_none(message, &names);
    let place = RecordContext { line: number, at: timestamp.and_then(seconds), foreign: None, text: message };
    match string(role).as_deref() {
        Some("system") => {
            builder.session.system.extend(decoded_text(content));
            builder.push_internal(place, "system", InternalReason::CarriedByNeighbour);
        }
        Some("user") => {
            let origin = if *has_task { MessageOrigin::Agent } else { MessageOrigin::Person };
            *has_task = true;
            builder.user(place, origin, &texts(content));
        }
        Some("assistant") => assistant(builder, place, content, extra, calls),
        Some("tool") => {
            let id = string(call_id).unwrap_or_default();
            let text = quoted(&decoded_text(content).unwrap_or_default());
            builder.results(place, &[content_blocks::tool_result(&id, &text, false)]);
        }
        _ => builder.push_internal(place, "message", InternalReason::UnknownRecord),
    }
    if let Some(extra) = extra {
        builder.push_internal_part(place, "extra", extra, InternalReason::CarriedByNeighbour);
    }
}

fn assistant<'a>(
    builder: &mut SessionBuilder<'a>,
    place: RecordContext<'a>,
    content: Option<&'a str>,
    extra: Option<&'a str>,
    calls: Option<&'a str>,
) {
    let mut blocks = texts(content);
    let mut names = Vec::new();
    for call in calls.and_then(|calls| array_items(calls).ok()).unwrap_or_default() {
        let [id, function] = pick_or_none(call, &["id", "function"]);
        let [name, arguments] = pick_or_none(function.unwrap_or("{}"), &["name", "arguments"]);
        let name = string(name).unwrap_or_default();
        let inner = string(arguments).filter(|inner| is_object(inner));
        let input = inner.as_deref().or(arguments).unwrap_or("{}");
        blocks.push(content_blocks::tool_use(&string(id).unwrap_or_default(), &name, input));
        names.push(name);
    }
    if blocks.is_empty() {
        return builder.push_internal(place, "assistant", InternalReason::NothingForTheModel);
    }
    let [response] = pick_or_none(extra.unwrap_or("{}"), &["response"]);
    let [id, model, usage] = pick_or_none(response.unwrap_or("{}"), &["id", "model", "usage"]);
    let said = ImportedMessage {
        response: string(id),
        model: string(model).unwrap_or_default(),
        blocks,
        calls: names,
        usage: usage.map(parse_usage).unwrap_or_default(),
        stop_reason: None,
    };
    builder.assistant(place, said);
}

/// Text of content: a string, or the texts of its parts.
fn decoded_text(content: Option<&str>) -> Option<Cow<'_, str>> {
    let content = content?;
    if content.starts_with('"') {
        return string(Some(content));
    }
    let parts = array_items(content).ok()?;
    let texts: Vec<Cow<'_, str>> =
        parts.into_iter().filter_map(|part| string(pick_or_none(part, &["text"])[0])).collect();
    (!texts.is_empty()).then(|| texts.join("\n").into())
}

fn texts(content: Option<&str>) -> Vec<String> {
    decoded_text(content).map(|words| text_block(&quoted(&words))).into_iter().collect()
}

/// Parses a time in seconds with a fraction.
fn seconds(raw: &str) -> Option<Timestamp> {
    let seconds: f64 = raw.parse().ok()?;
    seconds.is_finite().then(|| Timestamp::from_milliseconds((seconds * 1000.0) as i64))
}

fn parse_usage(raw: &str) -> Usage {
    let [prompt, completion, details] =
        pick_or_none(raw, &["prompt_tokens", "completion_tokens", "prompt_tokens_details"]);
    let [cached] = pick_or_none(details.unwrap_or("{}"), &["cached_tokens"]);
    let (prompt, cached) = (count(prompt).unwrap_or(0), count(cached).unwrap_or(0));
    Usage {
        input_tokens: prompt.saturating_sub(cached),
        cache_read_input_tokens: cached.min(prompt),
        output_tokens: count(completion).unwrap_or(0),
        ..Usage::default()
    }
}
