//! From an entry to its parent, over and over: a branch, newest first.
//!
//! The parent is the previous line, or the line at the offset that the entry carries. Both are checked by id.
//! Where the file does not keep that promise, the parent is looked up by id in an index of the whole file, built
//! once. Each step leads to an earlier line, so a walk ends whatever the file says.

use pal_model::EntryId;

use crate::error::{OpenError, Problem};
use crate::index::Index;
use crate::segment::{Cursor, Located, RawLine, Source};

/// The steps back along one branch, and what was missing on the way.
pub(crate) struct Walk<'a> {
    source: Source<'a>,
    cursor: Cursor<'a>,
    index: Option<Index>,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(source: Source<'a>) -> Walk<'a> {
        Walk { source, cursor: Cursor::new(source), index: None, problems: Vec::new() }
    }

    /// The parent of `child`; none where the branch begins.
    pub(crate) fn parent_of(&mut self, child: &Located) -> Result<Option<Located>, OpenError> {
        let Some(parent) = child.entry.parent else { return Ok(None) };
        if self.index.is_none() {
            let line = match child.entry.parent_offset {
                None => self.cursor.ending_at(child.offset)?,
                Some(offset) if offset < child.offset => self.cursor.starting_at(offset)?,
                Some(_) => None,
            };
            if let Some(found) = self.entry_in(line, parent)? {
                return Ok(Some(found));
            }
        }
        self.indexed_parent(child, parent)
    }

    /// The entry `id` whose line starts at `offset`; none if the file has something else there.
    pub(crate) fn entry_at(&mut self, id: EntryId, offset: u64) -> Result<Option<Located>, OpenError> {
        let line = self.cursor.starting_at(offset)?;
        self.entry_in(line, id)
    }

    /// The newest entry `id` of the whole file.
    pub(crate) fn find(&mut self, id: EntryId) -> Result<Option<Located>, OpenError> {
        match self.index()?.newest(id, u64::MAX) {
            Some(offset) => self.entry_at(id, offset),
            None => Ok(None),
        }
    }

    fn entry_in(&self, line: Option<RawLine>, id: EntryId) -> Result<Option<Located>, OpenError> {
        match line.map(RawLine::parse) {
            Some(Ok(located)) if located.entry.id == id => Ok(Some(located)),
            Some(Err(bad)) => bad.unless_newer(self.source.path).map(|_| None),
            _ => Ok(None),
        }
    }

    fn indexed_parent(&mut self, child: &Located, parent: EntryId) -> Result<Option<Located>, OpenError> {
        let index = self.index()?;
        let named = child.entry.parent_offset.filter(|offset| *offset < child.offset);
        let place = named.filter(|offset| index.stands_at(parent, *offset));
        if let Some(place) = place.or_else(|| index.newest(parent, child.offset)) {
            return self.entry_at(parent, place);
        }
        // The parent is lost. If a bad line stands where it should be, that was the parent, and the line before
        // it was most likely the parent's parent.
        let bad = match named {
            Some(offset) => index.bad_starting(offset),
            None => index.bad_ending(child.offset),
        };
        match bad {
            Some(offset) => self.before_bad(offset),
            None => {
                let (entry, offset) = (child.entry.id, child.offset);
                self.problems.push(Problem::LostParent { entry, offset, parent });
                Ok(None)
            }
        }
    }

    /// The nearest entry before the bad line at `offset`; all bad lines on the way are reported.
    fn before_bad(&mut self, offset: u64) -> Result<Option<Located>, OpenError> {
        let mut line = self.cursor.starting_at(offset)?;
        while let Some(raw) = line {
            let end = raw.offset;
            match raw.parse() {
                Ok(located) => return Ok(Some(located)),
                Err(bad) => {
                    let skipped = self.index()?.numbered(bad);
                    self.problems.push(Problem::Skipped(skipped));
                }
            }
            line = self.cursor.ending_at(end)?;
        }
        Ok(None)
    }

    fn index(&mut self) -> Result<&Index, OpenError> {
        match &mut self.index {
            Some(index) => Ok(index),
            index => Ok(index.insert(Index::read(self.source)?)),
        }
    }
}
