//! Reads what a session needs to resume, from the end of its log.
//!
//! Follows the branch back to the newest boundary in force and on to the first message that it preserves; the
//! prefix is read at the offset that the boundary stores. The work therefore depends on the tail, not on the
//! file size. A wrong offset is ignored and the walk continues along the branch. In a damaged file the same
//! is done along a branch recovered from the whole file. Without a boundary the branch is read to its start,
//! unless no context window could hold it ([`OmittedHistory`]).

use pal_model::{Boundary, DecisionKind, EntryBody, EntryId, LogEntry, PreservedRange};
use rustc_hash::FxHashSet;

use crate::branch_walk::{BranchWalk, WalkStop};
use crate::error::{LogProblem, OpenError};
use crate::located_entry::LocatedEntry;
use crate::omitted_history::{OmittedHistory, VisibleSize, collect_omitted};
use crate::segment::{LineCursor, LogSource};

/// Entries in branch order, with the problems met.
pub(crate) struct ResumedBranch {
    pub(crate) located: Vec<LocatedEntry>,
    pub(crate) problems: Vec<LogProblem>,
    /// Id and offset of the newest entry; the next one follows it.
    pub(crate) head: (EntryId, u64),
    pub(crate) left_out: Option<OmittedHistory>,
}

/// Selected part of a branch, in order.
struct SelectedEntries {
    located: Vec<LocatedEntry>,
    left_out: Option<OmittedHistory>,
}

/// Entry that a branch is read from.
#[derive(Clone)]
pub(crate) enum ResumeStart {
    /// Last entry of the file.
    Last(LocatedEntry),
    /// Entry chosen by a rewind.
    Chosen(LocatedEntry),
}

/// Reads the part of the branch that the view needs.
pub(crate) fn resume(source: LogSource<'_>, start: &ResumeStart) -> Result<ResumedBranch, OpenError> {
    read(source, start, select)
}

/// Returns the first `Some` that `find` gives, newest entry first, up to the boundary in force. Also none if
/// the file is damaged on the way.
pub(crate) fn newest<T>(
    source: LogSource<'_>,
    last: LocatedEntry,
    find: &impl Fn(&LogEntry) -> Option<T>,
) -> Result<Option<T>, OpenError> {
    if is_possible_copy(source, &last)? {
        return Ok(None);
    }
    let mut walk = BranchWalk::new(source);
    let mut undone = FxHashSet::default();
    let mut next = Some(last);
    while let Some(located) = next {
        let found = find(&located.entry);
        if found.is_some() || is_boundary_in_force(&located, &mut undone) {
            return Ok(found);
        }
        let stepped = walk.visit(&located).and_then(|()| walk.parent_of(&located));
        next = match stepped {
            Ok(parent) => parent,
            Err(WalkStop::Refused(error)) => return Err(error),
            Err(WalkStop::Unclear) => None,
        };
    }
    Ok(None)
}

/// Reads the branch from its start.
pub(crate) fn whole_branch(source: LogSource<'_>, start: &ResumeStart) -> Result<ResumedBranch, OpenError> {
    let mut whole = read(source, start, |walk, newest| {
        let mut found = Vec::new();
        let mut next = Some(newest);
        while let Some(located) = next {
            walk.visit(&located)?;
            next = walk.parent_of(&located)?;
            found.push(located);
        }
        found.reverse();
        Ok(SelectedEntries { located: found, left_out: None })
    })?;
    copy_preserved_range(&resume(source, start)?, &mut whole.located);
    Ok(whole)
}

/// Copies the adjusted boundary of the resumed branch, so that both preserve the same messages.
fn copy_preserved_range(resumed: &ResumedBranch, found: &mut [LocatedEntry]) {
    for kept in resumed.located.iter().filter(|located| matches!(located.entry.body, EntryBody::Boundary(_)))
    {
        if let Some(located) = found.iter_mut().find(|located| located.offset == kept.offset) {
            located.entry.body.clone_from(&kept.entry.body);
        }
    }
}

