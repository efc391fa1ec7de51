//! Conversation content in the format of the GenAI semantic conventions. Used only if the user opts in.

use pal_model::{BlockType, ContentBlock, EntryBody, LogEntry};
use serde_json::{Value, json};

/// Maximum bytes of one text; collectors refuse longer ones, and the session's log has the full text.
const BYTES_MAX: usize = 32 * 1024;

/// Parts of a message.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum MessageParts {
    /// By a person.
    Person(Vec<Value>),
    /// By tools.
    Tools(Vec<Value>),
    /// By the model.
    Model(Vec<Value>),
}

impl MessageParts {
    /// Text of an entry.
    pub(super) fn of(entry: &LogEntry) -> Option<MessageParts> {
        match &entry.body {
            EntryBody::User(user) => {
                let blocks = user.content.blocks();
                let are_results = blocks.iter().any(|block| block.kind() == BlockType::ToolResult);
                let parts = blocks.iter().map(part).collect();
                Some(if are_results { MessageParts::Tools(parts) } else { MessageParts::Person(parts) })
            }
            EntryBody::Assistant(answer) => {
                Some(MessageParts::Model(answer.content.blocks().iter().map(part).collect()))
            }
            _ => None,
        }
    }

    /// Several, as the value of an attribute.
    pub(super) fn messages(said: &[MessageParts]) -> String {
        let message = |said: &MessageParts| {
            let (role, parts) = match said {
                MessageParts::Person(parts) => ("user", parts),
                MessageParts::Tools(parts) => ("tool", parts),
                MessageParts::Model(parts) => ("assistant", parts),
            };
            json!({"role": role, "parts": parts})
        };
        Value::from(said.iter().map(message).collect::<Vec<Value>>()).to_string()
    }
}

fn part(block: &ContentBlock) -> Value {
    let string = |name: &str| truncate_text(block.string(name).unwrap_or_default().into_owned());
    match block.kind() {
        BlockType::Text => json!({"type": "text", "content": string("text")}),
        BlockType::Thinking => json!({"type": "reasoning", "content": string("thinking")}),
        BlockType::ToolUse => {
            let input = truncate_text(block.field("input").unwrap_or("{}").to_owned());
            json!({"type": "tool_call", "id": string("id"), "name": string("name"), "arguments": input})
        }
        BlockType::ToolResult => {
            let content = block.content();
            let words = content.blocks().iter().filter_map(|block| block.string("text"));
            let words = truncate_text(words.collect::<Vec<_>>().join("\n"));
            json!({"type": "tool_call_response", "id": string("tool_use_id"), "response": words})
        }
        other => json!({"type": other.name().unwrap_or("other")}),
    }
}

/// A text, cut where it is too long to be sent.
pub(super) fn truncate_text(mut text: String) -> String {
    if text.len() > BYTES_MAX {
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        text.push('…');
    }
    text
}
