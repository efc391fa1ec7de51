//! Blocks as a model reads them: what was said, called and returned.
//!
//! Reads one block at a time and only those that are asked for, because conversations are long and most questions are
//! about their end.

use std::borrow::Cow;

use pal_model::{Block, BlockType, Field, array_items, fields, member, member_string, unescape};

/// One block of a message.
#[derive(Clone, Debug)]
pub enum Heard<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A call of a tool.
    Call {
        /// Its id.
        id: Cow<'a, str>,
        /// The tool's name.
        name: Cow<'a, str>,
        /// The input, raw JSON.
        input: &'a str,
    },
    /// What a tool returned.
    Returned {
        /// The call that it answers.
        id: Cow<'a, str>,
        /// Its words; what is no text is named in brackets.
        text: Cow<'a, str>,
        /// Whether the tool says that it failed.
        is_error: bool,
    },
    /// Anything else.
    Other,
}

impl<'a> Heard<'a> {
    /// Reads a raw block.
    pub fn of(raw: &'a str) -> Heard<'a> {
        let Ok(members) = fields(raw) else { return Heard::Other };
        let kind = member_string(&members, "type");
        Heard::read(BlockType::from_name(kind.as_deref().unwrap_or_default()), &members)
    }

    /// Reads a block of the log, whose fields are known already.
    pub fn of_block(block: &'a Block) -> Heard<'a> {
        block.fields().map_or(Heard::Other, |members| Heard::read(block.kind(), &members))
    }

    fn read(kind: BlockType, members: &[Field<'a>]) -> Heard<'a> {
        match kind {
            BlockType::Text => member_string(members, "text").map_or(Heard::Other, Heard::Text),
            // A summary of the provider stands for everything before it.
            BlockType::Compaction => member_string(members, "content").map_or(Heard::Other, Heard::Text),
            BlockType::ToolUse => Heard::Call {
                id: member_string(members, "id").unwrap_or_default(),
                name: member_string(members, "name").unwrap_or_default(),
                input: member(members, "input").unwrap_or("{}"),
            },
            BlockType::ToolResult => Heard::Returned {
                id: member_string(members, "tool_use_id").unwrap_or_default(),
                text: member(members, "content").map(content_text).unwrap_or_default(),
                is_error: member(members, "is_error") == Some("true"),
            },
            _ => Heard::Other,
        }
    }
}

/// The words of a result's content: a string, or blocks of text with the rest named in brackets.
fn content_text(raw: &str) -> Cow<'_, str> {
    if let Some(text) = unescape(raw) {
        return text;
    }
    let mut out = String::new();
    for item in array_items(raw).unwrap_or_default() {
        let members = fields(item).unwrap_or_default();
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

/// A text without what the system put into it between reminder tags.
pub fn without_reminders(text: &str) -> Cow<'_, str> {
    if !text.contains(REMINDER.0) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(REMINDER.0) {
        out.push_str(before);
        let Some((_, after)) = after.split_once(REMINDER.1) else {
            // A tag that is never closed is a word like any other.
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
    fn reminders_are_not_words_of_a_person() {
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
        let text = |raw| match Heard::of(raw) {
            Heard::Returned { text, is_error, .. } => (text.into_owned(), is_error),
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
