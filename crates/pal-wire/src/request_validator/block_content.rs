//! Content of single blocks, and the roles of messages that may contain them.

use super::api_error::{ApiError, invalid};
use super::json::{JsonNode, NodeText};
use super::json_path::JsonPath;
use super::request_rules::ApiVersion;
use super::request_view::{BlockTag, CheckedBlock, CheckedMessage, CheckedRole, RequestView};

pub(crate) fn check_content(request: &RequestView<'_>) -> Result<(), ApiError> {
    check_system_prompt(request)?;
    for message in &request.messages {
        if let Some(text) = message.text.filter(|text| !text.is_empty()) {
            check_text(text, "messages")?;
        }
        for (index, block) in request.blocks(message).iter().enumerate() {
            check_block(request, message, block, index)?;
        }
    }
    Ok(())
}

fn check_system_prompt(request: &RequestView<'_>) -> Result<(), ApiError> {
    let system = JsonPath::ROOT.key("system");
    for (index, block) in request.body.get("system").into_iter().flat_map(JsonNode::items).enumerate() {
        check_text_block(block, "system", &system.index(index))?;
    }
    Ok(())
}

fn check_block(
    request: &RequestView<'_>,
    message: &CheckedMessage<'_>,
    block: &CheckedBlock<'_>,
    index: usize,
) -> Result<(), ApiError> {
    let messages = JsonPath::ROOT.key("messages");
    let at = messages.index(message.index);
    let at = at.key("content");
    let at = at.index(index);
    check_role(request, message.role, block, &at)?;
    check_turn_scope(message, block, &at)?;
    let is_newest = request.rules.version >= ApiVersion::V2026_10_21;
    match block.tag {
        BlockTag::Text => {
            check_text_block(block.node, "messages", &at)?;
            if message.role == CheckedRole::User && is_newest {
                check_uncited(block.node, &at.key("text"))?;
            }
            Ok(())
        }
        BlockTag::SearchResult => check_search_result(block.node, is_newest, &at.key("search_result")),
        BlockTag::ToolResult => check_tool_result(block.node, is_newest, &at.key("tool_result")),
        BlockTag::Document => check_inner(block.node.get("source")),
        BlockTag::McpToolResult => check_inner(Some(block.node)),
        BlockTag::Thinking => check_filled(block.node, "signature", "thinking", &at),
        BlockTag::RedactedThinking => check_filled(block.node, "data", "redacted_thinking", &at),
        _ => Ok(()),
    }
}

fn check_role(
    request: &RequestView<'_>,
    role: CheckedRole,
    block: &CheckedBlock<'_>,
    at: &JsonPath<'_>,
) -> Result<(), ApiError> {
    let mut roles = block.tag.roles();
    if block.tag == BlockTag::Document && request.rules.version >= ApiVersion::V2026_10_21 {
        roles = &[CheckedRole::User];
    }
    if roles.contains(&role) {
        return Ok(());
    }
    let kind = block.node.get_text("type").map(|kind| kind.decoded()).unwrap_or_default();
    let roles: Vec<String> = roles.iter().map(|role| format!("`{}`", role.as_str())).collect();
    let roles = roles.join(" or ");
    Err(at.invalid(format_args!("`{kind}` blocks can only be in {roles} messages")))
}

/// Checks that a turn-scoped system message has only text blocks without `cache_control`.
fn check_turn_scope(
    message: &CheckedMessage<'_>,
    block: &CheckedBlock<'_>,
    at: &JsonPath<'_>,
) -> Result<(), ApiError> {
    if message.node.get("clear_at").is_none() {
        return Ok(());
    }
    if block.tag != BlockTag::Text {
        return Err(at.invalid("only `text` blocks are allowed in a system message with `clear_at`"));
    }
    if block.node.get("cache_control").is_some() {
        let at = at.key("text");
        let at = at.key("cache_control");
        return Err(at.invalid("cache_control cannot be set in a system message with `clear_at`"));
    }
    Ok(())
}

fn check_text_block(node: JsonNode<'_>, field: &str, at: &JsonPath<'_>) -> Result<(), ApiError> {
    let Some(text) = node.get_text("text") else { return Ok(()) };
    if text.is_empty() && node.get("cache_control").is_some() {
        return Err(at.key("text").invalid("cache_control cannot be set for empty text blocks"));
    }
    check_text(text, field)
}

fn check_text(text: NodeText<'_>, field: &str) -> Result<(), ApiError> {
    if text.is_empty() {
        return Err(invalid(format!("{field}: text content blocks must be non-empty")));
    }
    if text.is_blank() {
        return Err(invalid(format!("{field}: text content blocks must contain non-whitespace text")));
    }
    Ok(())
}

/// Checks the text blocks in the `content` of a node.
fn check_inner(holder: Option<JsonNode<'_>>) -> Result<(), ApiError> {
    let content = holder.and_then(|holder| holder.get("content"));
    let texts = content.into_iter().flat_map(JsonNode::items).filter_map(|block| block.get_text("text"));
    texts.into_iter().try_for_each(|text| check_text(text, "messages"))
}

fn check_search_result(node: JsonNode<'_>, is_newest: bool, at: &JsonPath<'_>) -> Result<(), ApiError> {
    check_inner(Some(node))?;
    let content = at.key("content");
    for (index, text) in node.get("content").into_iter().flat_map(JsonNode::items).enumerate() {
        if is_newest {
            check_uncited(text, &content.index(index).key("text"))?;
        }
    }
    Ok(())
}

fn check_tool_result(node: JsonNode<'_>, is_newest: bool, at: &JsonPath<'_>) -> Result<(), ApiError> {
    check_inner(Some(node))?;
    let content = at.key("content");
    for (index, block) in node.get("content").into_iter().flat_map(JsonNode::items).enumerate() {
        let at = content.index(index);
        match block.get_text("type") {
            Some(kind) if kind.is("text") && is_newest => check_uncited(block, &at.key("text"))?,
            Some(kind) if kind.is("search_result") => {
                check_search_result(block, is_newest, &at.key("search_result"))?;
            }
            Some(kind) if kind.is("document") => check_inner(block.get("source"))?,
            _ => {}
        }
    }
    Ok(())
}

fn check_uncited(node: JsonNode<'_>, at: &JsonPath<'_>) -> Result<(), ApiError> {
    let is_cited = node.get("citations").is_some_and(|citations| citations.items().next().is_some());
    if is_cited {
        return Err(at.key("citations").invalid("citations are not permitted in user messages"));
    }
    Ok(())
}

fn check_filled(node: JsonNode<'_>, field: &str, block: &str, at: &JsonPath<'_>) -> Result<(), ApiError> {
    if node.get_text(field).is_some_and(NodeText::is_empty) {
        return Err(at.invalid(format_args!("Invalid `{field}` in `{block}` block")));
    }
    Ok(())
}
