//! Order of messages: first role, alternation, last message.

use super::api_error::{ApiError, invalid};
use super::json_path::JsonPath;
use super::request_view::{BlockTag, CheckedMessage, CheckedRole, RequestView};

/// Maximum messages per request.
const MESSAGES_MAX: usize = 100_000;

pub(crate) fn check_turns(request: &RequestView<'_>) -> Result<(), ApiError> {
    let messages = JsonPath::ROOT.key("messages");
    match request.messages.len() {
        0 => return Err(messages.invalid("at least one message is required")),
        n_messages if n_messages > MESSAGES_MAX => {
            return Err(messages.invalid(format_args!(
                "List should have at most {MESSAGES_MAX} items after validation, not {n_messages}"
            )));
        }
        _ => {}
    }
    for message in &request.messages {
        check_fields(request, message)?;
    }
    check_order(request)?;
    check_last(request)
}

/// Checks role-specific fields and empty messages.
fn check_fields(request: &RequestView<'_>, message: &CheckedMessage<'_>) -> Result<(), ApiError> {
    let messages = JsonPath::ROOT.key("messages");
    let at = messages.index(message.index);
    if message.role == CheckedRole::System && !request.rules.system_messages {
        return Err(messages.invalid(
            "Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, \
             not \"system\" as an input message role.",
        ));
    }
    if message.role != CheckedRole::System {
        for field in ["clear_at", "output_config"] {
            if message.node.get(field).is_some() {
                return Err(at.key(field).invalid("Extra inputs are not permitted"));
            }
        }
    }
    let is_final_prefill = request.rules.prefill
        && message.role == CheckedRole::Assistant
        && message.index + 1 == request.messages.len();
    if request.is_empty(message) && !is_final_prefill && !request.is_effort_switch(message) {
        return Err(at.invalid(
            "all messages must have non-empty content except for the optional final assistant message",
        ));
    }
    Ok(())
}

fn check_order(request: &RequestView<'_>) -> Result<(), ApiError> {
    let all = JsonPath::ROOT.key("messages");
    let mut messages =
        request.messages.iter().filter(|message| !request.is_effort_switch(message)).peekable();
    let mut previous: Option<&CheckedMessage<'_>> = None;
    while let Some(message) = messages.next() {
        let at = all.index(message.index);
        match (message.role, previous) {
            (CheckedRole::System, _) => {
                check_system_place(request, message, previous)?;
                if messages.peek().is_some_and(|next| next.role == CheckedRole::User) {
                    return Err(
                        at.invalid("role 'system' must precede an 'assistant' message or end the array")
                    );
                }
            }
            (CheckedRole::Assistant, None)
                if !request.is_compacted(message) && !request.continues_thread() =>
            {
                return Err(all.invalid("first message must use the \"user\" role"));
            }
            (role, Some(previous)) if role == previous.role => {
                // After a summary, either role may come first.
                let follows_summary = previous.index == 0 && request.is_compacted(previous);
                if !follows_summary {
                    let role = role.as_str();
                    return Err(at.invalid(format_args!(
                        "roles must alternate between \"user\" and \"assistant\", \
                         but found multiple \"{role}\" roles in a row"
                    )));
                }
            }
            _ => {}
        }
        previous = Some(message);
    }
    Ok(())
}

fn check_system_place(
    request: &RequestView<'_>,
    message: &CheckedMessage<'_>,
    previous: Option<&CheckedMessage<'_>>,
) -> Result<(), ApiError> {
    let fits = match previous {
        None => request.continues_thread(),
        Some(previous) => match previous.role {
            CheckedRole::User | CheckedRole::System => true,
            CheckedRole::Assistant => request.last_tag(previous).is_some_and(|tag| tag.is_server_side()),
        },
    };
    if fits {
        return Ok(());
    }
    let messages = JsonPath::ROOT.key("messages");
    Err(messages.index(message.index).invalid(
        "role 'system' must follow a 'user' message or an 'assistant' message that ends in a server tool result",
    ))
}

fn check_last(request: &RequestView<'_>) -> Result<(), ApiError> {
    let last = request.messages.iter().rfind(|message| !request.is_effort_switch(message));
    let Some(last) = last else {
        return Err(invalid("messages: at least one message is required"));
    };
    if last.role != CheckedRole::Assistant {
        return Ok(());
    }
    let last_tag = request.last_tag(last);
    let may_go_on = last_tag.is_some_and(|tag| tag.is_server_side() || tag == BlockTag::Compaction);
    if !may_go_on && !request.rules.prefill && request.body.get("compaction").is_none() {
        return Err(invalid(
            "This model does not support assistant message prefill. \
             The conversation must end with a user message.",
        ));
    }
    let text =
        last.text.or_else(|| request.blocks(last).last().and_then(|block| block.node.get_text("text")));
    let is_prefill = request.rules.prefill && request.body.get("compaction").is_none();
    if is_prefill && text.is_some_and(|text| text.ends_in_whitespace()) {
        return Err(invalid("messages: final assistant content cannot end with trailing whitespace"));
    }
    Ok(())
}
