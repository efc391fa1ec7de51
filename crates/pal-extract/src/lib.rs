//! Facts of a conversation, extracted verbatim (the user's words, files, commands, errors, open tasks), and a
//! summary in nine sections made of them, without a model.
//!
//! Nothing is guessed: every fact stands in the conversation, and the same conversation gives the same bytes.
//!
//! ```
//! use pal_extract::{ConversationFacts, MessageBlock, extractive_summary};
//! use pal_model::Role;
//! let asked = [MessageBlock::parse(r#"{"type":"text","text":"Fix the test in src/date.rs"}"#)];
//! let facts = ConversationFacts::from_messages([(Role::User, asked)]);
//! assert!(extractive_summary(&facts, 4_000).contains("- Fix the test in src/date.rs"));
//! ```

mod call_input;
mod conversation_facts;
mod distinctive_words;
mod excerpts;
mod extractive_summary;
mod fact_reader;
mod line_excerpts;
mod message_block;
mod path_mentions;
mod result_outcome;
mod summary_sections;

pub use conversation_facts::{
    CallTarget, CommandRun, CommandState, ConversationFacts, TaskItem, ToolFailure, TouchedFile, UserWords,
};
pub use distinctive_words::distinctive_words;
pub use excerpts::{first_line, fit_lines, sentences, truncate};
pub use extractive_summary::{
    command_lines, current_lines, error_line, error_lines, extractive_summary, file_lines, short_summary,
    task_lines,
};
pub use line_excerpts::{ExcerptText, line_excerpts};
pub use message_block::{MessageBlock, without_reminders};
pub use path_mentions::{contains_bounded, find_paths};
pub use summary_sections::{
    CONTINUATION_NOTICE, RESTORED_HEADING, SECTIONS, USER_MESSAGES_SECTION, count_named_sections, heading,
    is_summary, open_items, section,
};

#[cfg(test)]
mod tests;
