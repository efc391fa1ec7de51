//! Content blocks of a message: text, tool calls and tool results.
//!
//! Parses one block at a time on demand, because conversations are long and most queries are about their end.

use std::borrow::Cow;

use pal_model::{
    BlockType, ContentBlock, JsonField, array_items, member, member_string, object_fields, unescape,
};

/// One block of a message.
#[derive(Clone, Debug)]
pub enum MessageBlock<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A tool call.
    ToolCall {
        /// Call id.
        id: Cow<'a, str>,
        /// The tool's name.
        name: Cow<'a, str>,
        /// The input, raw JSON.
        input: &'a str,
    },
    /// A tool result.
    ToolResult {
        /// Id of the call.
        id: Cow<'a, str>,
        /// Text of the result; other blocks are named in brackets.
        text: Cow<'a, str>,
        /// True if the tool reports a failure.
        is_error: bool,
    },
    /// Any other block.
    Other,
}

impl<'a> MessageBlock<'a> {
    /// Parses a raw block.
    pub fn parse(raw: &'a str) -> MessageBlock<'a> {
        let Ok(members) = object_fields(raw) else { return MessageBlock::Other };
        let kind = member_string(&members, "type");
        MessageBlock::read(BlockType::from_name(kind.as_deref().unwrap_or_default()), &members)
    }

    /// Converts a block of the log, whose fields are already parsed.
    pub fn from_block(block: &'a ContentBlock) -> MessageBlock<'a> {
        block.fields().map_or(MessageBlock::Other, |members| MessageBlock::read(block.kind(), &members))
    }

    fn read(kind: BlockType, members: &[JsonField<'a>]) -> MessageBlock<'a> {
        match kind {
            BlockType::Text => member_string(members, "text").map_or(MessageBlock::Other, MessageBlock::Text),
            // The provider's summary stands for everything before it.
            BlockType::Compaction => {
                member_string(members, "content").map_or(MessageBlock::Other, MessageBlock::Text)
            }
            BlockType::ToolUse => MessageBlock::ToolCall {
                id: member_string(members, "id").unwrap_or_default(),
                name: member_string(members, "name").unwrap_or_default(),
                input: member(members, "input").unwrap_or("{}"),
            },
            BlockType::ToolResult => MessageBlock::ToolResult {
                id: member_string(members, "tool_use_id").unwrap_or_default(),
                text: member(members, "content").map(content_text).unwrap_or_default(),
                is_error: member(members, "is_error") == Some("true"),
            },
            _ => MessageBlock::Other,
        }
    }
}

/// Text of a result's content: a string, or text blocks with the rest named in brackets.
fn content_text(raw: &str) -> Cow<'_, str> {
    if let Some(text) = unescape(raw) {
        return text;
    }
    let mut out = String::new();
    for item in array_items(raw).unwrap_or_default() {
        let members = object_fields(item).unwrap_or_default();
        if !out.is_empty() {
            out.push('\n');
        }
        match member_string(&members, "text") {
            Some(text) => out.push_str(&text),
            None => {
                out.push('[');
                out.push_str(member_string(&members, "type").as_deref().unwrap_or("block"));
                out.push(']');
            }
        }
    }
    Cow::Owned(out)
}

const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

/// Removes reminders (text between reminder tags).
pub fn without_reminders(text: &str) -> Cow<'_, str> {
    if !text.contains(REMINDER.0) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(REMINDER.0) {
        out.push_str(before);
        let Some((_, after)) = after.split_once(REMINDER.1) else {
            // A tag that is never closed is ordinary text.
            out.push_str(REMINDER.0);
            rest = after;
            break;
        };
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reminders_are_not_user_words() {
        let cases = [
            ("plain", "plain"),
            ("<system-reminder>x</system-reminder>hello", "hello"),
            ("a<system-reminder>x</system-reminder>b<system-reminder>y</system-reminder>", "ab"),
            ("what is <system-reminder> for?", "what is <system-reminder> for?"),
        ];
        for (text, wanted) in cases {
            assert_eq!(without_reminders(text), wanted);
        }
    }

    #[test]
    fn results_are_read_in_both_forms() {
        let text = |raw| match MessageBlock::parse(raw) {
            MessageBlock::ToolResult { text, is_error, .. } => (text.into_owned(), is_error),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            text(r#"{"type":"tool_result","tool_use_id":"a","content":"x\ny","is_error":true}"#),
            ("x\ny".into(), true)
        );
        assert_eq!(
            text(
                r#"{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"image"}]}"#
            ),
            ("x\n[image]".into(), false)
        );
        assert_eq!(text(r#"{"type":"tool_result","tool_use_id":"a"}"#), (String::new(), false));
    }
}
