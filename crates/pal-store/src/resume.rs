//! What a session needs of its log to go on, read from the end.
//!
//! The branch is followed back to the newest boundary in force, and on to the first message which that boundary
//! keeps; the prefix comes straight from the offset that it carries. So the work follows the tail, not the file. An
//! offset that does not lead to what it should is not used: the walk goes on along the branch instead.

use pal_model::{Body, Boundary, DecisionKind, EntryId, Preserved};
use rustc_hash::FxHashSet;

use crate::error::{OpenError, Problem};
use crate::segment::{Located, Source};
use crate::walk::Walk;

/// Entries in the order of the file, and what could not be found.
pub(crate) struct Resumed {
    pub(crate) located: Vec<Located>,
    pub(crate) problems: Vec<Problem>,
}

/// The part of the branch of `last` that the view needs.
pub(crate) fn resume(source: Source<'_>, last: Located) -> Result<Resumed, OpenError> {
    let mut walk = Walk::new(source);
    let mut undone = FxHashSet::default();
    let mut found = Vec::new();
    let mut next = Some(last);
    while let Some(located) = next {
        let is_start = begins_the_view(&located, &mut undone);
        next = if is_start { None } else { walk.parent_of(&located)? };
        found.push(located);
        if is_start {
            add_kept(&mut walk, &mut found)?;
        }
    }
    found.sort_unstable_by_key(|located| located.offset);
    found.dedup_by_key(|located| located.offset);
    Ok(Resumed { located: found, problems: walk.problems })
}

/// The branch of `last` from its very start.
pub(crate) fn whole_branch(source: Source<'_>, last: Located) -> Result<Resumed, OpenError> {
    let mut walk = Walk::new(source);
    let mut found = Vec::new();
    let mut next = Some(last);
    while let Some(located) = next {
        next = walk.parent_of(&located)?;
        found.push(located);
    }
    found.reverse();
    Ok(Resumed { located: found, problems: walk.problems })
}

/// Whether this is a boundary in force. Seen newest first, each undo comes before what it undoes, an undo of an
/// undo included, so one set is enough.
fn begins_the_view(located: &Located, undone: &mut FxHashSet<EntryId>) -> bool {
    let entry = &located.entry;
    match &entry.body {
        Body::Boundary(boundary) => boundary.stands() && !undone.contains(&entry.id),
        Body::Decision(decision) => {
            if let DecisionKind::Undo { target } = decision.kind
                && !undone.contains(&entry.id)
            {
                undone.insert(target);
            }
            false
        }
        _ => false,
    }
}

/// Adds what the boundary, which is the last of `found`, keeps of what lies before it.
fn add_kept(walk: &mut Walk<'_>, found: &mut Vec<Located>) -> Result<(), OpenError> {
    let Some(start) = found.last().cloned() else { return Ok(()) };
    let Body::Boundary(boundary) = &start.entry.body else { return Ok(()) };
    let mut missing = Missing::of(boundary);
    if let Some(reference) = boundary.snapshot.prefix
        && let Some(offset) = reference.offset.filter(|offset| *offset < start.offset)
        && let Some(prefix) = walk.entry_at(reference.id, offset)?
    {
        found.push(prefix);
        missing.prefix = None;
    }
    if missing.is_any() {
        walk_to_kept(walk, &start, &mut missing, found)?;
    }
    let boundary = start.entry.id;
    if let Some(Preserved { head, tail, .. }) = missing.preserved {
        walk.problems.push(Problem::LostPreserved { boundary, head, tail });
    }
    if let Some(prefix) = missing.prefix {
        walk.problems.push(Problem::LostPrefix { boundary, prefix });
    }
    Ok(())
}

/// What a boundary keeps and has not been read yet.
struct Missing {
    preserved: Option<Preserved>,
    prefix: Option<EntryId>,
}

impl Missing {
    fn of(boundary: &Boundary) -> Missing {
        let prefix = boundary.snapshot.prefix.map(|prefix| prefix.id);
        Missing { preserved: boundary.preserved.clone(), prefix }
    }

    fn is_any(&self) -> bool {
        self.preserved.is_some() || self.prefix.is_some()
    }
}

/// Goes on along the branch until nothing is missing any more. Everything from the first preserved entry up to the
/// boundary is taken, because decisions about preserved messages may stand anywhere behind them.
fn walk_to_kept(
    walk: &mut Walk<'_>,
    start: &Located,
    missing: &mut Missing,
    found: &mut Vec<Located>,
) -> Result<(), OpenError> {
    let floor = head_offset(walk, missing.preserved.as_ref(), start.offset)?;
    let mut wanted = missing.preserved.clone();
    let mut stretch = Vec::new();
    let mut seen_tail = false;
    let mut at = start.clone();
    while wanted.is_some() || missing.prefix.is_some() {
        let Some(located) = walk.parent_of(&at)? else { return Ok(()) };
        let id = located.entry.id;
        if missing.prefix == Some(id) {
            missing.prefix = None;
            found.push(located.clone());
        }
        if let Some(Preserved { head, tail, .. }) = wanted {
            seen_tail |= id == tail;
            stretch.push(located.clone());
            let is_head = id == head;
            if is_head && seen_tail {
                missing.preserved = None;
                found.append(&mut stretch);
            }
            // Behind its own place the head is not to be found: it is on another branch.
            if is_head || floor.is_some_and(|floor| located.offset <= floor) {
                wanted = None;
            }
        }
        at = located;
    }
    Ok(())
}

/// Where the first preserved entry stands, if the offset that the boundary carries leads to it.
fn head_offset(
    walk: &mut Walk<'_>,
    preserved: Option<&Preserved>,
    before: u64,
) -> Result<Option<u64>, OpenError> {
    let Some(preserved) = preserved else { return Ok(None) };
    let Some(offset) = preserved.offset.filter(|offset| *offset < before) else { return Ok(None) };
    Ok(walk.entry_at(preserved.head, offset)?.map(|_| offset))
}
