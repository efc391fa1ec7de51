//! How a change becomes lasting: the lock, what others changed, the change itself, and what a kill left half done.
//!
//! A change is written in this order: the versions that it leads to; what will be done (`pending.json`); the files; the
//! journal; `pending.json` away. A kill before the second step leaves nothing but versions that nobody names; a kill after it
//! is made good by whoever comes next, who finds it written down what was to be done.

use std::collections::BTreeMap;

use pal_model::Timestamp;
use pal_secrets::mask_secrets;
use pal_store::LockedFile;
use serde::{Deserialize, Serialize};

use super::{INDEX_FILE, Memory, slug_of};
use crate::author::Author;
use crate::error::MemoryError;
use crate::folder::Stamp;
use crate::index::{self, Entry};
use crate::journal::{Change, Digest, FileChange, Files, Journal, What, apply, is_file_name};
use crate::topic::{Head, Topic};

/// The folder of the history.
pub(super) const VERSIONS: &str = ".versions";
const LOCK: &str = "lock";
const PENDING: &str = "pending.json";
const STATE: &str = "state.json";

/// What the state looks like; another number means that it is made anew.
const FORM: u32 = 1;

/// What is known of a file that is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) stamp: Stamp,
    /// Whether it cannot have changed while its stamp stays.
    is_settled: bool,
    pub(crate) digest: Digest,
    /// What stands at its top, if it is a memory.
    pub(crate) head: Option<Head>,
}

/// What was known when the directory was used last, so that the next use reads only what changed. Never the only place of
/// anything.
#[derive(Serialize, Deserialize)]
struct State {
    form: u32,
    point: u64,
    journal_bytes: u64,
    files: Files,
    seen: BTreeMap<String, Seen>,
}

/// A file as a change wants it: nothing for one that goes.
pub(super) type Want = (String, Option<Vec<u8>>);

impl Memory {
    /// Reads what is known, and writes down what others changed.
    pub(super) fn begin(&mut self, changed_by: &Author, now: Timestamp) -> Result<(), MemoryError> {
        self.load()?;
        self.look()?;
        let is_left = self.journal.as_ref().is_some_and(|journal| journal.folder().has(PENDING));
        if !is_left && self.is_as_journaled() {
            return Ok(());
        }
        // Whoever changes something at this moment is not waited for: what is left to be noticed is so the next time. What
        // somebody else did has to be written down as theirs, and now.
        match changed_by.is_person() {
            true => match self.journal()?.folder().try_lock(LOCK)? {
                Some(lock) => self.with_lock(lock, changed_by, now, |_| Ok(())),
                None => Ok(()),
            },
            false => self.locked_as(changed_by, now, |_| Ok(())),
        }
    }

    /// Does something while no other process changes anything.
    pub(super) fn locked<T>(
        &mut self,
        now: Timestamp,
        act: impl FnOnce(&mut Memory) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        self.locked_as(&Author::Person, now, act)
    }

    fn locked_as<T>(
        &mut self,
        changed_by: &Author,
        now: Timestamp,
        act: impl FnOnce(&mut Memory) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let lock = self.journal()?.folder().lock(LOCK)?;
        self.with_lock(lock, changed_by, now, act)
    }

    fn with_lock<T>(
        &mut self,
        lock: LockedFile,
        changed_by: &Author,
        now: Timestamp,
        act: impl FnOnce(&mut Memory) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        if self.journal()?.bytes()? != self.journal_bytes {
            self.load()?;
        }
        self.make_good()?;
        self.look()?;
        self.notice(changed_by, now)?;
        let done = act(self);
        self.save();
        drop(lock);
        done
    }

    /// Puts a file in its place that is made of others and can be made again, unless somebody changes something at this moment.
    pub(crate) fn put_made(&self, name: &str, bytes: &[u8]) -> Result<(), MemoryError> {
        match self.journal()?.folder().try_lock(LOCK)? {
            Some(_lock) => self.folder.replace(name, bytes),
            None => Ok(()),
        }
    }

    pub(super) fn journal(&self) -> Result<&Journal, MemoryError> {
        self.journal.as_ref().ok_or_else(|| MemoryError::ReadOnly { path: self.path().to_owned() })
    }

