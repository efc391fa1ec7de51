//! Full-text search: one engine for memories and for what was ever said.
//!
//! An [`Index`] holds documents by key, each with a stamp (so that whoever fills it knows what has changed) and a few fields.
//! Ranking is BM25 of SQLite's FTS5 with a weight for each field; words are stemmed, identifiers are found by their parts, and text
//! without spaces between its words (Chinese, Japanese, Korean …) by pairs of characters. Many processes may have the same
//! index open. An index is never the only place of anything: one that is spoilt is made anew.
//!
//! ```
//! use pal_search::{Document, Index};
//!
//! let mut index = Index::in_memory(2)?;
//! index.put(&[
//!     Document { key: "a.md", stamp: "1", fields: &["Release day", "We release on Fridays."] },
//!     Document { key: "b.md", stamp: "1", fields: &["Parser", "readToken skips whitespace."] },
//! ])?;
//! let found = index.search("releasing", &[2.0, 1.0], 5)?;
//! assert_eq!(found[0].key, "a.md");
//! assert_eq!(index.search("token", &[2.0, 1.0], 5)?[0].key, "b.md", "a part of an identifier");
//! # Ok::<(), pal_search::SearchError>(())
//! ```

mod index;
mod marks;
mod words;

pub use index::{Changing, Document, Hit, Index, SearchError, Wanted};
pub use marks::{Mark, Marker};
pub use words::Fit;
