//! The plan that the user approved last, which a compaction restores.

use pal_context::{VisibleCall, restored_plan};
use pal_model::{BlockType, EntryBody, unescape};
use pal_view::View;

use crate::permission_checker::EXIT_PLAN;

/// The plan that was approved last: of a visible call, else of the last compaction.
pub fn approved_plan(view: &View) -> Option<String> {
    let calls = view.visible_entries().filter_map(|shown| match &shown.entry.body {
        EntryBody::Assistant(assistant) => Some(assistant.content.blocks()),
        _ => None,
    });
    let calls = calls.flatten().filter(|block| block.kind() == BlockType::ToolUse);
    let plans = calls.filter_map(|block| {
        let call = VisibleCall::read(block).filter(|call| call.name == EXIT_PLAN)?;
        let result = view.result(block.tool_use_id()?)?;
        let is_error = result.block.field("is_error").is_some_and(|raw| raw == "true");
        (!is_error).then(|| unescape(call.member("plan")?)).flatten()
    });
    let carried = || match view.boundary().map(|entry| &entry.body) {
        Some(EntryBody::Boundary(boundary)) => restored_plan(boundary),
        _ => None,
    };
    plans.last().map(|plan| plan.into_owned()).or_else(carried)
}
