//! Memory files written with the file tools: every change goes through `pal-memory`, which records its origin
//! and masks secrets.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pal_memory::{Author, INDEX_FILE, MemoryError, MemoryFile, MemoryLocation};
use pal_model::EntryId;
use pal_tools::{RecordedFolder, RecordedWrite};

use crate::clock::Clock;

/// The response whose calls are running.
#[derive(Clone, Default)]
pub struct WriteOrigin(Arc<Mutex<Option<EntryId>>>);

impl WriteOrigin {
    /// Sets the entry that following writes come from.
    pub fn comes_from(&self, entry: EntryId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(entry);
    }

    fn entry(&self) -> Option<EntryId> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Routes file tools to the memory directory of a session.
pub struct MemoryKeeper {
    /// Memory location.
    pub place: MemoryLocation,
    /// Real path of the memory directory.
    pub folder: PathBuf,
    /// Id of the session.
    pub session: String,
    /// Origin of the writes.
    pub writing: WriteOrigin,
    /// The clock.
    pub clock: Clock,
}

impl fmt::Debug for MemoryKeeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryKeeper").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl RecordedFolder for MemoryKeeper {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn write(&self, real: &Path, content: &str) -> Result<RecordedWrite, String> {
        let name =
            real.file_name().and_then(|name| name.to_str()).ok_or("The name of the file is no text.")?;
        if name == INDEX_FILE {
            return Err(format!(
                "{INDEX_FILE} is made from the files beside it: write a file for each memory, and its line appears by itself."
            ));
        }
        let slug = name.strip_suffix(".md").ok_or("A memory is a file whose name ends in .md.")?;
        if !pal_memory::find_secrets(slug).is_empty() {
            return Err(String::from("The name of the file looks like a secret. Choose another one."));
        }
        self.kept(slug, content).map_err(|error| format!("The memory was not kept: {error}."))
    }
}

impl MemoryKeeper {
    fn kept(&self, slug: &str, content: &str) -> Result<RecordedWrite, MemoryError> {
        let now = self.clock.now();
        let entry = self.writing.entry().map(|entry| entry.to_string());
        let by = Author::Session { session: self.session.clone(), entry };
        let mut memory = self.place.open(now)?;
        if content.trim().is_empty() {
            memory.remove(slug, &by, now)?;
            return Ok(RecordedWrite { content: None, notes: Vec::new() });
        }
        let mut topic = MemoryFile::parse(slug, content);
        // The origin is set by the program, not by the model.
        topic.head.origin = memory.read(slug).map_or_else(|_| by.clone(), |known| known.head.origin);
        let written = memory.write(slug, &topic, &by, now)?;
        let masked = written.masked.iter();
        let mut notes: Vec<String> = masked
            .map(|masked| {
                format!("A secret was masked ({}, line {}): secrets are not kept.", masked.kind, masked.line)
            })
            .collect();
        let lacks = MemoryFile::missing_keys(content);
        if !lacks.is_empty() {
            notes.push(format!(
                "The front matter lacked {}, which was made up from the text.",
                lacks.join(", ")
            ));
        }
        Ok(RecordedWrite { content: Some(memory.read_file(slug)?), notes })
    }
}
