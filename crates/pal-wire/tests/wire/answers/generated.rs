//! Random responses, as a complete body and as a stream, to compare with the decoded events.

use pal_model::{BlockType, ContentBlock, SharedText, escape_into, object_fields};
use pal_testkit::assistant_block;
use proptest::prelude::*;

/// A generated response.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Blocks that can be streamed.
    pub(super) blocks: Vec<String>,
    /// Random choices of the stream: where deltas are split, what comes between them.
    pub(super) choices: Vec<u8>,
}

/// Generates responses of usual and unusual blocks.
pub(super) fn answer() -> impl Strategy<Value = Answer> {
    let block = prop_oneof![3 => assistant_block(), 1 => cited(), 1 => compaction()];
    (prop::collection::vec(block, 0..6), prop::collection::vec(any::<u8>(), 1..24)).prop_map(
        |(blocks, choices)| {
            let blocks = blocks.into_iter().filter(|block| can_be_streamed(block)).collect();
            Answer { blocks, choices }
        },
    )
}

fn cited() -> impl Strategy<Value = String> {
    (any::<String>(), 1..4).prop_map(|(text, count)| {
        let citations: Vec<String> = (0..count).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
        format!(r#"{{"type":"text","text":{},"citations":[{}]}}"#, quoted(&text), citations.join(","))
    })
}

fn compaction() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| {
        format!(r#"{{"type":"compaction","content":{},"encrypted_content":"Zm9v"}}"#, quoted(&text))
    })
}

/// Returns true if the block can be streamed: an object without duplicate fields, whose growing fields are strings or
/// objects.
pub(super) fn can_be_streamed(block: &str) -> bool {
    let Ok(known) = object_fields(block) else { return false };
    let is_single = |name: &str| known.iter().filter(|(key, _)| key == name).count() < 2;
    let block = ContentBlock::parse(SharedText::from(block));
    let grows = |name: &str, first: char| block.field(name).is_some_and(|value| value.starts_with(first));
    let fits = match block.kind() {
        BlockType::Text => {
            grows("text", '"') && block.field("citations").is_none_or(|list| list.starts_with("[{"))
        }
        BlockType::Thinking => {
            grows("thinking", '"') && block.field("signature").is_none_or(|sign| sign.starts_with('"'))
        }
        BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => grows("input", '{'),
        _ => true,
    };
    fits && ["type", "text", "thinking", "input", "citations", "signature"].into_iter().all(is_single)
}

pub(super) fn quoted(text: &str) -> String {
    let mut json = String::new();
    escape_into(&mut json, text);
    json
}

impl Answer {
    /// Returns the body of the complete response.
    pub(super) fn whole(&self) -> String {
        format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{}],"stop_reason":"end_turn","stop_sequence":null,"diagnostics":{{"a":1}},"usage":{{"input_tokens":5,"output_tokens":9}}}}"#,
            self.blocks.join(",")
        )
    }

    /// Returns the body of the stream.
    pub(super) fn streamed(&self) -> String {
        let mut speaker = Speaker { body: String::new(), choices: self.choices.iter().cycle(), index: 0 };
        speaker.say(r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"diagnostics":{"a":1},"usage":{"input_tokens":5,"output_tokens":1}}}"#);
        for (index, block) in self.blocks.iter().enumerate() {
            speaker.index = index;
            speaker.block(block);
        }
        speaker.say(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":9}}"#);
        speaker.say(r#"{"type":"message_stop"}"#);
        speaker.body
    }
}

struct Speaker<'a> {
    body: String,
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    index: usize,
}

