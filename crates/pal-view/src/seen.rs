//! What the model would read, entry by entry, and the decisions behind it, for those who look at it.

use pal_model::{Block, Body, Decision, Entry};

use crate::shown::{Showing, Shown};
use crate::view::View;

impl View {
    /// What the view shows, in the model's order, each with its blocks as they would be sent: cleaned, with decisions
    /// applied. What is snipped or folded has none. Pairing and merging of whole messages come after this.
    pub fn seen(&self) -> impl Iterator<Item = (Shown<'_>, Vec<Block>)> {
        let derived = self.derived();
        let cleaner = self.cleaner();
        self.shown().zip(derived.showing()).map(move |(shown, (node, showing))| {
            let blocks = match showing {
                Showing::Itself => {
                    let applied = derived.effects().apply(node, cleaner);
                    applied.into_iter().map(|clean| Block::parse(clean.text)).collect()
                }
                Showing::Snipped | Showing::Folded(_) => Vec::new(),
            };
            (shown, blocks)
        })
    }

    /// The decisions that count, oldest first: those that no undo has taken back.
    pub fn decisions(&self) -> impl Iterator<Item = (&Entry, &Decision)> {
        let undone = &self.derived().undone;
        self.branch().iter().filter(|entry| !undone.contains(&entry.id)).filter_map(|entry| {
            match &entry.body {
                Body::Decision(decision) => Some((entry, decision)),
                _ => None,
            }
        })
    }
}
