//! The margin: which decisions stand beside which message.

use std::collections::BTreeMap;

use pal_model::{Body, Boundary, Decision, DecisionKind, Entry, EntryId, ToolUseId};
use pal_view::{Shown, ShownPart, View};

use crate::table::{counted, thousands};

/// Decisions in force, by what they act on.
pub(super) struct Margin<'a> {
    of_entries: BTreeMap<EntryId, Vec<&'a Decision>>,
    of_results: BTreeMap<ToolUseId, Vec<&'a Decision>>,
    folds: BTreeMap<EntryId, &'a Decision>,
    /// Those that act on nothing in particular.
    pub(super) others: Vec<&'a Decision>,
}

impl<'a> Margin<'a> {
    pub(super) fn of(view: &'a View) -> Margin<'a> {
        let mut margin = Margin {
            of_entries: BTreeMap::new(),
            of_results: BTreeMap::new(),
            folds: BTreeMap::new(),
            others: Vec::new(),
        };
        // What an earlier boundary did away with is no longer anybody's concern.
        let boundary = view.boundary().map(|entry| entry.id);
        let mut is_behind = boundary.is_none();
        let places: BTreeMap<EntryId, usize> =
            view.branch().iter().enumerate().map(|(at, entry)| (entry.id, at)).collect();
        let boundary_at = boundary.and_then(|id| places.get(&id));
        for (entry, decision) in view.decisions() {
            is_behind = is_behind || places.get(&entry.id) > boundary_at;
            margin.take(entry, decision, is_behind);
        }
        margin
    }

    fn take(&mut self, entry: &Entry, decision: &'a Decision, is_behind: bool) {
        match &decision.kind {
            DecisionKind::Spill { tool_use_id: Some(id), .. } => {
                self.of_results.entry(id.clone()).or_default().push(decision);
            }
            DecisionKind::Spill { entry: Some(entry), .. } | DecisionKind::Strip { entry, .. } => {
                self.of_entries.entry(*entry).or_default().push(decision);
            }
            DecisionKind::Clear { tool_use_ids, .. }
            | DecisionKind::Keep { tool_use_ids }
            | DecisionKind::CacheEdit { tool_use_ids } => {
                for id in tool_use_ids {
                    self.of_results.entry(id.clone()).or_default().push(decision);
                }
            }
            DecisionKind::Snip { entries } => {
                for entry in entries {
                    self.of_entries.entry(*entry).or_default().push(decision);
                }
            }
            DecisionKind::Fold { .. } => {
                self.folds.insert(entry.id, decision);
            }
            // Pins have a place of their own.
            DecisionKind::Pin { .. } => {}
            _ if is_behind => self.others.push(decision),
            _ => {}
        }
    }

    /// The decision that folded a stretch.
    pub(super) fn fold(&self, decision: EntryId) -> Option<&'a Decision> {
        self.folds.get(&decision).copied()
    }

    /// The decision that snipped an entry.
    pub(super) fn snip(&self, entry: EntryId) -> Option<&'a Decision> {
        let of_entry = self.of_entries.get(&entry)?;
        of_entry.iter().copied().find(|decision| matches!(decision.kind, DecisionKind::Snip { .. }))
    }

    /// The decisions beside a message that shows itself, in words.
    pub(super) fn beside(&self, shown: &Shown<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Body::Boundary(boundary), ShownPart::Said) = (&shown.entry.body, shown.part) {
            lines.extend(of_boundary(boundary));
        }
        lines.extend(
            self.of_entries.get(&shown.entry.id).into_iter().flatten().map(|decision| words(decision)),
        );
        let blocks = shown.content().map_or(&[][..], |content| content.blocks());
        for block in blocks.iter().filter(|block| block.kind() == pal_model::BlockType::ToolResult) {
            let of_result = block.tool_use_id().and_then(|id| self.of_results.get(id));
            lines.extend(of_result.into_iter().flatten().map(|decision| words(decision)));
        }
        lines
    }
}

/// A decision in one line.
pub(super) fn words(decision: &Decision) -> String {
    let what = match &decision.kind {
        DecisionKind::Spill { path, .. } => format!("spilled to {path}"),
        DecisionKind::Keep { .. } => String::from("kept whole"),
        DecisionKind::Snip { .. } => String::from("snipped"),
        DecisionKind::Clear { .. } => String::from("cleared"),
        DecisionKind::Fold { .. } => String::from("folded"),
        DecisionKind::Strip { .. } => String::from("stripped"),
        DecisionKind::CacheEdit { .. } => String::from("deleted from the provider's cache"),
        DecisionKind::ProviderClear { cleared_tokens } => {
            format!("{} tokens cleared by the provider", thousands(*cleared_tokens))
        }
        DecisionKind::Latch { name, value } => format!("{name} fixed to {value}"),
        DecisionKind::Pin { .. } => String::from("pinned"),
        DecisionKind::Announce { what, names, gone } if gone.is_empty() => {
            format!("{} {what} announced", names.len())
        }
        DecisionKind::Announce { what, names, gone } => {
            format!("{} {what} announced, {} gone", names.len(), gone.len())
        }
        DecisionKind::Model { model } => format!("model: {model}"),
        DecisionKind::Title { title } => format!("title: {title}"),
        DecisionKind::Factors { .. } => String::from("token estimates corrected"),
        DecisionKind::Failure { what, .. } => format!("{what} failed"),
        DecisionKind::Undo { target } => format!("{target} taken back"),
    };
    let freed = match decision.cost.tokens_freed {
        0 => String::new(),
        freed => format!(" ({} tokens freed)", thousands(freed)),
    };
    match decision.reason.as_str() {
        "" => format!("{what}{freed}"),
        reason => format!("{what}{freed}: {reason}"),
    }
}

/// A boundary in two lines: how it came about, and what was checked of it.
fn of_boundary(boundary: &Boundary) -> Vec<String> {
    let figure = |number: Option<u64>| number.map_or(String::from("–"), thousands);
    let how = match boundary.how.as_str() {
        "imported" => "the agent that wrote the session",
        how => how,
    };
    let mut lines = vec![format!(
        "compacted by {how} ({}): {} → {} tokens",
        boundary.trigger,
        figure(boundary.tokens_before),
        figure(boundary.tokens_after)
    )];
    if let (Some(count), Some(line)) = (boundary.messages_summarised, lines.first_mut()) {
        line.push_str(&format!(", {} summarised", counted(count as usize, "message")));
    }
    if let Some(audit) = &boundary.audit {
        lines.push(format!(
            "audit: {} user messages ({} verbatim, {} repaired, {} by pointer), {} edited files, {} open tasks, \
             {} invented paths",
            audit.user_messages,
            audit.user_messages_verbatim,
            audit.user_messages_repaired,
            audit.user_messages_by_pointer,
            audit.paths,
            audit.todos,
            audit.invented.len()
        ));
    }
    if let Some(instructions) = &boundary.instructions {
        lines.push(format!("instructions: {instructions}"));
    }
    lines
}
