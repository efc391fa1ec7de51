//! Walks a branch from an entry to its parent, newest first.
//!
//! The parent is on the previous line, at the offset that the entry stores, or named by a repair; all are
//! verified by id. If the file is inconsistent or a line was altered, the walk stops with
//! [`WalkStop::Unclear`], and the branch is recovered from a [`LogScan`] of the whole file.

use pal_model::{EntryBody, EntryId, RepairLink, SharedText};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{FileError, LogProblem, OpenError};
use crate::located_entry::{LocatedEntry, read_entry};
use crate::log_scan::{LogScan, ScannedEntry};
use crate::repairs::KnownRepairs;
use crate::segment::{LineCursor, LogSource, RawLine};

/// Reason why a walk ended early.
pub(crate) enum WalkStop {
    /// The file is damaged here; a full scan is needed.
    Unclear,
    /// The log cannot be read.
    Refused(OpenError),
}

impl From<OpenError> for WalkStop {
    fn from(error: OpenError) -> WalkStop {
        WalkStop::Refused(error)
    }
}

impl From<FileError> for WalkStop {
    fn from(error: FileError) -> WalkStop {
        WalkStop::Refused(error.into())
    }
}

/// Position on one branch, with the problems met.
pub(crate) struct BranchWalk<'a> {
    source: LogSource<'a>,
    cursor: LineCursor<'a>,
    repairs: KnownRepairs,
    recovered: Option<RecoveredParents>,
    /// Offset and length of the previous entry, if it has no checksum.
    unsealed: Option<(u64, u64)>,
    pub(crate) problems: Vec<LogProblem>,
}

/// Parents found by a full scan.
struct RecoveredParents {
    parents: FxHashMap<u64, ScannedEntry>,
    by_id: FxHashMap<EntryId, ScannedEntry>,
    /// Ids of all branches.
    in_file: FxHashSet<EntryId>,
}

impl<'a> BranchWalk<'a> {
    /// Walks as the file says and stops at inconsistencies.
    pub(crate) fn new(source: LogSource<'a>) -> BranchWalk<'a> {
        BranchWalk {
            source,
            cursor: LineCursor::new(source),
            repairs: KnownRepairs::default(),
            recovered: None,
            unsealed: None,
            problems: Vec::new(),
        }
    }

    /// Walks a recovered branch of a damaged file, from the newest entry or the one at `start`. None if the
    /// file has no entry.
    pub(crate) fn recovered(
        source: LogSource<'a>,
        start: Option<u64>,
    ) -> Result<Option<(BranchWalk<'a>, LocatedEntry)>, OpenError> {
        let scan = LogScan::read(source)?;
        let start = start.or_else(|| scan.newest().map(|newest| newest.offset));
        let branch = scan.branch(start.unwrap_or(0));
        let Some(newest) = branch.entries.first().copied() else { return Ok(None) };
        let pairs = branch.entries.iter().zip(branch.entries.iter().skip(1));
        let parents = pairs.map(|(child, parent)| (child.offset, *parent)).collect();
        let by_id = branch.entries.iter().map(|entry| (entry.id, *entry)).collect();
        let in_file = scan.ids();
        let mut walk = BranchWalk::new(source);
        walk.recovered = Some(RecoveredParents { parents, by_id, in_file });
        walk.problems = scan.unknown_damage(source, branch)?;
        let newest = walk.load(newest.offset, newest.bytes)?;
        Ok(newest.map(|newest| (walk, newest)))
    }

    /// Reports whether an entry is missing on all branches. In a repaired file, an entry counts as lost if it
    /// is not at its stored offset.
    pub(crate) fn is_lost(&mut self, id: EntryId, offset: Option<u64>) -> Result<bool, WalkStop> {
        if let Some(recovered) = &self.recovered {
            return Ok(!recovered.in_file.contains(&id));
        }
        if self.repairs.is_empty() {
            return Ok(false);
        }
        match offset {
            Some(offset) => Ok(self.entry_at(id, offset)?.is_none()),
            None => Ok(true),
        }
    }

    pub(crate) fn source(&self) -> LogSource<'a> {
        self.source
    }

