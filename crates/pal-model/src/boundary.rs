//! Compaction boundaries: the point where the view restarts, with a summary of the earlier history and a snapshot of
//! the session state, so that a resumed session reads no further back.
//!
//! The summary is part of the boundary entry: a single append, so a kill cannot leave a boundary without its summary.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{ActivityStats, Content, EntryId, KeepaliveStats, KnownFile, RequestSource, Usage, UsageBasis};

/// A compaction boundary.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Boundary {
    /// Trigger: `auto`, `manual`, `model`, `reactive`, `idle`, or the term of another agent.
    pub trigger: SmolStr,
    /// Reason of a compaction that was decided by price, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Summary method: `notes`, `fork`, `provider`, `plain`, `truncated`, `extractive`, `imported`.
    #[serde(rename = "how")]
    pub method: SmolStr,
    /// Summary, as the user message that follows the boundary. Empty if none was recorded.
    #[serde(skip)]
    pub summary: Content,
    /// Context size before compaction, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Context size after compaction, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// Number of messages that the summary replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_summarised: Option<u64>,
    /// Messages before the boundary that stay in the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserved: Option<PreservedRange>,
    /// User's instructions for the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Content before the preserved messages if they precede the summary: the content of an earlier boundary.
    #[serde(skip)]
    pub lead: Content,
    /// Content restored after the preserved messages: files, skills, plan, announcements. Part of this entry, so that
    /// undoing the boundary removes it.
    #[serde(skip)]
    pub restored: Content,
    /// Newest entry before the boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_before: Option<EntryId>,
    /// Threshold of automatic compaction at the time, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// Source of the request that the compaction preceded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<RequestSource>,
    /// Deferred tools discovered before the boundary.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<SmolStr>,
    /// Preceding boundary, if this is a re-compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<EntryId>,
    /// User turns since the preceding boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_since_previous: Option<u64>,
    /// Result of checking and repairing the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<SummaryAudit>,
    /// Session state at the boundary.
    pub snapshot: SessionSnapshot,
}

impl Boundary {
    /// Returns true if the boundary has a summary. Without one it is ignored: it would hide history and replace it by
    /// nothing.
    pub fn has_summary(&self) -> bool {
        !self.summary.blocks().is_empty()
    }

    /// Returns true if the context is not smaller after the compaction than before it, as far as both sizes are known.
    pub fn has_not_shrunk(&self) -> bool {
        self.tokens_before.zip(self.tokens_after).is_some_and(|(before, after)| after >= before)
    }
}

/// Range of entries that a boundary keeps in the view.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PreservedRange {
    /// First entry of the range.
    pub head: EntryId,
    /// Last entry of the range, inclusive.
    pub tail: EntryId,
    /// Position relative to the summary.
    #[serde(default)]
    pub placement: PreservedPlacement,
    /// Byte offset of the line of `head` in the log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// Position of a preserved range relative to the summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreservedPlacement {
    /// After the summary: the newest messages are kept.
    #[default]
    AfterSummary,
    /// Before the summary: the oldest messages, and with them the cached prefix, are kept.
    BeforeSummary,
}

/// Audit of a summary: required content found in it, added by repair, and what it invented.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryAudit {
    /// User messages, including those before earlier boundaries.
    pub user_messages: u64,
    /// User messages found verbatim in the summary or the preserved messages.
    pub user_messages_verbatim: u64,
    /// Missing user messages added verbatim.
    pub user_messages_repaired: u64,
    /// Missing user messages referenced by their position in the log.
    pub user_messages_by_pointer: u64,
    /// Edited paths.
    pub paths: u64,
    /// Edited paths found in the summary.
    pub paths_kept: u64,
    /// Missing paths added.
    pub paths_repaired: u64,
    /// Open tasks.
    pub todos: u64,
    /// Open tasks found in the summary.
    pub todos_kept: u64,
    /// Missing open tasks added.
    pub todos_repaired: u64,
    /// True if the summary contains the last error; none if there was no error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kept: Option<bool>,
    /// Paths in the summary that occur nowhere in the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<String>,
    /// Words that the summary attributes to the user and that the user never wrote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invented_words: Vec<String>,
}

/// User messages from before a boundary, kept so that later compactions can include them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorUserMessages {
    /// Newest messages within the budget, oldest first.
    #[serde(rename = "words", skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<PriorUserMessage>,
    /// Number of older messages that are only in the log.
    #[serde(rename = "pointed")]
    pub omitted: u64,
}

impl PriorUserMessages {
    /// Returns true if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.omitted == 0
    }
}

/// A user message from before a boundary.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PriorUserMessage {
    /// Entry that contains the message.
    pub entry: EntryId,
    /// Full text of the message.
    pub text: String,
}

