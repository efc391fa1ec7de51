//! The program's own tools: what the model is told of each.

use pal_model::Text;
use smol_str::SmolStr;

use super::{ToolOrigin, ToolSpec};

/// The name of the tool that finds deferred tools.
pub const TOOL_SEARCH: &str = "ToolSearch";

/// The name of the tool that calls deferred tools, where the provider does not know of them.
pub const CALL_TOOL: &str = "CallTool";

/// The tools of the coding agent, none of them deferred.
pub fn built_in_tools() -> Vec<ToolSpec> {
    vec![
        tool("Bash", include_str!("../texts/tools/bash.md"), include_str!("../texts/tools/bash.json")),
        tool("Edit", include_str!("../texts/tools/edit.md"), include_str!("../texts/tools/edit.json")),
        tool("Glob", include_str!("../texts/tools/glob.md"), include_str!("../texts/tools/glob.json")),
        tool("Grep", include_str!("../texts/tools/grep.md"), include_str!("../texts/tools/grep.json")),
        tool("Read", include_str!("../texts/tools/read.md"), include_str!("../texts/tools/read.json")),
        tool("Todo", include_str!("../texts/tools/todo.md"), include_str!("../texts/tools/todo.json")),
        tool("Write", include_str!("../texts/tools/write.md"), include_str!("../texts/tools/write.json")),
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
        schema: Text::from(schema.trim()),
        origin: ToolOrigin::BuiltIn,
        is_deferred: false,
    }
}
