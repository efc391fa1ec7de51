//! Allowed and required positions of thinking blocks.

use super::api_error::ApiError;
use super::json_path::JsonPath;
use super::request_view::{BlockTag, CheckedMessage, CheckedRole, RequestView};

pub(crate) fn check_thinking(request: &RequestView<'_>) -> Result<(), ApiError> {
    let messages = JsonPath::ROOT.key("messages");
    for message in request.messages.iter().filter(|message| message.role == CheckedRole::Assistant) {
        let name = match request.last_tag(message) {
            Some(BlockTag::Thinking) => "thinking",
            Some(BlockTag::RedactedThinking) => "redacted_thinking",
            _ => continue,
        };
        return Err(messages
            .index(message.index)
            .invalid(format_args!("The final block in an assistant message cannot be `{name}`.")));
    }
    check_tool_loop(request)
}

/// Checks that an unfinished tool loop with a thinking budget begins with a thinking block. Models that do not think
/// between calls have one only in the loop's first message, so an earlier one counts.
fn check_tool_loop(request: &RequestView<'_>) -> Result<(), ApiError> {
    if !request.type_of("thinking").is_some_and(|kind| kind.is("enabled")) {
        return Ok(());
    }
    let mut latest: Option<&CheckedMessage<'_>> = None;
    for message in request.messages.iter().rev() {
        match message.role {
            CheckedRole::Assistant => {
                if request.first_tag(message).is_some_and(BlockTag::is_thinking) {
                    return Ok(());
                }
                latest = latest.or(Some(message));
            }
            CheckedRole::User if !is_answer(request, message) => break,
            _ => {}
        }
    }
    let Some(latest) = latest.filter(|latest| calls_tool(request, latest)) else { return Ok(()) };
    let first = request.blocks(latest).first().and_then(|block| block.node.get_text("type"));
    let first = first.map(|kind| kind.decoded()).unwrap_or_default();
    Err(JsonPath::ROOT.key("messages").index(latest.index).key("content").index(0).key("type").invalid(
        format_args!(
            "Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final \
             `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and \
             `tool_result` blocks). To avoid this requirement, disable `thinking`."
        ),
    ))
}

fn is_answer(request: &RequestView<'_>, message: &CheckedMessage<'_>) -> bool {
    request.first_tag(message) == Some(BlockTag::ToolResult)
}

fn calls_tool(request: &RequestView<'_>, message: &CheckedMessage<'_>) -> bool {
    request.blocks(message).iter().any(|block| block.tag == BlockTag::ToolUse)
}
