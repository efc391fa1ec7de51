//! Masks the secrets of a session before it is exported.

use pal_model::LogEntry;
use pal_secrets::{MaskedText, mask_named_value, mask_secrets};
use serde_json::Value;

use super::{MessagePart, SessionTranscript, TranscriptItem};

/// Masks everything that an export shows, and returns the number of secrets in the session's entries. A secret in a call and in
/// its heading counts once.
pub(super) fn mask(transcript: &mut SessionTranscript<'_>) -> usize {
    let mut count = 0;
    for entry in transcript.entries {
        if let Some((line, secrets)) = masked_line(entry) {
            count += secrets;
            transcript.masked_lines.insert(entry.id, line);
        }
    }
    mask_in_place(&mut transcript.name);
    transcript.cwd.iter_mut().for_each(mask_in_place);
    transcript.problems.iter_mut().for_each(mask_in_place);
    transcript.items.iter_mut().for_each(mask_item);
    transcript.masked = Some(count);
    count
}

fn mask_item(item: &mut TranscriptItem) {
    match item {
        TranscriptItem::Message { parts, .. } => parts.iter_mut().for_each(mask_part),
        TranscriptItem::Call(call) => {
            mask_in_place(&mut call.name);
            mask_in_place(&mut call.input);
            mask_in_place(&mut call.description);
            call.result.iter_mut().flatten().for_each(mask_part);
        }
        TranscriptItem::Note { text, .. } => mask_in_place(text),
        TranscriptItem::Collapsed { title, parts } => {
            mask_in_place(title);
            parts.iter_mut().for_each(mask_part);
        }
        TranscriptItem::Usage(_) => {}
    }
}

fn mask_part(part: &mut MessagePart) {
    match part {
        MessagePart::Text(text) | MessagePart::Thinking(text) | MessagePart::Other(text) => {
            mask_in_place(text)
        }
        MessagePart::Picture { .. } => {}
    }
}

fn mask_in_place(text: &mut String) {
    let MaskedText { text: clean, secrets } = mask_secrets(text);
    if !secrets.is_empty() {
        *text = clean.into_owned();
    }
}

/// Returns the masked line of an entry and its number of secrets; none if it has none.
fn masked_line(entry: &LogEntry) -> Option<(String, usize)> {
    let line: &str = entry.line.as_ref();
    match serde_json::from_str::<Value>(line) {
        Ok(mut value) => {
            let secrets = mask_value(None, &mut value);
            (secrets > 0).then(|| (value.to_string(), secrets))
        }
        // Nested too deep for a tree: as one string, so that the export stays whole JSON.
        Err(_) => {
            let MaskedText { text, secrets } = mask_secrets(line);
            (!secrets.is_empty()).then(|| (Value::from(text.into_owned()).to_string(), secrets.len()))
        }
    }
}

/// Masks the strings of a JSON value; the name of a member decides about its value. Returns the number of secrets.
fn mask_value(name: Option<&str>, value: &mut Value) -> usize {
    match value {
        Value::String(text) => {
            let MaskedText { text: clean, secrets } = match name {
                Some(name) => mask_named_value(name, text),
                None => mask_secrets(text),
            };
            if !secrets.is_empty() {
                *text = clean.into_owned();
            }
            secrets.len()
        }
        Value::Array(items) => items.iter_mut().map(|item| mask_value(name, item)).sum(),
        Value::Object(members) => members.iter_mut().map(|(name, value)| mask_value(Some(name), value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