/// Reads from the end; if the file turns out to be damaged, reads again along a recovered branch.
fn read<'a>(
    source: LogSource<'a>,
    start: &ResumeStart,
    select: impl Fn(&mut BranchWalk<'a>, LocatedEntry) -> Result<SelectedEntries, WalkStop>,
) -> Result<ResumedBranch, OpenError> {
    let (newest, chosen) = match start {
        ResumeStart::Last(last) => (last, None),
        ResumeStart::Chosen(chosen) => (chosen, Some(chosen.offset)),
    };
    let mut walk = BranchWalk::new(source);
    let is_last = chosen.is_some() || !is_possible_copy(source, newest)?;
    let found = if is_last { select(&mut walk, newest.clone()) } else { Err(WalkStop::Unclear) };
    match found {
        Ok(SelectedEntries { located, left_out }) => {
            let head = (newest.entry.id, newest.offset);
            return Ok(ResumedBranch { located, problems: walk.problems, head, left_out });
        }
        Err(WalkStop::Refused(error)) => return Err(error),
        Err(WalkStop::Unclear) => {}
    }
    let head = (newest.entry.id, newest.offset);
    let Some((mut walk, newest)) = BranchWalk::recovered(source, chosen)? else {
        return Ok(ResumedBranch { located: Vec::new(), problems: Vec::new(), head, left_out: None });
    };
    let head = (newest.entry.id, newest.offset);
    match select(&mut walk, newest) {
        Ok(SelectedEntries { located, left_out }) => {
            Ok(ResumedBranch { located, problems: walk.problems, head, left_out })
        }
        Err(WalkStop::Refused(error)) => Err(error),
        // A recovered walk never reports damage.
        Err(WalkStop::Unclear) => {
            Ok(ResumedBranch { located: Vec::new(), problems: walk.problems, head, left_out: None })
        }
    }
}

/// Detects a last line that was moved or repeated: its entry is older than the line before it. Entries that
/// directly follow the previous line are verified by that link.
fn is_possible_copy(source: LogSource<'_>, last: &LocatedEntry) -> Result<bool, OpenError> {
    if last.entry.parent_offset.is_none() {
        return Ok(false);
    }
    let before = LineCursor::new(source).ending_at(last.offset)?;
    // The clock may have been set back, so both id and time must be newer.
    let is_newer = |before: &LocatedEntry| before.entry.at > last.entry.at && before.entry.id > last.entry.id;
    Ok(before.and_then(|line| line.parse().ok()).is_some_and(|before| is_newer(&before)))
}

fn select(walk: &mut BranchWalk<'_>, newest: LocatedEntry) -> Result<SelectedEntries, WalkStop> {
    let mut undone = FxHashSet::default();
    let mut found: Vec<LocatedEntry> = Vec::new();
    let mut kept = PreservedEntries::default();
    let mut visible = VisibleSize::default();
    let mut left_out = None;
    let mut next = Some(newest);
    while let Some(mut located) = next {
        walk.visit(&located)?;
        let is_start = is_boundary_in_force(&located, &mut undone);
        if !undone.contains(&located.entry.id) {
            visible.add(&located.entry);
        }
        if !is_start && visible.is_enough(&located.entry) {
            found.push(located.clone());
            let has_prefix = found.iter().any(|located| matches!(located.entry.body, EntryBody::Prefix(_)));
            let (mut taken, rest) = collect_omitted(walk, &located, has_prefix)?;
            left_out = Some(rest);
            found.append(&mut taken);
            break;
        }
        next = if is_start { None } else { walk.parent_of(&located)? };
        if is_start {
            kept = read_preserved(walk, &located)?;
            if let EntryBody::Boundary(boundary) = &mut located.entry.body
                && let Some(ends) = kept.ends
                && let Some(preserved) = &mut boundary.preserved
            {
                (preserved.head, preserved.tail) = ends;
            }
        }
        found.push(located);
    }
    found.append(&mut kept.stretch);
    if let Some(prefix) = kept.prefix
        && !found.iter().any(|located| located.offset == prefix.offset)
    {
        found.push(prefix);
    }
    found.reverse();
    Ok(SelectedEntries { located: found, left_out })
}

