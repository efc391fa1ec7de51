//! Cache breakpoints of a request, described for people.

use pal_model::CacheMode;
use pal_view::{BreakpointPosition, CacheBreakpoint, CacheScope, CacheTtl};

use super::{ContextReport, ContextSubject};
use crate::units::format_tokens;

/// A cache breakpoint, the part that it follows, and the tokens that it covers.
pub(super) struct DescribedBreakpoint {
    pub(super) behind: String,
    pub(super) tokens: f64,
    pub(super) breakpoint: CacheBreakpoint,
}

/// Returns the breakpoints of the request, in order.
pub(super) fn describe_breakpoints(report: &ContextReport) -> Vec<DescribedBreakpoint> {
    // A provider that also sets breakpoints itself accepts ours in messages only.
    let is_sent = |breakpoint: &&CacheBreakpoint| match report.view.lens().card.caching {
        CacheMode::Explicit => true,
        CacheMode::Hybrid => matches!(breakpoint.position, BreakpointPosition::Block(_)),
        CacheMode::Automatic => false,
    };
    let note = |breakpoint: &CacheBreakpoint| DescribedBreakpoint {
        behind: preceding_part(report, breakpoint.position),
        tokens: covered_tokens(report, breakpoint.position),
        breakpoint: *breakpoint,
    };
    report.request.breakpoints().iter().filter(is_sent).map(note).collect()
}

/// Explains why the request has no breakpoints.
pub(super) fn explain_absence(report: &ContextReport) -> String {
    let card = &report.view.lens().card;
    match card.caching {
        CacheMode::Automatic => String::from("none: the provider caches common prefixes automatically"),
        CacheMode::Explicit | CacheMode::Hybrid => {
            let least = format_tokens(card.min_cacheable as f64);
            format!("none: the provider caches no prefix below {least} tokens")
        }
    }
}

/// Describes the lifetime and the scope of a breakpoint.
pub(super) fn describe_ttl(report: &ContextReport, breakpoint: &CacheBreakpoint) -> String {
    if report.view.lens().card.caching == CacheMode::Hybrid {
        return String::from("cached for as long as the provider decides");
    }
    let ttl = match breakpoint.ttl {
        CacheTtl::Minutes5 => "5 minutes",
        CacheTtl::Hour1 => "1 hour",
        CacheTtl::Hour1ThenMinutes5 => "1 hour before the messages, 5 minutes in them",
    };
    let scope = match breakpoint.scope {
        None => "",
        Some(CacheScope::Global) => ", shared by all users",
        Some(CacheScope::Organisation) => ", shared within the organisation",
    };
    format!("cached for {ttl}{scope}")
}

fn preceding_part(report: &ContextReport, spot: BreakpointPosition) -> String {
    let contents = &report.contents;
    match spot {
        BreakpointPosition::Tool(at) => {
            let name = contents.tools.get(at).map_or("", |tool| tool.name.as_str());
            format!("the tools (`{name}`)")
        }
        BreakpointPosition::System(at) if contents.blocks.get(at).is_some_and(|block| block.is_static) => {
            String::from("the static part of the system prompt")
        }
        BreakpointPosition::System(at) if at + 1 == contents.blocks.len() => {
            String::from("the system prompt")
        }
        BreakpointPosition::System(at) => format!("block {} of the system prompt", at + 1),
        BreakpointPosition::Block(at)
            if Some(at) == report.request.last_cacheable_block(report.request.block_count()) =>
        {
            String::from(match report.subject {
                ContextSubject::Planned(_) => "the first message",
                ContextSubject::Stored { .. } => "the newest message",
            })
        }
        BreakpointPosition::Block(at) if at < report.request.sent_blocks() => {
            String::from("the content of the previous request")
        }
        BreakpointPosition::Block(at) => format!("block {} of the messages", at + 1),
    }
}

/// Estimates the tokens that a breakpoint covers.
fn covered_tokens(report: &ContextReport, spot: BreakpointPosition) -> f64 {
    let contents = &report.contents;
    let tools = contents.tokens_of_tools(contents.tools.len());
    match spot {
        BreakpointPosition::Tool(at) => contents.tokens_of_tools(at + 1),
        // Includes the part of the prompt that is not in the transcript.
        BreakpointPosition::System(at) if at + 1 == contents.blocks.len() => {
            report.request.tokens_up_to(spot)
        }
        BreakpointPosition::System(at) => {
            tools + contents.blocks.iter().take(at + 1).map(|block| block.extent.tokens).sum::<f64>()
        }
        BreakpointPosition::Block(_) => report.request.tokens_up_to(spot),
    }
}
