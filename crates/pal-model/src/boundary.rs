//! Compaction boundaries: where the view begins anew, with the summary of what came before and a snapshot of all
//! state that lies before it, so that a resumed session need not read further back.
//!
//! The summary is part of the boundary entry: one append, so no kill can leave a boundary without its summary.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{Content, EntryId, FileSeen, Pings, Rhythm, Source, Usage};

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
    /// What stands before the kept messages when these stand before the summary: what an earlier boundary showed.
    #[serde(skip)]
    pub lead: Content,
    /// What is put back into sight behind the kept messages: files, skills, plan, announcements. Part of this entry, so
    /// that taking the boundary back takes it back, too.
    #[serde(skip)]
    pub restored: Content,
    /// The newest entry before the boundary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_before: Option<EntryId>,
    /// Where automatic compaction stood when this one was made, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// Who asked for the request before which it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Tools that were discovered so far.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tools: BTreeSet<SmolStr>,
    /// The boundary before this one, when this is a re-compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<EntryId>,
    /// Turns of the user since the boundary before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_since_previous: Option<u64>,
    /// What was checked of the summary, and mended.
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

/// What was checked of a summary: how much of what must survive is in it, what was put in afterwards, what it made up.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// Messages of people, those from before earlier boundaries included.
    pub user_messages: u64,
    /// Of these, word for word in the summary or among the kept messages.
    pub user_messages_verbatim: u64,
    /// Of the others, put in word for word.
    pub user_messages_repaired: u64,
    /// Of the others, named by where they stand in the log.
    pub user_messages_by_pointer: u64,
    /// Paths that were edited.
    pub paths: u64,
    /// Of these, in the summary.
    pub paths_kept: u64,
    /// Of the others, put in.
    pub paths_repaired: u64,
    /// Open tasks.
    pub todos: u64,
    /// Of these, in the summary.
    pub todos_kept: u64,
    /// Of the others, put in.
    pub todos_repaired: u64,
    /// Whether the last error was in the summary; none if there was no error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kept: Option<bool>,
    /// Paths that the summary names and nobody ever mentioned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invented: Vec<String>,
}

/// What people said before a boundary, so that later compactions can carry it on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The newest messages, oldest first, as far as the budget went.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<CarriedWords>,
    /// How many older ones stand only in the log.
    pub pointed: u64,
}

impl Carried {
    /// Whether nothing is carried.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.pointed == 0
    }
}

/// A message of a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CarriedWords {
    /// The entry that holds it.
    pub entry: EntryId,
    /// Its text.
    pub text: String,
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
    /// What the model knows of files, by their real paths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen_files: BTreeMap<String, FileSeen>,
    /// The working directory, where it is another than at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The permission mode, where a tool has set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SmolStr>,
    /// Skills in use, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// Memory files already handed over, and bytes of what was.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prefetched: BTreeMap<String, u64>,
    /// What was used up so far.
    pub totals: Totals,
    /// Estimator factors by model generation, in ten-thousandths.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub factors: BTreeMap<SmolStr, u32>,
    /// Summaries by a model that failed, one after the other.
    #[serde(skip_serializing_if = "is_zero")]
    pub summary_failures: u64,
    /// What people said before the boundary.
    #[serde(skip_serializing_if = "Carried::is_empty")]
    pub carried: Carried,
    /// How often the session asks, how fast it grows, how long it pauses.
    #[serde(skip_serializing_if = "Rhythm::is_empty")]
    pub rhythm: Rhythm,
    /// What was sent to keep the cache warm.
    #[serde(skip_serializing_if = "Pings::is_empty")]
    pub pings: Pings,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
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
    /// All tokens, of prompts and answers.
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

    /// What was used since it was this.
    pub fn since(&self, before: &Totals) -> Totals {
        Totals {
            responses: self.responses.saturating_sub(before.responses),
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

    /// Adds one response by its line in the log, without reading more of it than that takes.
    pub fn add_line(&mut self, line: &str) {
        #[derive(Deserialize)]
        struct Used {
            #[serde(default)]
            usage: Usage,
            #[serde(default)]
            cost: Option<f64>,
        }
        if let Ok(Used { usage, cost }) = serde_json::from_str(line) {
            self.add(&usage, cost);
        }
    }

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
