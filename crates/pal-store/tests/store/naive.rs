//! What resuming means, said the simple way: read every line, follow the parents, look for the boundary in force,
//! select. No offsets, no segments.

use std::collections::{HashMap, HashSet};

use pal_model::{Body, DecisionKind, Entry, EntryId, Text};

/// All entries of a healthy log.
pub(crate) fn read(bytes: &[u8]) -> Vec<Entry> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| Entry::parse(Text::from(line)).unwrap()).collect()
}

/// The branch of `head`, oldest first.
pub(crate) fn branch(entries: &[Entry], head: EntryId) -> Vec<Entry> {
    let by_id: HashMap<EntryId, &Entry> = entries.iter().map(|entry| (entry.id, entry)).collect();
    let mut branch = vec![by_id[&head].clone()];
    while let Some(parent) = branch.last().unwrap().parent {
        branch.push(by_id[&parent].clone());
    }
    branch.reverse();
    branch
}

/// What the view needs of a branch.
pub(crate) fn select(branch: &[Entry]) -> Vec<Entry> {
    let mut undone = HashSet::new();
    for entry in branch.iter().rev() {
        if let Some(DecisionKind::Undo { target }) = entry.decision()
            && !undone.contains(&entry.id)
        {
            undone.insert(*target);
        }
    }
    let is_in_force = |entry: &Entry| matches!(entry.body, Body::Boundary(_)) && !undone.contains(&entry.id);
    let Some(start) = branch.iter().rposition(is_in_force) else { return branch.to_vec() };
    let Body::Boundary(boundary) = &branch[start].body else { unreachable!() };
    let place = |id: EntryId| branch.iter().position(|entry| entry.id == id).unwrap();
    let mut kept: HashSet<usize> = (start..branch.len()).collect();
    if let Some(preserved) = &boundary.preserved {
        kept.extend(place(preserved.head)..start);
    }
    if let Some(prefix) = &boundary.snapshot.prefix {
        kept.insert(place(prefix.id));
    }
    branch.iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, entry)| entry.clone()).collect()
}
