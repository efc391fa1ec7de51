//! Reads from the provider's cache that fell, and why.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Reads that fell from one request of a source to the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CacheBreak {
    /// By how many tokens.
    pub tokens: u64,
    /// The first thing that explains it.
    pub cause: BreakCause,
    /// What it cost, in US dollars: the tokens at the price that they were paid, less what reading them would have cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What the provider itself says, where it was asked: the type of its reason, such as `system_changed`, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<SmolStr>,
    /// Where a diff of the two requests is kept, relative to the session's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Why reads fell. The order is that in which causes are looked for, expected ones first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BreakCause {
    /// A decision of ours said so before: a compaction, a clear, a fold, an edit of the cache, an undo.
    Expected {
        /// The kind of the decision, `boundary` for a compaction.
        what: SmolStr,
    },
    /// Another model was asked.
    Model {
        /// The one before.
        from: SmolStr,
        /// This one.
        to: SmolStr,
    },
    /// A tool.
    Tool {
        /// Its name.
        name: SmolStr,
        /// What became of it.
        change: Change,
    },
    /// The speed that was asked for.
    Speed,
    /// A section of the system prompt.
    Section {
        /// Its name.
        name: SmolStr,
        /// What became of it.
        change: Change,
        /// By how many characters it became longer, or shorter.
        characters: i64,
    },
    /// The scopes for which what is marked is cached.
    Scopes,
    /// Beta headers.
    Betas {
        /// Those that were not sent before.
        added: Vec<SmolStr>,
        /// Those that are no longer sent.
        removed: Vec<SmolStr>,
    },
    /// How the model shall think.
    Thinking,
    /// How hard it shall think.
    Effort,
    /// Which tools it may call.
    ToolChoice,
    /// What the provider is asked to clear or to edit.
    Edits,
    /// Another member of the body.
    Member {
        /// Its name.
        name: SmolStr,
    },
    /// A message that was sent before is sent otherwise, or no longer.
    Message {
        /// Which, counted from 0.
        message: u64,
        /// Which of its blocks, counted from 0.
        block: u64,
        /// What became of it.
        change: Change,
        /// By how many characters it became longer, or shorter.
        characters: i64,
    },
    /// For how long what is marked is cached.
    Lifetimes,
    /// More was added since the last mark than the provider looks back.
    LookBack {
        /// Blocks since the mark of the request before.
        blocks: u64,
    },
    /// Nothing that was marked was large enough to be cached, or nothing was marked at all.
    Unmarked,
    /// What was cached had expired.
    Expired {
        /// Milliseconds between the starts of the two requests.
        idle_ms: u64,
        /// Milliseconds for which it was cached.
        lifetime_ms: u64,
    },
    /// What stands before the messages is not in the transcript, and nothing that is in it changed.
    Unseen,
    /// Nothing of ours: the provider lost it.
    Provider,
}

/// What became of a part of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there before.
    Added,
    /// It is no longer there.
    Removed,
    /// It stands elsewhere.
    Moved,
    /// It says something else.
    Changed,
}

impl BreakCause {
    /// Whether a decision of ours announced it.
    pub fn is_expected(&self) -> bool {
        matches!(self, BreakCause::Expected { .. })
    }
}
