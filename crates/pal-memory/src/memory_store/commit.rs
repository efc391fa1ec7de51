//! Commits changes: lock, outside changes, the change itself, and recovery after a kill.
//!
//! Order of writes: new versions; the planned change (`pending.json`); the files; the journal; removal of
//! `pending.json`. A kill before the second step leaves only unreferenced versions; after it, the next
//! process completes the planned change.

use std::collections::BTreeMap;

use pal_model::Timestamp;
use pal_secrets::mask_secrets;
use pal_store::LockedFile;
use serde::{Deserialize, Serialize};

use super::{INDEX_FILE, MemoryStore, slug_of};
use crate::author::Author;
use crate::error::MemoryError;
use crate::memory_dir::FileStamp;
use crate::memory_file::{MemoryFile, MemoryHeader};
use crate::memory_history::{
    FileChange, FileDigest, FileVersions, MemoryChange, MemoryChangeKind, MemoryHistory, apply, is_file_name,
};
use crate::memory_index::{self, IndexEntry};

/// Directory of the history.
pub(super) const VERSIONS: &str = ".versions";
const LOCK: &str = "lock";
const PENDING: &str = "pending.json";
const STATE: &str = "state.json";

/// Version of the cached state; another number discards it.
const STATE_VERSION: u32 = 1;

/// Known state of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileState {
    pub(crate) stamp: FileStamp,
    /// Any later change is sure to give another stamp.
    is_settled: bool,
    pub(crate) digest: FileDigest,
    /// Front matter, if the file is a memory.
    pub(crate) head: Option<MemoryHeader>,
}

/// State cached at the last use, so that only changed files are read. Derived data only.
#[derive(Serialize, Deserialize)]
struct StoreState {
    form: u32,
    point: u64,
    journal_bytes: u64,
    files: FileVersions,
    seen: BTreeMap<String, FileState>,
}

/// Wanted content of a file; none to remove it.
pub(super) type FileTarget = (String, Option<Vec<u8>>);

impl MemoryStore {
    /// Loads the state and records outside changes.
    pub(super) fn begin(&mut self, changed_by: &Author, now: Timestamp) -> Result<(), MemoryError> {
        self.load()?;
        self.refresh()?;
        let is_left = self.journal.as_ref().is_some_and(|journal| journal.folder().exists(PENDING));
        if !is_left && self.is_as_journaled() {
            return Ok(());
        }
        // Do not wait for a concurrent writer: outside changes are recorded the next time. Changes of a known
        // author must be recorded now.
        match changed_by.is_person() {
            true => match self.journal()?.folder().try_lock(LOCK)? {
                Some(lock) => self.with_lock(lock, changed_by, now, |_| Ok(())),
                None => Ok(()),
            },
            false => self.locked_as(changed_by, now, |_| Ok(())),
        }
    }

    /// Runs `act` while no other process can write.
    pub(super) fn locked<T>(
        &mut self,
        now: Timestamp,
        act: impl FnOnce(&mut MemoryStore) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        self.locked_as(&Author::Person, now, act)
    }

    fn locked_as<T>(
        &mut self,
        changed_by: &Author,
        now: Timestamp,
        act: impl FnOnce(&mut MemoryStore) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        let lock = self.journal()?.folder().lock(LOCK)?;
        self.with_lock(lock, changed_by, now, act)
    }

    fn with_lock<T>(
        &mut self,
        lock: LockedFile,
        changed_by: &Author,
        now: Timestamp,
        act: impl FnOnce(&mut MemoryStore) -> Result<T, MemoryError>,
    ) -> Result<T, MemoryError> {
        if self.journal()?.bytes()? != self.journal_bytes {
            self.load()?;
        }
        self.complete_pending()?;
        self.refresh()?;
        self.record_outside_changes(changed_by, now)?;
        let done = act(self);
        self.save();
        drop(lock);
        done
    }

    /// Replaces a derived file, unless another process is writing.
    pub(crate) fn replace_derived_file(&self, name: &str, bytes: &[u8]) -> Result<(), MemoryError> {
        match self.journal()?.folder().try_lock(LOCK)? {
            Some(_lock) => self.folder.replace(name, bytes),
            None => Ok(()),
        }
    }

