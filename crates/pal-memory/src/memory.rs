//! A memory directory: what is in it, and every way to change it.

mod history;
mod keeping;
#[cfg(test)]
mod laws;
mod names;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pal_model::{Timestamp, nearest};
use pal_secrets::{MaskedSecret, MaskedText, mask_secrets};
use serde::Serialize;

pub use history::Difference;
pub use runs::Cut;

use crate::author::Author;
use crate::embeddings::Embeddings;
use crate::error::MemoryError;
use crate::folder::Folder;
use crate::index::{self, Entry, IndexText};
use crate::journal::{Change, Files, Journal, What};
use crate::topic::{Head, Topic};
use crate::uses::{self, Ledger, Uses};
use crate::vectors::Vectors;
use keeping::Seen;
pub(crate) use names::{check_slug, file_of, slug_of};
use names::{dated, keep_out_of_git};

/// The index: a line for every memory.
pub const INDEX_FILE: &str = "MEMORY.md";

/// A memory directory.
///
/// Reading takes no lock and waits for nobody. Every change takes the lock of the directory, first writes down what others
/// changed in the meantime, and is in the journal before it is acknowledged.
pub struct Memory {
    pub(crate) folder: Folder,
    /// The history; none if the directory is only read.
    journal: Option<Journal>,
    /// What the journal says is there, its last point, and how long it was then.
    files: Files,
    point: u64,
    journal_bytes: u64,
    /// What is there.
    pub(crate) seen: BTreeMap<String, Seen>,
    /// What is there and can be no memory.
    pub(crate) odd: Vec<(String, &'static str)>,
    pub(crate) uses: Ledger,
    pub(crate) search: Option<pal_search::Index>,
    /// What finds memories by their meaning, if anything does, and what it made of them.
    pub(crate) embeddings: Option<Arc<Embeddings>>,
    pub(crate) vectors: Vectors,
    noticed: Vec<Change>,
}

/// A memory in a list.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Listed {
    /// What it is kept under: its file without `.md`.
    pub slug: String,
    /// What stands at its top.
    #[serde(flatten)]
    pub head: Head,
    /// When it was changed last, as it says itself or else as its file does.
    pub changed: Timestamp,
    /// Its size.
    pub bytes: u64,
    /// How often it was used.
    pub uses: Uses,
}

/// What came of a change.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// The memory.
    pub slug: String,
    /// The point in the history that it led to.
    pub point: u64,
    /// Secrets that were not written.
    pub masked: Vec<MaskedSecret>,
}

impl Memory {
    /// Opens a memory directory, making it if need be. What was changed by others since it was open last is written down as
    /// done by a person: [`Memory::noticed`].
    pub fn open(path: &Path, now: Timestamp) -> Result<Memory, MemoryError> {
        Memory::open_as(path, &Author::Person, now)
    }

    /// The same where it is known who changed files in the meantime, such as an agent with its own tools. Secrets that it
    /// wrote are masked.
    pub fn open_as(path: &Path, changed_by: &Author, now: Timestamp) -> Result<Memory, MemoryError> {
        let folder = Folder::make(path)?;
        let journal = Journal::open(folder.below(keeping::VERSIONS)?)?;
        keep_out_of_git(&folder)?;
        let mut memory = Memory::around(folder, Some(journal));
        memory.begin(changed_by, now)?;
        Ok(memory)
    }

    /// The same for a directory that is there; none if it is not.
    pub fn open_existing(path: &Path, now: Timestamp) -> Result<Option<Memory>, MemoryError> {
        match Folder::open(path)? {
            Some(_) => Memory::open(path, now).map(Some),
            None => Ok(None),
        }
    }

    /// Opens a directory that another program keeps: nothing in it is ever written.
    pub fn open_to_read(path: &Path) -> Result<Option<Memory>, MemoryError> {
        let Some(folder) = Folder::open(path)? else { return Ok(None) };
        let mut memory = Memory::around(folder, None);
        memory.look()?;
        Ok(Some(memory))
    }

