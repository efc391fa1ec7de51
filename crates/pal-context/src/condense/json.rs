//! JSON: its shape and keys stay, with the first items of long arrays and the openings of long strings.
//!
//! What comes out reads like JSON with marks in it and is none; its first line says so.

use std::borrow::Cow;

use pal_model::{array_items, escape_into, fields, unescape};
use serde::de::IgnoredAny;

use super::Condensed;
use super::mark::{counted, cut, note};

/// Lines before the first value that may be a tool's own header.
const HEADER_LINES_MOST: usize = 12;
/// Bytes before the first and after the last value that may be a tool's own header and footer.
const AROUND_MOST: usize = 1_000;
/// Values that fit in this many characters stand on one line.
const INLINE: usize = 100;
/// Items kept beyond the first ones because they tell of failures.
const ALARMS_MOST: usize = 5;

/// How much of arrays, objects and strings is shown.
#[derive(Clone, Copy)]
struct Limits {
    items: usize,
    keys: usize,
    string: usize,
    depth: usize,
}

/// From generous to terse: the first that fits is taken.
const STEPS: [Limits; 11] = [
    Limits { items: 100, keys: 1_000, string: 6_000, depth: 16 },
    Limits { items: 40, keys: 400, string: 2_000, depth: 12 },
    Limits { items: 20, keys: 200, string: 1_000, depth: 10 },
    Limits { items: 10, keys: 120, string: 500, depth: 8 },
    Limits { items: 6, keys: 80, string: 300, depth: 7 },
    Limits { items: 4, keys: 60, string: 200, depth: 6 },
    Limits { items: 3, keys: 40, string: 120, depth: 5 },
    Limits { items: 2, keys: 30, string: 80, depth: 4 },
    Limits { items: 1, keys: 20, string: 60, depth: 3 },
    Limits { items: 1, keys: 20, string: 60, depth: 2 },
    Limits { items: 1, keys: 20, string: 60, depth: 1 },
];

/// The text shortened, if it is one JSON value or several, perhaps between a few lines of other text.
pub(super) fn condense(text: &str, most: usize) -> Option<Condensed> {
    let start = start_of_json(text).filter(|start| *start <= AROUND_MOST)?;
    let (header, rest) = text.split_at(start);
    let (values, footer) = values(rest)?;
    let room = most.saturating_sub(header.len() + footer.len()).max(1_000);
    let body = STEPS.iter().find_map(|limits| written(&values, *limits, room))?;
    let text_after = format!("{header}{}\n{body}{footer}", note("JSON, shortened; not valid as it stands"));
    let lines = |text: &str| text.lines().count() as u64;
    let lines_left_out = lines(text).saturating_sub(lines(&text_after));
    Some(Condensed { text: text_after, by: "json", lines_left_out })
}

/// Where the first value starts, at the start of one of the first lines.
fn start_of_json(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n').take(HEADER_LINES_MOST) {
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

/// The values that a text consists of, one after the other, and the little that may follow them.
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
    (!values.is_empty() && footer.len() <= AROUND_MOST).then_some((values, footer))
}

/// The values within limits; none if they take more than `most` characters.
fn written(values: &[&str], limits: Limits, most: usize) -> Option<String> {
    let mut writer = Writer { out: String::new(), limits, most };
    match values {
        [value] => writer.value(value, 0)?,
        _ => writer.list(values, 0, "value")?,
    }
    Some(writer.out)
}

struct Writer {
    out: String,
    limits: Limits,
    most: usize,
}

impl Writer {
    /// Writes one value; none if there is no more room.
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
            self.out.push_str(&note(&format!("an array of {}", counted(items.len() as u64, "item"))));
            return Some(());
        }
        self.out.push_str("[\n");
        self.list(&items, depth + 1, "item")?;
        self.line_start(depth);
        self.out.push(']');
        Some(())
    }

    /// Writes the first items, those that tell of failures, and how many there are besides.
    fn list(&mut self, items: &[&str], depth: usize, noun: &str) -> Option<()> {
        let (mut skipped, mut alarms) = (0, 0);
        for (item_idx, item) in items.iter().enumerate() {
            let is_first = item_idx < self.limits.items || items.len() <= self.limits.items + 1;
            let is_alarm = !is_first && alarms < ALARMS_MOST && tells_of_failure(item);
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
        let members = fields(json).ok()?;
        if depth >= self.limits.depth {
            self.out.push_str(&note(&format!("an object of {}", counted(members.len() as u64, "key"))));
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
            self.out.push_str(&note(&format!("{} left out", counted(*skipped, noun))));
            self.out.push('\n');
            *skipped = 0;
        }
    }

    fn line_start(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n(' ', depth));
    }
}

/// The value without white space between its parts, if that is short.
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

/// Whether an item says by its own members that something went wrong.
fn tells_of_failure(item: &str) -> bool {
    let Ok(members) = fields(item) else { return false };
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
