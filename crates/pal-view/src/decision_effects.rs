//! Effects of the decisions in force on the content of nodes.
//!
//! Effects are sets keyed by their target; the newest decision about a target counts. The view is a function
//! of the nodes and the effects, independent of the order of their creation. Replacement text quotes the
//! original content from before it was cleaned for the wire, so guarded tags in it are escaped here.

use std::collections::BTreeMap;

use pal_model::{
    BlockType, Decision, DecisionKind, EntryId, MediaKind, MessageOrigin, SharedText, ToolUseId, escape_tags,
    object_fields,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::json_object::{BlockBuilder, JsonObject, array, result_content, text_block};
use crate::view_node::{NodeSpeaker, ViewNode};
use crate::wire_block::{BlockCleaner, WireBlock, WireBlockKind};

/// Effects of decisions, keyed by target.
#[derive(Clone, Debug, Default)]
pub(crate) struct DecisionEffects {
    spilled: FxHashMap<ToolUseId, SpilledResult>,
    spilled_entries: FxHashMap<EntryId, String>,
    /// Results that the spill layer inspected and left whole.
    kept: FxHashSet<ToolUseId>,
    snipped: FxHashSet<EntryId>,
    cleared: FxHashMap<ToolUseId, String>,
    stripped: FxHashMap<EntryId, StrippedMedia>,
    /// Results deleted from the provider's cache.
    deleted: FxHashSet<ToolUseId>,
    folds: Vec<FoldEffect>,
    /// Ranges of the branch whose thinking is void, because content before it changed after it was sent.
    void_thinking: Vec<PositionRange>,
}

/// Texts in the place of stripped media of one entry.
#[derive(Clone, Debug, Default)]
struct StrippedMedia {
    all: Option<String>,
    by_kind: BTreeMap<MediaKind, String>,
}

impl StrippedMedia {
    /// Text in the place of a block of this type; none if it stays.
    fn text_for(&self, block: BlockType) -> Option<&str> {
        let own = MediaKind::of_block(block).and_then(|kind| self.by_kind.get(&kind));
        own.or(self.all.as_ref()).map(String::as_str)
    }
}

/// A result that was spilled to disk.
#[derive(Clone, Debug)]
struct SpilledResult {
    path: String,
    text: String,
}

/// A stretch of history that shows as a summary.
#[derive(Clone, Debug)]
pub(crate) struct FoldEffect {
    pub(crate) decision: EntryId,
    pub(crate) stretch: PositionRange,
    pub(crate) text: String,
}

/// Positions in the branch, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PositionRange {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl PositionRange {
    pub(crate) fn contains(self, position: u32) -> bool {
        (self.from..=self.to).contains(&position)
    }
}

/// Target of a decision.
#[derive(Clone, Debug)]
pub(crate) enum DecisionTarget<'a> {
    Entry(EntryId),
    Result(&'a ToolUseId),
}

/// Returns the targets of a decision that changes nodes; empty for any other.
pub(crate) fn targets(kind: &DecisionKind) -> Vec<DecisionTarget<'_>> {
    match kind {
        DecisionKind::Spill { tool_use_id, entry, .. } => tool_use_id
            .iter()
            .map(DecisionTarget::Result)
            .chain(entry.iter().map(|id| DecisionTarget::Entry(*id)))
            .collect(),
        DecisionKind::Clear { tool_use_ids, .. } | DecisionKind::CacheEdit { tool_use_ids } => {
            tool_use_ids.iter().map(DecisionTarget::Result).collect()
        }
        DecisionKind::Snip { entries } => entries.iter().map(|id| DecisionTarget::Entry(*id)).collect(),
        DecisionKind::Strip { entry, .. } => vec![DecisionTarget::Entry(*entry)],
        DecisionKind::Fold { head, tail, .. } => {
            vec![DecisionTarget::Entry(*head), DecisionTarget::Entry(*tail)]
        }
        _ => Vec::new(),
    }
}

impl DecisionEffects {
    /// Adds a decision. `stretch` is the range of a fold's targets.
    pub(crate) fn add(&mut self, id: EntryId, decision: &Decision, stretch: Option<PositionRange>) {
        match &decision.kind {
            DecisionKind::Spill { tool_use_id, entry, path, text } => {
                if let Some(tool_use_id) = tool_use_id {
                    let spilled = SpilledResult { path: path.clone(), text: text.clone() };
                    self.spilled.insert(tool_use_id.clone(), spilled);
                } else if let Some(entry) = entry {
                    self.spilled_entries.insert(*entry, text.clone());
                }
            }
            DecisionKind::Clear { tool_use_ids, text } => {
                let text_of =
                    |id: &ToolUseId| text.replace(DecisionKind::TOOL_USE_ID_PLACEHOLDER, id.as_str());
                self.cleared.extend(tool_use_ids.iter().map(|id| (id.clone(), text_of(id))));
            }
            DecisionKind::CacheEdit { tool_use_ids } => self.deleted.extend(tool_use_ids.iter().cloned()),
            DecisionKind::Snip { entries } => self.snipped.extend(entries),
            DecisionKind::Strip { entry, media, text } => {
                let stripped = self.stripped.entry(*entry).or_default();
                match media {
                    Some(kind) => _ = stripped.by_kind.insert(*kind, text.clone()),
                    None => stripped.all = Some(text.clone()),
                }
            }
            DecisionKind::Fold { text, .. } => {
                if let Some(stretch) = stretch {
                    self.folds.push(FoldEffect { decision: id, stretch, text: text.clone() });
                }
            }
            _ => {}
        }
    }

    /// Marks the thinking in this range as no longer sendable.
    pub(crate) fn void_thinking(&mut self, stretch: PositionRange) {
        self.void_thinking.push(stretch);
    }

