//! Decisions: entries that change what the model sees without changing the messages in the log.
//!
//! Each decision records its reason and cost. A [`DecisionKind::Undo`] reverts a decision; nothing else removes one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::{BlockType, EntryId, ToolUseId};

/// A decision with its reason and cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// The change itself, with its targets.
    #[serde(flatten)]
    pub kind: DecisionKind,
    /// One line that explains the decision to the user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Estimated effect in tokens.
    #[serde(default, skip_serializing_if = "DecisionCost::is_zero")]
    pub cost: DecisionCost,
}

/// Estimated effect of a decision on context and cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DecisionCost {
    /// Tokens removed from the view.
    pub tokens_freed: u64,
    /// Tokens after the first changed block, which the provider must write to its cache again.
    pub tokens_rewritten: u64,
    /// Thinking blocks dropped because content before them changed.
    pub thinking_dropped: u64,
}

impl DecisionCost {
    /// Returns true if all counts are zero.
    pub fn is_zero(&self) -> bool {
        *self == DecisionCost::default()
    }
}

/// Kind of media that a provider may refuse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// An image.
    Image,
    /// A PDF or text document.
    Document,
}

impl MediaKind {
    /// All kinds.
    pub const ALL: [MediaKind; 2] = [MediaKind::Image, MediaKind::Document];

    /// Returns the kind of a block; none if the block is no medium.
    pub fn of_block(block: BlockType) -> Option<MediaKind> {
        match block {
            BlockType::Image => Some(MediaKind::Image),
            BlockType::Document => Some(MediaKind::Document),
            _ => None,
        }
    }

    /// Returns the name in texts.
    pub fn name(self) -> &'static str {
        match self {
            MediaKind::Image => "image",
            MediaKind::Document => "document",
        }
    }
}

/// Kinds of decisions, tagged by `kind` in the log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DecisionKind {
    /// Moves a tool result or a long user text to disk; the view holds `text` in its place.
    Spill {
        /// Spilled tool result; none if `entry` is set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<ToolUseId>,
        /// Spilled user entry; none for a tool result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<EntryId>,
        /// File with the full text, relative to the session directory.
        path: String,
        /// Replacement text in the view.
        text: String,
    },
    /// Records tool results that were examined and left whole, so that later passes leave them whole, too.
    Keep {
        /// Results left whole.
        tool_use_ids: Vec<ToolUseId>,
    },
    /// Hides entries from the view; a tool call and its result are always hidden together.
    Snip {
        /// Hidden entries.
        entries: Vec<EntryId>,
    },
    /// Replaces old tool results by a short text.
    Clear {
        /// Cleared tool results.
        tool_use_ids: Vec<ToolUseId>,
        /// Replacement text in the view; [`DecisionKind::TOOL_USE_ID_PLACEHOLDER`] in it stands for the id of the result.
        text: String,
    },
    /// Replaces a range of entries by a summary.
    Fold {
        /// First entry of the range.
        head: EntryId,
        /// Last entry of the range, inclusive.
        tail: EntryId,
        /// Replacement text in the view.
        text: String,
    },
    /// Replaces media that the provider refused by a short text.
    Strip {
        /// Entry that contains the media.
        entry: EntryId,
        /// Kind of media that is replaced; none for all media of the entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media: Option<MediaKind>,
        /// Replacement text in the view.
        text: String,
    },
    /// Deletes tool results from the provider's cache in place; the messages keep their bytes.
    CacheEdit {
        /// Deleted tool results.
        tool_use_ids: Vec<ToolUseId>,
    },
    /// Records tool results that the provider cleared itself.
    ProviderClear {
        /// Cleared tokens as reported by the provider.
        #[serde(default)]
        cleared_tokens: u64,
    },
    /// Fixes a value until the session is cleared or compacted: a TTL, a beta header, an optional tool.
    Latch {
        /// Name of the fixed parameter.
        name: SmolStr,
        /// Fixed value.
        value: String,
    },
    /// Pins text that every later compaction keeps verbatim.
    Pin {
        /// Pinned text.
        text: String,
    },
    /// Announces names to the model: skills, deferred tools, agents, MCP servers.
    Announce {
        /// Category of the names.
        what: SmolStr,
        /// Names announced as available.
        names: Vec<SmolStr>,
        /// Previously announced names that are announced as removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<SmolStr>,
    },
    /// Switches the model for the following requests.
    Model {
        /// Name of the new model.
        model: SmolStr,
    },
    /// Sets the session's title.
    Title {
        /// Title shown in session lists.
        title: String,
    },
    /// Fixes the factors of the token estimator for the session.
    Factors {
        /// Factor by model or model generation, in ten-thousandths; integers round-trip exactly.
        factors: BTreeMap<SmolStr, u32>,
    },
    /// Records a failed operation: a compaction, a fold, the writing of a spilled text.
    Failure {
        /// Failed operation.
        what: SmolStr,
        /// Cause of the failure.
        message: String,
    },
    /// Reverts a decision or boundary.
    Undo {
        /// Reverted entry.
        target: EntryId,
    },
}

impl DecisionKind {
    /// Placeholder for the id of the cleared result in the text of a `Clear`.
    pub const TOOL_USE_ID_PLACEHOLDER: &'static str = "{tool_use_id}";

    /// Names of all decision kinds in the log.
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
