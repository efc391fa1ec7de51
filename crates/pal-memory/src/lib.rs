//! Durable memory on disk: plain files that agents and users read in later sessions.
//!
//! A memory directory holds one editable file per memory, with front matter and text, and an index (`MEMORY.md`)
//! generated from the files. Every change is versioned: a journal and all versions of all files are kept in
//! `.versions`, so that any earlier state can be restored byte for byte. Secrets are masked before anything is written.
//! Invariants: an acknowledged change survives a kill, and no file, however damaged, keeps the directory from opening.
//!
//! ```
//! use pal_memory::{Author, MemoryFile, MemoryHeader, MemoryKind, MemoryStore};
//! use pal_model::Timestamp;
//!
//! let directory = tempfile::tempdir().unwrap();
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let mut memory = MemoryStore::open(&directory.path().join("memory"), now).unwrap();
//! let head = MemoryHeader {
//!     name: "Release day".into(),
//!     description: "We release on Fridays".into(),
//!     kind: MemoryKind::Project,
//!     modified: None,
//!     origin: Author::Person,
//! };
//! memory.write("release-day", &MemoryFile::new(head, "Never on Mondays.\n"), &Author::Person, now).unwrap();
//! assert_eq!(memory.search("releasing", 5, now).unwrap()[0].memory.slug, "release-day");
//! memory.undo(0, &Author::Person, now).unwrap();
//! assert!(memory.list().unwrap().is_empty());
//! ```

mod author;
mod doctor;
mod embedding_model;
mod error;
mod front_matter_items;
mod memory_dir;
mod memory_file;
mod memory_history;
mod memory_index;
mod memory_location;
mod memory_search;
mod memory_store;
mod memory_summary;
mod memory_uses;
mod vector_store;

pub use author::Author;
pub use doctor::{FindingKind, MemoryFinding};
pub use embedding_model::{EmbeddingModel, EmbeddingModelError};
pub use error::MemoryError;
pub use memory_file::{MemoryFile, MemoryHeader, MemoryKind, MemoryKindError, first_sentence, slug};
pub use memory_history::{FileChange, FileDigest, MemoryChange, MemoryChangeKind};
pub use memory_index::{CONTEXT_BYTES, CONTEXT_LINES, MemoryIndexText};
pub use memory_location::{MemoryLocation, MemoryScope};
pub use memory_search::MemoryHit;
pub use memory_store::{FileDiff, INDEX_FILE, MemoryStore, MemoryWriteResult, TruncatedFile};
pub use memory_summary::MemorySummary;
pub use memory_uses::MemoryUses;
pub use pal_secrets::{MaskedSecret, MaskedText, find_secrets, mask_secrets};
