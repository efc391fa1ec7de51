//! What a session needs of its log to go on, read from the end.
//!
//! The branch is followed back to the newest boundary in force; then come the messages which that boundary keeps
//! and the prefix, straight from the offsets that it carries. So the work follows the tail, not the file. An offset
//! that does not lead to what it should is not used: the walk goes on along the branch instead.

use pal_model::{Body, Boundary, DecisionKind, EntryId, Preserved};
use rustc_hash::FxHashSet;

use crate::error::{OpenError, Problem};
use crate::segment::{Forward, Located, Source};
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
        Body::Boundary(_) => !undone.contains(&entry.id),
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
    if let Some(preserved) = &missing.preserved
        && let Some(stretch) = read_stretch(walk.source(), preserved, start.offset)?
    {
        found.extend(stretch);
        missing.preserved = None;
    }
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

/// The preserved stretch by its offset: read forwards from head to tail, then linked backwards, so that other
/// branches between them stay out. None if the file does not bear it out.
fn read_stretch(
    source: Source<'_>,
    preserved: &Preserved,
    before: u64,
) -> Result<Option<Vec<Located>>, OpenError> {
    let Some(offset) = preserved.offset.filter(|offset| *offset < before) else { return Ok(None) };
    if !source.is_line_start(offset)? {
        return Ok(None);
    }
    let mut lines: Vec<Located> = Vec::new();
    let mut forward = Forward::new(Source { end: before, ..source }, offset);
    while let Some(line) = forward.next_line()? {
        match line.parse() {
            Ok(located) => lines.push(located),
            Err(bad) => drop(bad.unless_newer(source.path)?),
        }
        match lines.last() {
            Some(first) if lines.len() == 1 && first.entry.id != preserved.head => return Ok(None),
            Some(last) if last.entry.id == preserved.tail => return Ok(linked(lines)),
            _ => {}
        }
    }
    Ok(None)
}

/// Of these lines, the ancestors of the last up to the first; none if the first is not among them.
fn linked(lines: Vec<Located>) -> Option<Vec<Located>> {
    let mut on_branch = vec![false; lines.len()];
    let mut at = lines.len().checked_sub(1)?;
    on_branch[at] = true;
    while at > 0 {
        let entry = &lines[at].entry;
        let parent = entry.parent?;
        at = match entry.parent_offset {
            None => at - 1,
            Some(offset) => lines[..at].binary_search_by_key(&offset, |line| line.offset).ok()?,
        };
        if lines[at].entry.id != parent {
            return None;
        }
        on_branch[at] = true;
    }
    Some(lines.into_iter().zip(on_branch).filter_map(|(line, on_branch)| on_branch.then_some(line)).collect())
}

/// Goes on along the branch until nothing is missing any more.
fn walk_to_kept(
    walk: &mut Walk<'_>,
    start: &Located,
    missing: &mut Missing,
    found: &mut Vec<Located>,
) -> Result<(), OpenError> {
    let mut stretch = Vec::new();
    let mut at = start.clone();
    while missing.is_any() {
        let Some(located) = walk.parent_of(&at)? else { return Ok(()) };
        let id = located.entry.id;
        if missing.prefix == Some(id) {
            missing.prefix = None;
            found.push(located.clone());
        }
        if let Some(Preserved { head, tail, .. }) = missing.preserved
            && (id == tail || !stretch.is_empty())
        {
            stretch.push(located.clone());
            if id == head {
                missing.preserved = None;
                found.append(&mut stretch);
            }
        }
        at = located;
    }
    Ok(())
}
