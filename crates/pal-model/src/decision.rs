//! Decisions: entries that change what the model will see, never what was said.
//!
//! Each carries its reason and its cost. Whatever a decision did, an [`DecisionKind::Undo`] of it brings back;
//! nothing else removes a decision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{EntryId, ToolUseId};

/// One decision with its reason and cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    #[serde(flatten)]
    pub kind: DecisionKind,
    /// Why, in one line that a user can read.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it costs and frees.
    #[serde(default, skip_serializing_if = "Cost::is_nothing")]
    pub cost: Cost,
}

/// What a decision costs and frees.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Tokens that the view no longer holds.
    pub tokens_freed: u64,
    /// Tokens behind the first changed block, which the provider must cache anew.
    pub tokens_rewritten: u64,
    /// Thinking blocks that leave the view, because what stands before them changed.
    pub thinking_dropped: u64,
}

impl Cost {
    /// Whether it costs and frees nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Cost::default()
    }
}

/// What can be decided.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DecisionKind {
    /// A tool result or a long user text went to disk; the view carries `text` in its place.
    Spill {
        /// The result that was spilled; none when `entry` is a user's text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<ToolUseId>,
        /// The user entry that was spilled, when it is not a result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<EntryId>,
        /// Where the full text is, relative to the session's folder.
        path: String,
        /// What the model reads instead.
        text: String,
    },
    /// Results that were looked at and left whole, so that they stay whole.
    Keep {
        /// The results.
        tool_use_ids: Vec<ToolUseId>,
    },
    /// Stretches of history hidden from the view; call and result go together.
    Snip {
        /// The hidden entries.
        entries: Vec<EntryId>,
    },
    /// Old tool results replaced by a short text.
    Clear {
        /// The results.
        tool_use_ids: Vec<ToolUseId>,
        /// What the model reads instead; [`DecisionKind::ID`] in it stands for the id of the result.
        text: String,
    },
    /// A stretch replaced in the view by a summary.
    Fold {
        /// The first entry of the stretch.
        head: EntryId,
        /// The last entry of the stretch.
        tail: EntryId,
        /// What the model reads instead.
        text: String,
    },
    /// Media that the provider refused, replaced by a short text from now on.
    Strip {
        /// The entry that carries it.
        entry: EntryId,
        /// What the model reads instead.
        text: String,
    },
    /// Results deleted from the provider's cache in place; the messages keep their bytes.
    CacheEdit {
        /// The results.
        tool_use_ids: Vec<ToolUseId>,
    },
    /// What the provider itself cleared.
    ProviderClear {
        /// Tokens that it reported as cleared.
        #[serde(default)]
        cleared_tokens: u64,
    },
    /// A value fixed until the session is cleared or compacted: a TTL, a beta header, an optional tool.
    Latch {
        /// What is fixed.
        name: SmolStr,
        /// To what.
        value: String,
    },
    /// Text that every later compaction carries word for word.
    Pin {
        /// The text.
        text: String,
    },
    /// Names announced to the model: skills, deferred tools, agents, MCP servers.
    Announce {
        /// What sort of names.
        what: SmolStr,
        /// The names.
        names: Vec<SmolStr>,
        /// Names that were announced before, and of which the model was told that they are gone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<SmolStr>,
    },
    /// Another model from here on.
    Model {
        /// Its name.
        model: SmolStr,
    },
    /// The session's title.
    Title {
        /// The title.
        title: String,
    },
    /// Factors of the token estimator, frozen for the session.
    Factors {
        /// Factor by model generation, in ten-thousandths: whole numbers read back exactly.
        factors: BTreeMap<SmolStr, u32>,
    },
    /// Something that was tried and did not come about: a compaction, a fold, the writing of a spilled text.
    Failure {
        /// What was tried.
        what: SmolStr,
        /// Why it did not come about.
        message: String,
    },
    /// The decision or boundary named here no longer counts.
    Undo {
        /// What is undone.
        target: EntryId,
    },
}

impl DecisionKind {
    /// What stands for the id of a result in the text of a clear.
    pub const ID: &'static str = "{tool_use_id}";

    /// The names of all decision kinds in the log.
    pub const NAMES: [&'static str; 16] = [
        "spill",
        "keep",
        "snip",
        "clear",
        "fold",
        "strip",
        "cache_edit",
        "provider_clear",
        "latch",
        "pin",
        "announce",
        "model",
        "title",
        "factors",
        "failure",
        "undo",
    ];
}
