//! Where thinking may stand, and where it must.

use super::error::ApiError;
use super::path::Path;
use super::view::{Message, Request, Role, Tag};

pub(crate) fn check_thoughts(request: &Request<'_>) -> Result<(), ApiError> {
    let messages = Path::ROOT.key("messages");
    for message in request.messages.iter().filter(|message| message.role == Role::Assistant) {
        let name = match request.last_tag(message) {
            Some(Tag::Thinking) => "thinking",
            Some(Tag::RedactedThinking) => "redacted_thinking",
            _ => continue,
        };
        return Err(messages
            .index(message.index)
            .invalid(format_args!("The final block in an assistant message cannot be `{name}`.")));
    }
    check_tool_loop(request)
}

/// With a thinking budget, a tool loop that still runs must begin with a thought. Models that do not think between
/// calls have one in the loop's first message only, so an earlier one counts.
fn check_tool_loop(request: &Request<'_>) -> Result<(), ApiError> {
    if !request.type_of("thinking").is_some_and(|kind| kind.is("enabled")) {
        return Ok(());
    }
    let mut latest: Option<&Message<'_>> = None;
    for message in request.messages.iter().rev() {
        match message.role {
            Role::Assistant => {
                if request.first_tag(message).is_some_and(Tag::is_thinking) {
                    return Ok(());
                }
                latest = latest.or(Some(message));
            }
            Role::User if !is_answer(request, message) => break,
            _ => {}
        }
    }
    let Some(latest) = latest.filter(|latest| calls_tool(request, latest)) else { return Ok(()) };
    let first = request.blocks(latest).first().and_then(|block| block.node.get_text("type"));
    let first = first.map(|kind| kind.decoded()).unwrap_or_default();
    Err(Path::ROOT.key("messages").index(latest.index).key("content").index(0).key("type").invalid(
        format_args!(
            "Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final \
             `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and \
             `tool_result` blocks). To avoid this requirement, disable `thinking`."
        ),
    ))
}

fn is_answer(request: &Request<'_>, message: &Message<'_>) -> bool {
    request.first_tag(message) == Some(Tag::ToolResult)
}

fn calls_tool(request: &Request<'_>, message: &Message<'_>) -> bool {
    request.blocks(message).iter().any(|block| block.tag == Tag::ToolUse)
}
