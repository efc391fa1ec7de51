//! Revert and review of one author's changes, such as a background run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pal_model::Timestamp;
use serde::Serialize;

use super::{INDEX_FILE, MemoryStore, slug_of};
use crate::author::Author;
use crate::error::MemoryError;
use crate::memory_file::MemoryFile;
use crate::memory_history::{FileDigest, MemoryChange, MemoryChangeKind};

/// A file of which a run left less than half.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TruncatedFile {
    /// File name.
    pub file: String,
    /// Lines before the run.
    pub lines: usize,
    /// Lines that remain.
    pub left: usize,
    /// Path of the version before the run.
    pub kept: PathBuf,
}

/// Versions of a file before and after an author's changes.
struct AuthorEdit {
    found: Option<FileDigest>,
    left: Option<FileDigest>,
}

impl MemoryStore {
    /// Reverts an author's changes since a point. If there were no other changes, the state of that point is
    /// restored byte for byte; otherwise only files without later changes are reverted, and the index is
    /// updated.
    pub fn revert_author(
        &mut self,
        of: &Author,
        since: u64,
        by: &Author,
        now: Timestamp,
    ) -> Result<u64, MemoryError> {
        self.locked(now, |memory| {
            let changes = memory.journal()?.changes()?;
            let later: Vec<&MemoryChange> = changes.iter().filter(|change| change.id > since).collect();
            if !later.iter().any(|change| change.by == *of) {
                return Ok(memory.point);
            }
            if later.iter().all(|change| change.by == *of) {
                memory.restore(&changes, since, by, now)?;
                return Ok(memory.point);
            }
            let mut wanted = Vec::new();
            for (file, stretch) in author_edits(&later, of) {
                if file == INDEX_FILE || memory.files.get(&file).copied() != stretch.left {
                    continue;
                }
                let found = stretch.found;
                let bytes = found.map(|digest| memory.journal()?.version(&file, digest)).transpose()?;
                wanted.push((file, bytes));
            }
            memory.change(MemoryChangeKind::Undo, by, now, wanted)?;
            Ok(memory.point)
        })
    }

    /// Files, including the index, of which an author left less than half, unless changed since.
    pub fn truncated_files(&self, of: &Author) -> Result<Vec<TruncatedFile>, MemoryError> {
        let journal = self.journal()?;
        let changes = journal.changes()?;
        let mut cuts = Vec::new();
        for (file, stretch) in author_edits(&changes.iter().collect::<Vec<_>>(), of) {
            let Some(found) = stretch.found.filter(|_| self.files.get(&file).copied() == stretch.left) else {
                continue;
            };
            let before = journal.version(&file, found)?;
            let after = stretch.left.map(|digest| journal.version(&file, digest)).transpose()?;
            let (lines, left) =
                count_kept_lines(&body_text(&file, &before), &body_text(&file, &after.unwrap_or_default()));
            if left * 2 < lines {
                cuts.push(TruncatedFile { lines, left, kept: journal.version_path(found), file });
            }
        }
        Ok(cuts)
    }
}

/// Edits of one author by file; a later change by others discards the edit.
fn author_edits(changes: &[&MemoryChange], of: &Author) -> BTreeMap<String, AuthorEdit> {
    let mut stretches: BTreeMap<String, AuthorEdit> = BTreeMap::new();
    for change in changes {
        for changed in &change.files {
            match stretches.get_mut(&changed.file) {
                _ if change.by != *of => drop(stretches.remove(&changed.file)),
                Some(stretch) => stretch.left = changed.after,
                None => {
                    let stretch = AuthorEdit { found: changed.before, left: changed.after };
                    stretches.insert(changed.file.clone(), stretch);
                }
            }
        }
    }
    stretches
}

/// Text of a file without its front matter.
fn body_text(file: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if file == INDEX_FILE { text.into_owned() } else { MemoryFile::parse(slug_of(file), &text).body }
}

/// Number of lines before, and how many of them remain.
fn count_kept_lines(before: &str, after: &str) -> (usize, usize) {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    lines(after).into_iter().for_each(|line| *there.entry(line).or_default() += 1);
    let before = lines(before);
    let is_there = |line: &&String| match there.get_mut(*line) {
        Some(times) if *times > 0 => {
            *times -= 1;
            true
        }
        _ => false,
    };
    (before.len(), before.iter().filter(is_there).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_file::{MemoryHeader, MemoryKind};

    fn now() -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000)
    }

    fn topic(body: &str) -> MemoryFile {
        let head = MemoryHeader {
            name: String::from("n"),
            description: String::from("d"),
            kind: MemoryKind::Project,
            modified: None,
            origin: Author::Person,
        };
        MemoryFile::new(head, body)
    }

    fn dream() -> Author {
        Author::Named(String::from("dream 1"))
    }

    #[test]
    fn revert_keeps_changes_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = MemoryStore::open(&folder.path().join("memory"), now()).unwrap();
        memory.write("a", &topic("one\n"), &Author::Person, now()).unwrap();
        memory.write("b", &topic("one\n"), &Author::Person, now()).unwrap();
        let since = memory.point();
        memory.write("a", &topic("dreamt\n"), &dream(), now()).unwrap();
        memory.remove("b", &dream(), now()).unwrap();
        memory.write("new", &topic("dreamt\n"), &dream(), now()).unwrap();
        memory.write("both", &topic("dreamt\n"), &dream(), now()).unwrap();
        memory.write("both", &topic("by hand\n"), &Author::Person, now()).unwrap();
        memory.revert_author(&dream(), since, &dream(), now()).unwrap();
        assert_eq!(memory.read("a").unwrap().body, "one\n");
        assert_eq!(memory.read("b").unwrap().body, "one\n");
        assert_eq!(memory.read("both").unwrap().body, "by hand\n");
        assert!(memory.read("new").is_err());
        let index = std::fs::read_to_string(memory.path().join(INDEX_FILE)).unwrap();
        assert!(
            index.contains("(b.md)") && index.contains("(both.md)") && !index.contains("(new.md)"),
            "{index}"
        );
    }

    #[test]
    fn truncated_files_are_reported_until_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = MemoryStore::open(&folder.path().join("memory"), now()).unwrap();
        memory.write("long", &topic("one\ntwo\nthree\nfour\nfive\n"), &Author::Person, now()).unwrap();
        memory.write("kept", &topic("one\ntwo\nthree\n"), &Author::Person, now()).unwrap();
        memory.write("long", &topic("one\ntwo\n"), &dream(), now()).unwrap();
        memory.write("kept", &topic("one\ntwo\n"), &dream(), now()).unwrap();
        let cuts = memory.truncated_files(&dream()).unwrap();
        assert_eq!(cuts.len(), 1, "{cuts:?}");
        assert_eq!((cuts[0].file.as_str(), cuts[0].lines, cuts[0].left), ("long.md", 5, 2));
        assert!(std::fs::read_to_string(&cuts[0].kept).unwrap().contains("five"));
        memory.remove("kept", &dream(), now()).unwrap();
        assert_eq!(memory.truncated_files(&dream()).unwrap().len(), 2, "a file that is gone is cut, too");
        memory.write("long", &topic("mine\n"), &Author::Person, now()).unwrap();
        memory.write("kept", &topic("mine\n"), &Author::Person, now()).unwrap();
        assert_eq!(memory.truncated_files(&dream()).unwrap(), Vec::new());
    }
}
