//! Marks as another client sets them.

use pal_model::{Card, Role};
use pal_view::{CacheLifetime, Mark, Request, Spot};

/// A request with marks on its last system block and at the end of each of the last `messages` messages, as far as what
/// they cover is large enough to be cached.
pub(crate) fn as_client(request: Request, card: &Card, messages: usize, lifetime: CacheLifetime) -> Request {
    let mut spots: Vec<Spot> = request.system().len().checked_sub(1).map(Spot::System).into_iter().collect();
    let opens: Vec<usize> = request
        .pieces()
        .enumerate()
        .filter_map(|(at, (opens, _, _)): (usize, (Option<Role>, _, _))| opens.map(|_| at))
        .collect();
    for message in opens.len().saturating_sub(messages)..opens.len() {
        let end = opens.get(message + 1).copied().unwrap_or(request.blocks());
        spots.extend(request.last_markable(end).filter(|at| *at >= opens[message]).map(Spot::Block));
    }
    spots.retain(|spot| request.tokens_until(*spot) >= card.min_cacheable as f64);
    request.with_marks(spots.into_iter().map(|spot| Mark { spot, lifetime, scope: None }).collect())
}
