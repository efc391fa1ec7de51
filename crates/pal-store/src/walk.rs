//! From an entry to its parent, over and over: a branch, newest first.
//!
//! The parent is the previous line, or the line at the offset that the entry carries, or what a repair says. All are
//! checked by id. Where the file does not keep that promise, or a line was altered, the read stops as
//! [`Stop::Unclear`], and the branch is recovered from a [`Scan`] of the whole file.

use pal_model::{Body, EntryId, RepairLink, Text};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{FileError, OpenError, Problem};
use crate::repairs::Repairs;
use crate::scan::{Scan, Scanned};
use crate::segment::{Cursor, Located, RawLine, Source, read_entry};

/// Why a walk ended before it was done.
pub(crate) enum Stop {
    /// The file is damaged here: only a scan of all of it helps.
    Unclear,
    /// The log cannot be read.
    Refused(OpenError),
}

impl From<OpenError> for Stop {
    fn from(error: OpenError) -> Stop {
        Stop::Refused(error)
    }
}

impl From<FileError> for Stop {
    fn from(error: FileError) -> Stop {
        Stop::Refused(error.into())
    }
}

/// The steps back along one branch, and what was missing on the way.
pub(crate) struct Walk<'a> {
    source: Source<'a>,
    cursor: Cursor<'a>,
    repairs: Repairs,
    recovered: Option<Recovered>,
    /// Offset and length of the last entry on the way, if it has no checksum.
    unsealed: Option<(u64, u64)>,
    pub(crate) problems: Vec<Problem>,
}

/// A branch that a scan found, by what each entry follows.
struct Recovered {
    parents: FxHashMap<u64, Scanned>,
    by_id: FxHashMap<EntryId, Scanned>,
    /// The entries of all branches.
    in_file: FxHashSet<EntryId>,
}

