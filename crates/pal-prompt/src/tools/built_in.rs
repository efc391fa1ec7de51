//! Definitions of the built-in tools, as the model sees them.

use pal_model::SharedText;
use smol_str::SmolStr;

use super::{ToolOrigin, ToolSpec};

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
        built_in!("Bash", "bash"),
        built_in!("BashOutput", "bash_output"),
        built_in!("Context", "context"),
        built_in!("Edit", "edit"),
        built_in!("EnterPlanMode", "enter_plan_mode"),
        built_in!("ExitPlanMode", "exit_plan_mode"),
        built_in!("Glob", "glob"),
        built_in!("Grep", "grep"),
        built_in!("KillBash", "kill_bash"),
        built_in!("Read", "read"),
        built_in!("Recall", "recall"),
        built_in!("SendMessage", "send_message"),
        built_in!("Skill", "skill"),
        built_in!("Todo", "todo"),
        built_in!("WebFetch", "web_fetch"),
        built_in!("Write", "write"),
    ]
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
