//! Rendered blocks per entry, and the decisions in force, for inspection.

use pal_model::{ContentBlock, Decision, EntryBody, LogEntry};

use crate::view::View;
use crate::visible_entry::{Visibility, VisibleEntry};

impl View {
    /// Visible entries in the model's order, each with its blocks as they would be sent: cleaned, with
    /// decisions applied. Snipped and folded entries have none. Pairing and merging of messages happens after
    /// this.
    pub fn visible_blocks(&self) -> impl Iterator<Item = (VisibleEntry<'_>, Vec<ContentBlock>)> {
        let derived = self.derived();
        let cleaner = self.cleaner();
        self.visible_entries().zip(derived.nodes_with_visibility()).map(
            move |(shown, (node, nodes_with_visibility))| {
                let blocks = match nodes_with_visibility {
                    Visibility::Visible => {
                        let applied = derived.effects().apply(node, cleaner);
                        applied.into_iter().map(|clean| ContentBlock::parse(clean.text)).collect()
                    }
                    Visibility::Snipped | Visibility::Folded(_) => Vec::new(),
                };
                (shown, blocks)
            },
        )
    }

    /// The decisions in force, oldest first; undone ones are excluded.
    pub fn decisions(&self) -> impl Iterator<Item = (&LogEntry, &Decision)> {
        let undone = &self.derived().undone;
        self.branch().iter().filter(|entry| !undone.contains(&entry.id)).filter_map(|entry| {
            match &entry.body {
                EntryBody::Decision(decision) => Some((entry, decision)),
                _ => None,
            }
        })
    }
}