    fn around(folder: Folder, journal: Option<Journal>) -> Memory {
        Memory {
            folder,
            journal,
            files: Files::new(),
            point: 0,
            journal_bytes: 0,
            seen: BTreeMap::new(),
            odd: Vec::new(),
            uses: Ledger::default(),
            search: None,
            embeddings: None,
            vectors: Vectors::default(),
            noticed: Vec::new(),
        }
    }

    /// The same, found by meaning, too, if there is a model for that.
    pub fn with_embeddings(self, embeddings: Option<Arc<Embeddings>>) -> Memory {
        Memory { embeddings, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether nothing can be changed here.
    pub fn is_read_only(&self) -> bool {
        self.journal.is_none()
    }

    /// The last point of the history, as far as it was read.
    pub fn point(&self) -> u64 {
        self.point
    }

    /// What others were found to have changed since the directory was opened, which was journaled then.
    pub fn noticed(&self) -> &[Change] {
        &self.noticed
    }

    /// All memories, those that matter most first: new ones and those that are used.
    pub fn list(&mut self) -> Result<Vec<Listed>, MemoryError> {
        self.look()?;
        Ok(self.listed())
    }

    /// A memory.
    pub fn read(&self, slug: &str) -> Result<Topic, MemoryError> {
        Ok(Topic::read(slug, &self.read_file(slug)?))
    }

    /// The file of a memory, as it is.
    pub fn read_file(&self, slug: &str) -> Result<String, MemoryError> {
        let file = file_of(slug);
        let bytes = match crate::journal::is_file_name(&file) {
            true => self.folder.read(&file)?,
            false => None,
        };
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).ok_or_else(|| self.unknown(slug))
    }

    /// The slug of what somebody calls a memory: its slug, its file, its name, or the beginning of one slug alone.
    pub fn find(&self, name: &str) -> Result<String, MemoryError> {
        let wanted = name.trim().trim_end_matches(".md");
        let slugs =
            || self.seen.iter().filter(|(_, seen)| seen.head.is_some()).map(|(file, _)| slug_of(file));
        if let Some(slug) = slugs().find(|slug| *slug == wanted) {
            return Ok(slug.to_owned());
        }
        let named =
            |seen: &Seen| seen.head.as_ref().is_some_and(|head| head.name.eq_ignore_ascii_case(wanted));
        let named: Vec<&str> =
            self.seen.iter().filter(|(_, seen)| named(seen)).map(|(file, _)| slug_of(file)).collect();
        let begins: Vec<&str> =
            slugs().filter(|slug| !wanted.is_empty() && slug.starts_with(wanted)).collect();
        match (named.as_slice(), begins.as_slice()) {
            ([slug], _) | ([], [slug]) => Ok((*slug).to_owned()),
            _ => Err(self.unknown(name)),
        }
    }

    /// A slug for a new memory of this name, which no other has.
    pub fn free_slug(&self, name: &str) -> String {
        let slug = crate::topic::slug(name);
        let is_free = |slug: &str| !self.folder.has(&file_of(slug));
        let numbered = (2..).map(|number| format!("{slug}-{number}"));
        std::iter::once(slug.clone()).chain(numbered).find(|slug| is_free(slug)).unwrap_or(slug)
    }

    /// Writes a memory: a new one, or in the place of the one that is there. Secrets are masked.
    pub fn write(
        &mut self,
        slug: &str,
        topic: &Topic,
        by: &Author,
        now: Timestamp,
    ) -> Result<Written, MemoryError> {
        let mut topic = topic.clone();
        topic.head.modified = Some(now);
        self.locked(now, |memory| memory.put(slug, &topic.file(), What::Write, by, now))
    }

    /// Writes the file of a memory as it shall be; only `modified` is brought up to date. Secrets are masked.
    pub fn write_file(
        &mut self,
        slug: &str,
        file: &str,
        by: &Author,
        now: Timestamp,
    ) -> Result<Written, MemoryError> {
        self.locked(now, |memory| memory.put(slug, &dated(slug, file, now), What::Write, by, now))
    }

    /// Replaces a text that stands in a memory's file exactly once. Secrets are masked.
    pub fn edit(
        &mut self,
        slug: &str,
        (old, new): (&str, &str),
        by: &Author,
        now: Timestamp,
    ) -> Result<Written, MemoryError> {
        self.locked(now, |memory| {
            let file = memory.read_file(slug)?;
            let times = if old.is_empty() { 0 } else { file.matches(old).count() };
            if times != 1 {
                return Err(MemoryError::NotOnce { slug: slug.to_owned(), times });
            }
            let file = dated(slug, &file.replacen(old, new, 1), now);
            memory.put(slug, &file, What::Edit, by, now)
        })
    }

    /// Makes another file of a memory's, while nobody else can change it; none if nothing comes of it. Secrets are masked.
    pub fn revise(
        &mut self,
        slug: &str,
        by: &Author,
        now: Timestamp,
        revised: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Option<Written>, MemoryError> {
        self.locked(now, |memory| {
            let Some(file) = revised(&memory.read_file(slug)?) else { return Ok(None) };
            memory.put(slug, &dated(slug, &file, now), What::Edit, by, now).map(Some)
        })
    }

    /// Removes a memory. Its versions stay.
    pub fn remove(&mut self, slug: &str, by: &Author, now: Timestamp) -> Result<Written, MemoryError> {
        self.locked(now, |memory| {
            let file = file_of(slug);
            if !memory.seen.contains_key(&file) {
                return Err(memory.unknown(slug));
            }
            memory.change(What::Remove, by, now, vec![(file, None)])?;
            Ok(Written { slug: slug.to_owned(), point: memory.point, masked: Vec::new() })
        })
    }

    /// Notes that a memory was used: shown to a model because it matters, cited, opened.
    pub fn note_used(&self, slug: &str, when: Timestamp, session: Option<&str>) -> Result<(), MemoryError> {
        match self.journal {
            Some(_) => uses::note(&self.folder, slug, when, session),
            None => Ok(()),
        }
    }

    /// The index as a model reads it at the beginning of a session.
    pub fn index_for_context(&mut self) -> Result<IndexText, MemoryError> {
        self.look()?;
        let page = self.folder.read(INDEX_FILE)?.unwrap_or_default();
        Ok(index::for_context(&String::from_utf8_lossy(&page), &self.entries()))
    }

    /// Puts a file in its place, under the lock.
    fn put(
        &mut self,
        slug: &str,
        file: &str,
        what: What,
        by: &Author,
        now: Timestamp,
    ) -> Result<Written, MemoryError> {
        if !self.seen.contains_key(&file_of(slug)) {
            check_slug(slug)?;
        }
        let MaskedText { text: file, secrets: masked } = mask_secrets(file);
        self.change(what, by, now, vec![(file_of(slug), Some(file.into_owned().into_bytes()))])?;
        Ok(Written { slug: slug.to_owned(), point: self.point, masked })
    }

    pub(crate) fn listed(&self) -> Vec<Listed> {
        let list = self.seen.iter().filter_map(|(file, seen)| {
            let listed = self.listed_file(file, seen)?;
            // The order is that of the index, which is made of what the files say and of nothing else.
            Some((index::rank(listed.head.modified, listed.uses), listed))
        });
        let mut list: Vec<(f64, Listed)> = list.collect();
        list.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.slug.cmp(&b.slug)));
        list.into_iter().map(|(_, listed)| listed).collect()
    }

    /// One of them.
    pub(crate) fn listed_one(&self, slug: &str) -> Option<Listed> {
        let (file, seen) = self.seen.get_key_value(&file_of(slug))?;
        self.listed_file(file, seen)
    }

    fn listed_file(&self, file: &str, seen: &Seen) -> Option<Listed> {
        let head = seen.head.clone()?;
        let changed = head.modified.unwrap_or(seen.stamp.modified());
        let slug = slug_of(file).to_owned();
        let uses = self.uses.of(&slug);
        Some(Listed { slug, head, changed, bytes: seen.stamp.bytes(), uses })
    }

    fn entries(&self) -> Vec<Entry> {
        self.listed().into_iter().map(Entry::from).collect()
    }

    fn unknown(&self, name: &str) -> MemoryError {
        let slugs: Vec<&str> = self.seen.keys().map(|file| slug_of(file)).collect();
        MemoryError::Unknown { name: name.to_owned(), near: nearest(name, &slugs).map(str::to_owned) }
    }
}