    pub(super) fn journal(&self) -> Result<&MemoryHistory, MemoryError> {
        self.journal.as_ref().ok_or_else(|| MemoryError::ReadOnly { path: self.path().to_owned() })
    }

    /// Loads the journal, from the cached state if the journal has not grown.
    fn load(&mut self) -> Result<(), MemoryError> {
        let bytes = self.journal()?.bytes()?;
        let state = self.journal()?.folder().read(STATE)?;
        let state: Option<StoreState> = state.and_then(|text| serde_json::from_slice(&text).ok());
        let state = state.filter(|state: &StoreState| state.form == STATE_VERSION);
        if let Some(state) = state {
            // Cached files are verified by their stamps.
            self.seen = state.seen;
            if state.journal_bytes == bytes {
                (self.files, self.point, self.journal_bytes) = (state.files, state.point, bytes);
                return Ok(());
            }
        }
        let changes = self.journal()?.changes()?;
        self.files = FileVersions::new();
        changes.iter().for_each(|change| apply(&mut self.files, change));
        self.point = changes.last().map_or(0, |change| change.id);
        self.journal_bytes = bytes;
        Ok(())
    }

    fn save(&self) {
        let state = StoreState {
            form: STATE_VERSION,
            point: self.point,
            journal_bytes: self.journal_bytes,
            files: self.files.clone(),
            seen: self.seen.clone(),
        };
        if let (Ok(text), Some(journal)) = (serde_json::to_vec(&state), &self.journal) {
            // The cache is optional.
            let _ = journal.folder().replace(STATE, &text);
        }
    }

