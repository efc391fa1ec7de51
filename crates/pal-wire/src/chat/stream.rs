//! Streamed and complete responses of Chat Completions.
//!
//! A stream ends at `[DONE]`, or at the chunk with the usage if the finish reason is known by then. If the bytes end
//! without either, the response is complete if the finish reason is known, and a `Cut` otherwise: some servers just close
//! the connection.

use std::borrow::Cow;

use pal_model::unescape;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::chat_response::{ChatMessageDelta, ChatResponse};
use crate::classify::{display_body, failure_in};
use crate::response_reader::{FrameResult, ResponseReader, cut, malformed};
use crate::sse::SseFrame;
use crate::{ProviderFailure, ResponseEnd, ResponseEvent};

/// Streamed response received so far.
#[derive(Debug, Default)]
pub(crate) struct ChatStream {
    answer: Option<ChatResponse>,
}

/// A chunk, or a complete response.
#[derive(Deserialize)]
struct ChatChunk<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    choices: Option<Vec<ChatChoice<'a>>>,
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
struct ChatChoice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, alias = "message")]
    delta: Option<ChatMessageDelta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

impl ResponseReader for ChatStream {
    fn frame(&mut self, frame: SseFrame<'_>, events: &mut Vec<ResponseEvent>) -> FrameResult {
        if frame.data.trim() == "[DONE]" {
            return match &mut self.answer {
                Some(answer) => Ok(Some(answer.finish(events))),
                None => Err(cut("the stream ended before the response started")),
            };
        }
        if frame.event == Some("error") {
            return Err(Box::new(failure_in(frame.data)));
        }
        match self.read(frame.data, events)? {
            ChunkRole::Last => Ok(self.answer.as_mut().map(|answer| answer.finish(events))),
            ChunkRole::Empty | ChunkRole::Further => Ok(None),
        }
    }

    fn end(&mut self, events: &mut Vec<ResponseEvent>) -> Result<ResponseEnd, Box<ProviderFailure>> {
        match &mut self.answer {
            Some(answer) if answer.has_stopped() => Ok(answer.finish(events)),
            Some(_) => Err(cut("the stream ended before the response was complete")),
            None => Err(cut("the stream ended before the response started")),
        }
    }
}

/// Position of a chunk in the stream.
#[derive(PartialEq, Eq)]
enum ChunkRole {
    /// Chunk without content before the response.
    Empty,
    /// Chunk that others may follow.
    Further,
    /// Chunk with the usage, which comes last.
    Last,
}

impl ChatStream {
    /// Reads a chunk or a complete response.
    fn read(
        &mut self,
        json: &str,
        events: &mut Vec<ResponseEvent>,
    ) -> Result<ChunkRole, Box<ProviderFailure>> {
        let data: ChatChunk<'_> = serde_json::from_str(json)
            .map_err(|error| malformed(format!("a chunk cannot be read: {error}: {}", display_body(json))))?;
        if data.error.is_some() || string(data.object) == "error" {
            return Err(Box::new(failure_in(json)));
        }
        let choices = data.choices.as_deref().unwrap_or_default();
        let id = string(data.id);
        // Some gateways begin with a chunk about the prompt, before the response.
        if self.answer.is_none() && choices.is_empty() && id.is_empty() {
            return Ok(ChunkRole::Empty);
        }
        let answer = self.answer.get_or_insert_with(|| ChatResponse::begin(&id, &string(data.model), events));
        // Only one choice is requested; if there are more, the first one counts.
        for choice in choices.iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(delta) = &choice.delta {
                answer.take(delta, events)?;
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
        Ok(if is_last { ChunkRole::Last } else { ChunkRole::Further })
    }
}

/// Returns the value of a string; empty if it is none.
fn string(raw: Option<&RawValue>) -> Cow<'_, str> {
    raw.and_then(|raw| unescape(raw.get())).unwrap_or_default()
}

/// Reads the body of a response that was not streamed.
pub(crate) fn read_complete(
    body: &str,
    events: &mut Vec<ResponseEvent>,
) -> Result<ResponseEnd, Box<ProviderFailure>> {
    let mut stream = ChatStream::default();
    let mut pending = Vec::new();
    stream.read(body, &mut pending)?;
    let answer = stream.answer.as_mut().filter(|answer| answer.has_stopped());
    let finished =
        answer.ok_or_else(|| malformed("the response has no finished choice"))?.finish(&mut pending);
    events.append(&mut pending);
    Ok(finished)
}
