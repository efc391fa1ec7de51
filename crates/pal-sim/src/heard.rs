//! Reading a request as a model does: what was said, called and returned.
//!
//! Reads one block at a time and only those that are asked for, because requests are long and most questions are
//! about their end.

use std::borrow::Cow;

use pal_model::{BlockType, Role, array_items, fields, member, member_string, unescape};
use xxhash_rust::xxh3::Xxh3;

use crate::{Ask, AskMessage};

/// One block of a message.
#[derive(Clone, Debug)]
pub(crate) enum Heard<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A call of a tool.
    Call { id: Cow<'a, str>, name: Cow<'a, str>, input: &'a str },
    /// What a tool returned.
    Returned { id: Cow<'a, str>, text: Cow<'a, str>, is_error: bool },
    /// Anything else.
    Other,
}

impl<'a> Heard<'a> {
    /// Reads a raw block.
    pub(crate) fn of(raw: &'a str) -> Heard<'a> {
        let Ok(members) = fields(raw) else { return Heard::Other };
        let kind = member_string(&members, "type");
        match BlockType::from_name(kind.as_deref().unwrap_or_default()) {
            BlockType::Text => member_string(&members, "text").map_or(Heard::Other, Heard::Text),
            // A summary of the provider stands for everything before it.
            BlockType::Compaction => member_string(&members, "content").map_or(Heard::Other, Heard::Text),
            BlockType::ToolUse => Heard::Call {
                id: member_string(&members, "id").unwrap_or_default(),
                name: member_string(&members, "name").unwrap_or_default(),
                input: member(&members, "input").unwrap_or("{}"),
            },
            BlockType::ToolResult => Heard::Returned {
                id: member_string(&members, "tool_use_id").unwrap_or_default(),
                text: member(&members, "content").map(content_text).unwrap_or_default(),
                is_error: member(&members, "is_error") == Some("true"),
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

/// The blocks of a message.
pub(crate) fn blocks<'a>(message: &'a AskMessage<'_>) -> impl DoubleEndedIterator<Item = Heard<'a>> {
    message.blocks.iter().map(|raw| Heard::of(raw))
}

/// The words of a message, its texts joined by line ends; reminders are left out.
pub(crate) fn words(message: &AskMessage<'_>) -> String {
    let mut out = String::new();
    for block in blocks(message) {
        if let Heard::Text(text) = block {
            let text = without_reminders(&text);
            if !text.trim().is_empty() {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(&text);
            }
        }
    }
    out
}

/// The words of the newest message of the user that has any.
pub(crate) fn last_words(ask: &Ask<'_>) -> Option<String> {
    let messages = ask.messages.iter().rev().filter(|message| message.role == Role::User);
    messages.map(words).find(|words| !words.is_empty())
}

/// The newest result, or the newest of a certain tool.
pub(crate) fn last_result(ask: &Ask<'_>, tool: Option<&str>) -> Option<String> {
    let mut wanted = Vec::new();
    if let Some(tool) = tool {
        for message in ask.messages.iter().filter(|message| message.role == Role::Assistant) {
            wanted.extend(blocks(message).filter_map(|block| match block {
                Heard::Call { id, name, .. } if name == tool => Some(id.into_owned()),
                _ => None,
            }));
        }
    }
    ask.messages.iter().rev().filter(|message| message.role == Role::User).find_map(|message| {
        blocks(message).rev().find_map(|block| match block {
            Heard::Returned { id, text, .. }
                if tool.is_none() || wanted.iter().any(|wanted| *wanted == *id) =>
            {
                Some(text.into_owned())
            }
            _ => None,
        })
    })
}

/// How many messages the model has said.
pub(crate) fn answers(ask: &Ask<'_>) -> usize {
    ask.messages.iter().filter(|message| message.role == Role::Assistant).count()
}

/// The name of a tool, from its raw definition.
pub(crate) fn tool_name(raw: &str) -> Option<Cow<'_, str>> {
    member_string(&fields(raw).ok()?, "name")
}

const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");

/// A text without what the system put into it between reminder tags.
pub(crate) fn without_reminders(text: &str) -> Cow<'_, str> {
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

/// What makes two requests the same question: all that the model reads of them.
pub(crate) fn fingerprint(ask: &Ask<'_>) -> u64 {
    let mut hash = Xxh3::new();
    let mut part = |text: &str| {
        hash.update(text.as_bytes());
        hash.update(&[0xff]);
    };
    part(ask.model);
    ask.system.iter().for_each(|raw| part(raw));
    part("");
    for message in &ask.messages {
        part(message.role.name());
        message.blocks.iter().for_each(|raw| part(raw));
    }
    part(ask.compaction.as_deref().unwrap_or(""));
    hash.digest()
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
