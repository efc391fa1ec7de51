//! Compaction boundaries: where the view begins anew, with the summary of what came before and a snapshot of all
//! state that lies before it, so that a resumed session need not read further back.
//!
//! The summary is part of the boundary entry: one append, so no kill can leave a boundary without its summary.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{Content, EntryId, Usage};

/// A compaction boundary.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Boundary {
    /// What set it off: `auto`, `manual`, `reactive`, or another agent's word.
    pub trigger: SmolStr,
    /// How the summary came about: `notes`, `fork`, `provider`, `plain`, `truncated`, `extractive`, `imported`.
    pub how: SmolStr,
    /// The summary, as the user message that follows the boundary. Empty if none was recorded.
    #[serde(skip)]
    pub summary: Content,
    /// Size of the context before, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Size of the context after, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// How many messages the summary stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_summarised: Option<u64>,
    /// Messages that stay in the view although they lie before the boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserved: Option<Preserved>,
    /// The user's instructions for the summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The boundary before this one, when this is a re-compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<EntryId>,
    /// What the audit of the summary found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// State that lies before the boundary.
    pub snapshot: Snapshot,
}

impl Boundary {
    /// Whether it counts: a boundary without a summary would hide history and put nothing in its place.
    pub fn stands(&self) -> bool {
        !self.summary.blocks().is_empty()
    }
}

/// The stretch of entries that a boundary keeps.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Preserved {
    /// Its first entry.
    pub head: EntryId,
    /// Its last entry.
    pub tail: EntryId,
    /// Whether it follows the summary or precedes it.
    #[serde(default)]
    pub placement: Placement,
    /// Where the line of `head` starts in the log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// Where a preserved stretch stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// After the summary: the newest messages are kept.
    #[default]
    AfterSummary,
    /// Before the summary: the oldest messages, and with them the cached prefix, are kept.
    BeforeSummary,
}

/// An entry that lies before the boundary and is still in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reference {
    /// Which entry.
    pub id: EntryId,
    /// Where its line starts in the log file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// State of a session at one point of its log.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The model in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<SmolStr>,
    /// The prefix in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Reference>,
    /// Pinned texts, by the decision that pinned them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<EntryId, String>,
    /// Latched values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub latches: BTreeMap<SmolStr, String>,
    /// Names announced so far, by sort.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub announced: BTreeMap<SmolStr, BTreeSet<SmolStr>>,
    /// Files that the model has read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub read_files: BTreeMap<String, ReadFile>,
    /// Memory files already handed over.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub prefetched: BTreeSet<String>,
    /// The user's words of all stretches summarised so far.
    #[serde(skip_serializing_if = "Carried::is_empty")]
    pub carried: Carried,
    /// What was used up so far.
    pub totals: Totals,
    /// Estimator factors by model generation, in ten-thousandths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<SmolStr, u32>,
}

/// What the audit of a summary found and mended. What is neither kept nor repaired is missing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// Messages of the user: this stretch's and those of earlier ones.
    pub user_messages: u64,
    /// How many of them the summary or the kept messages hold word for word.
    pub user_messages_verbatim: u64,
    /// How many were appended word for word.
    pub user_messages_repaired: u64,
    /// How many are named by a pointer into the log only.
    pub user_messages_by_pointer: u64,
    /// Files that were written.
    pub paths: u64,
    /// How many of them the summary names.
    pub paths_kept: u64,
    /// How many were appended.
    pub paths_repaired: u64,
    /// Open tasks, those of the previous summary included.
    pub todos: u64,
    /// How many of them the summary holds.
    pub todos_kept: u64,
    /// How many were appended.
    pub todos_repaired: u64,
    /// Whether the last error was in the summary; none if nothing went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kept: Option<bool>,
    /// Paths that the summary names and the session never did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<String>,
}

/// The user's words, carried from boundary to boundary, because they are the only specification there is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The newest ones, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<CarriedWords>,
    /// How many older ones are in the log only.
    pub pointed: u64,
}

impl Carried {
    /// Whether it carries nothing.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.pointed == 0
    }
}

/// Words of the user with the entry that they stand in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CarriedWords {
    /// Which entry.
    pub entry: EntryId,
    /// The words.
    pub text: String,
}

/// What the session knows of a file that the model has read.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadFile {
    /// The call that read it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<SmolStr>,
    /// How often it was read.
    pub reads: u64,
}

/// Tokens and money used by a session.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Responses received.
    pub responses: u64,
    /// Uncached prompt tokens.
    pub input_tokens: u64,
    /// Prompt tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Prompt tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// US dollars, as far as prices are known.
    pub cost: f64,
}

impl Totals {
    /// Adds one response.
    pub fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        self.responses += 1;
        self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
        self.cache_creation_input_tokens =
            self.cache_creation_input_tokens.saturating_add(usage.cache_creation_input_tokens);
        self.cache_read_input_tokens =
            self.cache_read_input_tokens.saturating_add(usage.cache_read_input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        self.cost += cost.unwrap_or(0.0);
    }
}
