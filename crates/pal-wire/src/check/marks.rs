//! Cache marks: how many, of which lifetimes, in which order.
//!
//! Where a mark may stand is part of the shapes; here they are taken together, in the order in which the provider
//! renders a request: tools, system, messages.

use super::error::{ApiError, invalid};
use super::json::Node;
use super::path::Path;
use super::view::{Request, Tag};

/// The most marks in a request, the automatic one included.
const MAX_MARKS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    FiveMinutes,
    OneHour,
}

impl Lifetime {
    /// Of the mark on this, if there is one.
    fn of(marked: Node<'_>) -> Option<Lifetime> {
        let mark = marked.get("cache_control")?;
        let is_long = mark.get_text("ttl").is_some_and(|ttl| ttl.is("1h"));
        Some(if is_long { Lifetime::OneHour } else { Lifetime::FiveMinutes })
    }

    fn as_str(self) -> &'static str {
        match self {
            Lifetime::FiveMinutes => "5m",
            Lifetime::OneHour => "1h",
        }
    }
}

struct Mark {
    path: String,
    lifetime: Lifetime,
}

/// Checks all marks; their number.
pub(crate) fn check_marks(request: &Request<'_>) -> Result<usize, ApiError> {
    let mut marks = Vec::new();
    for field in ["tools", "system"] {
        let at = Path::ROOT.key(field);
        for (index, node) in request.body.get(field).into_iter().flat_map(Node::items).enumerate() {
            push(&mut marks, node, &at.index(index));
        }
    }
    let messages = Path::ROOT.key("messages");
    for message in &request.messages {
        let at = messages.index(message.index);
        let at = at.key("content");
        for (index, block) in request.blocks(message).iter().enumerate() {
            push(&mut marks, block.node, &at.index(index));
        }
    }
    let automatic = Lifetime::of(request.body);
    let n_marks = marks.len() + usize::from(automatic.is_some());
    if n_marks > MAX_MARKS {
        return Err(invalid(format!(
            "A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {n_marks}."
        )));
    }
    if let Some(lifetime) = automatic {
        if let Some(target) = target(request).and_then(Lifetime::of)
            && target != lifetime
        {
            return Err(invalid(format!(
                "Top-level cache_control has ttl='{}' but the target block already has cache_control with ttl='{}'",
                lifetime.as_str(),
                target.as_str()
            )));
        }
        marks.push(Mark { path: String::new(), lifetime });
    }
    check_lifetimes(&marks)?;
    Ok(n_marks)
}

fn push(marks: &mut Vec<Mark>, node: Node<'_>, at: &Path<'_>) {
    if let Some(lifetime) = Lifetime::of(node) {
        marks.push(Mark { path: format!("{at}."), lifetime });
    }
}

fn check_lifetimes(marks: &[Mark]) -> Result<(), ApiError> {
    let short = marks.iter().position(|mark| mark.lifetime == Lifetime::FiveMinutes).unwrap_or(marks.len());
    match marks.iter().skip(short).find(|mark| mark.lifetime == Lifetime::OneHour) {
        Some(late) => Err(invalid(format!(
            "{}cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. \
             Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
            late.path
        ))),
        None => Ok(()),
    }
}

/// The block on which automatic caching puts its mark, if that is one which could have a mark already: the last of
/// the request that can be marked.
fn target<'t>(request: &Request<'t>) -> Option<Node<'t>> {
    for message in request.messages.iter().rev() {
        if message.node.get("clear_at").is_some() {
            continue;
        }
        if message.text.is_some() {
            return None;
        }
        if let Some(block) = request.blocks(message).iter().rfind(|block| can_be_marked(block.tag)) {
            return Some(block.node);
        }
    }
    match request.body.get("system") {
        Some(system) if system.text().is_some() => None,
        Some(system) => system.items().last().or_else(|| last_tool(request)),
        None => last_tool(request),
    }
}

fn last_tool<'t>(request: &Request<'t>) -> Option<Node<'t>> {
    request.body.get("tools").into_iter().flat_map(Node::items).last()
}

fn can_be_marked(tag: Tag) -> bool {
    !matches!(
        tag,
        Tag::Thinking
            | Tag::RedactedThinking
            | Tag::McpToolListing
            | Tag::Fallback
            | Tag::ToolAddition
            | Tag::ToolRemoval
            | Tag::CacheEdits
    )
}
