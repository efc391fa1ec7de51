//! Compaction (§4): a conversation becomes a summary, what must survive is checked, what is needed is put back.
//!
//! Decided here once, whoever carries it out. [`Compaction`] is a machine: it says what it needs next (an answer of a
//! model, the text of files), is told what came of it, and ends with a boundary or with the reason why there is none.
//! It never changes anything itself.

mod audit;
mod compose;
mod cut;
mod machine;
mod notes;
mod order;
mod parse;
mod plain;
mod prompt;
mod restore;

pub use audit::{AuditBudgets, AuditInput, Audited, audit};
pub use machine::{Compacted, Compaction, Question, Reply, Step};
pub use order::{FileRead, FileWanted, How, Notes, Order, Reach, Restorable, Trigger, World};
pub use parse::{NoSummary, summary as read_summary};
pub(crate) use prompt::fold_text;
pub use prompt::{FoldedStretch, fold_directive};
