//! OpenAI's dialects: decoding of responses, encoding of requests.

mod bodies;
mod chat;
mod laws;
mod responses;
mod unindexed;

use pal_wire::{BlockDelta, Dialect, ResponseDecoder, ResponseEvent, decode_response};

/// Returns the bytes of a stream with these data, each named after its `type`, if any.
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

/// Decodes a complete stream.
fn decoded(dialect: Dialect, bytes: &[u8]) -> Vec<ResponseEvent> {
    let mut decoder = ResponseDecoder::new(dialect);
    let mut events = Vec::new();
    decoder.push(bytes, &mut events);
    decoder.finish(&mut events);
    events
}

/// Formats an event on one line.
fn line(event: &ResponseEvent) -> String {
    match event {
        ResponseEvent::Started(started) => format!("started {} {}", started.response, started.model),
        ResponseEvent::BlockStart { index, kind, tool, .. } => {
            let name = kind.name().unwrap_or("unknown");
            format!("{index} {name}{}", tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default())
        }
        ResponseEvent::BlockDelta { index, delta: BlockDelta::Text(text) } => format!("{index} + {text}"),
        ResponseEvent::BlockDelta { index, delta: BlockDelta::Thinking(text) } => format!("{index} ~ {text}"),
        ResponseEvent::BlockDelta { index, delta: BlockDelta::Input(text) } => format!("{index} < {text}"),
        ResponseEvent::Block { index, block } => format!("{index} = {}", block.raw()),
        ResponseEvent::Finished(finished) => format!(
            "{} {} in {} write {} read {} out {}",
            finished.response,
            finished.stop_reason.as_deref().unwrap_or("-"),
            finished.usage.input_tokens,
            finished.usage.cache_creation_input_tokens,
            finished.usage.cache_read_input_tokens,
            finished.usage.output_tokens,
        ),
        ResponseEvent::Failed(failure) => format!("failed {:?}: {failure}", failure.kind),
    }
}

#[track_caller]
fn check(dialect: Dialect, frames: &[&str], expected: &[&str]) {
    let lines: Vec<String> = decoded(dialect, &stream(frames)).iter().map(line).collect();
    assert_eq!(lines, expected, "{frames:#?}");
}

#[track_caller]
fn check_whole(dialect: Dialect, body: &str, expected: &[&str]) {
    let lines: Vec<String> = decode_response(dialect, body.as_bytes()).iter().map(line).collect();
    assert_eq!(lines, expected, "{body}");
}

/// Joins the deltas of each block, so that a stream and a complete response compare equal.
fn joined(events: Vec<ResponseEvent>) -> Vec<ResponseEvent> {
    let mut joined: Vec<ResponseEvent> = Vec::new();
    for event in events {
        let ResponseEvent::BlockDelta { index, delta } = &event else {
            joined.push(event);
            continue;
        };
        let grown = joined.iter_mut().rev().find_map(|old| match old {
            ResponseEvent::BlockDelta { index: known, delta } if known == index => Some(delta),
            _ => None,
        });
        match (grown, delta) {
            (Some(BlockDelta::Text(old)), BlockDelta::Text(new))
            | (Some(BlockDelta::Thinking(old)), BlockDelta::Thinking(new))
            | (Some(BlockDelta::Input(old)), BlockDelta::Input(new)) => old.push_str(new),
            _ => joined.push(event),
        }
    }
    joined
}
