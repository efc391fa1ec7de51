//! The policy of Palimpsest: the layers that decide, before every request, what the model sees, and compaction.
//!
//! Pure: a view, a time and settings go in, decisions with their reasons come out; whoever drives carries them out.

mod condense;

pub use condense::{Asked, Condensed, condense};
