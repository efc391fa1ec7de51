//! What a run in the background did, as the history tells it: taken back as a whole, and looked at for what it cut away.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pal_model::Timestamp;
use serde::Serialize;

use super::{INDEX_FILE, Memory, slug_of};
use crate::author::Author;
use crate::error::MemoryError;
use crate::journal::{Change, Digest, What};
use crate::topic::Topic;

/// A file of which a run left less than half.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cut {
    /// The file.
    pub file: String,
    /// Lines that it had before the run.
    pub lines: usize,
    /// How many of them are still there.
    pub left: usize,
    /// Where the version before the run is kept.
    pub kept: PathBuf,
}

/// What an author made of a file: the version that was found, and the one that was left.
struct Stretch {
    found: Option<Digest>,
    left: Option<Digest>,
}

impl Memory {
    /// Takes back what an author did since a point. If nobody else changed anything since then, everything is as it was at
    /// that point, byte for byte; else only files that nobody changed after the author are, and the index is made to fit.
    pub fn take_back(
        &mut self,
        of: &Author,
        since: u64,
        by: &Author,
        now: Timestamp,
    ) -> Result<u64, MemoryError> {
        self.locked(now, |memory| {
            let changes = memory.journal()?.changes()?;
            let later: Vec<&Change> = changes.iter().filter(|change| change.id > since).collect();
            if !later.iter().any(|change| change.by == *of) {
                return Ok(memory.point);
            }
            if later.iter().all(|change| change.by == *of) {
                memory.restore(&changes, since, by, now)?;
                return Ok(memory.point);
            }
            let mut wanted = Vec::new();
            for (file, stretch) in stretches(&later, of) {
                if file == INDEX_FILE || memory.files.get(&file).copied() != stretch.left {
                    continue;
                }
                let found = stretch.found;
                let bytes = found.map(|digest| memory.journal()?.version(&file, digest)).transpose()?;
                wanted.push((file, bytes));
            }
            memory.change(What::Undo, by, now, wanted)?;
            Ok(memory.point)
        })
    }

    /// Files, the index among them, of which an author left less than half, as long as nobody changed them since.
    pub fn cuts(&self, of: &Author) -> Result<Vec<Cut>, MemoryError> {
        let journal = self.journal()?;
        let changes = journal.changes()?;
        let mut cuts = Vec::new();
        for (file, stretch) in stretches(&changes.iter().collect::<Vec<_>>(), of) {
            let Some(found) = stretch.found.filter(|_| self.files.get(&file).copied() == stretch.left) else {
                continue;
            };
            let before = journal.version(&file, found)?;
            let after = stretch.left.map(|digest| journal.version(&file, digest)).transpose()?;
            let (lines, left) = kept_lines(&text(&file, &before), &text(&file, &after.unwrap_or_default()));
            if left * 2 < lines {
                cuts.push(Cut { lines, left, kept: journal.place(found), file });
            }
        }
        Ok(cuts)
    }
}

/// What an author made of each file, without what others changed after that.
fn stretches(changes: &[&Change], of: &Author) -> BTreeMap<String, Stretch> {
    let mut stretches: BTreeMap<String, Stretch> = BTreeMap::new();
    for change in changes {
        for changed in &change.files {
            match stretches.get_mut(&changed.file) {
                _ if change.by != *of => drop(stretches.remove(&changed.file)),
                Some(stretch) => stretch.left = changed.after,
                None => {
                    let stretch = Stretch { found: changed.before, left: changed.after };
                    stretches.insert(changed.file.clone(), stretch);
                }
            }
        }
    }
    stretches
}

/// What a file says, without what stands at its top.
fn text(file: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    if file == INDEX_FILE { text.into_owned() } else { Topic::read(slug_of(file), &text).body }
}

/// How many lines a text had, and how many of them are in another one.
fn kept_lines(before: &str, after: &str) -> (usize, usize) {
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
    use crate::topic::{Head, Kind};

    fn now() -> Timestamp {
        Timestamp::from_milliseconds(1_800_000_000_000)
    }

    fn topic(body: &str) -> Topic {
        let head = Head {
            name: String::from("n"),
            description: String::from("d"),
            kind: Kind::Project,
            modified: None,
            origin: Author::Person,
        };
        Topic::new(head, body)
    }

    fn dream() -> Author {
        Author::Named(String::from("dream 1"))
    }

    #[test]
    fn what_a_run_did_goes_and_what_others_did_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = Memory::open(&folder.path().join("memory"), now()).unwrap();
        memory.write("a", &topic("one\n"), &Author::Person, now()).unwrap();
        memory.write("b", &topic("one\n"), &Author::Person, now()).unwrap();
        let since = memory.point();
        memory.write("a", &topic("dreamt\n"), &dream(), now()).unwrap();
        memory.remove("b", &dream(), now()).unwrap();
        memory.write("new", &topic("dreamt\n"), &dream(), now()).unwrap();
        memory.write("both", &topic("dreamt\n"), &dream(), now()).unwrap();
        memory.write("both", &topic("by hand\n"), &Author::Person, now()).unwrap();
        memory.take_back(&dream(), since, &dream(), now()).unwrap();
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
    fn what_lost_more_than_half_is_told_until_somebody_changes_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut memory = Memory::open(&folder.path().join("memory"), now()).unwrap();
        memory.write("long", &topic("one\ntwo\nthree\nfour\nfive\n"), &Author::Person, now()).unwrap();
        memory.write("kept", &topic("one\ntwo\nthree\n"), &Author::Person, now()).unwrap();
        memory.write("long", &topic("one\ntwo\n"), &dream(), now()).unwrap();
        memory.write("kept", &topic("one\ntwo\n"), &dream(), now()).unwrap();
        let cuts = memory.cuts(&dream()).unwrap();
        assert_eq!(cuts.len(), 1, "{cuts:?}");
        assert_eq!((cuts[0].file.as_str(), cuts[0].lines, cuts[0].left), ("long.md", 5, 2));
        assert!(std::fs::read_to_string(&cuts[0].kept).unwrap().contains("five"));
        memory.remove("kept", &dream(), now()).unwrap();
        assert_eq!(memory.cuts(&dream()).unwrap().len(), 2, "a file that is gone is cut, too");
        memory.write("long", &topic("mine\n"), &Author::Person, now()).unwrap();
        memory.write("kept", &topic("mine\n"), &Author::Person, now()).unwrap();
        assert_eq!(memory.cuts(&dream()).unwrap(), Vec::new());
    }
}
