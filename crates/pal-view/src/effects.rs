//! The decisions in force, as far as they change what a node shows.
//!
//! Effects are sets keyed by what they act on, the newest decision about a thing counting. The view is a function of
//! the nodes and of the effects, however they were arrived at. What a decision shows in place of content quotes that
//! content, as it was before it was made fit for the wire: so guarded tags in it are defused here.

use pal_model::{Decision, DecisionKind, EntryId, Origin, Text, ToolUseId, defuse, fields};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::clean::{Clean, Cleaner, Part};
use crate::node::{Node, Speaker};
use crate::wire::{Builder, Object, array, result_content, text_block};

/// What decisions do to nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects {
    spilled: FxHashMap<ToolUseId, Spilled>,
    spilled_entries: FxHashMap<EntryId, String>,
    /// Results that were looked at and left whole.
    kept: FxHashSet<ToolUseId>,
    snipped: FxHashSet<EntryId>,
    cleared: FxHashMap<ToolUseId, String>,
    stripped: FxHashMap<EntryId, String>,
    /// Results deleted from the provider's cache.
    deleted: FxHashSet<ToolUseId>,
    folds: Vec<Fold>,
    /// Stretches of the branch whose thinking is void, because something before it changed after it was sent.
    void_thinking: Vec<Stretch>,
}

/// A result that went to disk.
#[derive(Clone, Debug)]
struct Spilled {
    path: String,
    text: String,
}

/// A stretch of history that shows as a summary.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub(crate) decision: EntryId,
    pub(crate) stretch: Stretch,
    pub(crate) text: String,
}

/// Positions in the branch, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Stretch {
    pub(crate) fn contains(self, position: u32) -> bool {
        (self.from..=self.to).contains(&position)
    }
}

/// What a decision acts on.
#[derive(Clone, Debug)]
pub(crate) enum Target<'a> {
    Entry(EntryId),
    Result(&'a ToolUseId),
}

/// The targets of a decision that changes nodes; empty for any other.
pub(crate) fn targets(kind: &DecisionKind) -> Vec<Target<'_>> {
    match kind {
        DecisionKind::Spill { tool_use_id, entry, .. } => {
            tool_use_id.iter().map(Target::Result).chain(entry.iter().map(|id| Target::Entry(*id))).collect()
        }
        DecisionKind::Clear { tool_use_ids, .. } | DecisionKind::CacheEdit { tool_use_ids } => {
            tool_use_ids.iter().map(Target::Result).collect()
        }
        DecisionKind::Snip { entries } => entries.iter().map(|id| Target::Entry(*id)).collect(),
        DecisionKind::Strip { entry, .. } => vec![Target::Entry(*entry)],
        DecisionKind::Fold { head, tail, .. } => vec![Target::Entry(*head), Target::Entry(*tail)],
        _ => Vec::new(),
    }
}

impl Effects {
    /// Takes a decision in. `stretch` is where the targets of a fold lie.
    pub(crate) fn add(&mut self, id: EntryId, decision: &Decision, stretch: Option<Stretch>) {
        match &decision.kind {
            DecisionKind::Spill { tool_use_id, entry, path, text } => {
                if let Some(tool_use_id) = tool_use_id {
                    let spilled = Spilled { path: path.clone(), text: text.clone() };
                    self.spilled.insert(tool_use_id.clone(), spilled);
                } else if let Some(entry) = entry {
                    self.spilled_entries.insert(*entry, text.clone());
                }
            }
            DecisionKind::Clear { tool_use_ids, text } => {
                let text_of = |id: &ToolUseId| text.replace(DecisionKind::ID, id.as_str());
                self.cleared.extend(tool_use_ids.iter().map(|id| (id.clone(), text_of(id))));
            }
            DecisionKind::CacheEdit { tool_use_ids } => self.deleted.extend(tool_use_ids.iter().cloned()),
            DecisionKind::Snip { entries } => self.snipped.extend(entries),
            DecisionKind::Strip { entry, text } => {
                self.stripped.insert(*entry, text.clone());
            }
            DecisionKind::Fold { text, .. } => {
                if let Some(stretch) = stretch {
                    self.folds.push(Fold { decision: id, stretch, text: text.clone() });
                }
            }
            _ => {}
        }
    }

    /// Thinking in this stretch can no longer be sent.
    pub(crate) fn void_thinking(&mut self, stretch: Stretch) {
        self.void_thinking.push(stretch);
    }

    pub(crate) fn is_deleted(&self, id: &ToolUseId) -> bool {
        self.deleted.contains(id)
    }

    pub(crate) fn is_cleared(&self, id: &ToolUseId) -> bool {
        self.cleared.contains_key(id)
    }

