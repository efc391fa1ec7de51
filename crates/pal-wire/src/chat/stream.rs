//! Streamed and whole answers of Chat Completions.
//!
//! A streamed answer ends at `[DONE]`, or at the chunk with the usage if the model's reason to stop is known by then.
//! Where the bytes end without either, the answer is whole if that reason is known, and a `Cut` if it is not: some
//! servers just close the connection.

use std::borrow::Cow;

use pal_model::unescape;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{Answer, Said};
use crate::classify::{failure_in, shown_body};
use crate::reader::{Reader, Step, cut, malformed};
use crate::sse::Frame;
use crate::{Event, Failure, Finished};

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    answer: Option<Answer>,
}

/// A chunk, or a whole answer.
#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    service_tier: Option<&'a RawValue>,
    #[serde(borrow)]
    system_fingerprint: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_cache_diagnostics: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, alias = "message")]
    delta: Option<Said<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

impl Reader for Stream {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Step {
        if frame.data.trim() == "[DONE]" {
            return match &mut self.answer {
                Some(answer) => Ok(Some(answer.finish(events))),
                None => Err(cut("the stream ended before the answer began")),
            };
        }
        if frame.event == Some("error") {
            return Err(Box::new(failure_in(frame.data)));
        }
        match self.read(frame.data, events)? {
            Chunk::Last => Ok(self.answer.as_mut().map(|answer| answer.finish(events))),
            Chunk::Empty | Chunk::Further => Ok(None),
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
        match &mut self.answer {
            Some(answer) if answer.has_stopped() => Ok(answer.finish(events)),
            Some(_) => Err(cut("the stream ended before the answer was whole")),
            None => Err(cut("the stream ended before the answer began")),
        }
    }
}

/// What a chunk is.
#[derive(PartialEq, Eq)]
enum Chunk {
    /// It says nothing.
    Empty,
    /// Others may follow.
    Further,
    /// The one with the usage, which comes last.
    Last,
}

impl Stream {
    /// Takes a chunk, or an answer that came whole.
    fn read(&mut self, json: &str, events: &mut Vec<Event>) -> Result<Chunk, Box<Failure>> {
        let data: Data<'_> = serde_json::from_str(json)
            .map_err(|error| malformed(format!("a chunk cannot be read: {error}: {}", shown_body(json))))?;
        if data.error.is_some() || string(data.object) == "error" {
            return Err(Box::new(failure_in(json)));
        }
        let choices = data.choices.as_deref().unwrap_or_default();
        let id = string(data.id);
        // Some gateways begin with a chunk about the prompt that belongs to no answer yet.
        if self.answer.is_none() && choices.is_empty() && id.is_empty() {
            return Ok(Chunk::Empty);
        }
        let answer = self.answer.get_or_insert_with(|| Answer::begin(&id, &string(data.model), events));
        // Only one answer was asked for; should there be more, the first one counts.
        for choice in choices.iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(said) = &choice.delta {
                answer.take(said, events)?;
            }
            if let Some(reason) = choice.finish_reason.and_then(|raw| unescape(raw.get())) {
                answer.stop(&reason);
            }
        }
        for (name, value) in [
            ("prompt_cache_diagnostics", data.prompt_cache_diagnostics),
            ("service_tier", data.service_tier),
            ("system_fingerprint", data.system_fingerprint),
            ("usage", data.usage),
        ] {
            if let Some(value) = value {
                answer.note(name, value.get());
            }
        }
        let is_last = data.usage.is_some() && choices.is_empty() && answer.has_stopped();
        Ok(if is_last { Chunk::Last } else { Chunk::Further })
    }
}

/// The characters of a value, if it is a string.
fn string(raw: Option<&RawValue>) -> Cow<'_, str> {
    raw.and_then(|raw| unescape(raw.get())).unwrap_or_default()
}

/// Reads the body of an answer that was not streamed.
pub(crate) fn read_whole(body: &str, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
    let mut stream = Stream::default();
    let mut said = Vec::new();
    stream.read(body, &mut said)?;
    let answer = stream.answer.as_mut().filter(|answer| answer.has_stopped());
    let finished = answer.ok_or_else(|| malformed("the answer has no choice that ended"))?.finish(&mut said);
    events.append(&mut said);
    Ok(finished)
}
