//! Diff and undo over the history.

use std::collections::BTreeSet;

use pal_model::Timestamp;
use similar::TextDiff;

use super::{MemoryStore, MemoryWriteResult};
use crate::author::Author;
use crate::error::MemoryError;
use crate::memory_history::{MemoryChange, MemoryChangeKind, files_at};

/// A file that differs between two points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileDiff {
    /// File name.
    pub file: String,
    /// Content before; none if the file did not exist.
    pub before: Option<Vec<u8>>,
    /// Content after; none if the file does not exist.
    pub after: Option<Vec<u8>>,
}

impl FileDiff {
    /// Unified diff with three lines of context, as `diff -u` prints it.
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

impl MemoryStore {
    /// All changes, oldest first.
    pub fn log(&self) -> Result<Vec<MemoryChange>, MemoryError> {
        match &self.journal {
            Some(journal) => journal.changes(),
            None => Ok(Vec::new()),
        }
    }

    /// Differences between two points. Point 0 is the empty directory.
    pub fn diff(&self, from: u64, to: u64) -> Result<Vec<FileDiff>, MemoryError> {
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
            differences.push(FileDiff {
                file: file.clone(),
                before: version(before.get(file))?,
                after: version(after.get(file))?,
            });
        }
        Ok(differences)
    }

    /// Point before the last deliberate change that is not undone; none if there is none. Repeated undo to it
    /// walks back through the history.
    pub fn undo_point(&self) -> Result<Option<u64>, MemoryError> {
        let changes = self.log()?;
        let mut point = self.point;
        while let Some(change) = changes.iter().rev().find(|change| change.id <= point && change.id > 0) {
            point = match (change.what, change.to) {
                (MemoryChangeKind::Undo, Some(to)) => to.min(change.id - 1),
                (MemoryChangeKind::Index, _) => change.id - 1,
                _ => return Ok(Some(change.id - 1)),
            };
        }
        Ok(None)
    }

    /// Restores the state of a point, byte for byte. An undo is itself a change and can be undone.
    pub fn undo(&mut self, to: u64, by: &Author, now: Timestamp) -> Result<MemoryWriteResult, MemoryError> {
        self.locked(now, |memory| {
            let changes = memory.journal()?.changes()?;
            if to > memory.point {
                return Err(MemoryError::NoSuchPoint { point: to, last: memory.point });
            }
            memory.restore(&changes, to, by, now)?;
            Ok(MemoryWriteResult { slug: String::new(), point: memory.point, masked: Vec::new() })
        })
    }

    /// Restores every file to its version at a point, under the lock.
    pub(super) fn restore(
        &mut self,
        changes: &[MemoryChange],
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
        let change = MemoryChange {
            id: 0,
            at: now,
            by: by.clone(),
            what: MemoryChangeKind::Undo,
            to: Some(to),
            files: Vec::new(),
        };
        self.commit(change, &wanted)
    }
}
