//! Conditions of script turns. All parts of a condition must hold.

use pal_model::Role;

use crate::prompt_text;
use crate::{ModelPrompt, PromptMessage};
use pal_extract::MessageBlock;

/// A condition on a request.
#[derive(Clone, Debug)]
pub(crate) enum TurnCondition {
    All(Vec<TurnCondition>),
    Any(Vec<TurnCondition>),
    Not(Box<TurnCondition>),
    /// The newest user text contains this.
    LastUserContains(String),
    /// A result in the last message contains this.
    ResultContains(String),
    /// The system prompt contains this.
    SystemContains(String),
    /// The tool is available.
    HasTool(String),
    /// The last message has a result of this tool.
    ResultOf(String),
    /// The last message is of this kind.
    LastIs(LastMessageKind),
    /// The model's name contains this.
    ModelContains(String),
    /// The conversation's turn, counted from 1, is in this range.
    Turn(u64, u64),
    /// The number of messages is in this range.
    Messages(u64, u64),
    /// The request does, or does not, ask for a compaction.
    Compaction(bool),
}

/// Kind of the last message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastMessageKind {
    /// User text.
    Text,
    /// Tool results.
    ToolResult,
    /// A system message.
    System,
}

impl LastMessageKind {
    pub(crate) const NAMES: [&'static str; 3] = ["text", "tool_result", "system"];

    pub(crate) fn from_name(name: &str) -> Option<LastMessageKind> {
        match name {
            "text" => Some(LastMessageKind::Text),
            "tool_result" => Some(LastMessageKind::ToolResult),
            "system" => Some(LastMessageKind::System),
            _ => None,
        }
    }
}

impl TurnCondition {
    /// True if the condition holds for a request.
    pub(crate) fn holds(&self, ask: &ModelPrompt<'_>) -> bool {
        match self {
            TurnCondition::All(parts) => parts.iter().all(|part| part.holds(ask)),
            TurnCondition::Any(parts) => parts.iter().any(|part| part.holds(ask)),
            TurnCondition::Not(part) => !part.holds(ask),
            TurnCondition::LastUserContains(words) => {
                prompt_text::last_user_text(ask).is_some_and(|said| said.contains(words.as_str()))
            }
            TurnCondition::ResultContains(words) => {
                results(ask).any(|(_, text)| text.contains(words.as_str()))
            }
            TurnCondition::SystemContains(words) => {
                ask.system.iter().any(|raw| match MessageBlock::parse(raw) {
                    MessageBlock::Text(text) => text.contains(words.as_str()),
                    _ => false,
                })
            }
            TurnCondition::HasTool(name) => {
                ask.tools.iter().any(|raw| prompt_text::tool_name(raw).as_deref() == Some(name))
            }
            TurnCondition::ResultOf(name) => {
                let answered: Vec<String> = results(ask).map(|(id, _)| id).collect();
                let called = ask.messages.iter().rev().find(|message| message.role == Role::Assistant);
                called.into_iter().flat_map(prompt_text::blocks).any(|block| match block {
                    MessageBlock::ToolCall { id, name: called, .. } => {
                        called == *name && answered.iter().any(|answered| *answered == *id)
                    }
                    _ => false,
                })
            }
            TurnCondition::LastIs(wanted) => ask.messages.last().is_some_and(|message| is(message, *wanted)),
            TurnCondition::ModelContains(words) => ask.model.contains(words.as_str()),
            TurnCondition::Turn(least, most) => {
                (*least..=*most).contains(&(prompt_text::count_answers(ask) as u64 + 1))
            }
            TurnCondition::Messages(least, most) => (*least..=*most).contains(&(ask.messages.len() as u64)),
            TurnCondition::Compaction(wanted) => ask.compaction.is_some() == *wanted,
        }
    }
}

/// Results in the last message: ids and texts.
fn results(ask: &ModelPrompt<'_>) -> impl Iterator<Item = (String, String)> {
    ask.messages.last().into_iter().flat_map(prompt_text::blocks).filter_map(|block| match block {
        MessageBlock::ToolResult { id, text, .. } => Some((id.into_owned(), text.into_owned())),
        _ => None,
    })
}

fn is(message: &PromptMessage<'_>, wanted: LastMessageKind) -> bool {
    match wanted {
        LastMessageKind::System => message.role == Role::System,
        LastMessageKind::ToolResult => {
            prompt_text::blocks(message).any(|block| matches!(block, MessageBlock::ToolResult { .. }))
        }
        LastMessageKind::Text => message.role == Role::User && !prompt_text::message_text(message).is_empty(),
    }
}
