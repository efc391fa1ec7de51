//! Tools about the session itself: recall, context and tool search; and the tool that asks its user.

pub(crate) mod context_tool;
pub(crate) mod question_tool;
pub(crate) mod recall_tool;
pub(crate) mod structured_output;
pub(crate) mod web_search_tool;

use pal_model::{DecisionKind, EntryBody, ToolUseId};
use pal_prompt::{CALL_TOOL, TOOL_SEARCH};
use pal_view::View;

/// Names of the tools.
pub(crate) const RECALL: &str = "Recall";
pub(crate) const CONTEXT: &str = "Context";

/// Returns whether a tool is about the session itself.
pub(crate) fn is_inner(name: &str) -> bool {
    matches!(name, RECALL | CONTEXT | TOOL_SEARCH | CALL_TOOL)
}

/// Returns whether the model still sees the original result of a call.
pub(crate) fn is_visible_file(view: &View, call: &ToolUseId) -> bool {
    let Some(shown) = view.result(call) else { return false };
    let is_whole = !shown.is_cleared && !shown.is_deleted && shown.spilled_to.is_none();
    is_whole && !is_cleared_by_provider(view, call)
}

/// Returns whether the provider has cleared anything since. It clears the oldest results first and does not say
/// which.
fn is_cleared_by_provider(view: &View, call: &ToolUseId) -> bool {
    let since = view.branch().iter().rev().take_while(|entry| match &entry.body {
        EntryBody::User(user) => !user.content.blocks().iter().any(|block| block.tool_use_id() == Some(call)),
        _ => true,
    });
    let mut since = since;
    since.any(|entry| matches!(entry.decision(), Some(DecisionKind::ProviderClear { .. })))
}