    /// Reports whether parent links alone define the branch, without recovery or repairs.
    pub(crate) fn uses_parent_links(&self) -> bool {
        !self.is_recovered() && self.repairs.is_empty()
    }

    pub(crate) fn is_recovered(&self) -> bool {
        self.recovered.is_some()
    }

    /// Visits the next entry of the walk; stops at damage that no repair names.
    pub(crate) fn visit(&mut self, located: &LocatedEntry) -> Result<(), WalkStop> {
        self.check_entry(located)?;
        let place = (located.offset, located.bytes());
        // Once lines have checksums, all later ones do.
        let newer = std::mem::replace(&mut self.unsealed, (!located.has_checksum).then_some(place));
        if !self.is_recovered()
            && located.has_checksum
            && let Some((offset, bytes)) = newer
            && !self.repairs.is_known_damage(self.source, offset, bytes)?
        {
            return Err(WalkStop::Unclear);
        }
        Ok(())
    }

    /// Checks an entry outside the walk; stops at damage that no repair names.
    pub(crate) fn check_entry(&mut self, located: &LocatedEntry) -> Result<(), WalkStop> {
        if self.is_recovered() {
            return Ok(());
        }
        if let EntryBody::Repair(repair) = &located.entry.body {
            self.repairs.add(repair);
        }
        let has_strange_end = located.has_crlf && located.offset >= self.repairs.crlf_before();
        let is_strange = located.is_altered
            && !self.repairs.is_known_damage(self.source, located.offset, located.bytes())?;
        if has_strange_end || is_strange || located.is_salvaged { Err(WalkStop::Unclear) } else { Ok(()) }
    }

    /// Returns the parent of `child`; none at the start of the branch.
    pub(crate) fn parent_of(&mut self, child: &LocatedEntry) -> Result<Option<LocatedEntry>, WalkStop> {
        if let Some(recovered) = &self.recovered {
            let Some(parent) = recovered.parents.get(&child.offset).copied() else { return Ok(None) };
            return Ok(self.load(parent.offset, parent.bytes)?);
        }
        if let Some(RepairLink { parent, parent_offset, parent_bytes, .. }) = self.repairs.link(child.offset)
        {
            let linked = self.load(parent_offset, parent_bytes)?;
            return linked.filter(|found| found.entry.id == parent).map(Some).ok_or(WalkStop::Unclear);
        }
        if self.repairs.is_start(child.offset) {
            return Ok(None);
        }
        let Some(parent) = child.entry.parent else {
            // Only the first line of a file has no parent.
            return if child.offset == 0 { Ok(None) } else { Err(WalkStop::Unclear) };
        };
        let line = match child.entry.parent_offset {
            None => self.cursor.ending_at(child.offset)?,
            Some(offset) if offset < child.offset => self.cursor.starting_at(offset)?,
            Some(_) => None,
        };
        self.entry_in(line, parent)?.map(Some).ok_or(WalkStop::Unclear)
    }

    /// Returns the entry `id` if its line starts at `offset`.
    pub(crate) fn entry_at(&mut self, id: EntryId, offset: u64) -> Result<Option<LocatedEntry>, OpenError> {
        if let Some(recovered) = &self.recovered {
            // Offsets may have moved.
            let Some(found) = recovered.by_id.get(&id).copied() else { return Ok(None) };
            return self.load(found.offset, found.bytes);
        }
        let line = self.cursor.starting_at(offset)?;
        self.entry_in(line, id)
    }

    fn load(&self, offset: u64, bytes: u64) -> Result<Option<LocatedEntry>, OpenError> {
        let Some(end) = offset.checked_add(bytes).filter(|end| *end <= self.source.end) else {
            return Ok(None);
        };
        let read = self.source.read(offset, end)?;
        let text = std::str::from_utf8(&read).ok();
        Ok(text.and_then(|text| read_entry(offset, &SharedText::from(text)).ok()))
    }

    fn entry_in(&self, line: Option<RawLine>, id: EntryId) -> Result<Option<LocatedEntry>, OpenError> {
        match line.map(RawLine::parse) {
            Some(Ok(located)) if located.entry.id == id => Ok(Some(located)),
            Some(Err(bad)) => bad.unless_newer(self.source.path).map(|_| None),
            _ => Ok(None),
        }
    }
}
