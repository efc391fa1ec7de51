//! Trajectories of mini-swe-agent: one object with all messages.
//!
//! The first user message is the task, given as the prompt; those after it are what the shell printed. Commands
//! stand in the model's text, and stay there.

use std::borrow::Cow;

use pal_model::{Origin, Timestamp, Usage, array_items};

use crate::aside::Reason;
use crate::blocks::{self, is_object, quoted, text_block};
use crate::builder::{Builder, Place, Said};
use crate::format::{Format, whole};
use crate::pick::{count, pick_or_none, string};
use crate::step::{Seen, Session};

/// Reads a trajectory.
pub(crate) fn read(source: &[u8]) -> Session<'_> {
    let mut builder = Builder::new(Format::MiniSweAgent);
    let object = whole(source).unwrap_or("{}");
    let [messages, id, info] = pick_or_none(object, &["messages", "instance_id", "info"]);
    let [version] = pick_or_none(info.unwrap_or("{}"), &["mini_version"]);
    builder.session.about.foreign_id = string(id).map(Cow::into_owned);
    builder.session.about.title = string(id).map(Cow::into_owned);
    builder.session.about.version = string(version).map(Cow::into_owned);
    let messages = array_items(messages.unwrap_or("[]")).unwrap_or_default();
    let lines = source.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    builder.session.seen = Seen { lines, records: messages.len() as u64, ..Seen::default() };
    for (field, raw) in pal_model::fields(object).unwrap_or_default() {
        if field != "messages" {
            let place = Place { line: 1, at: None, foreign: None, text: raw };
            builder.aside(place, field.into_owned(), Reason::Bookkeeping);
        }
    }
    let mut has_task = false;
    for (number, message) in messages.into_iter().enumerate() {
        read_message(&mut builder, number as u64 + 1, message, &mut has_task);
    }
    builder.finish()
}

fn read_message<'a>(builder: &mut Builder<'a>, number: u64, message: &'a str, has_task: &mut bool) {
    let names = ["role", "content", "timestamp", "extra", "tool_calls", "tool_call_id"];
    let [role, content, timestamp, extra, calls, call_id] = pick_or_none(message, &names);
    let place = Place { line: number, at: timestamp.and_then(seconds), foreign: None, text: message };
    match string(role).as_deref() {
        Some("system") => {
            builder.session.system.extend(words(content));
            builder.aside(place, "system", Reason::Beside);
        }
        Some("user") => {
            let origin = if *has_task { Origin::Agent } else { Origin::Person };
            *has_task = true;
            builder.user(place, origin, &texts(content));
        }
        Some("assistant") => assistant(builder, place, content, extra, calls),
        Some("tool") => {
            let id = string(call_id).unwrap_or_default();
            let text = quoted(&words(content).unwrap_or_default());
            builder.results(place, &[blocks::tool_result(&id, &text, false)]);
        }
        _ => builder.aside(place, "message", Reason::UnknownRecord),
    }
    if let Some(extra) = extra {
        builder.keep(place, "extra", extra, Reason::Beside);
    }
}

fn assistant<'a>(
    builder: &mut Builder<'a>,
    place: Place<'a>,
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
        blocks.push(blocks::tool_use(&string(id).unwrap_or_default(), &name, input));
        names.push(name);
    }
    if blocks.is_empty() {
        return builder.aside(place, "assistant", Reason::NothingForTheModel);
    }
    let [response] = pick_or_none(extra.unwrap_or("{}"), &["response"]);
    let [id, model, usage] = pick_or_none(response.unwrap_or("{}"), &["id", "model", "usage"]);
    let said = Said {
        response: string(id),
        model: string(model).unwrap_or_default(),
        blocks,
        calls: names,
        usage: usage.map(counted).unwrap_or_default(),
        stop_reason: None,
    };
    builder.assistant(place, said);
}

/// The words of content: a string, or the texts of its parts.
fn words(content: Option<&str>) -> Option<Cow<'_, str>> {
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
    words(content).map(|words| text_block(&quoted(&words))).into_iter().collect()
}

/// A point in time from seconds with a fraction.
fn seconds(raw: &str) -> Option<Timestamp> {
    let seconds: f64 = raw.parse().ok()?;
    seconds.is_finite().then(|| Timestamp::from_milliseconds((seconds * 1000.0) as i64))
}

fn counted(raw: &str) -> Usage {
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
