//! Plan of cache breakpoints (§5.6): at most four, by priority.

use pal_model::{ModelCard, SharedText};
use pal_view::{BreakpointPosition, CacheBreakpoint, CacheScope, CacheTtl, Request, is_deferred};

/// Maximum number of breakpoints in one request.
const BREAKPOINTS_MAX: usize = 4;
/// Beyond this number of new blocks, the end of the previous request gets a breakpoint, too: the provider
/// looks back a little farther, but not everywhere counts a run of calls as one.
const NEW_BLOCKS_MAX: usize = 15;

/// Start of the name of an MCP server's tool in its definition.
const MCP_NAME: &str = "\"name\":\"mcp__";

/// Options of the breakpoint plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BreakpointOptions {
    /// Time to live.
    pub ttl: CacheTtl,
    /// Set for a fork: its own content will not be sent again, so nothing is written to the cache.
    pub is_fork: bool,
}

/// Plans the breakpoints of a request by priority: its end, the last system block, the end of the opening context, the end of what
/// other forks of the same response send, the end of the previous request if much was added since, the end of the static system blocks,
/// the last tool. Prefixes below the cacheable minimum get none.
pub fn plan_breakpoints(
    request: &Request,
    card: &ModelCard,
    options: BreakpointOptions,
) -> Vec<CacheBreakpoint> {
    let scopes = scopes(request, card);
    let opening = opening(request, options);
    let mut breakpoints: Vec<CacheBreakpoint> = Vec::with_capacity(BREAKPOINTS_MAX);
    for position in candidate_positions(request, options).into_iter().flatten() {
        let is_new = breakpoints.iter().all(|mark| mark.position != position);
        if breakpoints.len() == BREAKPOINTS_MAX
            || !is_new
            || request.tokens_up_to(position) < card.min_cacheable as f64
        {
            continue;
        }
        let scope = match position {
            BreakpointPosition::System(block) => scopes.get(block).copied().flatten(),
            BreakpointPosition::Tool(_) | BreakpointPosition::Block(_) => None,
        };
        // System blocks behind the static part have no scope and get no breakpoint.
        if matches!(position, BreakpointPosition::System(_)) && card.can.cache_scopes && scope.is_none() {
            continue;
        }
        let ttl = match options.ttl {
            CacheTtl::Hour1ThenMinutes5 if opening == Some(position) => CacheTtl::Hour1,
            ttl => ttl.at_position(position),
        };
        breakpoints.push(CacheBreakpoint { position, ttl, scope });
    }
    breakpoints.sort_by_key(|mark| mark.position);
    breakpoints
}

/// Candidate positions, by priority.
fn candidate_positions(request: &Request, options: BreakpointOptions) -> [Option<BreakpointPosition>; 7] {
    let notes = request.system_notes();
    let markable = |block: &usize| notes.get(*block).is_some_and(|note| note.markable);
    let sent = request.sent_blocks();
    let tail = if options.is_fork {
        // The previous request has a breakpoint there; without one, the end of the content before the
        // directive is next best.
        request
            .last_cacheable_block(sent)
            .or_else(|| request.last_cacheable_block(request.blocks_before_last_message()))
    } else {
        request.last_cacheable_block(request.block_count())
    };
    let is_far = !options.is_fork && request.block_count().saturating_sub(sent) > NEW_BLOCKS_MAX;
    [
        tail.map(BreakpointPosition::Block),
        (0..notes.len()).rev().find(markable).map(BreakpointPosition::System),
        opening(request, options),
        request
            .shared_blocks()
            .and_then(|shared| request.last_cacheable_block(shared))
            .map(BreakpointPosition::Block),
        request.last_cacheable_block(sent).filter(|_| is_far).map(BreakpointPosition::Block),
        (0..notes.len())
            .rev()
            .filter(|block| notes[*block].is_static)
            .find(markable)
            .map(BreakpointPosition::System),
        last_tool(request.tools()).map(BreakpointPosition::Tool),
    ]
}

/// The last tool of the program itself. Tools of servers and of the provider come behind it, so that sessions with other
/// ones still read the rest from the cache; without any other tool, the last of them counts. A deferred tool never does.
fn last_tool(tools: &[SharedText]) -> Option<usize> {
    let is_optional = |tool: &SharedText| {
        let kind = tool.starts_with("{\"type\":") && !tool.starts_with("{\"type\":\"custom\"");
        kind || tool.contains(MCP_NAME)
    };
    let own = tools.iter().rposition(|tool| !is_deferred(tool) && !is_optional(tool));
    own.or_else(|| tools.iter().rposition(|tool| !is_deferred(tool)))
}

/// End of the opening context: no clear or compaction changes it, so the request after one still reads it. The provider, which looks back a
/// few blocks from the end of a request, would not find it.
fn opening(request: &Request, options: BreakpointOptions) -> Option<BreakpointPosition> {
    let blocks = Some(request.opening_blocks()).filter(|blocks| !options.is_fork && *blocks > 0)?;
    request.last_cacheable_block(blocks).map(BreakpointPosition::Block)
}

/// Cache scope of each system block (§5.4): without MCP tools the static part is global and the rest is not
/// cached by itself; with them everything belongs to the organization.
fn scopes(request: &Request, card: &ModelCard) -> Vec<Option<CacheScope>> {
    let has_mcp = request.tools().iter().any(|tool| tool.contains(MCP_NAME));
    let scope = |is_static: bool| match (card.can.cache_scopes, has_mcp, is_static) {
        (false, ..) | (true, false, false) => None,
        (true, false, true) => Some(CacheScope::Global),
        (true, true, _) => Some(CacheScope::Organisation),
    };
    request.system_notes().iter().map(|note| scope(note.is_static)).collect()
}
