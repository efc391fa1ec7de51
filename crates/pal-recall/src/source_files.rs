//! Files and entries that a search reads, each once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pal_model::LogEntry;
use pal_store::LogReader;

use crate::entry_parts::{EntryPart, entry_parts};

/// Open files and entries of a search.
#[derive(Default)]
pub(crate) struct SourceFiles {
    readers: RefCell<HashMap<PathBuf, Option<Rc<LogReader>>>>,
    entries: RefCell<HashMap<EntryPlace, Option<Rc<SourceEntry>>>>,
}

/// File and offset of an entry.
type EntryPlace = (PathBuf, u64);

/// An entry with its readable parts.
pub(crate) struct SourceEntry {
    pub(crate) entry: LogEntry,
    pub(crate) parts: Vec<EntryPart>,
}

impl SourceFiles {
    /// Reader of a file; none if the file no longer exists.
    pub(crate) fn reader(&self, file: &Path) -> Option<Rc<LogReader>> {
        let mut readers = self.readers.borrow_mut();
        readers.entry(file.to_owned()).or_insert_with(|| LogReader::open(file).ok().map(Rc::new)).clone()
    }

    /// Entry at an offset of a log; none if there is none any more.
    pub(crate) fn entry(&self, file: &Path, offset: u64) -> Option<Rc<SourceEntry>> {
        let read = || {
            let entry = self.reader(file)?.entry_at(offset).ok()??;
            Some(Rc::new(SourceEntry { parts: entry_parts(&entry), entry }))
        };
        let key = (file.to_owned(), offset);
        let known = self.entries.borrow().get(&key).cloned();
        known.unwrap_or_else(|| self.entries.borrow_mut().entry(key).or_insert_with(read).clone())
    }
}
