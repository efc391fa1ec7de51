//! Full-text search, used for memories and for session logs.
//!
//! A [`SearchIndex`] holds documents by key, each with a stamp that tells whether it changed and with a few
//! fields; ranking is BM25 of SQLite's FTS5 with a weight per field. A [`WindowIndex`] holds texts in sequence, such as
//! messages, and ranks each together with its neighbors. Words are stemmed, identifiers are found
//! by their parts, and text without spaces between words (Chinese, Japanese, Korean …) by pairs of
//! characters. Several processes may have the same index open. An index holds only derived data: a corrupt
//! one is rebuilt.
//!
//! ```
//! use pal_search::{SearchDocument, SearchIndex};
//!
//! let mut index = SearchIndex::in_memory(2)?;
//! index.put(&[
//!     SearchDocument { key: "a.md", stamp: "1", fields: &["Release day", "We release on Fridays."] },
//!     SearchDocument { key: "b.md", stamp: "1", fields: &["Parser", "readToken skips whitespace."] },
//! ])?;
//! let found = index.search("releasing", &[2.0, 1.0], 5)?;
//! assert_eq!(found[0].key, "a.md");
//! assert_eq!(index.search("token", &[2.0, 1.0], 5)?[0].key, "b.md", "a part of an identifier");
//! # Ok::<(), pal_search::SearchError>(())
//! ```

#[cfg(feature = "embeddings")]
pub mod embeddings;
mod index_database;
mod near_terms;
mod query_terms;
mod search_index;
mod window_index;
mod word_matches;

pub use index_database::SearchError;
pub use near_terms::NearTerm;
pub use search_index::{SearchDocument, SearchHit, SearchIndex};
pub use window_index::{
    TextPlace, WindowHit, WindowHits, WindowIndex, WindowQuery, WindowText, WindowTransaction,
};
pub use word_matches::{WordMatch, WordMatcher};