impl<'a> Walk<'a> {
    /// A walk that believes the file, and stops where it cannot.
    pub(crate) fn new(source: Source<'a>) -> Walk<'a> {
        Walk {
            source,
            cursor: Cursor::new(source),
            repairs: Repairs::default(),
            recovered: None,
            unsealed: None,
            problems: Vec::new(),
        }
    }

    /// A walk along a branch of a damaged file: that of the newest entry, or of the one at `start`. None if the file has
    /// no entry.
    pub(crate) fn recovered(
        source: Source<'a>,
        start: Option<u64>,
    ) -> Result<Option<(Walk<'a>, Located)>, OpenError> {
        let scan = Scan::read(source)?;
        let start = start.or_else(|| scan.newest().map(|newest| newest.offset));
        let branch = scan.branch(start.unwrap_or(0));
        let Some(newest) = branch.entries.first().copied() else { return Ok(None) };
        let pairs = branch.entries.iter().zip(branch.entries.iter().skip(1));
        let parents = pairs.map(|(child, parent)| (child.offset, *parent)).collect();
        let by_id = branch.entries.iter().map(|entry| (entry.id, *entry)).collect();
        let in_file = scan.ids();
        let mut walk = Walk::new(source);
        walk.recovered = Some(Recovered { parents, by_id, in_file });
        walk.problems = scan.unknown_damage(source, branch)?;
        let newest = walk.load(newest.offset, newest.bytes)?;
        Ok(newest.map(|newest| (walk, newest)))
    }

    /// Whether an entry is in the file no more, on no branch. Only a damaged file loses one; of a repaired file, what does
    /// not stand at the offset that it had is taken for lost.
    pub(crate) fn is_lost(&mut self, id: EntryId, offset: Option<u64>) -> Result<bool, Stop> {
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

    pub(crate) fn source(&self) -> Source<'a> {
        self.source
    }

    /// Whether what the lines say of their parents is all there is to the branch.
    pub(crate) fn follows_the_file(&self) -> bool {
        !self.is_recovered() && self.repairs.is_empty()
    }

    pub(crate) fn is_recovered(&self) -> bool {
        self.recovered.is_some()
    }

    /// Takes in the next entry on the way; damage that no repair has named yet is where the walk ends.
    pub(crate) fn take(&mut self, located: &Located) -> Result<(), Stop> {
        self.accept(located)?;
        let place = (located.offset, located.bytes());
        // Once lines carry checksums, all later ones do.
        let newer = std::mem::replace(&mut self.unsealed, (!located.has_checksum).then_some(place));
        if !self.is_recovered()
            && located.has_checksum
            && let Some((offset, bytes)) = newer
            && !self.repairs.knows(self.source, offset, bytes)?
        {
            return Err(Stop::Unclear);
        }
        Ok(())
    }

    /// The same for an entry beside the way.
    pub(crate) fn accept(&mut self, located: &Located) -> Result<(), Stop> {
        if self.is_recovered() {
            return Ok(());
        }
        if let Body::Repair(repair) = &located.entry.body {
            self.repairs.add(repair);
        }
        let has_strange_end = located.has_crlf && located.offset >= self.repairs.crlf_before();
        let is_strange =
            located.is_altered && !self.repairs.knows(self.source, located.offset, located.bytes())?;
        if has_strange_end || is_strange || located.is_salvaged { Err(Stop::Unclear) } else { Ok(()) }
    }

    /// The parent of `child`; none where the branch begins.
    pub(crate) fn parent_of(&mut self, child: &Located) -> Result<Option<Located>, Stop> {
        if let Some(recovered) = &self.recovered {
            let Some(parent) = recovered.parents.get(&child.offset).copied() else { return Ok(None) };
            return Ok(self.load(parent.offset, parent.bytes)?);
        }
        if let Some(RepairLink { parent, parent_offset, parent_bytes, .. }) = self.repairs.link(child.offset)
        {
            let linked = self.load(parent_offset, parent_bytes)?;
            return linked.filter(|found| found.entry.id == parent).map(Some).ok_or(Stop::Unclear);
        }
        if self.repairs.is_start(child.offset) {
            return Ok(None);
        }
        let Some(parent) = child.entry.parent else {
            // Only the first line of a file follows nothing.
            return if child.offset == 0 { Ok(None) } else { Err(Stop::Unclear) };
        };
        let line = match child.entry.parent_offset {
            None => self.cursor.ending_at(child.offset)?,
            Some(offset) if offset < child.offset => self.cursor.starting_at(offset)?,
            Some(_) => None,
        };
        self.entry_in(line, parent)?.map(Some).ok_or(Stop::Unclear)
    }

    /// The entry `id` whose line starts at `offset`; none if the file has something else there.
    pub(crate) fn entry_at(&mut self, id: EntryId, offset: u64) -> Result<Option<Located>, OpenError> {
        if let Some(recovered) = &self.recovered {
            // Offsets may have moved.
            let Some(found) = recovered.by_id.get(&id).copied() else { return Ok(None) };
            return self.load(found.offset, found.bytes);
        }
        let line = self.cursor.starting_at(offset)?;
        self.entry_in(line, id)
    }

    fn load(&self, offset: u64, bytes: u64) -> Result<Option<Located>, OpenError> {
        let Some(end) = offset.checked_add(bytes).filter(|end| *end <= self.source.end) else {
            return Ok(None);
        };
        let read = self.source.read(offset, end)?;
        let text = std::str::from_utf8(&read).ok();
        Ok(text.and_then(|text| read_entry(offset, &Text::from(text)).ok()))
    }

    fn entry_in(&self, line: Option<RawLine>, id: EntryId) -> Result<Option<Located>, OpenError> {
        match line.map(RawLine::parse) {
            Some(Ok(located)) if located.entry.id == id => Ok(Some(located)),
            Some(Err(bad)) => bad.unless_newer(self.source.path).map(|_| None),
            _ => Ok(None),
        }
    }
}