/// Reports whether this is a boundary in force. Walking newest first, every undo comes before its target, so
/// one set suffices, even for an undo of an undo.
fn is_boundary_in_force(located: &LocatedEntry, undone: &mut FxHashSet<EntryId>) -> bool {
    let entry = &located.entry;
    match &entry.body {
        EntryBody::Boundary(boundary) => boundary.has_summary() && !undone.contains(&entry.id),
        EntryBody::Decision(decision) => {
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

/// Entries before a boundary that it preserves.
#[derive(Default)]
struct PreservedEntries {
    /// From just before the boundary back to the first preserved entry.
    stretch: Vec<LocatedEntry>,
    /// First and last entry that were found, if an end named by the boundary is lost.
    ends: Option<(EntryId, EntryId)>,
    prefix: Option<LocatedEntry>,
}

impl PreservedEntries {
    /// Keeps the rest of a range of which one end is lost.
    fn keep_rest(&mut self, stretch: Vec<LocatedEntry>) {
        if let (Some(newest), Some(oldest)) = (stretch.first(), stretch.last()) {
            self.ends = Some((oldest.entry.id, newest.entry.id));
            self.stretch = stretch;
        }
    }
}

fn read_preserved(walk: &mut BranchWalk<'_>, start: &LocatedEntry) -> Result<PreservedEntries, WalkStop> {
    let mut kept = PreservedEntries::default();
    let EntryBody::Boundary(boundary) = &start.entry.body else { return Ok(kept) };
    let mut missing = MissingPreserved::of(boundary);
    if let Some(reference) = boundary.snapshot.prefix
        && let Some(offset) = reference.offset.filter(|offset| *offset < start.offset)
        && let Some(prefix) = walk.entry_at(reference.id, offset)?
    {
        walk.check_entry(&prefix)?;
        kept.prefix = Some(prefix);
        missing.prefix = None;
    }
    if missing.is_any() {
        walk_to_preserved(walk, start, &mut missing, &mut kept)?;
    }
    let boundary = start.entry.id;
    if let Some(PreservedRange { head, tail, .. }) = missing.preserved {
        walk.problems.push(LogProblem::LostPreserved { boundary, head, tail });
    }
    if let Some(prefix) = missing.prefix {
        walk.problems.push(LogProblem::LostPrefix { boundary, prefix });
    }
    Ok(kept)
}

/// Preserved entries not read yet.
struct MissingPreserved {
    preserved: Option<PreservedRange>,
    prefix: Option<EntryId>,
}

impl MissingPreserved {
    fn of(boundary: &Boundary) -> MissingPreserved {
        let prefix = boundary.snapshot.prefix.map(|prefix| prefix.id);
        MissingPreserved { preserved: boundary.preserved.clone(), prefix }
    }

    fn is_any(&self) -> bool {
        self.preserved.is_some() || self.prefix.is_some()
    }
}

/// Walks on until nothing is missing. Takes everything from the first preserved entry up to the boundary,
/// because decisions about preserved messages may follow them anywhere.
fn walk_to_preserved(
    walk: &mut BranchWalk<'_>,
    start: &LocatedEntry,
    missing: &mut MissingPreserved,
    kept: &mut PreservedEntries,
) -> Result<(), WalkStop> {
    let floor = head_offset(walk, missing.preserved.as_ref(), start.offset)?;
    let mut wanted = missing.preserved.clone();
    let mut stretch = Vec::new();
    let mut seen_tail = false;
    let mut at = start.clone();
    while wanted.is_some() || missing.prefix.is_some() {
        let Some(located) = walk.parent_of(&at)? else {
            // The head is lost, but not its successors.
            if let Some(PreservedRange { head, offset, .. }) = wanted.filter(|_| seen_tail)
                && walk.is_lost(head, offset)?
            {
                // Ids grow with time; offsets may have moved.
                let is_behind = |located: &LocatedEntry| {
                    located.entry.id > head || offset.is_some_and(|offset| located.offset >= offset)
                };
                if let Some(oldest) = stretch.iter().rposition(is_behind) {
                    stretch.truncate(oldest + 1);
                    missing.preserved = None;
                    kept.keep_rest(stretch);
                }
            }
            return Ok(());
        };
        walk.visit(&located)?;
        let id = located.entry.id;
        if missing.prefix == Some(id) {
            missing.prefix = None;
            kept.prefix = Some(located.clone());
        }
        if let Some(PreservedRange { head, tail, .. }) = wanted {
            seen_tail |= id == tail;
            stretch.push(located.clone());
            let is_head = id == head;
            if is_head && seen_tail {
                missing.preserved = None;
                kept.stretch = std::mem::take(&mut stretch);
            } else if is_head && walk.is_lost(tail, None)? {
                // Without its tail the range ends at the boundary.
                missing.preserved = None;
                kept.keep_rest(std::mem::take(&mut stretch));
            }
            // Before the head's own offset the search is pointless: it is on another branch.
            if is_head || floor.is_some_and(|floor| located.offset <= floor) {
                wanted = None;
            }
        }
        at = located;
    }
    Ok(())
}

/// Offset of the first preserved entry, if the boundary's offset is correct.
fn head_offset(
    walk: &mut BranchWalk<'_>,
    preserved: Option<&PreservedRange>,
    before: u64,
) -> Result<Option<u64>, WalkStop> {
    let Some(preserved) = preserved.filter(|_| !walk.is_recovered()) else { return Ok(None) };
    let Some(offset) = preserved.offset.filter(|offset| *offset < before) else { return Ok(None) };
    Ok(walk.entry_at(preserved.head, offset)?.map(|_| offset))
}
