//! What a session needs of its log to go on, read from the end.
//!
//! The branch is followed back to the newest boundary in force, and on to the first message which that boundary
//! keeps; the prefix comes straight from the offset that it carries. So the work follows the tail, not the file. An
//! offset that does not lead to what it should is not used: the walk goes on along the branch instead. Where the file
//! is damaged, the same is done along a branch that was recovered from all of it. Without a boundary the branch is read to its
//! start, unless no context window could hold it ([`OmittedHistory`]).

use pal_model::{Body, Boundary, DecisionKind, Entry, EntryId, Preserved};
use rustc_hash::FxHashSet;

use crate::error::{OpenError, Problem};
use crate::omitted_history::{OmittedHistory, Visible, leave_out};
use crate::segment::{Cursor, Located, Source};
use crate::walk::{Stop, Walk};

/// Entries in the order of their branch, and what could not be found.
pub(crate) struct Resumed {
    pub(crate) located: Vec<Located>,
    pub(crate) problems: Vec<Problem>,
    /// The newest entry, which the next one follows.
    pub(crate) head: (EntryId, u64),
    pub(crate) left_out: Option<OmittedHistory>,
}

/// The part of a branch that was selected, in order.
struct Selected {
    located: Vec<Located>,
    left_out: Option<OmittedHistory>,
}

/// Where a branch is read from.
#[derive(Clone)]
pub(crate) enum Start {
    /// The last entry of the file.
    Last(Located),
    /// An entry that was chosen.
    Chosen(Located),
}

/// The part of the branch that the view needs.
pub(crate) fn resume(source: Source<'_>, start: &Start) -> Result<Resumed, OpenError> {
    read(source, start, select)
}

/// What `find` says of the newest entry that it says something of, up to the boundary in force; none also where the file is
/// damaged on the way.
pub(crate) fn newest<T>(
    source: Source<'_>,
    last: Located,
    find: &impl Fn(&Entry) -> Option<T>,
) -> Result<Option<T>, OpenError> {
    if may_be_a_copy(source, &last)? {
        return Ok(None);
    }
    let mut walk = Walk::new(source);
    let mut undone = FxHashSet::default();
    let mut next = Some(last);
    while let Some(located) = next {
        let found = find(&located.entry);
        if found.is_some() || begins_the_view(&located, &mut undone) {
            return Ok(found);
        }
        let stepped = walk.take(&located).and_then(|()| walk.parent_of(&located));
        next = match stepped {
            Ok(parent) => parent,
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Unclear) => None,
        };
    }
    Ok(None)
}

/// The branch from its very start.
pub(crate) fn whole_branch(source: Source<'_>, start: &Start) -> Result<Resumed, OpenError> {
    let mut whole = read(source, start, |walk, newest| {
        let mut found = Vec::new();
        let mut next = Some(newest);
        while let Some(located) = next {
            walk.take(&located)?;
            next = walk.parent_of(&located)?;
            found.push(located);
        }
        found.reverse();
        Ok(Selected { located: found, left_out: None })
    })?;
    keep_as_resumed(&resume(source, start)?, &mut whole.located);
    Ok(whole)
}

/// Lets the boundary in force keep what it keeps for a session that is resumed: both show the same.
fn keep_as_resumed(resumed: &Resumed, found: &mut [Located]) {
    for kept in resumed.located.iter().filter(|located| matches!(located.entry.body, Body::Boundary(_))) {
        if let Some(located) = found.iter_mut().find(|located| located.offset == kept.offset) {
            located.entry.body.clone_from(&kept.entry.body);
        }
    }
}

/// Reads from the end; and again along a recovered branch if the file is found to be damaged on the way.
fn read<'a>(
    source: Source<'a>,
    start: &Start,
    select: impl Fn(&mut Walk<'a>, Located) -> Result<Selected, Stop>,
) -> Result<Resumed, OpenError> {
    let (newest, chosen) = match start {
        Start::Last(last) => (last, None),
        Start::Chosen(chosen) => (chosen, Some(chosen.offset)),
    };
    let mut walk = Walk::new(source);
    let is_last = chosen.is_some() || !may_be_a_copy(source, newest)?;
    let found = if is_last { select(&mut walk, newest.clone()) } else { Err(Stop::Unclear) };
    match found {
        Ok(Selected { located, left_out }) => {
            let head = (newest.entry.id, newest.offset);
            return Ok(Resumed { located, problems: walk.problems, head, left_out });
        }
        Err(Stop::Refused(error)) => return Err(error),
        Err(Stop::Unclear) => {}
    }
    let head = (newest.entry.id, newest.offset);
    let Some((mut walk, newest)) = Walk::recovered(source, chosen)? else {
        return Ok(Resumed { located: Vec::new(), problems: Vec::new(), head, left_out: None });
    };
    let head = (newest.entry.id, newest.offset);
    match select(&mut walk, newest) {
        Ok(Selected { located, left_out }) => {
            Ok(Resumed { located, problems: walk.problems, head, left_out })
        }
        Err(Stop::Refused(error)) => Err(error),
        // A recovered walk never is.
        Err(Stop::Unclear) => {
            Ok(Resumed { located: Vec::new(), problems: walk.problems, head, left_out: None })
        }
    }
}

