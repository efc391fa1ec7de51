//! A memory directory with all operations on it.

mod commit;
#[cfg(test)]
mod history_properties;
mod revert;
mod slugs;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pal_model::{Timestamp, closest_word};
use pal_secrets::{MaskedSecret, MaskedText, mask_secrets};

pub use revert::TruncatedFile;
pub use undo::FileDiff;

use crate::author::Author;
use crate::embedding_model::EmbeddingModel;
use crate::error::MemoryError;
use crate::memory_dir::MemoryDir;
use crate::memory_file::MemoryFile;
use crate::memory_history::{FileVersions, MemoryChange, MemoryChangeKind, MemoryHistory};
use crate::memory_index::{self, IndexEntry, MemoryIndexText};
use crate::memory_summary::MemorySummary;
use crate::memory_uses::{self, UseLog};
use crate::vector_store::VectorStore;
use commit::FileState;
pub(crate) use slugs::{check_slug, file_of, slug_of};
use slugs::{dated, keep_out_of_git};

/// Index file: one line per memory.
pub const INDEX_FILE: &str = "MEMORY.md";

/// A memory directory.
///
/// Reading takes no lock. Every change takes the directory's lock, records outside changes first, and is in
/// the journal before it is acknowledged.
pub struct MemoryStore {
    pub(crate) folder: MemoryDir,
    /// History; none if the directory is read-only.
    journal: Option<MemoryHistory>,
    /// State according to the journal: files, last point, and the journal's length at that time.
    files: FileVersions,
    point: u64,
    journal_bytes: u64,
    /// Files found in the directory.
    pub(crate) seen: BTreeMap<String, FileState>,
    /// Other entries found in the directory.
    pub(crate) odd: Vec<(String, &'static str)>,
    pub(crate) uses: UseLog,
    pub(crate) search: Option<pal_search::SearchIndex>,
    /// Embedding model and the vectors it made.
    pub(crate) embeddings: Option<Arc<EmbeddingModel>>,
    pub(crate) vectors: VectorStore,
    noticed: Vec<MemoryChange>,
}

/// Result of a change.
#[derive(Clone, PartialEq, Debug)]
pub struct MemoryWriteResult {
    /// Slug of the memory.
    pub slug: String,
    /// Point in the history after the change.
    pub point: u64,
    /// Secrets that were masked.
    pub masked: Vec<MaskedSecret>,
}

impl MemoryStore {
    /// Opens a memory directory, creating it if needed. Outside changes since the last use are recorded as the
    /// user's: [`MemoryStore::outside_changes`].
    pub fn open(path: &Path, now: Timestamp) -> Result<MemoryStore, MemoryError> {
        MemoryStore::open_as(path, &Author::Person, now)
    }

    /// Opens a memory directory and records outside changes as made by `changed_by`, such as an agent with
    /// its own tools. Secrets in these changes are masked.
    pub(crate) fn open_as(
        path: &Path,
        changed_by: &Author,
        now: Timestamp,
    ) -> Result<MemoryStore, MemoryError> {
        let folder = MemoryDir::open_or_create(path)?;
        let journal = MemoryHistory::open(folder.subdirectory(commit::VERSIONS)?)?;
        keep_out_of_git(&folder)?;
        let mut memory = MemoryStore::around(folder, Some(journal));
        memory.begin(changed_by, now)?;
        Ok(memory)
    }

    /// Opens a memory directory; none if it does not exist.
    pub fn open_existing(path: &Path, now: Timestamp) -> Result<Option<MemoryStore>, MemoryError> {
        match MemoryDir::open(path)? {
            Some(_) => MemoryStore::open(path, now).map(Some),
            None => Ok(None),
        }
    }

    /// Opens another program's directory read-only.
    pub fn open_to_read(path: &Path) -> Result<Option<MemoryStore>, MemoryError> {
        let Some(folder) = MemoryDir::open(path)? else { return Ok(None) };
        let mut memory = MemoryStore::around(folder, None);
        memory.refresh()?;
        Ok(Some(memory))
    }

    fn around(folder: MemoryDir, journal: Option<MemoryHistory>) -> MemoryStore {
        MemoryStore {
            folder,
            journal,
            files: FileVersions::new(),
            point: 0,
            journal_bytes: 0,
            seen: BTreeMap::new(),
            odd: Vec::new(),
            uses: UseLog::default(),
            search: None,
            embeddings: None,
            vectors: VectorStore::default(),
            noticed: Vec::new(),
        }
    }

