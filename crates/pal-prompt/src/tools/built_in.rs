//! Definitions of the built-in tools, as the model sees them.

use pal_model::SharedText;
use smol_str::SmolStr;

use super::{ToolOrigin, ToolSpec};
use crate::prefix_profile::PrefixProfile;

/// The name of the tool that finds deferred tools.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// The name of the tool that calls deferred tools, where the provider does not know of them.
pub const CALL_TOOL: &str = "CallTool";

/// A tool by its name and by that of its texts.
macro_rules! built_in {
    ($name:literal, $file:literal) => {
        tool(
            $name,
            include_str!(concat!("../texts/tools/", $file, ".md")),
            include_str!(concat!("../texts/tools/", $file, ".json")),
        )
    };
}

/// The tools of the coding agent by name, none of them deferred.
pub fn built_in_tools() -> Vec<ToolSpec> {
    vec![
        built_in!("Agent", "agent"),
        built_in!("AskUserQuestion", "ask_user_question"),
        built_in!("Bash", "bash"),
        built_in!("BashOutput", "bash_output"),
        built_in!("Context", "context"),
        built_in!("Edit", "edit"),
        built_in!("EnterPlanMode", "enter_plan_mode"),
        built_in!("ExitPlanMode", "exit_plan_mode"),
        built_in!("Glob", "glob"),
        built_in!("Grep", "grep"),
        built_in!("KillBash", "kill_bash"),
        built_in!("NotebookEdit", "notebook_edit"),
        built_in!("Read", "read"),
        built_in!("Recall", "recall"),
        built_in!("SendMessage", "send_message"),
        built_in!("Skill", "skill"),
        built_in!("Todo", "todo"),
        built_in!("WebFetch", "web_fetch"),
        built_in!("WebSearch", "web_search"),
        built_in!("Write", "write"),
    ]
}

/// A tool with the short texts of the lean profile.
macro_rules! lean {
    ($name:expr, $file:literal) => {
        tool(
            $name,
            include_str!(concat!("../texts/lean/", $file, ".md")),
            include_str!(concat!("../texts/lean/", $file, ".json")),
        )
    };
}

/// The core tools, which the lean profile lists, with short definitions.
fn lean_tools() -> [ToolSpec; 8] {
    [
        lean!("Bash", "bash"),
        lean!("Edit", "edit"),
        lean!("Glob", "glob"),
        lean!("Grep", "grep"),
        lean!("Read", "read"),
        lean!("Write", "write"),
        lean!(TOOL_SEARCH, "tool_search"),
        lean!(CALL_TOOL, "call_tool"),
    ]
}

/// The tool as a profile defines it: in the lean profile, core tools have short definitions and all others are deferred.
pub(crate) fn tool_in_profile(spec: &ToolSpec, profile: PrefixProfile) -> ToolSpec {
    if profile == PrefixProfile::Full {
        return spec.clone();
    }
    let is_built_in = spec.origin == ToolOrigin::BuiltIn;
    match lean_tools().into_iter().find(|lean| is_built_in && lean.name == spec.name) {
        Some(lean) => ToolSpec { is_deferred: spec.is_deferred, ..lean },
        None => ToolSpec { is_deferred: true, ..spec.clone() },
    }
}

/// The tool that finds deferred tools.
pub(crate) fn tool_search() -> ToolSpec {
    let description = include_str!("../texts/tools/tool_search.md");
    tool(TOOL_SEARCH, description, include_str!("../texts/tools/tool_search.json"))
}

/// The tool that calls deferred tools, where the provider does not know of them.
pub(crate) fn call_tool() -> ToolSpec {
    let description = include_str!("../texts/tools/call_tool.md");
    tool(CALL_TOOL, description, include_str!("../texts/tools/call_tool.json"))
}

fn tool(name: &'static str, description: &str, schema: &str) -> ToolSpec {
    ToolSpec {
        name: SmolStr::new_static(name),
        description: description.trim().to_owned(),
        schema: SharedText::from(schema.trim()),
        origin: ToolOrigin::BuiltIn,
        is_deferred: false,
    }
}
