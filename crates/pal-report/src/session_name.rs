//! The name under which reports show a session.

use std::path::Path;

use pal_model::{DecisionKind, EntryBody, LogEntry};

/// Returns the name of a session for people: its title, else the name of its file or directory.
pub fn session_name(entries: &[LogEntry], path: &Path) -> String {
    let title = entries.iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Decision(decision) => match &decision.kind {
            DecisionKind::Title { title } => Some(title.clone()),
            _ => None,
        },
        EntryBody::Session(session) => session.title.clone(),
        _ => None,
    });
    let named =
        if path.file_name().is_some_and(|name| name == "log.jsonl") { path.parent() } else { Some(path) };
    let file = named.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    title.filter(|title| !title.trim().is_empty()).or(file).unwrap_or_default()
}
