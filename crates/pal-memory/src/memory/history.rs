//! What was changed, and how it was before.

use std::collections::BTreeSet;

use pal_model::Timestamp;
use similar::TextDiff;

use super::{Memory, Written};
use crate::author::Author;
use crate::error::MemoryError;
use crate::journal::{Change, What, files_at};

/// A file that is different at two points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The file.
    pub file: String,
    /// What it held; none if there was none.
    pub before: Option<Vec<u8>>,
    /// What it holds; none if there is none.
    pub after: Option<Vec<u8>>,
}

impl Difference {
    /// The lines that are different, with three around them, as `diff -u` prints them.
    pub fn unified(&self) -> String {
        let text = |side: &Option<Vec<u8>>| {
            String::from_utf8_lossy(side.as_deref().unwrap_or_default()).into_owned()
        };
        let name = |side: &Option<Vec<u8>>, letter: &str| match side {
            Some(_) => format!("{letter}/{}", self.file),
            None => String::from("/dev/null"),
        };
        let (before, after) = (text(&self.before), text(&self.after));
        TextDiff::from_lines(&before, &after)
            .unified_diff()
            .header(&name(&self.before, "a"), &name(&self.after, "b"))
            .to_string()
    }
}

impl Memory {
    /// All changes, the oldest first.
    pub fn log(&self) -> Result<Vec<Change>, MemoryError> {
        match &self.journal {
            Some(journal) => journal.changes(),
            None => Ok(Vec::new()),
        }
    }

    /// What is different between two points. Point 0 is the empty directory.
    pub fn diff(&self, from: u64, to: u64) -> Result<Vec<Difference>, MemoryError> {
        let journal = self.journal()?;
        let changes = journal.changes()?;
        let last = changes.last().map_or(0, |change| change.id);
        if let Some(point) = [from, to].into_iter().find(|point| *point > last) {
            return Err(MemoryError::NoSuchPoint { point, last });
        }
        let (before, after) = (files_at(&changes, from), files_at(&changes, to));
        let files: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let mut differences = Vec::new();
        for file in files.into_iter().filter(|file| before.get(*file) != after.get(*file)) {
            let version =
                |digest: Option<&_>| digest.map(|digest| journal.version(file, *digest)).transpose();
            differences.push(Difference {
                file: file.clone(),
                before: version(before.get(file))?,
                after: version(after.get(file))?,
            });
        }
        Ok(differences)
    }

    /// The point before the last change that was not taken back, of those that somebody wanted; none if there is none. Undoing
    /// to it again and again walks back through the history.
    pub fn before_last(&self) -> Result<Option<u64>, MemoryError> {
        let changes = self.log()?;
        let mut point = self.point;
        while let Some(change) = changes.iter().rev().find(|change| change.id <= point && change.id > 0) {
            point = match (change.what, change.to) {
                (What::Undo, Some(to)) => to.min(change.id - 1),
                (What::Index, _) => change.id - 1,
                _ => return Ok(Some(change.id - 1)),
            };
        }
        Ok(None)
    }

    /// Restores the state of a point, byte for byte. That is a change like any other and can be taken back.
    pub fn undo(&mut self, to: u64, by: &Author, now: Timestamp) -> Result<Written, MemoryError> {
        self.locked(now, |memory| {
            let changes = memory.journal()?.changes()?;
            if to > memory.point {
                return Err(MemoryError::NoSuchPoint { point: to, last: memory.point });
            }
            memory.restore(&changes, to, by, now)?;
            Ok(Written { slug: String::new(), point: memory.point, masked: Vec::new() })
        })
    }

    /// Brings every file to its version at a point, under the lock.
    pub(super) fn restore(
        &mut self,
        changes: &[Change],
        to: u64,
        by: &Author,
        now: Timestamp,
    ) -> Result<(), MemoryError> {
        let then = files_at(changes, to);
        let mut wanted = Vec::new();
        for (file, digest) in &then {
            if self.files.get(file) != Some(digest) {
                wanted.push((file.clone(), Some(self.journal()?.version(file, *digest)?)));
            }
        }
        let gone = self.files.keys().filter(|file| !then.contains_key(*file));
        wanted.extend(gone.map(|file| (file.clone(), None)));
        let change =
            Change { id: 0, at: now, by: by.clone(), what: What::Undo, to: Some(to), files: Vec::new() };
        self.commit(change, &wanted)
    }
}
