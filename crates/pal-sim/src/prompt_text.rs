//! Text, results and tools of a prompt, as a model reads them.
//!
//! Decodes only the blocks asked for, because prompts are long and most queries concern their end.

use std::borrow::Cow;

use pal_extract::{MessageBlock, without_reminders};
use pal_model::{Role, member_string, object_fields};
use xxhash_rust::xxh3::Xxh3;

use crate::{ModelPrompt, PromptMessage};

/// Decoded blocks of a message.
pub(crate) fn blocks<'a>(
    message: &'a PromptMessage<'_>,
) -> impl DoubleEndedIterator<Item = MessageBlock<'a>> {
    message.blocks.iter().map(|raw| MessageBlock::parse(raw))
}

/// Text of a message, blocks joined by line ends, without reminders.
pub(crate) fn message_text(message: &PromptMessage<'_>) -> String {
    let mut out = String::new();
    for block in blocks(message) {
        if let MessageBlock::Text(text) = block {
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

/// Text of the newest user message that has any.
pub(crate) fn last_user_text(ask: &ModelPrompt<'_>) -> Option<String> {
    let messages = ask.messages.iter().rev().filter(|message| message.role == Role::User);
    messages.map(message_text).find(|words| !words.is_empty())
}

/// Newest tool result, or the newest of one tool.
pub(crate) fn last_result(ask: &ModelPrompt<'_>, tool: Option<&str>) -> Option<String> {
    let mut wanted = Vec::new();
    if let Some(tool) = tool {
        for message in ask.messages.iter().filter(|message| message.role == Role::Assistant) {
            wanted.extend(blocks(message).filter_map(|block| match block {
                MessageBlock::ToolCall { id, name, .. } if name == tool => Some(id.into_owned()),
                _ => None,
            }));
        }
    }
    ask.messages.iter().rev().filter(|message| message.role == Role::User).find_map(|message| {
        blocks(message).rev().find_map(|block| match block {
            MessageBlock::ToolResult { id, text, .. }
                if tool.is_none() || wanted.iter().any(|wanted| *wanted == *id) =>
            {
                Some(text.into_owned())
            }
            _ => None,
        })
    })
}

/// Number of assistant messages.
pub(crate) fn count_answers(ask: &ModelPrompt<'_>) -> usize {
    ask.messages.iter().filter(|message| message.role == Role::Assistant).count()
}

/// Name in a raw tool definition.
pub(crate) fn tool_name(raw: &str) -> Option<Cow<'_, str>> {
    member_string(&object_fields(raw).ok()?, "name")
}

/// Hash of everything the model reads of a request; equal requests get equal answers.
pub(crate) fn fingerprint(ask: &ModelPrompt<'_>) -> u64 {
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
