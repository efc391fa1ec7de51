//! Decisions in force, listed beside the messages that they act on.

use std::collections::BTreeMap;

use pal_model::text::{count_noun, group_digits};
use pal_model::{Boundary, Decision, DecisionKind, EntryBody, EntryId, LogEntry, ToolUseId};
use pal_view::{View, VisibleEntry, VisiblePart};

/// Decisions in force, by their targets.
pub(super) struct DecisionMargin<'a> {
    of_entries: BTreeMap<EntryId, Vec<&'a Decision>>,
    of_results: BTreeMap<ToolUseId, Vec<&'a Decision>>,
    folds: BTreeMap<EntryId, &'a Decision>,
    /// Decisions without a target in the view.
    pub(super) others: Vec<&'a Decision>,
}

impl<'a> DecisionMargin<'a> {
    pub(super) fn of(view: &'a View) -> DecisionMargin<'a> {
        let mut margin = DecisionMargin {
            of_entries: BTreeMap::new(),
            of_results: BTreeMap::new(),
            folds: BTreeMap::new(),
            others: Vec::new(),
        };
        // Decisions before the boundary no longer matter.
        let boundary = view.boundary().map(|entry| entry.id);
        let mut is_behind = boundary.is_none();
        let places: BTreeMap<EntryId, usize> =
            view.branch().iter().enumerate().map(|(at, entry)| (entry.id, at)).collect();
        let boundary_at = boundary.and_then(|id| places.get(&id));
        for (entry, decision) in view.decisions() {
            is_behind = is_behind || places.get(&entry.id) > boundary_at;
            margin.add_decision(entry, decision, is_behind);
        }
        margin
    }

    fn add_decision(&mut self, entry: &LogEntry, decision: &'a Decision, is_behind: bool) {
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
            // Pins have their own section.
            DecisionKind::Pin { .. } => {}
            _ if is_behind => self.others.push(decision),
            _ => {}
        }
    }

    /// Finds the decision that folded a range.
    pub(super) fn fold(&self, decision: EntryId) -> Option<&'a Decision> {
        self.folds.get(&decision).copied()
    }

    /// Finds the decision that snipped an entry.
    pub(super) fn snip(&self, entry: EntryId) -> Option<&'a Decision> {
        let of_entry = self.of_entries.get(&entry)?;
        of_entry.iter().copied().find(|decision| matches!(decision.kind, DecisionKind::Snip { .. }))
    }

    /// Describes the decisions beside a visible message.
    pub(super) fn decisions_for(&self, shown: &VisibleEntry<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if let (EntryBody::Boundary(boundary), VisiblePart::Content) = (&shown.entry.body, shown.part) {
            lines.extend(describe_boundary(boundary));
        }
        lines.extend(
            self.of_entries
                .get(&shown.entry.id)
                .into_iter()
                .flatten()
                .map(|decision| describe_decision(decision)),
        );
        let blocks = shown.content().map_or(&[][..], |content| content.blocks());
        for block in blocks.iter().filter(|block| block.kind() == pal_model::BlockType::ToolResult) {
            let of_result = block.tool_use_id().and_then(|id| self.of_results.get(id));
            lines.extend(of_result.into_iter().flatten().map(|decision| describe_decision(decision)));
        }
        lines
    }
}

/// Describes a decision in one line.
pub(super) fn describe_decision(decision: &Decision) -> String {
    let what = match &decision.kind {
        DecisionKind::Spill { path, .. } => format!("spilled to {path}"),
        DecisionKind::Keep { .. } => String::from("kept whole"),
        DecisionKind::Snip { .. } => String::from("snipped"),
        DecisionKind::Clear { .. } => String::from("cleared"),
        DecisionKind::Fold { .. } => String::from("folded"),
        DecisionKind::Strip { .. } => String::from("stripped"),
        DecisionKind::CacheEdit { .. } => String::from("deleted from the provider's cache"),
        DecisionKind::ProviderClear { cleared_tokens } => {
            format!("{} tokens cleared by the provider", group_digits(*cleared_tokens))
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
        DecisionKind::Undo { target } => format!("{target} undone"),
    };
    let freed = match decision.cost.tokens_freed {
        0 => String::new(),
        freed => format!(" ({} tokens freed)", group_digits(freed)),
    };
    match decision.reason.as_str() {
        "" => format!("{what}{freed}"),
        reason => format!("{what}{freed}: {reason}"),
    }
}

/// Describes a boundary: its method and sizes, its audit, its instructions.
fn describe_boundary(boundary: &Boundary) -> Vec<String> {
    let figure = |number: Option<u64>| number.map_or(String::from("–"), group_digits);
    let how = match boundary.method.as_str() {
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
        line.push_str(&format!(", {} summarised", count_noun(count as usize, "message")));
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
        if let (Some(line), count @ 1..) = (lines.last_mut(), audit.invented_words.len()) {
            line.push_str(&format!(", {} the user never wrote", count_noun(count, "quotation")));
        }
    }
    if let Some(instructions) = &boundary.instructions {
        lines.push(format!("instructions: {instructions}"));
    }
    lines
}
