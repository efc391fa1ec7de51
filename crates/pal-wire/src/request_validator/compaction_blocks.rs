//! Compaction by the provider: the request for a summary, and compaction blocks.

use super::api_error::{ApiError, invalid};
use super::json::JsonNode;
use super::json_path::JsonPath;
use super::request_rules::Beta;
use super::request_view::{BlockTag, CheckedMessage, CheckedRole, RequestView};

pub(crate) fn check_compaction(request: &RequestView<'_>) -> Result<(), ApiError> {
    check_blocks(request)?;
    check_summary_request(request)
}

fn check_blocks(request: &RequestView<'_>) -> Result<(), ApiError> {
    let messages = JsonPath::ROOT.key("messages");
    let (mut n_signed, mut n_unsigned) = (0, 0);
    for message in &request.messages {
        let at = messages.index(message.index);
        let at = at.key("content");
        for (index, block) in request.blocks(message).iter().enumerate() {
            if block.tag != BlockTag::Compaction {
                continue;
            }
            let at = at.index(index);
            let is_signed = block.node.get("signature").is_some();
            check_form(request, block.node, is_signed, &at.key("compaction"))?;
            if is_signed && (message.index, index) != (0, 0) {
                let error =
                    at.invalid("a signed `compaction` block must be the first block of the first message");
                return Err(error.with_code("compaction_block_misplaced"));
            }
            n_signed += usize::from(is_signed);
            n_unsigned += usize::from(!is_signed);
        }
    }
    if n_signed > 0 && n_signed + n_unsigned > 1 {
        let error = messages.invalid("only one `compaction` block is allowed beside a signed one");
        return Err(error.with_code("compaction_block_ambiguous"));
    }
    Ok(())
}

fn check_form(
    request: &RequestView<'_>,
    block: JsonNode<'_>,
    is_signed: bool,
    at: &JsonPath<'_>,
) -> Result<(), ApiError> {
    if !is_signed {
        return match request.rules.betas.has(Beta::ThresholdCompaction) {
            true => Ok(()),
            false => Err(at.key("signature").invalid("Field required")),
        };
    }
    if block.get("encrypted_content").is_some() {
        return Err(at.key("encrypted_content").invalid("Extra inputs are not permitted"));
    }
    match block.get_text("content") {
        Some(content) if !content.is_blank() => Ok(()),
        _ => Err(at
            .key("content")
            .invalid("a signed summary must not be empty")
            .with_code("compaction_content_mismatch")),
    }
}

/// Checks that a request for a summary has no parameters of an ordinary response.
fn check_summary_request(request: &RequestView<'_>) -> Result<(), ApiError> {
    if request.body.get("compaction").is_none() {
        return Ok(());
    }
    let stops = request.body.get("stop_sequences").is_some_and(|list| list.items().next().is_some());
    let remaining = request.output_config("task_budget").and_then(|budget| budget.get("remaining"));
    let clash = if request.body.get("context_management").is_some() {
        "context_management"
    } else if stops {
        "stop_sequences"
    } else if request.output_config("format").is_some() {
        "output_config.format"
    } else if request.forces_tool() {
        "tool_choice"
    } else if remaining.is_some() {
        "output_config.task_budget.remaining"
    } else {
        return check_substance(request);
    };
    Err(JsonPath::ROOT.key("compaction").invalid(format_args!("cannot be combined with `{clash}`")))
}

fn check_substance(request: &RequestView<'_>) -> Result<(), ApiError> {
    let is_new = |message: &CheckedMessage<'_>| match message.role {
        CheckedRole::System => false,
        CheckedRole::User => true,
        CheckedRole::Assistant => {
            let blocks = request.blocks(message);
            message.text.is_some() || blocks.iter().any(|block| block.tag != BlockTag::Compaction)
        }
    };
    if request.messages.iter().any(is_new) {
        return Ok(());
    }
    Err(invalid("compaction: there is nothing to summarize").with_code("compaction_nothing_to_summarize"))
}
