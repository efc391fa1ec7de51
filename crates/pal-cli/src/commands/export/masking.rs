//! Masks the secrets of a session before it is written down.

use pal_model::Entry;
use pal_secrets::{MaskedText, mask_named_value, mask_secrets};
use serde_json::Value;

use super::transcript::{Item, Part, Transcript};

/// Masks everything that an export shows, and returns how many secrets the session's entries hold. A secret that stands in a
/// call and in its heading counts once.
pub(super) fn mask(transcript: &mut Transcript<'_>) -> usize {
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

fn mask_item(item: &mut Item) {
    match item {
        Item::Said { parts, .. } => parts.iter_mut().for_each(mask_part),
        Item::Call(call) => {
            mask_in_place(&mut call.name);
            mask_in_place(&mut call.input);
            mask_in_place(&mut call.gist);
            call.result.iter_mut().flatten().for_each(mask_part);
        }
        Item::Note { text, .. } => mask_in_place(text),
        Item::Folded { title, parts } => {
            mask_in_place(title);
            parts.iter_mut().for_each(mask_part);
        }
        Item::Paid(_) => {}
    }
}

fn mask_part(part: &mut Part) {
    match part {
        Part::Text(text) | Part::Thinking(text) | Part::Other(text) => mask_in_place(text),
        Part::Picture { .. } => {}
    }
}

fn mask_in_place(text: &mut String) {
    let MaskedText { text: clean, secrets } = mask_secrets(text);
    if !secrets.is_empty() {
        *text = clean.into_owned();
    }
}

/// The line of an entry without its secrets, and how many there were; none if there was none.
fn masked_line(entry: &Entry) -> Option<(String, usize)> {
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

/// Masks the strings of a JSON value; the name of a member decides about its value. Returns how many secrets there were.
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
