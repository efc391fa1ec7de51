//! JSON: keeps its shape and keys, the first items of long arrays and the beginnings of long strings.
//!
//! The output reads like JSON with markers and is not valid JSON; its first line says so.

use std::borrow::Cow;

use pal_model::{array_items, escape_into, object_fields, unescape};
use serde::de::IgnoredAny;

use super::gap_marker::{cut, format_count, note};
use super::{CondensedOutput, OutputFormat};

/// Maximum lines of a header before the first value.
const HEADER_LINES_MAX: usize = 12;
/// Maximum bytes of a header and a footer around the values.
const AROUND_MAX: usize = 1_000;
/// Values up to this many characters are written on one line.
const INLINE: usize = 100;
/// Maximum additional items kept because they report failures.
const ALARMS_MAX: usize = 5;

/// Limits for arrays, objects and strings.
#[derive(Clone, Copy)]
struct JsonLimits {
    items: usize,
    keys: usize,
    string: usize,
    depth: usize,
}

/// From generous to terse: the first that fits is used.
const STEPS: [JsonLimits; 11] = [
    JsonLimits { items: 100, keys: 1_000, string: 6_000, depth: 16 },
    JsonLimits { items: 40, keys: 400, string: 2_000, depth: 12 },
    JsonLimits { items: 20, keys: 200, string: 1_000, depth: 10 },
    JsonLimits { items: 10, keys: 120, string: 500, depth: 8 },
    JsonLimits { items: 6, keys: 80, string: 300, depth: 7 },
    JsonLimits { items: 4, keys: 60, string: 200, depth: 6 },
    JsonLimits { items: 3, keys: 40, string: 120, depth: 5 },
    JsonLimits { items: 2, keys: 30, string: 80, depth: 4 },
    JsonLimits { items: 1, keys: 20, string: 60, depth: 3 },
    JsonLimits { items: 1, keys: 20, string: 60, depth: 2 },
    JsonLimits { items: 1, keys: 20, string: 60, depth: 1 },
];

/// Condenses a text of one or more JSON values, possibly between a few lines of other text.
pub(super) fn condense(text: &str, most: usize) -> Option<CondensedOutput> {
    let start = start_of_json(text).filter(|start| *start <= AROUND_MAX)?;
    let (header, rest) = text.split_at(start);
    let (values, footer) = values(rest)?;
    let room = most.saturating_sub(header.len() + footer.len()).max(1_000);
    let body = STEPS.iter().find_map(|limits| written(&values, *limits, room))?;
    let text_after = format!("{header}{}\n{body}{footer}", note("JSON, shortened; not valid as it stands"));
    let lines = |text: &str| text.lines().count() as u64;
    let lines_left_out = lines(text).saturating_sub(lines(&text_after));
    Some(CondensedOutput { text: text_after, format: OutputFormat::Json, lines_left_out })
}

/// Offset of the first value, at the start of one of the first lines.
fn start_of_json(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES_MAX) {
        let trimmed = line.trim_start();
        let opens = trimmed.strip_prefix(['{', '[']).map(str::trim_start);
        // A log's `[INFO]` or a shell's `{ echo` are no JSON.
        if opens.is_some_and(|rest| {
            rest.is_empty()
                || rest.starts_with(['"', '{', '[', '}', ']', '-'])
                || rest.as_bytes()[0].is_ascii_digit()
        }) {
            return Some(at + line.len() - trimmed.len());
        }
        at += line.len();
    }
    None
}

/// Splits a text into consecutive values and a short footer.
fn values(text: &str) -> Option<(Vec<&str>, &str)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut values = Vec::new();
    let mut from = 0;
    while let Some(Ok(_)) = stream.next() {
        let end = stream.byte_offset();
        let value = text[from..end].trim();
        // Bare words and numbers after the first value belong to the footer.
        if !value.starts_with(['{', '[']) {
            break;
        }
        values.push(value);
        from = end;
    }
    let footer = &text[from..];
    (!values.is_empty() && footer.len() <= AROUND_MAX).then_some((values, footer))
}

/// Writes the values within limits; `None` if they take more than `most` characters.
fn written(values: &[&str], limits: JsonLimits, most: usize) -> Option<String> {
    let mut writer = JsonWriter { out: String::new(), limits, most };
    match values {
        [value] => writer.value(value, 0)?,
        _ => writer.list(values, 0, "value")?,
    }
    Some(writer.out)
}

struct JsonWriter {
    out: String,
    limits: JsonLimits,
    most: usize,
}

