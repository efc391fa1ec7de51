//! Responses: decoding, failures and retries.

mod failures;
mod generated;
mod impossible;
mod recorded;
mod retries;
mod splits;

use pal_wire::{BlockDelta, Dialect, ProviderFailure, ResponseDecoder, ResponseEnd, ResponseEvent};

/// Returns the frames of a stream: each line is the data of one event, named after its own `type`.
fn stream(lines: &str) -> String {
    lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(frame).collect()
}

fn frame(data: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(data).unwrap_or_default();
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// Decodes the pieces of a body.
fn decode<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<ResponseEvent> {
    let mut decoder = ResponseDecoder::new(dialect);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events);
    }
    decoder.finish(&mut events);
    assert!(decoder.has_ended());
    let said = events.len();
    decoder.push(b"data: {\"type\":\"error\",\"error\":{}}\n\n", &mut events);
    decoder.finish(&mut events);
    assert_eq!(events.len(), said, "something was said after the end");
    events
}

/// Formats events, one per line.
fn shown(events: &[ResponseEvent]) -> String {
    events.iter().map(|event| line(event) + "\n").collect()
}

fn line(event: &ResponseEvent) -> String {
    match event {
        ResponseEvent::Started(started) => {
            format!("started {} {} {}", started.response, started.model, started.usage.prompt_tokens())
        }
        ResponseEvent::BlockStart { index, kind, tool, .. } => {
            let kind = kind.name().unwrap_or("?");
            tool.as_ref()
                .map_or(format!("{index} opened {kind}"), |tool| format!("{index} opened {kind} {tool}"))
        }
        ResponseEvent::BlockDelta { index, delta: BlockDelta::Text(text) } => {
            format!("{index} said {text:?}")
        }
        ResponseEvent::BlockDelta { index, delta: BlockDelta::Thinking(text) } => {
            format!("{index} thought {text:?}")
        }
        ResponseEvent::BlockDelta { index, delta: BlockDelta::Input(text) } => {
            format!("{index} put in {text:?}")
        }
        ResponseEvent::Block { index, block } => format!("{index} is {}", block.raw()),
        ResponseEvent::Finished(ResponseEnd { response, model, stop_reason, usage, extras }) => {
            let stop_reason = stop_reason.as_deref().unwrap_or("-");
            let (prompt, output) = (usage.prompt_tokens(), usage.output_tokens);
            format!("finished {response} {model} {stop_reason} {prompt}+{output} {extras}")
        }
        ResponseEvent::Failed(ProviderFailure { kind, message, .. }) => format!("failed {kind:?}: {message}"),
    }
}