    /// Adds an embedding model for semantic search.
    pub fn with_embeddings(self, embeddings: Option<Arc<EmbeddingModel>>) -> MemoryStore {
        MemoryStore { embeddings, ..self }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Reports whether all changes are refused.
    pub fn is_read_only(&self) -> bool {
        self.journal.is_none()
    }

    /// Last point of the history that was read.
    pub fn point(&self) -> u64 {
        self.point
    }

    /// Outside changes found and recorded since the directory was opened.
    pub fn outside_changes(&self) -> &[MemoryChange] {
        &self.noticed
    }

    /// Lists all memories, most important first.
    pub fn list(&mut self) -> Result<Vec<MemorySummary>, MemoryError> {
        self.refresh()?;
        Ok(self.listed())
    }

    /// Reads a memory.
    pub fn read(&self, slug: &str) -> Result<MemoryFile, MemoryError> {
        Ok(MemoryFile::parse(slug, &self.read_file(slug)?))
    }

    /// Reads a memory's file verbatim.
    pub fn read_file(&self, slug: &str) -> Result<String, MemoryError> {
        let file = file_of(slug);
        let bytes = match crate::memory_history::is_file_name(&file) {
            true => self.folder.read(&file)?,
            false => None,
        };
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok_or_else(|| self.unknown(slug))
    }

    /// Finds a memory by slug, file name, name, or unique slug prefix; returns its slug.
    pub fn find(&self, name: &str) -> Result<String, MemoryError> {
        let wanted = name.trim().trim_end_matches(".md");
        let slugs =
            || self.seen.iter().filter(|(_, seen)| seen.head.is_some()).map(|(file, _)| slug_of(file));
        if let Some(slug) = slugs().find(|slug| *slug == wanted) {
            return Ok(slug.to_owned());
        }
        let named =
            |seen: &FileState| seen.head.as_ref().is_some_and(|head| head.name.eq_ignore_ascii_case(wanted));
        let named: Vec<&str> =
            self.seen.iter().filter(|(_, seen)| named(seen)).map(|(file, _)| slug_of(file)).collect();
        let begins: Vec<&str> =
            slugs().filter(|slug| !wanted.is_empty() && slug.starts_with(wanted)).collect();
        match (named.as_slice(), begins.as_slice()) {
            ([slug], _) | ([], [slug]) => Ok((*slug).to_owned()),
            _ => Err(self.unknown(name)),
        }
    }

    /// Makes an unused slug for a new memory of this name.
    pub fn unused_slug(&self, name: &str) -> String {
        let slug = crate::memory_file::slug(name);
        let is_free = |slug: &str| !self.folder.exists(&file_of(slug));
        let numbered = (2..).map(|number| format!("{slug}-{number}"));
        std::iter::once(slug.clone()).chain(numbered).find(|slug| is_free(slug)).unwrap_or(slug)
    }

    /// Writes or replaces a memory. Secrets are masked.
    pub fn write(
        &mut self,
        slug: &str,
        topic: &MemoryFile,
        by: &Author,
        now: Timestamp,
    ) -> Result<MemoryWriteResult, MemoryError> {
        let mut topic = topic.clone();
        topic.head.modified = Some(now);
        self.locked(now, |memory| memory.put(slug, &topic.render(), MemoryChangeKind::Write, by, now))
    }

    /// Writes a memory's file and updates only `modified`. Secrets are masked.
    pub fn write_file(
        &mut self,
        slug: &str,
        file: &str,
        by: &Author,
        now: Timestamp,
    ) -> Result<MemoryWriteResult, MemoryError> {
        self.locked(now, |memory| memory.put(slug, &dated(slug, file, now), MemoryChangeKind::Write, by, now))
    }

    /// Replaces a text that occurs exactly once in a memory's file. Secrets are masked.
    pub fn edit(
        &mut self,
        slug: &str,
        (old, new): (&str, &str),
        by: &Author,
        now: Timestamp,
    ) -> Result<MemoryWriteResult, MemoryError> {
        self.locked(now, |memory| {
            let file = memory.read_file(slug)?;
            let times = if old.is_empty() { 0 } else { file.matches(old).count() };
            if times != 1 {
                return Err(MemoryError::NotOnce { slug: slug.to_owned(), times });
            }
            let file = dated(slug, &file.replacen(old, new, 1), now);
            memory.put(slug, &file, MemoryChangeKind::Edit, by, now)
        })
    }

    /// Rewrites a memory's file under the lock; no change if the function returns none. Secrets are masked.
    pub fn revise(
        &mut self,
        slug: &str,
        by: &Author,
        now: Timestamp,
        revised: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Option<MemoryWriteResult>, MemoryError> {
        self.locked(now, |memory| {
            let Some(file) = revised(&memory.read_file(slug)?) else { return Ok(None) };
            memory.put(slug, &dated(slug, &file, now), MemoryChangeKind::Edit, by, now).map(Some)
        })
    }

    /// Removes a memory. Its versions are kept.
    pub fn remove(
        &mut self,
        slug: &str,
        by: &Author,
        now: Timestamp,
    ) -> Result<MemoryWriteResult, MemoryError> {
        self.locked(now, |memory| {
            let file = file_of(slug);
            if !memory.seen.contains_key(&file) {
                return Err(memory.unknown(slug));
            }
            memory.change(MemoryChangeKind::Remove, by, now, vec![(file, None)])?;
            Ok(MemoryWriteResult { slug: slug.to_owned(), point: memory.point, masked: Vec::new() })
        })
    }

    /// Records a use: shown to a model, cited or opened.
    pub fn note_used(&self, slug: &str, when: Timestamp, session: Option<&str>) -> Result<(), MemoryError> {
        match self.journal {
            Some(_) => memory_uses::note(&self.folder, slug, when, session),
            None => Ok(()),
        }
    }

    /// Index text that a session starts with.
    pub fn index_for_context(&mut self) -> Result<MemoryIndexText, MemoryError> {
        self.refresh()?;
        let page = self.folder.read(INDEX_FILE)?.unwrap_or_default();
        Ok(memory_index::for_context(&String::from_utf8_lossy(&page), &self.entries()))
    }

    /// Writes a file, under the lock.
    fn put(
        &mut self,
        slug: &str,
        file: &str,
        what: MemoryChangeKind,
        by: &Author,
        now: Timestamp,
    ) -> Result<MemoryWriteResult, MemoryError> {
        if !self.seen.contains_key(&file_of(slug)) {
            check_slug(slug)?;
        }
        let MaskedText { text: file, secrets: masked } = mask_secrets(file);
        self.change(what, by, now, vec![(file_of(slug), Some(file.into_owned().into_bytes()))])?;
        Ok(MemoryWriteResult { slug: slug.to_owned(), point: self.point, masked })
    }

    pub(crate) fn listed(&self) -> Vec<MemorySummary> {
        let list = self.seen.iter().filter_map(|(file, seen)| {
            let listed = self.listed_file(file, seen)?;
            // Same order as the index, which depends on the files alone.
            Some((memory_index::rank(listed.head.modified, listed.uses), listed))
        });
        let mut list: Vec<(f64, MemorySummary)> = list.collect();
        list.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.slug.cmp(&b.slug)));
        list.into_iter().map(|(_, listed)| listed).collect()
    }

    /// Summary of one memory.
    pub(crate) fn listed_one(&self, slug: &str) -> Option<MemorySummary> {
        let (file, seen) = self.seen.get_key_value(&file_of(slug))?;
        self.listed_file(file, seen)
    }

    fn listed_file(&self, file: &str, seen: &FileState) -> Option<MemorySummary> {
        let head = seen.head.clone()?;
        let changed = head.modified.unwrap_or(seen.stamp.modified());
        let slug = slug_of(file).to_owned();
        let uses = self.uses.of(&slug);
        Some(MemorySummary { slug, head, changed, bytes: seen.stamp.bytes(), uses })
    }

    fn entries(&self) -> Vec<IndexEntry> {
        self.listed().into_iter().map(IndexEntry::from).collect()
    }

    fn unknown(&self, name: &str) -> MemoryError {
        let slugs: Vec<&str> = self.seen.keys().map(|file| slug_of(file)).collect();
        MemoryError::Unknown { name: name.to_owned(), near: closest_word(name, &slugs).map(str::to_owned) }
    }
}