    /// What the journal says, from what was known last if it has not grown since.
    fn load(&mut self) -> Result<(), MemoryError> {
        let bytes = self.journal()?.bytes()?;
        let state = self.journal()?.folder().read(STATE)?;
        let state: Option<State> = state.and_then(|text| serde_json::from_slice(&text).ok());
        let state = state.filter(|state: &State| state.form == FORM);
        if let Some(state) = state {
            // What was seen is checked by its stamps, whatever the journal says since.
            self.seen = state.seen;
            if state.journal_bytes == bytes {
                (self.files, self.point, self.journal_bytes) = (state.files, state.point, bytes);
                return Ok(());
            }
        }
        let changes = self.journal()?.changes()?;
        self.files = Files::new();
        changes.iter().for_each(|change| apply(&mut self.files, change));
        self.point = changes.last().map_or(0, |change| change.id);
        self.journal_bytes = bytes;
        Ok(())
    }

    fn save(&self) {
        let state = State {
            form: FORM,
            point: self.point,
            journal_bytes: self.journal_bytes,
            files: self.files.clone(),
            seen: self.seen.clone(),
        };
        if let (Ok(text), Some(journal)) = (serde_json::to_vec(&state), &self.journal) {
            // Without it the next use reads more; nothing else depends on it.
            let _ = journal.folder().replace(STATE, &text);
        }
    }

    /// Looks at what is there now. Only files whose stamp changed are read.
    pub(crate) fn look(&mut self) -> Result<(), MemoryError> {
        let scan = self.folder.scan()?;
        self.odd = scan.odd;
        let mut before = std::mem::take(&mut self.seen);
        for (file, stamp) in scan.files {
            let known = before.remove(&file).filter(|seen| seen.is_settled && seen.stamp == stamp);
            let seen = match known {
                Some(seen) => Some(seen),
                None => {
                    self.folder.read_with_stamp(&file)?.map(|(bytes, stamp)| Seen::of(&file, &bytes, stamp))
                }
            };
            self.seen.extend(seen.map(|seen| (file, seen)));
        }
        self.uses.refresh(&self.folder)
    }

    fn is_as_journaled(&self) -> bool {
        self.files.len() == self.seen.len()
            && self
                .files
                .iter()
                .zip(&self.seen)
                .all(|((file, digest), (there, seen))| file == there && *digest == seen.digest)
    }

    /// Ends what a kill left half done.
    fn make_good(&mut self) -> Result<(), MemoryError> {
        let Some(text) = self.journal()?.folder().read(PENDING)? else { return Ok(()) };
        let pending = serde_json::from_slice::<Change>(&text).ok();
        if let Some(change) = pending.filter(|change| change.id > self.point) {
            for changed in change.files.iter().filter(|changed| is_file_name(&changed.file)) {
                let there = self.folder.read(&changed.file)?.map(|bytes| Digest::of(&bytes));
                // Somebody else may have changed it since; that is noticed in its turn.
                if there == changed.before && there != changed.after {
                    self.place(changed)?;
                }
            }
            self.enter(&change)?;
        }
        self.journal()?.folder().remove(PENDING)
    }

    /// Writes down what others changed, as it is, and makes the index fit.
    fn notice(&mut self, by: &Author, now: Timestamp) -> Result<(), MemoryError> {
        if self.is_as_journaled() {
            return Ok(());
        }
        let mut files = Vec::new();
        let changed = self.changed_outside();
        for file in changed {
            let bytes = self.folder.read(&file)?;
            let after = bytes.as_deref().map(|bytes| self.journal()?.keep_soon(bytes)).transpose()?;
            let before = self.files.get(&file).copied();
            if before != after {
                files.push(FileChange { file, before, after });
            }
        }
        if !files.is_empty() {
            self.journal()?.settle()?;
            let change =
                Change { id: self.point + 1, at: now, by: by.clone(), what: What::Outside, to: None, files };
            self.enter(&change)?;
            let written: Vec<String> = change.files.iter().map(|changed| changed.file.clone()).collect();
            self.noticed.push(change);
            self.look()?;
            let wanted = if by.is_person() { Vec::new() } else { self.without_secrets(&written)? };
            self.change(What::Index, &Author::program(), now, wanted)?;
        }
        Ok(())
    }