    pub(crate) fn is_deleted(&self, id: &ToolUseId) -> bool {
        self.deleted.contains(id)
    }

    pub(crate) fn is_cleared(&self, id: &ToolUseId) -> bool {
        self.cleared.contains_key(id)
    }

    /// Path of a spilled result.
    pub(crate) fn spilled_to(&self, id: &ToolUseId) -> Option<&str> {
        self.spilled.get(id).map(|spilled| spilled.path.as_str())
    }

    /// Records results that stay whole.
    pub(crate) fn keep(&mut self, ids: &[ToolUseId]) {
        self.kept.extend(ids.iter().cloned());
    }

    /// Returns true if a decision to spill or to keep the result exists.
    pub(crate) fn is_settled(&self, id: &ToolUseId) -> bool {
        self.kept.contains(id) || self.spilled.contains_key(id)
    }

    pub(crate) fn is_spilled_entry(&self, entry: EntryId) -> bool {
        self.spilled_entries.contains_key(&entry)
    }

    pub(crate) fn is_stripped(&self, entry: EntryId, media: BlockType) -> bool {
        self.stripped.get(&entry).is_some_and(|stripped| stripped.text_for(media).is_some())
    }

    pub(crate) fn folds(&self) -> &[FoldEffect] {
        &self.folds
    }

    /// Returns true if a node is snipped. Summaries never are: they already stand for hidden content.
    pub(crate) fn hides(&self, node: &ViewNode) -> bool {
        node.speaker != NodeSpeaker::Summary && self.snipped.contains(&node.entry)
    }

    /// Returns the blocks of a node with all effects applied.
    pub(crate) fn apply(&self, node: &ViewNode, cleaner: BlockCleaner<'_>) -> Vec<WireBlock> {
        if node.speaker == NodeSpeaker::Summary {
            return node.clean.clone();
        }
        if self.hides(node) {
            return Vec::new();
        }
        let stripped = self.stripped.get(&node.entry);
        let spilled_entry = self.spilled_entries.get(&node.entry);
        let void = matches!(node.speaker, NodeSpeaker::Model(_))
            && self.void_thinking.iter().any(|stretch| stretch.contains(node.position));
        let mut spill = spilled_entry;
        let mut shown = Vec::with_capacity(node.clean.len());
        for clean in &node.clean {
            let clean = match &clean.part {
                WireBlockKind::Thinking if void => continue,
                WireBlockKind::Text | WireBlockKind::Reminder if spilled_entry.is_some() => {
                    match spill.take() {
                        // A person's text stays verbatim, shortened or not.
                        Some(text) if node.speaker == NodeSpeaker::User(MessageOrigin::Person) => {
                            plain(text, cleaner)
                        }
                        Some(text) => plain(&escape_tags(text), cleaner),
                        None => continue,
                    }
                }
                WireBlockKind::Media(kind)
                    if let Some(text) = stripped.and_then(|stripped| stripped.text_for(*kind)) =>
                {
                    plain(&escape_tags(text), cleaner)
                }
                WireBlockKind::Result(id) => {
                    let spilled = || self.spilled.get(id).map(|spilled| &spilled.text);
                    let shown = if let Some(text) = self.cleared.get(id).or_else(spilled) {
                        let text = &escape_tags(text);
                        with_content(clean, &quoted(text), cleaner.estimator.text(text), cleaner)
                    } else if let Some(stripped) = stripped {
                        without_media(clean, stripped, cleaner)
                    } else {
                        clean.clone()
                    };
                    // A result deleted from the cache is still sent, and takes no room in the context.
                    if self.is_deleted(id) { WireBlock { tokens: 0.0, ..shown } } else { shown }
                }
                _ => clean.clone(),
            };
            shown.push(clean);
        }
        shown
    }
}

fn plain(text: &str, cleaner: BlockCleaner<'_>) -> WireBlock {
    // The provider refuses an empty text block.
    let text = if text.trim().is_empty() { "[Left out.]" } else { text };
    WireBlock { part: WireBlockKind::Text, text: text_block(text), tokens: cleaner.estimator.text(text) }
}

fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    pal_model::escape_into(&mut json, text);
    json
}

/// Fields of a tool result besides its content.
pub(crate) const RESULT_FIELDS: [&str; 3] = ["tool_use_id", "is_error", "cache_reference"];

/// Replaces the content of a result; call id and error flag stay.
fn with_content(clean: &WireBlock, content: &str, tokens: f64, cleaner: BlockCleaner<'_>) -> WireBlock {
    let mut result = BlockBuilder::of_type("tool_result");
    if let Ok(known) = object_fields(&clean.text).map(JsonObject) {
        for name in RESULT_FIELDS {
            if let Some(value) = known.get(name) {
                result.raw(name, value);
            }
        }
    }
    result.raw("content", content);
    let tokens = tokens + cleaner.estimator.result_frame();
    WireBlock { part: clean.part.clone(), text: result.finish(), tokens }
}

/// Replaces the stripped media in a result by their texts.
fn without_media(clean: &WireBlock, stripped: &StrippedMedia, cleaner: BlockCleaner<'_>) -> WireBlock {
    let mut replaced = false;
    let mut tokens = 0.0;
    let mut parts: Vec<SharedText> = Vec::new();
    for block in result_content(&clean.text).blocks() {
        let Some(inner) = cleaner.inside_result(block) else { continue };
        let text = match inner.part {
            WireBlockKind::Media(kind) => stripped.text_for(kind),
            _ => None,
        };
        let inner = text.map_or(inner, |text| plain(&escape_tags(text), cleaner));
        replaced |= inner.text != *block.raw();
        tokens += inner.tokens;
        parts.push(inner.text);
    }
    if replaced { with_content(clean, &array(&parts), tokens, cleaner) } else { clean.clone() }
}