    /// Refreshes the list of files. Reads only files whose stamp changed.
    pub(crate) fn refresh(&mut self) -> Result<(), MemoryError> {
        let scan = self.folder.scan()?;
        self.odd = scan.odd;
        let mut before = std::mem::take(&mut self.seen);
        for (file, stamp) in scan.files {
            let known = before.remove(&file).filter(|seen| seen.is_settled && seen.stamp == stamp);
            let seen = match known {
                Some(seen) => Some(seen),
                None => self
                    .folder
                    .read_with_stamp(&file)?
                    .map(|(bytes, stamp)| FileState::of(&file, &bytes, stamp)),
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

    /// Completes a change that a kill interrupted.
    fn complete_pending(&mut self) -> Result<(), MemoryError> {
        let Some(text) = self.journal()?.folder().read(PENDING)? else { return Ok(()) };
        let pending = serde_json::from_slice::<MemoryChange>(&text).ok();
        if let Some(change) = pending.filter(|change| change.id > self.point) {
            for changed in change.files.iter().filter(|changed| is_file_name(&changed.file)) {
                let there = self.folder.read(&changed.file)?.map(|bytes| FileDigest::of(&bytes));
                // A later outside change is recorded separately.
                if there == changed.before && there != changed.after {
                    self.restore_file(changed)?;
                }
            }
            self.append_to_history(&change)?;
        }
        self.journal()?.folder().remove(PENDING)
    }

    /// Records outside changes and updates the index.
    fn record_outside_changes(&mut self, by: &Author, now: Timestamp) -> Result<(), MemoryError> {
        if self.is_as_journaled() {
            return Ok(());
        }
        let mut files = Vec::new();
        let changed = self.changed_outside();
        for file in changed {
            let bytes = self.folder.read(&file)?;
            let after =
                bytes.as_deref().map(|bytes| self.journal()?.store_version_unsynced(bytes)).transpose()?;
            let before = self.files.get(&file).copied();
            if before != after {
                files.push(FileChange { file, before, after });
            }
        }
        if !files.is_empty() {
            self.journal()?.sync_versions()?;
            let change = MemoryChange {
                id: self.point + 1,
                at: now,
                by: by.clone(),
                what: MemoryChangeKind::Outside,
                to: None,
                files,
            };
            self.append_to_history(&change)?;
            let written: Vec<String> = change.files.iter().map(|changed| changed.file.clone()).collect();
            self.noticed.push(change);
            self.refresh()?;
            let wanted = if by.is_person() { Vec::new() } else { self.masked_files(&written)? };
            self.change(MemoryChangeKind::Index, &Author::program(), now, wanted)?;
        }
        Ok(())
    }

    fn changed_outside(&self) -> Vec<String> {
        let gone = self.files.keys().filter(|file| !self.seen.contains_key(*file));
        let changed = self.seen.iter().filter(|(file, seen)| self.files.get(*file) != Some(&seen.digest));
        gone.chain(changed.map(|(file, _)| file)).cloned().collect()
    }

    /// Masked versions of those files that contain secrets.
    fn masked_files(&self, files: &[String]) -> Result<Vec<FileTarget>, MemoryError> {
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
        what: MemoryChangeKind,
        by: &Author,
        now: Timestamp,
        mut wanted: Vec<FileTarget>,
    ) -> Result<(), MemoryError> {
        wanted.extend(self.index_after(&wanted)?);
        self.commit(
            MemoryChange { id: 0, at: now, by: by.clone(), what, to: None, files: Vec::new() },
            &wanted,
        )
    }

    /// Commits a change. Does nothing if all files already match.
    pub(super) fn commit(
        &mut self,
        mut change: MemoryChange,
        wanted: &[FileTarget],
    ) -> Result<(), MemoryError> {
        for (file, bytes) in wanted {
            if let Some((_, what)) = self.odd.iter().find(|(name, _)| name == file) {
                return Err(MemoryError::InTheWay { path: self.path().join(file), what });
            }
            let before = self.files.get(file).copied();
            if before != bytes.as_deref().map(FileDigest::of) {
                let after = bytes.as_deref().map(|bytes| self.journal()?.store_version(bytes)).transpose()?;
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
            self.restore_file(changed)?;
        }
        self.append_to_history(&change)?;
        self.journal()?.folder().remove(PENDING)?;
        self.refresh()
    }

    /// Restores one file to the version after a change.
    fn restore_file(&self, changed: &FileChange) -> Result<(), MemoryError> {
        match changed.after {
            Some(digest) => {
                let bytes = self.journal()?.version(&changed.file, digest)?;
                self.folder.replace(&changed.file, &bytes)
            }
            None => self.folder.remove(&changed.file),
        }
    }

    fn append_to_history(&mut self, change: &MemoryChange) -> Result<(), MemoryError> {
        self.journal_bytes = self.journal()?.append(change)?;
        self.point = change.id;
        apply(&mut self.files, change);
        Ok(())
    }

    /// Index file after these changes; none if it stays the same.
    fn index_after(&self, wanted: &[FileTarget]) -> Result<Option<FileTarget>, MemoryError> {
        let mut entries = self.entries();
        for (file, bytes) in wanted {
            entries.retain(|entry| entry.slug != slug_of(file));
            if let Some(text) =
                bytes.as_ref().filter(|_| is_memory(file)).map(|bytes| String::from_utf8_lossy(bytes))
            {
                let head = MemoryFile::parse(slug_of(file), &text).head;
                entries.push(IndexEntry::new(slug_of(file), &head, self.uses.of(slug_of(file))));
            }
        }
        memory_index::order(&mut entries);
        let before = self.folder.read(INDEX_FILE)?.unwrap_or_default();
        let page = memory_index::page(&String::from_utf8_lossy(&before), &entries).into_bytes();
        Ok((page != before).then(|| (INDEX_FILE.to_owned(), Some(page))))
    }
}

impl FileState {
    fn of(file: &str, bytes: &[u8], stamp: FileStamp) -> FileState {
        let head =
            is_memory(file).then(|| MemoryFile::parse(slug_of(file), &String::from_utf8_lossy(bytes)).head);
        FileState { stamp, is_settled: stamp.is_settled(), digest: FileDigest::of(bytes), head }
    }
}

/// Reports whether a file name is that of a memory.
pub(crate) fn is_memory(file: &str) -> bool {
    file.ends_with(".md") && file.len() > 3 && file != INDEX_FILE
}
