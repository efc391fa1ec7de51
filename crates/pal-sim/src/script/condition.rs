//! Conditions of a turn: what must hold of a request. All parts of a condition must.

use pal_model::Role;

use crate::heard;
use crate::{Ask, AskMessage};
use pal_extract::Heard;

/// What must hold.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// The newest words of the user contain this.
    LastUserContains(String),
    /// A result in the last message contains this.
    ResultContains(String),
    /// The system prompt contains this.
    SystemContains(String),
    /// The tool can be called.
    HasTool(String),
    /// The tool's result is in the last message.
    ResultOf(String),
    /// What the last message is.
    LastIs(Last),
    /// The model's name contains this.
    ModelContains(String),
    /// The turn of the conversation, counted from 1, lies within these.
    Turn(u64, u64),
    /// There are this many messages.
    Messages(u64, u64),
    /// Whether a compaction is asked for.
    Compaction(bool),
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// It has words of the user.
    Text,
    /// It has results.
    ToolResult,
    /// It is of the system.
    System,
}

impl Last {
    pub(crate) const NAMES: [&'static str; 3] = ["text", "tool_result", "system"];

    pub(crate) fn from_name(name: &str) -> Option<Last> {
        match name {
            "text" => Some(Last::Text),
            "tool_result" => Some(Last::ToolResult),
            "system" => Some(Last::System),
            _ => None,
        }
    }
}

impl Condition {
    /// Whether it holds of a request.
    pub(crate) fn holds(&self, ask: &Ask<'_>) -> bool {
        match self {
            Condition::All(parts) => parts.iter().all(|part| part.holds(ask)),
            Condition::Any(parts) => parts.iter().any(|part| part.holds(ask)),
            Condition::Not(part) => !part.holds(ask),
            Condition::LastUserContains(words) => {
                heard::last_words(ask).is_some_and(|said| said.contains(words.as_str()))
            }
            Condition::ResultContains(words) => results(ask).any(|(_, text)| text.contains(words.as_str())),
            Condition::SystemContains(words) => ask.system.iter().any(|raw| match Heard::of(raw) {
                Heard::Text(text) => text.contains(words.as_str()),
                _ => false,
            }),
            Condition::HasTool(name) => {
                ask.tools.iter().any(|raw| heard::tool_name(raw).as_deref() == Some(name))
            }
            Condition::ResultOf(name) => {
                let answered: Vec<String> = results(ask).map(|(id, _)| id).collect();
                let called = ask.messages.iter().rev().find(|message| message.role == Role::Assistant);
                called.into_iter().flat_map(heard::blocks).any(|block| match block {
                    Heard::Call { id, name: called, .. } => {
                        called == *name && answered.iter().any(|answered| *answered == *id)
                    }
                    _ => false,
                })
            }
            Condition::LastIs(wanted) => ask.messages.last().is_some_and(|message| is(message, *wanted)),
            Condition::ModelContains(words) => ask.model.contains(words.as_str()),
            Condition::Turn(least, most) => (*least..=*most).contains(&(heard::answers(ask) as u64 + 1)),
            Condition::Messages(least, most) => (*least..=*most).contains(&(ask.messages.len() as u64)),
            Condition::Compaction(wanted) => ask.compaction.is_some() == *wanted,
        }
    }
}

/// The results in the last message: ids and words.
fn results(ask: &Ask<'_>) -> impl Iterator<Item = (String, String)> {
    ask.messages.last().into_iter().flat_map(heard::blocks).filter_map(|block| match block {
        Heard::Returned { id, text, .. } => Some((id.into_owned(), text.into_owned())),
        _ => None,
    })
}

fn is(message: &AskMessage<'_>, wanted: Last) -> bool {
    match wanted {
        Last::System => message.role == Role::System,
        Last::ToolResult => heard::blocks(message).any(|block| matches!(block, Heard::Returned { .. })),
        Last::Text => message.role == Role::User && !heard::words(message).is_empty(),
    }
}
