//! Rules between top-level fields: output, thinking, sampling, tool choice, edits, threads.

use super::api_error::{ApiError, invalid};
use super::json::JsonNode;
use super::json_path::JsonPath;
use super::request_rules::{Beta, RequestRules};
use super::request_view::RequestView;

pub(crate) fn check_parameters(request: &RequestView<'_>) -> Result<(), ApiError> {
    check_output(request)?;
    check_prewarm(request)?;
    check_thinking(request)?;
    check_sampling(request)?;
    check_tool_choice(request)?;
    check_edits(request)?;
    check_stop_sequences(request)?;
    check_thread(request)
}

fn max_tokens(request: &RequestView<'_>) -> Option<i64> {
    request.body.get("max_tokens").and_then(JsonNode::integer)
}

fn check_output(request: &RequestView<'_>) -> Result<(), ApiError> {
    let most = request.rules.max_output;
    match max_tokens(request) {
        Some(asked) if u64::try_from(asked).is_ok_and(|asked| asked > most) => {
            let model = request.body.get_text("model").map(|model| model.decoded()).unwrap_or_default();
            Err(JsonPath::ROOT.key("max_tokens").invalid(format_args!(
                "{asked} > {most}, which is the maximum allowed number of output tokens for {model}"
            )))
        }
        _ => Ok(()),
    }
}

/// Checks a cache-warming request (no output): it must not have output parameters.
fn check_prewarm(request: &RequestView<'_>) -> Result<(), ApiError> {
    if max_tokens(request) != Some(0) {
        return Ok(());
    }
    let clash = if request.body.get("stream").is_some_and(JsonNode::is_true) {
        "streaming"
    } else if request.type_of("thinking").is_some_and(|kind| kind.is("enabled")) {
        "`thinking.type` \"enabled\""
    } else if request.output_config("format").is_some() {
        "`output_config.format`"
    } else if request.forces_tool() {
        "a `tool_choice` that forces tool use"
    } else {
        return Ok(());
    };
    Err(JsonPath::ROOT.key("max_tokens").invalid(format_args!("0 cannot be combined with {clash}")))
}

fn check_thinking(request: &RequestView<'_>) -> Result<(), ApiError> {
    let Some(thinking) = request.body.get("thinking") else { return Ok(()) };
    let Some(kind) = thinking.get_text("type") else { return Ok(()) };
    let RequestRules { thinking: known, betas, .. } = request.rules;
    let kind = kind.decoded();
    let supported = match &*kind {
        "adaptive" => known.adaptive,
        "enabled" => known.enabled,
        "disabled" => known.disabled,
        _ => known.between_tools,
    };
    if !supported {
        let advice =
            if known.adaptive { " Use \"thinking.type.adaptive\" and \"output_config.effort\"." } else { "" };
        return Err(invalid(format!("\"thinking.type.{kind}\" is not supported for this model.{advice}")));
    }
    let display = thinking.get_text("display");
    if display.is_some_and(|display| display.is("updates")) && !betas.has(Beta::DisplayUpdates) {
        let at = JsonPath::ROOT.key("thinking");
        return Err(at.key(&kind).key("display").invalid("Input should be 'summarized' or 'omitted'"));
    }
    let budget = thinking.get("budget_tokens").and_then(JsonNode::integer);
    if let (Some(budget), Some(most)) = (budget, max_tokens(request))
        && budget >= most
    {
        return Err(invalid("`max_tokens` must be greater than `thinking.budget_tokens`."));
    }
    let effort = request.output_config("effort").and_then(JsonNode::text);
    match effort.and_then(|effort| effort.one_of(&["xhigh", "max"])) {
        Some(effort) if kind == "between_tools" => Err(JsonPath::ROOT
            .key("output_config")
            .key("effort")
            .invalid(format_args!("'{effort}' is not supported with \"thinking.type.between_tools\""))),
        _ => Ok(()),
    }
}

fn check_sampling(request: &RequestView<'_>) -> Result<(), ApiError> {
    let value = |name| request.body.get(name).and_then(JsonNode::number);
    for name in ["temperature", "top_p"] {
        if value(name).is_some_and(|value| !(0.0..=1.0).contains(&value)) {
            return Err(JsonPath::ROOT.key(name).invalid("Input should be between 0 and 1"));
        }
    }
    if request.rules.sampling {
        return Ok(());
    }
    let neutral = [
        ("temperature", value("temperature").is_none_or(|value| value == 1.0)),
        ("top_p", value("top_p").is_none_or(|value| value >= 0.99)),
        ("top_k", value("top_k").is_none()),
    ];
    match neutral.iter().find(|(_, neutral)| !neutral) {
        Some((name, _)) => Err(invalid(format!("`{name}` is deprecated for this model."))),
        None => Ok(()),
    }
}

fn check_tool_choice(request: &RequestView<'_>) -> Result<(), ApiError> {
    let Some(choice) = request.type_of("tool_choice") else { return Ok(()) };
    let has_tools = request.body.get("tools").is_some_and(|tools| tools.items().next().is_some());
    if !has_tools && !choice.is("none") && !request.continues_thread() {
        return Err(invalid("tool_choice may only be specified while providing tools."));
    }
    if !request.forces_tool() {
        return Ok(());
    }
    if !request.rules.forced_tool_choice {
        let choice = choice.decoded();
        let at = JsonPath::ROOT.key("tool_choice");
        return Err(at.key("type").invalid(format_args!("'{choice}' is not supported for this model")));
    }
    match request.type_of("thinking") {
        Some(kind) if !kind.is("disabled") => {
            Err(invalid("Thinking may not be enabled when tool_choice forces tool use."))
        }
        _ => Ok(()),
    }
}

fn check_edits(request: &RequestView<'_>) -> Result<(), ApiError> {
    let management = request.body.get("context_management");
    let edits =
        management.and_then(|management| management.get("edits")).into_iter().flat_map(JsonNode::items);
    for (index, edit) in edits.enumerate() {
        if !edit.get_text("type").is_some_and(|kind| kind.is("clear_thinking_20251015")) {
            continue;
        }
        if index > 0 {
            let at = JsonPath::ROOT.key("context_management");
            return Err(at
                .key("edits")
                .index(index)
                .invalid("`clear_thinking_20251015` strategy must be the first in the list of edits"));
        }
        let thinks = request.type_of("thinking").is_some_and(|kind| !kind.is("disabled"));
        if !thinks {
            return Err(invalid(
                "`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",
            ));
        }
    }
    Ok(())
}

fn check_stop_sequences(request: &RequestView<'_>) -> Result<(), ApiError> {
    let sequences = request.body.get("stop_sequences").into_iter().flat_map(JsonNode::items);
    match sequences.filter_map(JsonNode::text).any(|sequence| sequence.is_blank()) {
        true => Err(invalid("stop_sequences: each stop sequence must contain non-whitespace")),
        false => Ok(()),
    }
}

fn check_thread(request: &RequestView<'_>) -> Result<(), ApiError> {
    if request.body.get("thread").is_none() {
        return Ok(());
    }
    for field in ["context_management", "fallbacks"] {
        if request.body.get(field).is_some() {
            let error =
                JsonPath::ROOT.key("thread").invalid(format_args!("not supported together with `{field}`"));
            return Err(error.with_code("thread_unsupported_request"));
        }
    }
    let held = ["system", "tools"].into_iter().find(|field| request.body.get(field).is_some());
    match held {
        Some(field) if request.continues_thread() => Err(JsonPath::ROOT
            .key(field)
            .invalid("must be omitted when a thread is continued")
            .with_code("thread_fingerprint_mismatch")),
        _ => Ok(()),
    }
}
