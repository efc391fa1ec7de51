//! The policy of Palimpsest: the layers that decide before every request what the model sees, and compaction.
//!
//! Pure: a view, a time and settings go in, decisions with their reasons come out; the caller executes them.

mod break_cost;
pub mod cache;
mod cache_ttl;
mod compaction;
mod condense;
mod context_policy;
pub mod cost_aware;
mod layer;
mod layers;
mod ledger;
mod notes;
mod pause_history;
mod policy_figures;
mod request_params;
mod text;
mod visible_call;

pub use break_cost::price_of_break;
pub use compaction::{
    AuditBudgets, AuditInput, AuditOutcome, Compaction, CompactionOutcome, CompactionRange,
    CompactionRequest, CompactionStep, CompactionTrigger, FileRequest, FoldedStretch, NamedText,
    RestoreSources, RestoredFile, SessionNotes, SummaryError, SummaryMethod, SummaryQuestion, SummaryReply,
    audit, fold_directive, read_summary, restored_plan,
};
pub use condense::{
    CondenseMode, CondenseModes, CondensedOutput, OutputFormat, OutputOrigin, condense_output,
};
pub use context_policy::{CONDENSE_CHARACTERS, ContextPolicy, RestorationBudget, WindowBudgets};
pub use layer::{
    ActionKind, FoldRange, ForecastCondition, Layer, LayerAction, LayerContext, LayerForecast, Proposal,
    SessionPaths, SpillFile,
};
pub use layers::{
    FoldQuestion, LAYERS, extractive_fold, fold_decision, fold_question, judge_idle_compaction,
    judge_keepalive,
};
pub use ledger::{
    CostLedger, CostTotals, DecisionSaving, DropTotals, LedgerCompaction, LedgerDrop, LedgerRow, PromptTokens,
};
pub use notes::{
    INLINE_NOTES_DIRECTIVE, NOTES_DIRECTIVE, NOTES_TEMPLATE, NotesCadence, NotesCoverage, notes_directive,
    restore_template_sections,
};
pub use pause_history::PauseHistory;
pub use request_params::{RequestParams, validate_logged_member};
pub use visible_call::VisibleCall;
