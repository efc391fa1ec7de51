//! What an import reports: what was read, what was written, and what was kept aside.

use std::collections::BTreeMap;
use std::fmt;

use pal_model::Totals;

use crate::aside::{KeptAside, Reason};
use crate::format::Format;

/// What was read and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Whose session it is.
    pub format: Format,
    /// The id that the other agent gave it.
    pub foreign_id: Option<String>,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// Lines of the source, blank ones included.
    pub lines: u64,
    /// Records in them.
    pub records: u64,
    /// Lines with several objects on them, cut into records.
    pub mended_lines: u64,
    /// Entries written, by kind.
    pub entries: BTreeMap<&'static str, u64>,
    /// Entries that were said: by the user's side, attachments aside, and by the model.
    pub messages: u64,
    /// What people typed, or programs gave as prompts.
    pub user_messages: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Answers to them.
    pub tool_results: u64,
    /// Responses of models; one request was written for each.
    pub responses: u64,
    /// Compaction boundaries.
    pub boundaries: u64,
    /// Prompts typed anew under the parent of an earlier one. Both were said; the order of the file is kept.
    pub rewinds: u64,
    /// Queued messages that the person took back before they were sent.
    pub withdrawn: u64,
    /// Responses by model.
    pub models: BTreeMap<String, u64>,
    /// Tokens of all responses.
    pub usage: Totals,
    /// Tokens of the first prompt that the source does not hold.
    pub unseen_tokens: u64,
    /// Records that are no part of the conversation.
    pub kept_aside: Vec<KeptAside>,
}

impl Report {
    /// How many records were kept aside, by reason.
    pub fn kept_by_reason(&self) -> BTreeMap<Reason, u64> {
        let mut counts = BTreeMap::new();
        for kept in &self.kept_aside {
            *counts.entry(kept.reason).or_default() += 1;
        }
        counts
    }

    /// The lines that could not be read.
    pub fn bad_lines(&self) -> impl Iterator<Item = &KeptAside> {
        self.kept_aside.iter().filter(|kept| kept.reason == Reason::BadLine)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "{}: {} records in {} lines; {} user messages, {} responses, {} tool calls, {} boundaries; {} unseen tokens",
            self.format,
            self.records,
            self.lines,
            self.user_messages,
            self.responses,
            self.tool_calls,
            self.boundaries,
            self.unseen_tokens
        )?;
        for (reason, count) in self.kept_by_reason() {
            writeln!(formatter, "  kept aside: {count} ({reason})")?;
        }
        for kept in self.bad_lines() {
            let detail = kept.detail.as_deref().unwrap_or_default();
            writeln!(formatter, "  line {}: {detail}", kept.line)?;
        }
        Ok(())
    }
}
