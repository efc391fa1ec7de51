//! What a conversation holds, drawn from it word for word: the user's words, files, commands, errors, open tasks; and a
//! summary in nine sections made of them. No model is asked.
//!
//! Refuses to guess: what is not in the conversation is not in the facts, and the same conversation gives the same
//! bytes.
//!
//! ```
//! use pal_extract::{Facts, Heard, summary};
//! use pal_model::Role;
//! let asked = [Heard::of(r#"{"type":"text","text":"Fix the test in src/date.rs"}"#)];
//! let facts = Facts::of_messages([(Role::User, asked)]);
//! assert!(summary(&facts, 4_000).contains("- Fix the test in src/date.rs"));
//! ```

mod called;
mod facts;
mod heard;
mod paths;
mod prose;
mod reading;
mod sections;
mod summary;

pub use facts::{Command, Facts, File, Target, Task, Trouble, Words};
pub use heard::{Heard, without_reminders};
pub use paths::{contains_words, paths_named};
pub use prose::{cut, first_line, fitted, lines_with, sentences};
pub use sections::{
    CONTINUES, NOTHING, PENDING, RESTORED, SECTIONS, WORDS, heading, is_summary, open_items, section,
    sections_named,
};
pub use summary::{
    command_lines, current_lines, error_line, error_lines, file_lines, short, summary, task_lines,
};

#[cfg(test)]
mod tests;
