//! A session that is loaded, told from its beginning.

use std::path::Path;

use agent_client_protocol::v1::schema::SessionUpdate;
use pal_model::{BlockType, Body, Entry};
use pal_store::{OpenError, Reader};

use crate::calls::{TODO, plan};
use crate::teller::Teller;

/// Everything that was said in a session, whatever was compacted since, and the plan as it stands.
pub(crate) fn replay(log: &Path, teller: &mut Teller) -> Result<Vec<SessionUpdate>, OpenError> {
    let branch = Reader::open(log)?.whole_branch()?;
    let mut updates: Vec<SessionUpdate> =
        branch.entries.iter().flat_map(|entry| teller.message(entry, false)).collect();
    updates.extend(teller.give_up_calls());
    updates.extend(branch.entries.iter().rev().find_map(last_plan));
    Ok(updates)
}

fn last_plan(entry: &Entry) -> Option<SessionUpdate> {
    let Body::Assistant(assistant) = &entry.body else { return None };
    let blocks = assistant.content.blocks().iter().rev();
    let mut lists = blocks.filter(|block| {
        block.kind() == BlockType::ToolUse && block.string("name").is_some_and(|name| name == TODO)
    });
    lists.find_map(|block| plan(block.field("input")?)).map(SessionUpdate::Plan)
}