impl Speaker<'_> {
    fn choice(&mut self) -> u8 {
        self.choices.next().copied().unwrap_or_default()
    }

    /// Writes one event, with any line ending, with or without a name, sometimes after a comment or ping.
    fn say(&mut self, data: &str) {
        let choice = self.choice();
        let end = ["\n", "\r\n", "\r"][usize::from(choice % 3)];
        match choice / 3 % 8 {
            0 => self.body.push_str(&format!("event: ping{end}data: {{\"type\": \"ping\"}}{end}{end}")),
            1 => self.body.push_str(&format!(": a comment{end}")),
            2 => self.body.push_str(&format!("event: later{end}data: anything{end}{end}")),
            3 => self.body.push_str(&format!("id: 7{end}")),
            _ => {}
        }
        if choice < 128 {
            let name = data.split('"').nth(3).unwrap_or_default();
            self.body.push_str(&format!("event: {name}{end}"));
        }
        let space = if choice.is_multiple_of(2) { " " } else { "" };
        self.body.push_str(&format!("data:{space}{data}{end}{end}"));
    }

    fn delta(&mut self, delta: &str) {
        let data = format!(r#"{{"type":"content_block_delta","index":{},"delta":{delta}}}"#, self.index);
        self.say(&data);
    }

    fn block(&mut self, raw: &str) {
        let block = ContentBlock::parse(SharedText::from(raw));
        // Fields that the deltas fill are empty in the start.
        let mut start = raw.to_owned();
        let mut empty = |name: &str, value: &str| {
            let Some(old) = block.field(name) else { return };
            let at = old.as_ptr() as usize - block.raw().as_ptr() as usize;
            // Listed in the order in which they are emptied, from the end.
            start.replace_range(at..at + old.len(), value);
        };
        let mut names: Vec<(&str, &str)> = match block.kind() {
            BlockType::Text => vec![("text", "\"\""), ("citations", "[]")],
            BlockType::Thinking => vec![("thinking", "\"\""), ("signature", "\"\"")],
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => vec![("input", "{}")],
            BlockType::Compaction if block.field("encrypted_content").is_some() => {
                vec![("content", "null"), ("encrypted_content", "null")]
            }
            _ => Vec::new(),
        };
        names.sort_by_key(|(name, _)| {
            std::cmp::Reverse(block.field(name).map(|value| value.as_ptr() as usize))
        });
        names.iter().for_each(|(name, value)| empty(name, value));
        let data =
            format!(r#"{{"type":"content_block_start","index":{},"content_block":{start}}}"#, self.index);
        self.say(&data);
        self.deltas(&block);
        let data = format!(r#"{{"type":"content_block_stop","index":{}}}"#, self.index);
        self.say(&data);
    }

    fn deltas(&mut self, block: &ContentBlock) {
        match block.kind() {
            BlockType::Text => {
                let text = block.field("text").unwrap_or_default();
                for piece in self.pieces(&text[1..text.len() - 1]) {
                    self.delta(&format!(r#"{{"type":"text_delta","text":"{piece}"}}"#));
                }
                let citations = block.field("citations").unwrap_or("[]");
                for citation in pal_model::array_items(citations).unwrap_or_default() {
                    self.delta(&format!(r#"{{"type":"citations_delta","citation":{citation}}}"#));
                }
            }
            BlockType::Thinking => {
                let text = block.field("thinking").unwrap_or_default();
                for piece in self.pieces(&text[1..text.len() - 1]) {
                    self.delta(&format!(r#"{{"type":"thinking_delta","thinking":"{piece}"}}"#));
                }
                if let Some(signature) = block.field("signature") {
                    self.delta(&format!(r#"{{"type":"signature_delta","signature":{signature}}}"#));
                }
            }
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => {
                let input = quoted(block.field("input").unwrap_or_default());
                for piece in self.pieces(&input[1..input.len() - 1]) {
                    self.delta(&format!(r#"{{"type":"input_json_delta","partial_json":"{piece}"}}"#));
                }
            }
            BlockType::Compaction => {
                if let Some(encrypted) = block.field("encrypted_content") {
                    let content = block.field("content").unwrap_or("null");
                    self.delta(&format!(
                        r#"{{"type":"compaction_delta","content":{content},"encrypted_content":{encrypted}}}"#
                    ));
                }
            }
            _ => {}
        }
    }

    /// Splits the inside of a string literal between characters and escapes.
    fn pieces(&mut self, inside: &str) -> Vec<String> {
        let mut pieces = vec![String::new()];
        let mut left = self.choice() % 16;
        let mut rest = inside;
        while let Some(first) = rest.chars().next() {
            let length = match (first, rest.as_bytes().get(1)) {
                ('\\', Some(b'u')) => 6,
                ('\\', _) => 2,
                _ => first.len_utf8(),
            };
            if left == 0 {
                pieces.push(String::new());
                left = 1 + self.choice() % 32;
            }
            left -= 1;
            let (unit, behind) = rest.split_at(length);
            if let Some(piece) = pieces.last_mut() {
                piece.push_str(unit);
            }
            rest = behind;
        }
        pieces
    }
}
