//! Where a request carries marks (§5.6): at most four, in the order of need.

use pal_model::Card;
use pal_view::{CacheLifetime, CacheScope, Mark, Request, Spot, is_deferred};

/// Marks that the provider takes in one request.
const MARKS_MOST: usize = 4;
/// From so many new blocks on, the end of the request before is marked, too: the provider looks back a little
/// farther, but not everywhere counts a run of calls as one.
const NEW_BLOCKS_MOST: usize = 15;

/// How a request is to be marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marking {
    /// For how long what is marked is kept.
    pub lifetime: CacheLifetime,
    /// Whether nothing is to be written: what the request adds to the one before it will not be sent again.
    pub is_fork: bool,
}

/// The marks of a request, most needed first: its tail, the last system block, the end of what opens the messages where
/// that lasts longer than they do, the tail of the request before it when much was added since, the end of the static part, the last tool. What is too small to be cached gets none.
pub fn plan(request: &Request, card: &Card, marking: Marking) -> Vec<Mark> {
    let scopes = scopes(request, card);
    let opening = opening(request, marking);
    let mut marks: Vec<Mark> = Vec::with_capacity(MARKS_MOST);
    for spot in wanted(request, marking).into_iter().flatten() {
        let is_new = marks.iter().all(|mark| mark.spot != spot);
        if marks.len() == MARKS_MOST || !is_new || request.tokens_until(spot) < card.min_cacheable as f64 {
            continue;
        }
        let scope = match spot {
            Spot::System(block) => scopes.get(block).copied().flatten(),
            Spot::Tool(_) | Spot::Block(_) => None,
        };
        // Where a scope leaves the system blocks behind the static part unmarked, so does the plan.
        if matches!(spot, Spot::System(_)) && card.can.cache_scopes && scope.is_none() {
            continue;
        }
        let lifetime = match opening == Some(spot) {
            true => CacheLifetime::Hour1,
            false => marking.lifetime.at(spot),
        };
        marks.push(Mark { spot, lifetime, scope });
    }
    marks.sort_by_key(|mark| mark.spot);
    marks
}

/// The spots that want a mark, in the order of need.
fn wanted(request: &Request, marking: Marking) -> [Option<Spot>; 6] {
    let notes = request.system_notes();
    let markable = |block: &usize| notes.get(*block).is_some_and(|note| note.markable);
    let sent = request.sent_blocks();
    let tail = if marking.is_fork {
        // The request before has left its mark there; without one, what stands before the directive is next best.
        request.last_markable(sent).or_else(|| request.last_markable(request.blocks_before_last_message()))
    } else {
        request.last_markable(request.blocks())
    };
    let is_far = !marking.is_fork && request.blocks().saturating_sub(sent) > NEW_BLOCKS_MOST;
    [
        tail.map(Spot::Block),
        (0..notes.len()).rev().find(markable).map(Spot::System),
        opening(request, marking),
        request.last_markable(sent).filter(|_| is_far).map(Spot::Block),
        (0..notes.len()).rev().filter(|block| notes[*block].is_static).find(markable).map(Spot::System),
        request.tools().iter().rposition(|tool| !is_deferred(tool)).map(Spot::Tool),
    ]
}

/// The end of what opens the messages, where that lasts longer than they do: it stays the same whatever is cleared or
/// compacted.
fn opening(request: &Request, marking: Marking) -> Option<Spot> {
    let is_longer = marking.lifetime == CacheLifetime::Hour1ThenMinutes5 && !marking.is_fork;
    let blocks = Some(request.opening_blocks()).filter(|blocks| is_longer && *blocks > 0)?;
    request.last_markable(blocks).map(Spot::Block)
}

/// For whom each system block is kept (§5.4): without tools of MCP servers the static part is the same for everybody
/// and the rest is not kept by itself; with them everything is the organisation's.
fn scopes(request: &Request, card: &Card) -> Vec<Option<CacheScope>> {
    let has_mcp = request.tools().iter().any(|tool| tool.contains("\"name\":\"mcp__"));
    let scope = |is_static: bool| match (card.can.cache_scopes, has_mcp, is_static) {
        (false, ..) | (true, false, false) => None,
        (true, false, true) => Some(CacheScope::Global),
        (true, true, _) => Some(CacheScope::Organisation),
    };
    request.system_notes().iter().map(|note| scope(note.is_static)).collect()
}
