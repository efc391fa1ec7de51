//! Replay of a loaded session's log as updates.

use std::path::Path;

use agent_client_protocol::v1::schema::SessionUpdate;
use pal_model::{BlockType, EntryBody, LogEntry};
use pal_store::{LogReader, OpenError};

use crate::session_updates::UpdateTranslator;
use crate::tool_calls::{TODO, plan};

/// Translates the whole conversation, including compacted parts, and the current plan.
pub(crate) fn replay(log: &Path, translator: &mut UpdateTranslator) -> Result<Vec<SessionUpdate>, OpenError> {
    let branch = LogReader::open(log)?.whole_branch()?;
    let mut updates: Vec<SessionUpdate> =
        branch.entries.iter().flat_map(|entry| translator.message(entry, false)).collect();
    updates.extend(translator.give_up_calls());
    updates.extend(branch.entries.iter().rev().find_map(last_plan));
    Ok(updates)
}

fn last_plan(entry: &LogEntry) -> Option<SessionUpdate> {
    let EntryBody::Assistant(assistant) = &entry.body else { return None };
    let blocks = assistant.content.blocks().iter().rev();
    let mut lists = blocks.filter(|block| {
        block.kind() == BlockType::ToolUse && block.string("name").is_some_and(|name| name == TODO)
    });
    lists.find_map(|block| plan(block.field("input")?)).map(SessionUpdate::Plan)
}