/// Reference to an entry before the boundary that is still in effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EntryRef {
    /// Referenced entry.
    pub id: EntryId,
    /// Byte offset of its line in the log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// Session state at one point of the log.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionSnapshot {
    /// Session title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Model in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<SmolStr>,
    /// Prefix in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<EntryRef>,
    /// Pinned texts by the decision that pinned them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<EntryId, String>,
    /// Latched values by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latches: BTreeMap<SmolStr, String>,
    /// Announced names by category.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub announced: BTreeMap<SmolStr, BTreeSet<SmolStr>>,
    /// Read statistics by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub read_files: BTreeMap<String, FileReadStats>,
    /// Files as the model last saw them, by canonical path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen_files: BTreeMap<String, KnownFile>,
    /// Directory that the session belongs to: where it or the newest fork in its history started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_directory: Option<String>,
    /// Working directory, if it differs from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Permission mode, if a tool changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SmolStr>,
    /// Active skills, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Memory files already prefetched, with the bytes sent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prefetched: BTreeMap<String, u64>,
    /// Usage and cost of the session.
    pub totals: UsageTotals,
    /// Estimator factors by model or model generation, in ten-thousandths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<SmolStr, u32>,
    /// Consecutive failures of model summaries.
    #[serde(skip_serializing_if = "is_zero")]
    pub summary_failures: u64,
    /// User messages before the boundary.
    #[serde(rename = "carried", skip_serializing_if = "PriorUserMessages::is_empty")]
    pub user_messages: PriorUserMessages,
    /// Request rate, context growth and pauses.
    #[serde(rename = "rhythm", skip_serializing_if = "ActivityStats::is_empty")]
    pub activity: ActivityStats,
    /// Cache keepalive requests.
    #[serde(rename = "pings", skip_serializing_if = "KeepaliveStats::is_empty")]
    pub keepalive: KeepaliveStats,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Read statistics of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileReadStats {
    /// Tool call of the last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<SmolStr>,
    /// Number of reads.
    pub reads: u64,
}

/// Tokens and cost of a session.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageTotals {
    /// Responses received.
    pub responses: u64,
    /// Of these, responses of a simulator, for which nothing is paid.
    #[serde(skip_serializing_if = "is_zero")]
    pub simulated: u64,
    /// Uncached prompt tokens.
    pub input_tokens: u64,
    /// Prompt tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Prompt tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// US dollars; responses without a known price count as zero.
    pub cost: f64,
}

impl UsageTotals {
    /// Returns the sum of prompt and output tokens.
    pub fn tokens(&self) -> u64 {
        [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
            self.output_tokens,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Returns false if there were responses and none reported its usage, as some servers do.
    pub fn is_reported(&self) -> bool {
        self.responses == 0 || self.tokens() > 0
    }

    /// Marks a cost in text: ` simulated` if a simulator gave a response, empty otherwise.
    pub fn simulated_mark(&self) -> &'static str {
        if self.simulated > 0 { " simulated" } else { "" }
    }

    /// Returns the usage since an earlier total.
    pub fn since(&self, before: &UsageTotals) -> UsageTotals {
        UsageTotals {
            responses: self.responses.saturating_sub(before.responses),
            simulated: self.simulated.saturating_sub(before.simulated),
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            cache_creation_input_tokens: self
                .cache_creation_input_tokens
                .saturating_sub(before.cache_creation_input_tokens),
            cache_read_input_tokens: self
                .cache_read_input_tokens
                .saturating_sub(before.cache_read_input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost: self.cost - before.cost,
        }
    }

    /// Adds other totals.
    pub fn add_totals(&mut self, other: &UsageTotals) {
        self.responses += other.responses;
        self.simulated += other.simulated;
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.saturating_add(other.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            self.cache_read_input_tokens.saturating_add(other.cache_read_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost += other.cost;
    }

    /// Adds one response from its raw log line, parsing only usage and cost. Malformed lines are ignored.
    pub fn add_line(&mut self, line: &str) {
        #[derive(Deserialize)]
        struct ResponseUsage {
            #[serde(default)]
            usage: Usage,
            #[serde(default)]
            cost: Option<f64>,
        }
        if let Ok(ResponseUsage { usage, cost }) = serde_json::from_str(line) {
            self.add(&usage, cost);
        }
    }

    /// Adds the usage and cost of one response.
    pub fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        self.responses += 1;
        self.simulated += u64::from(usage.basis == UsageBasis::Simulated);
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.saturating_add(usage.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            self.cache_read_input_tokens.saturating_add(usage.cache_read_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cost += cost.unwrap_or(0.0);
    }
}