    /// Where a spilled result lies.
    pub(crate) fn spilled_to(&self, id: &ToolUseId) -> Option<&str> {
        self.spilled.get(id).map(|spilled| spilled.path.as_str())
    }

    /// Results were looked at and left whole.
    pub(crate) fn keep(&mut self, ids: &[ToolUseId]) {
        self.kept.extend(ids.iter().cloned());
    }

    /// Whether it was decided that a result goes to disk, or that it does not.
    pub(crate) fn is_settled(&self, id: &ToolUseId) -> bool {
        self.kept.contains(id) || self.spilled.contains_key(id)
    }

    pub(crate) fn is_spilled_entry(&self, entry: EntryId) -> bool {
        self.spilled_entries.contains_key(&entry)
    }

    pub(crate) fn is_stripped(&self, entry: EntryId) -> bool {
        self.stripped.contains_key(&entry)
    }

    pub(crate) fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// Whether a node is snipped. Summaries never are: they stand for what is hidden already.
    pub(crate) fn hides(&self, node: &Node) -> bool {
        node.speaker != Speaker::Summary && self.snipped.contains(&node.entry)
    }

    /// The blocks of a node as the model shall see them.
    pub(crate) fn apply(&self, node: &Node, cleaner: Cleaner<'_>) -> Vec<Clean> {
        if node.speaker == Speaker::Summary {
            return node.clean.clone();
        }
        if self.hides(node) {
            return Vec::new();
        }
        let stripped = self.stripped.get(&node.entry);
        let spilled_entry = self.spilled_entries.get(&node.entry);
        let void = matches!(node.speaker, Speaker::Model(_))
            && self.void_thinking.iter().any(|stretch| stretch.contains(node.position));
        let mut spill = spilled_entry;
        let mut shown = Vec::with_capacity(node.clean.len());
        for clean in &node.clean {
            let clean = match &clean.part {
                Part::Thinking if void => continue,
                Part::Text | Part::Reminder if spilled_entry.is_some() => match spill.take() {
                    // A person's words stay verbatim, shortened or not.
                    Some(text) if node.speaker == Speaker::User(Origin::Person) => plain(text, cleaner),
                    Some(text) => plain(&defuse(text), cleaner),
                    None => continue,
                },
                Part::Media if let Some(text) = stripped => plain(&defuse(text), cleaner),
                Part::Result(id) => {
                    let spilled = || self.spilled.get(id).map(|spilled| &spilled.text);
                    let shown = if let Some(text) = self.cleared.get(id).or_else(spilled) {
                        let text = &defuse(text);
                        with_content(clean, &quoted(text), cleaner.estimator.text(text), cleaner)
                    } else if let Some(text) = stripped {
                        without_media(clean, text, cleaner)
                    } else {
                        clean.clone()
                    };
                    // What is deleted from the cache is sent as ever, and takes no room.
                    if self.is_deleted(id) { Clean { tokens: 0.0, ..shown } } else { shown }
                }
                _ => clean.clone(),
            };
            shown.push(clean);
        }
        shown
    }
}

fn plain(text: &str, cleaner: Cleaner<'_>) -> Clean {
    // A text block may not be empty, whatever the decision says.
    let text = if text.trim().is_empty() { "[Left out.]" } else { text };
    Clean { part: Part::Text, text: text_block(text), tokens: cleaner.estimator.text(text) }
}

fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    pal_model::escape_into(&mut json, text);
    json
}

/// What a result has beside its content.
pub(crate) const RESULT_FIELDS: [&str; 3] = ["tool_use_id", "is_error", "cache_reference"];

/// A result with other content: same call, same error flag.
fn with_content(clean: &Clean, content: &str, tokens: f64, cleaner: Cleaner<'_>) -> Clean {
    let mut result = Builder::of_type("tool_result");
    if let Ok(known) = fields(&clean.text).map(Object) {
        for name in RESULT_FIELDS {
            if let Some(value) = known.get(name) {
                result.raw(name, value);
            }
        }
    }
    result.raw("content", content);
    let tokens = tokens + cleaner.estimator.result_frame();
    Clean { part: clean.part.clone(), text: result.finish(), tokens }
}

/// A result whose pictures and documents are replaced by a text.
fn without_media(clean: &Clean, text: &str, cleaner: Cleaner<'_>) -> Clean {
    let mut replaced = false;
    let mut tokens = 0.0;
    let mut parts: Vec<Text> = Vec::new();
    for block in result_content(&clean.text).blocks() {
        let Some(inner) = cleaner.inside_result(block) else { continue };
        let inner = if inner.part == Part::Media { plain(&defuse(text), cleaner) } else { inner };
        replaced |= inner.text != *block.raw();
        tokens += inner.tokens;
        parts.push(inner.text);
    }
    if replaced { with_content(clean, &array(&parts), tokens, cleaner) } else { clean.clone() }
}
