//! Reading a request as a model does: its last words, its last results, its tools.
//!
//! Reads one block at a time and only those that are asked for, because requests are long and most questions are
//! about their end.

use std::borrow::Cow;

use pal_extract::{Heard, without_reminders};
use pal_model::{Role, fields, member_string};
use xxhash_rust::xxh3::Xxh3;

use crate::{Ask, AskMessage};

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
