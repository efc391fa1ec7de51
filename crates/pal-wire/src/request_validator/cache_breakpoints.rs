//! Cache breakpoints: number, TTLs and order.
//!
//! The schema says where a breakpoint is allowed; this module checks all of them together, in the order in which the
//! provider renders a request: tools, system, messages.

use super::api_error::{ApiError, invalid};
use super::json::JsonNode;
use super::json_path::JsonPath;
use super::request_view::{BlockTag, RequestView};

/// Maximum cache breakpoints per request, including the automatic one.
const BREAKPOINTS_MAX: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum BreakpointTtl {
    FiveMinutes,
    OneHour,
}

impl BreakpointTtl {
    /// Returns the TTL of the breakpoint on a node, if any.
    fn of(marked: JsonNode<'_>) -> Option<BreakpointTtl> {
        let breakpoint = marked.get("cache_control")?;
        let is_long = breakpoint.get_text("ttl").is_some_and(|ttl| ttl.is("1h"));
        Some(if is_long { BreakpointTtl::OneHour } else { BreakpointTtl::FiveMinutes })
    }

    fn as_str(self) -> &'static str {
        match self {
            BreakpointTtl::FiveMinutes => "5m",
            BreakpointTtl::OneHour => "1h",
        }
    }
}

struct PlacedBreakpoint {
    path: String,
    ttl: BreakpointTtl,
}

/// Checks all breakpoints and returns their number.
pub(crate) fn check_breakpoints(request: &RequestView<'_>) -> Result<usize, ApiError> {
    let mut breakpoints = Vec::new();
    for field in ["tools", "system"] {
        let at = JsonPath::ROOT.key(field);
        for (index, node) in request.body.get(field).into_iter().flat_map(JsonNode::items).enumerate() {
            push(&mut breakpoints, node, &at.index(index));
        }
    }
    let messages = JsonPath::ROOT.key("messages");
    for message in &request.messages {
        let at = messages.index(message.index);
        let at = at.key("content");
        for (index, block) in request.blocks(message).iter().enumerate() {
            push(&mut breakpoints, block.node, &at.index(index));
        }
    }
    let automatic = BreakpointTtl::of(request.body);
    let n_marks = breakpoints.len() + usize::from(automatic.is_some());
    if n_marks > BREAKPOINTS_MAX {
        return Err(invalid(format!(
            "A maximum of {BREAKPOINTS_MAX} blocks with cache_control may be provided. Found {n_marks}."
        )));
    }
    if let Some(ttl) = automatic {
        if let Some(target) = target(request).and_then(BreakpointTtl::of)
            && target != ttl
        {
            return Err(invalid(format!(
                "Top-level cache_control has ttl='{}' but the target block already has cache_control with ttl='{}'",
                ttl.as_str(),
                target.as_str()
            )));
        }
        breakpoints.push(PlacedBreakpoint { path: String::new(), ttl });
    }
    check_ttl_order(&breakpoints)?;
    Ok(n_marks)
}

fn push(breakpoints: &mut Vec<PlacedBreakpoint>, node: JsonNode<'_>, at: &JsonPath<'_>) {
    if let Some(ttl) = BreakpointTtl::of(node) {
        breakpoints.push(PlacedBreakpoint { path: format!("{at}."), ttl });
    }
}

fn check_ttl_order(breakpoints: &[PlacedBreakpoint]) -> Result<(), ApiError> {
    let short = breakpoints
        .iter()
        .position(|breakpoint| breakpoint.ttl == BreakpointTtl::FiveMinutes)
        .unwrap_or(breakpoints.len());
    match breakpoints.iter().skip(short).find(|breakpoint| breakpoint.ttl == BreakpointTtl::OneHour) {
        Some(late) => Err(invalid(format!(
            "{}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. \
             Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
            late.path
        ))),
        None => Ok(()),
    }
}

/// Returns the target of the automatic breakpoint: the last block that accepts one. None if it is a string, which cannot
/// have a breakpoint of its own.
fn target<'t>(request: &RequestView<'t>) -> Option<JsonNode<'t>> {
    for message in request.messages.iter().rev() {
        if message.node.get("clear_at").is_some() {
            continue;
        }
        if message.text.is_some() {
            return None;
        }
        if let Some(block) = request.blocks(message).iter().rfind(|block| accepts_breakpoint(block.tag)) {
            return Some(block.node);
        }
    }
    match request.body.get("system") {
        Some(system) if system.text().is_some() => None,
        Some(system) => system.items().last().or_else(|| last_tool(request)),
        None => last_tool(request),
    }
}

fn last_tool<'t>(request: &RequestView<'t>) -> Option<JsonNode<'t>> {
    request.body.get("tools").into_iter().flat_map(JsonNode::items).last()
}

fn accepts_breakpoint(tag: BlockTag) -> bool {
    !matches!(
        tag,
        BlockTag::Thinking
            | BlockTag::RedactedThinking
            | BlockTag::McpToolListing
            | BlockTag::Fallback
            | BlockTag::ToolAddition
            | BlockTag::ToolRemoval
            | BlockTag::CacheEdits
    )
}
