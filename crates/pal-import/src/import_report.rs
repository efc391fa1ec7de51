//! Report of an import.

use std::collections::BTreeMap;
use std::fmt;

use pal_model::UsageTotals;

use crate::internal_records::{InternalReason, InternalRecord};
use crate::session_format::SessionFormat;

/// Counts of what an import read and wrote.
#[derive(Clone, PartialEq, Debug)]
pub struct ImportReport {
    /// Format of the source.
    pub format: SessionFormat,
    /// The other agent's session id.
    pub foreign_id: Option<String>,
    /// Session title, if any.
    pub title: Option<String>,
    /// Source lines, including blank ones.
    pub lines: u64,
    /// Records in the source.
    pub records: u64,
    /// Lines with several objects, split into records.
    pub mended_lines: u64,
    /// Entries written, by kind.
    pub entries: BTreeMap<&'static str, u64>,
    /// Conversation entries: user entries without attachments, and assistant entries.
    pub messages: u64,
    /// Prompts typed by people or given by programs.
    pub user_messages: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool results.
    pub tool_results: u64,
    /// Model responses; one request entry was written for each.
    pub responses: u64,
    /// Compaction boundaries.
    pub boundaries: u64,
    /// Prompts retyped under the parent of an earlier one. Both are kept, in file order.
    pub rewinds: u64,
    /// Queued messages taken back before they were sent.
    pub withdrawn: u64,
    /// Responses by model.
    pub models: BTreeMap<String, u64>,
    /// Total usage of all responses.
    pub usage: UsageTotals,
    /// Tokens of the first prompt that are not in the source.
    pub unseen_tokens: u64,
    /// Responses whose output tokens are estimated, because the transcript has a placeholder.
    pub estimated_outputs: u64,
    /// Records that are not part of the conversation.
    pub internal_records: Vec<InternalRecord>,
}

impl ImportReport {
    /// Number of internal records by reason.
    pub fn internal_by_reason(&self) -> BTreeMap<InternalReason, u64> {
        let mut counts = BTreeMap::new();
        for kept in &self.internal_records {
            *counts.entry(kept.reason).or_default() += 1;
        }
        counts
    }

    /// Lines that could not be parsed.
    pub fn bad_lines(&self) -> impl Iterator<Item = &InternalRecord> {
        self.internal_records.iter().filter(|kept| kept.reason == InternalReason::BadLine)
    }
}

impl fmt::Display for ImportReport {
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
        if self.estimated_outputs > 0 {
            let count = self.estimated_outputs;
            writeln!(formatter, "  output tokens estimated: {count} responses have only a placeholder")?;
        }
        for (reason, count) in self.internal_by_reason() {
            writeln!(formatter, "  kept aside: {count} ({reason})")?;
        }
        for kept in self.bad_lines() {
            let detail = kept.detail.as_deref().unwrap_or_default();
            writeln!(formatter, "  line {}: {detail}", kept.line)?;
        }
        Ok(())
    }
}
