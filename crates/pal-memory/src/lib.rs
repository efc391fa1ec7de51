//! Durable memory on disk: what agents and people want to know again in the next session, as plain files.
//!
//! A memory directory holds one file for each memory, with front matter and a text that anybody can read and edit, and an index
//! (`MEMORY.md`) that is made from the files. Every change, by whomever, is versioned: a journal and all versions of all files
//! stand in `.versions` beside them, so that any earlier state can be restored byte for byte. Secrets are masked before
//! anything is written. Invariant: what was acknowledged stays, whatever kills the process; and no file, however broken, keeps
//! the directory from opening.
//!
//! ```
//! use pal_memory::{Author, Head, Kind, Memory, Topic};
//! use pal_model::Timestamp;
//!
//! let directory = tempfile::tempdir().unwrap();
//! let now = Timestamp::from_milliseconds(1_800_000_000_000);
//! let mut memory = Memory::open(&directory.path().join("memory"), now).unwrap();
//! let head = Head {
//!     name: "Release day".into(),
//!     description: "We release on Fridays".into(),
//!     kind: Kind::Project,
//!     modified: None,
//!     origin: Author::Person,
//! };
//! memory.write("release-day", &Topic::new(head, "Never on Mondays.\n"), &Author::Person, now).unwrap();
//! assert_eq!(memory.search("releasing", 5, now).unwrap()[0].memory.slug, "release-day");
//! memory.undo(0, &Author::Person, now).unwrap();
//! assert!(memory.list().unwrap().is_empty());
//! ```

mod author;
mod doctor;
mod embeddings;
mod error;
mod folder;
mod front;
mod index;
mod journal;
mod memory;
mod places;
mod search;
mod topic;
mod uses;
mod vectors;

pub use author::Author;
pub use doctor::{Finding, Trouble};
pub use embeddings::{Embeddings, EmbeddingsError};
pub use error::MemoryError;
pub use index::{CONTEXT_BYTES, CONTEXT_LINES, IndexText};
pub use journal::{Change, Digest, FileChange, What};
pub use memory::{Cut, Difference, INDEX_FILE, Listed, Memory, Written};
pub use pal_secrets::{MaskedSecret, MaskedText, find_secrets, mask_secrets};
pub use places::{Place, Scope};
pub use search::Found;
pub use topic::{Head, Kind, KindError, Topic, first_sentence, slug};
pub use uses::Uses;