/// Whether the last entry is older than the line before it, as a line that was moved or repeated there is. One that
/// follows the line before it is checked by that.
fn may_be_a_copy(source: Source<'_>, last: &Located) -> Result<bool, OpenError> {
    if last.entry.parent_offset.is_none() {
        return Ok(false);
    }
    let before = Cursor::new(source).ending_at(last.offset)?;
    // A clock may have been set back; ids and times agree where a line was moved.
    let is_newer = |before: &Located| before.entry.at > last.entry.at && before.entry.id > last.entry.id;
    Ok(before.and_then(|line| line.parse().ok()).is_some_and(|before| is_newer(&before)))
}

fn select(walk: &mut Walk<'_>, newest: Located) -> Result<Selected, Stop> {
    let mut undone = FxHashSet::default();
    let mut found: Vec<Located> = Vec::new();
    let mut kept = Kept::default();
    let mut visible = Visible::default();
    let mut left_out = None;
    let mut next = Some(newest);
    while let Some(mut located) = next {
        walk.take(&located)?;
        let is_start = begins_the_view(&located, &mut undone);
        if !undone.contains(&located.entry.id) {
            visible.add(&located.entry);
        }
        if !is_start && visible.is_enough(&located.entry) {
            found.push(located.clone());
            let has_prefix = found.iter().any(|located| matches!(located.entry.body, Body::Prefix(_)));
            let (mut taken, rest) = leave_out(walk, &located, has_prefix)?;
            left_out = Some(rest);
            found.append(&mut taken);
            break;
        }
        next = if is_start { None } else { walk.parent_of(&located)? };
        if is_start {
            kept = kept_by(walk, &located)?;
            if let Body::Boundary(boundary) = &mut located.entry.body
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
    Ok(Selected { located: found, left_out })
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

/// What a boundary keeps of what lies before it.
#[derive(Default)]
struct Kept {
    /// From just before the boundary to the first preserved entry.
    stretch: Vec<Located>,
    /// First and last entry of the stretch, where one that the boundary names is lost.
    ends: Option<(EntryId, EntryId)>,
    prefix: Option<Located>,
}

impl Kept {
    /// Keeps what is left of a stretch of which one end is lost.
    fn keep_rest(&mut self, stretch: Vec<Located>) {
        if let (Some(newest), Some(oldest)) = (stretch.first(), stretch.last()) {
            self.ends = Some((oldest.entry.id, newest.entry.id));
            self.stretch = stretch;
        }
    }
}

fn kept_by(walk: &mut Walk<'_>, start: &Located) -> Result<Kept, Stop> {
    let mut kept = Kept::default();
    let Body::Boundary(boundary) = &start.entry.body else { return Ok(kept) };
    let mut missing = Missing::of(boundary);
    if let Some(reference) = boundary.snapshot.prefix
        && let Some(offset) = reference.offset.filter(|offset| *offset < start.offset)
        && let Some(prefix) = walk.entry_at(reference.id, offset)?
    {
        walk.accept(&prefix)?;
        kept.prefix = Some(prefix);
        missing.prefix = None;
    }
    if missing.is_any() {
        walk_to_kept(walk, start, &mut missing, &mut kept)?;
    }
    let boundary = start.entry.id;
    if let Some(Preserved { head, tail, .. }) = missing.preserved {
        walk.problems.push(Problem::LostPreserved { boundary, head, tail });
    }
    if let Some(prefix) = missing.prefix {
        walk.problems.push(Problem::LostPrefix { boundary, prefix });
    }
    Ok(kept)
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
    kept: &mut Kept,
) -> Result<(), Stop> {
    let floor = head_offset(walk, missing.preserved.as_ref(), start.offset)?;
    let mut wanted = missing.preserved.clone();
    let mut stretch = Vec::new();
    let mut seen_tail = false;
    let mut at = start.clone();
    while wanted.is_some() || missing.prefix.is_some() {
        let Some(located) = walk.parent_of(&at)? else {
            // The head is lost, but not what follows it.
            if let Some(Preserved { head, offset, .. }) = wanted.filter(|_| seen_tail)
                && walk.is_lost(head, offset)?
            {
                // Ids grow with time. Offsets may have moved.
                let is_behind = |located: &Located| {
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
        walk.take(&located)?;
        let id = located.entry.id;
        if missing.prefix == Some(id) {
            missing.prefix = None;
            kept.prefix = Some(located.clone());
        }
        if let Some(Preserved { head, tail, .. }) = wanted {
            seen_tail |= id == tail;
            stretch.push(located.clone());
            let is_head = id == head;
            if is_head && seen_tail {
                missing.preserved = None;
                kept.stretch = std::mem::take(&mut stretch);
            } else if is_head && walk.is_lost(tail, None)? {
                // Without its tail it ends with the boundary.
                missing.preserved = None;
                kept.keep_rest(std::mem::take(&mut stretch));
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
fn head_offset(walk: &mut Walk<'_>, preserved: Option<&Preserved>, before: u64) -> Result<Option<u64>, Stop> {
    let Some(preserved) = preserved.filter(|_| !walk.is_recovered()) else { return Ok(None) };
    let Some(offset) = preserved.offset.filter(|offset| *offset < before) else { return Ok(None) };
    Ok(walk.entry_at(preserved.head, offset)?.map(|_| offset))
}
