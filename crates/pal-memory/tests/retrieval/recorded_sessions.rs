//! Recorded sessions as repositories of turns.

use std::collections::{BTreeMap, BTreeSet};

use pal_extract::ConversationFacts;
use pal_import::{ImportOptions, import};
use pal_model::{EntryBody, LogEntry, MessageOrigin, SharedText, Timestamp};
use pal_testkit::ByteThirds;
use serde_json::Value;

/// Sessions of a repository, in order of time.
pub(crate) struct RecordedRepository {
    pub(crate) name: String,
    pub(crate) sessions: Vec<RecordedSession>,
}

/// A recorded session.
pub(crate) struct RecordedSession {
    pub(crate) began: Timestamp,
    /// First prompt.
    pub(crate) prompt: String,
    pub(crate) turns: Vec<RecordedTurn>,
}

impl RecordedSession {
    /// Files that it touched.
    pub(crate) fn touched(&self) -> BTreeSet<&str> {
        self.turns.iter().flat_map(|turn| turn.files.iter().map(String::as_str)).collect()
    }
}

/// One prompt with its outcome.
pub(crate) struct RecordedTurn {
    pub(crate) at: Timestamp,
    pub(crate) prompt: String,
    /// Files read or changed, by path in the repository.
    pub(crate) files: BTreeSet<String>,
    pub(crate) commands: Vec<String>,
    /// Last text of the model.
    pub(crate) said: String,
}

/// Repositories with more than one session; none without the data.
pub(crate) fn repositories() -> Vec<RecordedRepository> {
    let Some(data) = pal_testkit::data_dir() else { return Vec::new() };
    let list = std::fs::read_to_string(data.join("sessions.jsonl")).unwrap();
    let mut by_name: BTreeMap<String, Vec<RecordedSession>> = BTreeMap::new();
    for row in list.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let bytes = std::fs::read(data.join(row["file"].as_str().unwrap())).unwrap();
        let imported = import(&bytes, &ImportOptions { measure: &ByteThirds, strict: false }).unwrap();
        let entries: Vec<LogEntry> =
            imported.log.lines().map(|line| LogEntry::parse(SharedText::from(line)).unwrap()).collect();
        if let Some(session) = session(&entries) {
            by_name.entry(row["source"].as_str().unwrap().to_owned()).or_default().push(session);
        }
    }
    let mut repositories: Vec<RecordedRepository> = by_name
        .into_iter()
        .map(|(name, mut sessions)| {
            sessions.sort_by_key(|session| session.began);
            RecordedRepository { name, sessions }
        })
        .collect();
    repositories.retain(|repository| repository.sessions.len() > 1);
    repositories
}

fn session(entries: &[LogEntry]) -> Option<RecordedSession> {
    let directory = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Session(session) => session.cwd.clone(),
        _ => None,
    });
    let starts: Vec<usize> = (0..entries.len()).filter(|at| !prompt_of(&entries[*at]).is_empty()).collect();
    let first = *starts.first()?;
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let turns = starts.iter().zip(ends).map(|(from, to)| turn(&entries[*from..to], directory.as_deref()));
    Some(RecordedSession {
        began: entries[first].at,
        prompt: prompt_of(&entries[first]),
        turns: turns.filter(|turn| !turn.files.is_empty()).collect(),
    })
}

/// User's text in an entry, without injected content.
fn prompt_of(entry: &LogEntry) -> String {
    let EntryBody::User(user) = &entry.body else { return String::new() };
    if user.origin != MessageOrigin::Person {
        return String::new();
    }
    let texts = user.content.blocks().iter().filter_map(|block| Some(block.string("text")?.into_owned()));
    let texts = texts.map(|text| pal_extract::without_reminders(&text).trim().to_owned());
    texts.filter(|text| !text.is_empty() && !text.starts_with('<')).collect::<Vec<_>>().join("\n")
}

fn turn(entries: &[LogEntry], directory: Option<&str>) -> RecordedTurn {
    let facts = ConversationFacts::from_entries(entries);
    RecordedTurn {
        at: entries[0].at,
        prompt: prompt_of(&entries[0]),
        files: facts.files.iter().filter_map(|file| inside(&file.path, directory)).collect(),
        commands: facts.commands.iter().map(|command| command.line.clone()).collect(),
        said: facts.model_texts.last().cloned().unwrap_or_default(),
    }
}

/// Path of a file inside the repository.
fn inside(path: &str, directory: Option<&str>) -> Option<String> {
    let path = match directory.and_then(|directory| path.strip_prefix(directory)) {
        Some(path) => path.trim_start_matches('/'),
        None if path.starts_with(['/', '~']) => return None,
        None => path.trim_start_matches("./"),
    };
    (!path.is_empty()).then(|| path.to_owned())
}
