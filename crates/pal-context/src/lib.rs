//! The policy of Palimpsest: the layers that decide, before every request, what the model sees, and compaction.
//!
//! Pure: a view, a time and settings go in, decisions with their reasons come out; whoever drives carries them out.

mod act;
pub mod cache;
mod call;
mod compact;
mod condense;
mod foresee;
mod fork;
mod layers;
mod ledger;
mod notes;
mod price;
mod settings;
pub mod thrifty;
mod words;

pub use act::{Act, Layer, Place, Proposal, Situation, SpillFile, Stretch, What};
pub use call::Call;
pub use compact::{
    AuditBudgets, AuditInput, Audited, Compacted, Compaction, FileRead, FileWanted, FoldedStretch, How,
    NoSummary, Notes, Order, Question, Reach, Reply, Restorable, Step, Trigger, World, audit, fold_directive,
    read_summary,
};
pub use condense::{Asked, Condensed, condense};
pub use foresee::{Foreseen, When};
pub use fork::{Standing, carried_member};
pub use layers::{FoldQuestion, LAYERS, extractive_fold, fold_decision, fold_question, ping};
pub use ledger::{Compacting, Fall, FallTotals, Ledger, LedgerRow, PromptTokens, Saving, Totals};
pub use notes::{DIRECTIVE, Noted, NotesCadence, PASSING, TEMPLATE, mended_notes, notes_directive};
pub use price::price_of_break;
pub use settings::{Budgets, CONDENSE_CHARACTERS, Policy};
