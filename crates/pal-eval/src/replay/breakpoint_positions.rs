//! Cache breakpoints at the positions where another client sets them.

use pal_model::{ModelCard, Role};
use pal_view::{BreakpointPosition, CacheBreakpoint, CacheTtl, Request};

/// A request with marks on its last system block and at the end of each of the last `messages` messages, as far as what
/// they cover is large enough to be cached.
pub(crate) fn mark_as_client(
    request: Request,
    card: &ModelCard,
    messages: usize,
    lifetime: CacheTtl,
) -> Request {
    let mut spots: Vec<BreakpointPosition> =
        request.system_blocks().len().checked_sub(1).map(BreakpointPosition::System).into_iter().collect();
    let opens: Vec<usize> = request
        .pieces()
        .enumerate()
        .filter_map(|(at, (opens, _, _)): (usize, (Option<Role>, _, _))| opens.map(|_| at))
        .collect();
    for message in opens.len().saturating_sub(messages)..opens.len() {
        let end = opens.get(message + 1).copied().unwrap_or(request.block_count());
        spots.extend(
            request
                .last_cacheable_block(end)
                .filter(|at| *at >= opens[message])
                .map(BreakpointPosition::Block),
        );
    }
    spots.retain(|spot| request.tokens_up_to(*spot) >= card.min_cacheable as f64);
    request.with_breakpoints(
        spots
            .into_iter()
            .map(|spot| CacheBreakpoint { position: spot, ttl: lifetime, scope: None })
            .collect(),
    )
}
