//! Tools of a request: unique names, deferred tools, and references to tools.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::api_error::{ApiError, invalid};
use super::json::JsonNode;
use super::json_path::JsonPath;
use super::request_view::{BlockTag, CheckedRole, RequestView};

pub(crate) fn check_tools(request: &RequestView<'_>) -> Result<(), ApiError> {
    let tools: Vec<JsonNode<'_>> = request.body.get("tools").into_iter().flat_map(JsonNode::items).collect();
    let mut names = BTreeSet::new();
    for &tool in &tools {
        check_deferred(tool)?;
        check_toolset(request, tool)?;
        if name_of(tool).is_some_and(|name| !names.insert(name)) {
            return Err(invalid("tools: Tool names must be unique.").with_code("tool_name_conflict"));
        }
    }
    if !tools.is_empty() && tools.iter().all(|tool| is_deferred(*tool)) {
        return Err(invalid(
            "tools: At least one tool must have defer_loading=false. All tools cannot be deferred.",
        ));
    }
    let has_toolset = tools.iter().any(|tool| name_of(*tool).is_none());
    let chosen = request.body.get("tool_choice").and_then(|choice| choice.get_text("name"));
    if let Some(name) = chosen.map(|name| name.decoded())
        && !has_toolset
        && !request.continues_thread()
        && !names.contains(&name)
    {
        return Err(JsonPath::ROOT
            .key("tool_choice")
            .invalid(format_args!("Tool '{name}' not found in provided tools")));
    }
    // The names of toolsets and of threads stored by the server are not in the body.
    let is_complete = !has_toolset && !request.continues_thread();
    check_references(request, names, is_complete)
}

fn name_of(tool: JsonNode<'_>) -> Option<Cow<'_, str>> {
    tool.get_text("name").map(|name| name.decoded())
}

fn is_deferred(tool: JsonNode<'_>) -> bool {
    tool.get("defer_loading").is_some_and(JsonNode::is_true)
}

fn check_deferred(tool: JsonNode<'_>) -> Result<(), ApiError> {
    if is_deferred(tool) && tool.get("cache_control").is_some() {
        let name = name_of(tool).unwrap_or_default();
        return Err(invalid(format!(
            "Tool '{name}' cannot have both defer_loading=true and cache_control set. \
             Tools with defer_loading cannot use prompt caching."
        )));
    }
    Ok(())
}

fn check_toolset(request: &RequestView<'_>, tool: JsonNode<'_>) -> Result<(), ApiError> {
    let Some(wanted) = tool.get_text("mcp_server_name").map(|name| name.decoded()) else { return Ok(()) };
    let servers = request.body.get("mcp_servers").into_iter().flat_map(JsonNode::items);
    let is_known = servers.filter_map(|server| server.get_text("name")).any(|name| name.is(&wanted));
    if is_known {
        return Ok(());
    }
    Err(JsonPath::ROOT.key("tools").invalid(format_args!("MCP server '{wanted}' not found in mcp_servers")))
}

/// Checks references in the messages against `names`; inline definitions add names.
fn check_references<'t>(
    request: &RequestView<'t>,
    mut names: BTreeSet<Cow<'t, str>>,
    is_complete: bool,
) -> Result<(), ApiError> {
    let messages = JsonPath::ROOT.key("messages");
    for message in request.messages.iter().filter(|message| message.role != CheckedRole::Assistant) {
        let at = messages.index(message.index);
        let at = at.key("content");
        for (index, block) in request.blocks(message).iter().enumerate() {
            let at = at.index(index);
            let unresolved = match block.tag {
                BlockTag::ToolResult => unknown_reference(block.node, &names),
                BlockTag::ToolAddition | BlockTag::ToolRemoval => {
                    let tool = block.node.get("tool");
                    if let Some(definition) = tool.and_then(|tool| tool.get("definition")) {
                        check_deferred(definition)?;
                        add_inline(definition, &mut names, &at)?;
                    }
                    let is_plain =
                        tool.and_then(|tool| tool.get_text("type")).is_some_and(|t| t.is("tool_reference"));
                    tool.filter(|_| is_plain).and_then(name_of).filter(|name| !names.contains(name))
                }
                _ => None,
            };
            if let Some(name) = unresolved.filter(|_| is_complete) {
                let error = at.invalid(format_args!("Tool reference '{name}' not found in available tools"));
                return Err(error.with_code("tool_reference_unresolved"));
            }
        }
    }
    Ok(())
}

fn unknown_reference<'t>(result: JsonNode<'t>, names: &BTreeSet<Cow<'t, str>>) -> Option<Cow<'t, str>> {
    let content = result.get("content").into_iter().flat_map(JsonNode::items);
    content
        .filter(|block| block.get_text("type").is_some_and(|kind| kind.is("tool_reference")))
        .filter_map(|block| block.get_text("tool_name"))
        .map(|name| name.decoded())
        .find(|name| !names.contains(name))
}

fn add_inline<'t>(
    definition: JsonNode<'t>,
    names: &mut BTreeSet<Cow<'t, str>>,
    at: &JsonPath<'_>,
) -> Result<(), ApiError> {
    match name_of(definition) {
        Some(name) if names.contains(&name) => {
            Err(at.invalid(format_args!("Tool '{name}' is already defined")).with_code("tool_name_conflict"))
        }
        Some(name) => {
            names.insert(name);
            Ok(())
        }
        None => Ok(()),
    }
}
