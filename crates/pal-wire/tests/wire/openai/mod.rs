//! OpenAI's dialects: answers in, requests out.

mod bodies;
mod chat;
mod laws;
mod responses;
mod unindexed;

use pal_wire::{Decoder, Delta, Dialect, Event, decode_whole};

/// The bytes of a stream with these data, each under its own `type` where it has one.
fn stream(frames: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for data in frames {
        let kind = serde_json::from_str::<serde_json::Value>(data)
            .ok()
            .and_then(|json| json["type"].as_str().map(str::to_owned));
        if let Some(kind) = kind {
            bytes.extend(format!("event: {kind}\n").bytes());
        }
        bytes.extend(format!("data: {data}\n\n").bytes());
    }
    bytes
}

/// The events of a whole stream.
fn decoded(dialect: Dialect, bytes: &[u8]) -> Vec<Event> {
    let mut decoder = Decoder::new(dialect);
    let mut events = Vec::new();
    decoder.push(bytes, &mut events);
    decoder.finish(&mut events);
    events
}

/// An event on a line.
fn line(event: &Event) -> String {
    match event {
        Event::Started(started) => format!("started {} {}", started.response, started.model),
        Event::Opened { index, kind, tool } => {
            let name = kind.name().unwrap_or("unknown");
            format!("{index} {name}{}", tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default())
        }
        Event::Grew { index, delta: Delta::Text(text) } => format!("{index} + {text}"),
        Event::Grew { index, delta: Delta::Thinking(text) } => format!("{index} ~ {text}"),
        Event::Grew { index, delta: Delta::Input(text) } => format!("{index} < {text}"),
        Event::Block { index, block } => format!("{index} = {}", block.raw()),
        Event::Finished(finished) => format!(
            "{} {} in {} write {} read {} out {}",
            finished.response,
            finished.stop_reason.as_deref().unwrap_or("-"),
            finished.usage.input_tokens,
            finished.usage.cache_creation_input_tokens,
            finished.usage.cache_read_input_tokens,
            finished.usage.output_tokens,
        ),
        Event::Failed(failure) => format!("failed {:?}: {failure}", failure.kind),
    }
}

#[track_caller]
fn check(dialect: Dialect, frames: &[&str], expected: &[&str]) {
    let lines: Vec<String> = decoded(dialect, &stream(frames)).iter().map(line).collect();
    assert_eq!(lines, expected, "{frames:#?}");
}

#[track_caller]
fn check_whole(dialect: Dialect, body: &str, expected: &[&str]) {
    let lines: Vec<String> = decode_whole(dialect, body.as_bytes()).iter().map(line).collect();
    assert_eq!(lines, expected, "{body}");
}

/// Events with the deltas of each block joined: what is left is the same for a stream and a whole answer.
fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        let Event::Grew { index, delta } = &event else {
            joined.push(event);
            continue;
        };
        let grown = joined.iter_mut().rev().find_map(|old| match old {
            Event::Grew { index: known, delta } if known == index => Some(delta),
            _ => None,
        });
        match (grown, delta) {
            (Some(Delta::Text(old)), Delta::Text(new))
            | (Some(Delta::Thinking(old)), Delta::Thinking(new))
            | (Some(Delta::Input(old)), Delta::Input(new)) => old.push_str(new),
            _ => joined.push(event),
        }
    }
    joined
}
