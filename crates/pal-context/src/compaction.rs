//! Compaction (§4): a conversation becomes a summary; an audit checks what must survive; needed content is
//! restored.
//!
//! [`Compaction`] is a state machine: it states what it needs next (a response of a model, the text of
//! files), receives the result, and ends with a boundary or with the reason for failure. It changes nothing
//! itself.

mod audit;
mod boundary_builder;
mod compaction_request;
mod conversation_cut;
mod notes_summary;
mod plain_request;
mod restoration;
mod restored_lines;
mod state_machine;
mod summary_budgets;
mod summary_parser;
mod summary_prompt;
mod waiting_messages;

pub use audit::{AuditBudgets, AuditInput, AuditOutcome, audit};
pub use compaction_request::{
    CompactionRange, CompactionRequest, CompactionTrigger, FileRequest, NamedText, RestoreSources,
    RestoredFile, SessionNotes, SummaryMethod,
};
pub use restoration::restored_plan;
pub use state_machine::{Compaction, CompactionOutcome, CompactionStep, SummaryQuestion, SummaryReply};
pub use summary_parser::{SummaryError, summary as read_summary};
pub(crate) use summary_prompt::fold_text;
pub use summary_prompt::{FoldedStretch, fold_directive};
pub(crate) use waiting_messages::WaitingMessages;