    fn changed_outside(&self) -> Vec<String> {
        let gone = self.files.keys().filter(|file| !self.seen.contains_key(*file));
        let changed = self.seen.iter().filter(|(file, seen)| self.files.get(*file) != Some(&seen.digest));
        gone.chain(changed.map(|(file, _)| file)).cloned().collect()
    }

    /// Those of the files that hold secrets, without them.
    fn without_secrets(&self, files: &[String]) -> Result<Vec<Want>, MemoryError> {
        let mut wanted = Vec::new();
        for file in files {
            let Some(bytes) = self.folder.read(file)? else { continue };
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let masked = mask_secrets(&text);
            if !masked.secrets.is_empty() {
                wanted.push((file.clone(), Some(masked.text.into_owned().into_bytes())));
            }
        }
        Ok(wanted)
    }

    /// Changes files, and the index with them.
    pub(super) fn change(
        &mut self,
        what: What,
        by: &Author,
        now: Timestamp,
        mut wanted: Vec<Want>,
    ) -> Result<(), MemoryError> {
        wanted.extend(self.index_after(&wanted)?);
        self.commit(Change { id: 0, at: now, by: by.clone(), what, to: None, files: Vec::new() }, &wanted)
    }

    /// Makes a change of files lasting. Nothing happens where all is already as wanted.
    pub(super) fn commit(&mut self, mut change: Change, wanted: &[Want]) -> Result<(), MemoryError> {
        for (file, bytes) in wanted {
            if let Some((_, what)) = self.odd.iter().find(|(name, _)| name == file) {
                return Err(MemoryError::InTheWay { path: self.path().join(file), what });
            }
            let before = self.files.get(file).copied();
            if before != bytes.as_deref().map(Digest::of) {
                let after = bytes.as_deref().map(|bytes| self.journal()?.keep(bytes)).transpose()?;
                change.files.push(FileChange { file: file.clone(), before, after });
            }
        }
        if change.files.is_empty() {
            return Ok(());
        }
        change.id = self.point + 1;
        let text = serde_json::to_vec(&change)
            .map_err(|error| MemoryError::file("write", self.path(), error.into()))?;
        self.journal()?.folder().replace(PENDING, &text)?;
        for changed in &change.files {
            self.place(changed)?;
        }
        self.enter(&change)?;
        self.journal()?.folder().remove(PENDING)?;
        self.look()
    }

    /// Brings one file to the version that a change leads to.
    fn place(&self, changed: &FileChange) -> Result<(), MemoryError> {
        match changed.after {
            Some(digest) => {
                let bytes = self.journal()?.version(&changed.file, digest)?;
                self.folder.replace(&changed.file, &bytes)
            }
            None => self.folder.remove(&changed.file),
        }
    }

    fn enter(&mut self, change: &Change) -> Result<(), MemoryError> {
        self.journal_bytes = self.journal()?.append(change)?;
        self.point = change.id;
        apply(&mut self.files, change);
        Ok(())
    }

    /// The index as it has to be once these files are there; none if it already is.
    fn index_after(&self, wanted: &[Want]) -> Result<Option<Want>, MemoryError> {
        let mut entries = self.entries();
        for (file, bytes) in wanted {
            entries.retain(|entry| entry.slug != slug_of(file));
            if let Some(text) =
                bytes.as_ref().filter(|_| is_memory(file)).map(|bytes| String::from_utf8_lossy(bytes))
            {
                let head = Topic::read(slug_of(file), &text).head;
                entries.push(Entry::new(slug_of(file), &head, self.uses.of(slug_of(file))));
            }
        }
        index::order(&mut entries);
        let before = self.folder.read(INDEX_FILE)?.unwrap_or_default();
        let page = index::page(&String::from_utf8_lossy(&before), &entries).into_bytes();
        Ok((page != before).then(|| (INDEX_FILE.to_owned(), Some(page))))
    }
}

impl Seen {
    fn of(file: &str, bytes: &[u8], stamp: Stamp) -> Seen {
        let head = is_memory(file).then(|| Topic::read(slug_of(file), &String::from_utf8_lossy(bytes)).head);
        Seen { stamp, is_settled: stamp.is_settled(), digest: Digest::of(bytes), head }
    }
}

/// Whether a file is a memory by its name.
pub(crate) fn is_memory(file: &str) -> bool {
    file.ends_with(".md") && file.len() > 3 && file != INDEX_FILE
}
