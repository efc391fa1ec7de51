//! Naive model of resume: read every line, follow the parents, find the boundary in force, select. No
//! offsets, no segments.

use std::collections::{HashMap, HashSet};

use pal_model::{DecisionKind, EntryBody, EntryId, LogEntry, SharedText};

/// All entries of a healthy log.
pub(crate) fn read(bytes: &[u8]) -> Vec<LogEntry> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| LogEntry::parse(SharedText::from(line)).unwrap()).collect()
}

/// The branch of `head`, oldest first.
pub(crate) fn branch(entries: &[LogEntry], head: EntryId) -> Vec<LogEntry> {
    let by_id: HashMap<EntryId, &LogEntry> = entries.iter().map(|entry| (entry.id, entry)).collect();
    let mut branch = vec![by_id[&head].clone()];
    while let Some(parent) = branch.last().unwrap().parent {
        branch.push(by_id[&parent].clone());
    }
    branch.reverse();
    branch
}

/// Selects what the view needs of a branch.
pub(crate) fn select(branch: &[LogEntry]) -> Vec<LogEntry> {
    let mut undone = HashSet::new();
    for entry in branch.iter().rev() {
        if let Some(DecisionKind::Undo { target }) = entry.decision()
            && !undone.contains(&entry.id)
        {
            undone.insert(*target);
        }
    }
    let is_in_force =
        |entry: &LogEntry| matches!(entry.body, EntryBody::Boundary(_)) && !undone.contains(&entry.id);
    let Some(start) = branch.iter().rposition(is_in_force) else { return branch.to_vec() };
    let EntryBody::Boundary(boundary) = &branch[start].body else { unreachable!() };
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
