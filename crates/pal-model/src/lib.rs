//! Core types of Palimpsest: ids, log entries, messages, content blocks, decisions, usage and model cards.
//!
//! Every crate may depend on this one; it depends on no other crate of the workspace. It is pure: no files, no clock,
//! no randomness. Invariant: input is kept as raw JSON text beside its typed form, and the raw form is written back, so
//! unknown kinds, blocks and fields survive a round trip unchanged.
//!
//! ```
//! use pal_model::{EntryBody, LogEntry, SharedText};
//! let line = r#"{"v":1,"id":"01890000-0000-7000-8000-000000000001","parent":null,"at":"2026-11-15T09:00:00.000Z","kind":"user","origin":"person","content":"fix the test"}"#;
//! let entry = LogEntry::parse(SharedText::from(line)).unwrap();
//! let EntryBody::User(user) = &entry.body else { panic!("not a user entry") };
//! assert_eq!(user.content.blocks().len(), 1);
//! assert_eq!(entry.line.as_str(), line);
//! ```

mod activity_stats;
mod boundary;
mod cache_break;
mod chunked_text;
mod content_block;
mod context_overflow;
mod decision;
mod entry_draft;
mod entry_payload;
mod front_matter;
mod ids;
mod keepalive_stats;
mod log_entry;
mod log_repair;
mod model_card;
mod model_catalog;
mod raw_json;
mod shared_text;
mod suggestion;
mod tag_escape;
pub mod text;
mod timestamp;
mod token_estimator;
mod token_usage;
mod tool_kind;

pub use activity_stats::{ActivityStats, PAUSE_LIMITS};
pub use boundary::{
    Boundary, EntryRef, FileReadStats, PreservedPlacement, PreservedRange, PriorUserMessage,
    PriorUserMessages, SessionSnapshot, SummaryAudit, UsageTotals,
};
pub use cache_break::{BreakCause, CacheBreak, RequestChange};
pub use chunked_text::{ChunkedText, TextChunk};
pub use content_block::{BlockType, Content, ContentBlock, blocks_to_json};
pub use context_overflow::ContextOverflow;
pub use decision::{Decision, DecisionCost, DecisionKind, MediaKind};
pub use entry_draft::EntryDraft;
pub use entry_payload::{
    AssistantMessage, Attachment, KnownFile, LayerReport, MessageOrigin, PrefixNotes, PromptPrefix,
    RequestRecord, RequestSource, ResponseRecord, Role, SectionNote, SessionStart, SourceNote,
    SystemBlockNote, ToolEffects, UserMessage,
};
pub use front_matter::split_front_matter;
pub use ids::{EntryId, IdError, IdSource, ResponseId, ToolUseId};
pub use keepalive_stats::KeepaliveStats;
pub use log_entry::{EntryBody, EntryError, EntryKind, LogEntry};
pub use log_repair::{DamagedRange, LogRepair, RepairLink};
pub use model_card::{
    CacheMode, FormerPrices, ModelCapabilities, ModelCard, PriceTier, ThinkingModes, TokenGeneration,
    TokenPrices,
};
pub use model_catalog::{CardLookup, CatalogError, ModelCatalog, sent_model_name};
pub use raw_json::{
    JsonError, JsonField, array_items, escape_into, has_lone_surrogate, member, member_string, object_fields,
    replace_lone_surrogates, unescape,
};
pub use shared_text::SharedText;
pub use suggestion::{closest_word, did_you_mean};
pub use tag_escape::{
    EARLIER_RESULT_PREFIX, GUARDED_TAGS, escape_reminder_tags, escape_tags, escape_tags_in_json,
    is_invisible, quote_name, unescape_tags, unwrap_reminder, wrap_reminder,
};
pub use timestamp::{TimeError, Timestamp};
pub use token_estimator::TokenEstimator;
pub use token_usage::{CacheCreation, ServerToolUse, Usage, UsageBasis, UsageIteration};
pub use tool_kind::ToolKind;