impl JsonWriter {
    /// Writes one value; `None` if the room is used up.
    fn value(&mut self, json: &str, depth: usize) -> Option<()> {
        if self.out.len() > self.most {
            return None;
        }
        let json = json.trim();
        if json.starts_with('"') {
            self.string(json);
        } else if !json.starts_with(['{', '[']) {
            self.out.push_str(json);
        } else if let Some(line) = on_one_line(json) {
            self.out.push_str(&line);
        } else if json.starts_with('[') {
            self.array(json, depth)?;
        } else {
            self.object(json, depth)?;
        }
        Some(())
    }

    fn string(&mut self, json: &str) {
        let text = unescape(json).unwrap_or(Cow::Borrowed(json));
        let characters = text.chars().count();
        if characters <= self.limits.string + 40 {
            self.out.push_str(json);
            return;
        }
        let tail = self.limits.string / 4;
        let at =
            |character_idx: usize| text.char_indices().nth(character_idx).map_or(text.len(), |(at, _)| at);
        let (head_end, tail_start) = (at(self.limits.string - tail), at(characters - tail));
        escape_into(&mut self.out, &text[..head_end]);
        self.out.push_str(&cut(characters - self.limits.string));
        escape_into(&mut self.out, &text[tail_start..]);
    }

    fn array(&mut self, json: &str, depth: usize) -> Option<()> {
        let items = array_items(json).ok()?;
        if depth >= self.limits.depth {
            self.out.push_str(&note(&format!("an array of {}", format_count(items.len() as u64, "item"))));
            return Some(());
        }
        self.out.push_str("[\n");
        self.list(&items, depth + 1, "item")?;
        self.line_start(depth);
        self.out.push(']');
        Some(())
    }

    /// Writes the first items, items that report failures, and the number of the others.
    fn list(&mut self, items: &[&str], depth: usize, noun: &str) -> Option<()> {
        let (mut skipped, mut alarms) = (0, 0);
        for (item_idx, item) in items.iter().enumerate() {
            let is_first = item_idx < self.limits.items || items.len() <= self.limits.items + 1;
            let is_alarm = !is_first && alarms < ALARMS_MAX && tells_of_failure(item);
            if !is_first && !is_alarm {
                skipped += 1;
                continue;
            }
            alarms += usize::from(is_alarm);
            self.skipped(&mut skipped, depth, noun);
            self.line_start(depth);
            self.value(item, depth)?;
            self.out.push('\n');
        }
        self.skipped(&mut skipped, depth, noun);
        Some(())
    }

    fn object(&mut self, json: &str, depth: usize) -> Option<()> {
        let members = object_fields(json).ok()?;
        if depth >= self.limits.depth {
            self.out.push_str(&note(&format!("an object of {}", format_count(members.len() as u64, "key"))));
            return Some(());
        }
        self.out.push_str("{\n");
        let mut skipped = 0;
        for (member_idx, (key, value)) in members.iter().enumerate() {
            if member_idx >= self.limits.keys {
                skipped += 1;
                continue;
            }
            self.line_start(depth + 1);
            escape_into(&mut self.out, key);
            self.out.push_str(": ");
            self.value(value, depth + 1)?;
            self.out.push('\n');
        }
        self.skipped(&mut skipped, depth + 1, "key");
        self.line_start(depth);
        self.out.push('}');
        Some(())
    }

    fn skipped(&mut self, skipped: &mut u64, depth: usize, noun: &str) {
        if *skipped > 0 {
            self.line_start(depth);
            self.out.push_str(&note(&format!("{} left out", format_count(*skipped, noun))));
            self.out.push('\n');
            *skipped = 0;
        }
    }

    fn line_start(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n(' ', depth));
    }
}

/// The value without insignificant white space, if that is short.
fn on_one_line(json: &str) -> Option<String> {
    if json.len() > INLINE * 8 {
        return None;
    }
    let mut line = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for character in json.chars() {
        if !in_string && character.is_ascii_whitespace() {
            continue;
        }
        in_string ^= character == '"' && !is_escaped;
        is_escaped = in_string && character == '\\' && !is_escaped;
        line.push(character);
        if line.len() > INLINE {
            return None;
        }
    }
    Some(line)
}

/// Returns true if an item's own members report a failure.
fn tells_of_failure(item: &str) -> bool {
    let Ok(members) = object_fields(item) else { return false };
    members.iter().any(|(key, value)| {
        let is_empty = matches!(*value, "null" | "false" | "0" | "\"\"" | "[]" | "{}");
        match key.to_ascii_lowercase().as_str() {
            "error" | "errors" | "exception" | "failure" | "failures" => !is_empty,
            "level" | "severity" | "status" | "conclusion" | "state" | "result" | "outcome" => {
                let value = value.trim_matches('"').to_ascii_lowercase();
                matches!(value.as_str(), "error" | "fatal" | "failed" | "failure" | "fail" | "critical")
            }
            _ => false,
        }
    })
}
