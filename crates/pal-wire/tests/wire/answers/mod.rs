//! Answers: what they are decoded to, what they fail with, what is tried again.

mod failures;
mod generated;
mod impossible;
mod recorded;
mod retries;
mod splits;

use pal_wire::{Decoder, Delta, Dialect, Event, Failure, Finished};

/// The frames of a stream: each line is the data of one event, named after its own `type`.
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

/// The events of the pieces of a body.
fn decode<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut decoder = Decoder::new(dialect);
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

/// The events of a body, one a line.
fn shown(events: &[Event]) -> String {
    events.iter().map(|event| line(event) + "\n").collect()
}

fn line(event: &Event) -> String {
    match event {
        Event::Started(started) => {
            format!("started {} {} {}", started.response, started.model, started.usage.prompt_tokens())
        }
        Event::Opened { index, kind, tool } => {
            let kind = kind.name().unwrap_or("?");
            tool.as_ref()
                .map_or(format!("{index} opened {kind}"), |tool| format!("{index} opened {kind} {tool}"))
        }
        Event::Grew { index, delta: Delta::Text(text) } => format!("{index} said {text:?}"),
        Event::Grew { index, delta: Delta::Thinking(text) } => format!("{index} thought {text:?}"),
        Event::Grew { index, delta: Delta::Input(text) } => format!("{index} put in {text:?}"),
        Event::Block { index, block } => format!("{index} is {}", block.raw()),
        Event::Finished(Finished { response, model, stop_reason, usage, extras }) => {
            let stop_reason = stop_reason.as_deref().unwrap_or("-");
            let (prompt, output) = (usage.prompt_tokens(), usage.output_tokens);
            format!("finished {response} {model} {stop_reason} {prompt}+{output} {extras}")
        }
        Event::Failed(Failure { kind, message, .. }) => format!("failed {kind:?}: {message}"),
    }
}
