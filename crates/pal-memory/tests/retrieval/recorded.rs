//! The recorded sessions as repositories of turns.

use std::collections::{BTreeMap, BTreeSet};

use pal_extract::Facts;
use pal_import::{Measure, Options, import};
use pal_model::{Body, Entry, Origin, Text, Timestamp};
use serde_json::Value;

/// The sessions of a repository, in the order of time.
pub(crate) struct Repository {
    pub(crate) name: String,
    pub(crate) sessions: Vec<Session>,
}

/// A session.
pub(crate) struct Session {
    pub(crate) began: Timestamp,
    /// Its first prompt.
    pub(crate) prompt: String,
    pub(crate) turns: Vec<Turn>,
}

impl Session {
    /// The files that it touched.
    pub(crate) fn touched(&self) -> BTreeSet<&str> {
        self.turns.iter().flat_map(|turn| turn.files.iter().map(String::as_str)).collect()
    }
}

/// What came of one prompt.
pub(crate) struct Turn {
    pub(crate) at: Timestamp,
    pub(crate) prompt: String,
    /// The files that were read or changed, by their paths in the repository.
    pub(crate) files: BTreeSet<String>,
    pub(crate) commands: Vec<String>,
    /// What the model said last.
    pub(crate) said: String,
}

struct Thirds;

impl Measure for Thirds {
    fn text(&self, _: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

/// All repositories with more than one session; none where the data is absent.
pub(crate) fn repositories() -> Vec<Repository> {
    let Some(data) = pal_testkit::data_dir() else { return Vec::new() };
    let list = std::fs::read_to_string(data.join("sessions.jsonl")).unwrap();
    let mut by_name: BTreeMap<String, Vec<Session>> = BTreeMap::new();
    for row in list.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let bytes = std::fs::read(data.join(row["file"].as_str().unwrap())).unwrap();
        let imported = import(&bytes, &Options { measure: &Thirds, strict: false }).unwrap();
        let entries: Vec<Entry> =
            imported.log.lines().map(|line| Entry::parse(Text::from(line)).unwrap()).collect();
        if let Some(session) = session(&entries) {
            by_name.entry(row["source"].as_str().unwrap().to_owned()).or_default().push(session);
        }
    }
    let mut repositories: Vec<Repository> = by_name
        .into_iter()
        .map(|(name, mut sessions)| {
            sessions.sort_by_key(|session| session.began);
            Repository { name, sessions }
        })
        .collect();
    repositories.retain(|repository| repository.sessions.len() > 1);
    repositories
}

fn session(entries: &[Entry]) -> Option<Session> {
    let directory = entries.iter().find_map(|entry| match &entry.body {
        Body::Session(session) => session.cwd.clone(),
        _ => None,
    });
    let starts: Vec<usize> = (0..entries.len()).filter(|at| !prompt_of(&entries[*at]).is_empty()).collect();
    let first = *starts.first()?;
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let turns = starts.iter().zip(ends).map(|(from, to)| turn(&entries[*from..to], directory.as_deref()));
    Some(Session {
        began: entries[first].at,
        prompt: prompt_of(&entries[first]),
        turns: turns.filter(|turn| !turn.files.is_empty()).collect(),
    })
}

/// What a person says in an entry, without what programs put into it.
fn prompt_of(entry: &Entry) -> String {
    let Body::User(user) = &entry.body else { return String::new() };
    if user.origin != Origin::Person {
        return String::new();
    }
    let texts = user.content.blocks().iter().filter_map(|block| Some(block.string("text")?.into_owned()));
    let texts = texts.map(|text| pal_extract::without_reminders(&text).trim().to_owned());
    texts.filter(|text| !text.is_empty() && !text.starts_with('<')).collect::<Vec<_>>().join("\n")
}

fn turn(entries: &[Entry], directory: Option<&str>) -> Turn {
    let facts = Facts::of_entries(entries);
    Turn {
        at: entries[0].at,
        prompt: prompt_of(&entries[0]),
        files: facts.files.iter().filter_map(|file| inside(&file.path, directory)).collect(),
        commands: facts.commands.iter().map(|command| command.line.clone()).collect(),
        said: facts.said.last().cloned().unwrap_or_default(),
    }
}

/// The path of a file in the repository; none if it is not in there.
fn inside(path: &str, directory: Option<&str>) -> Option<String> {
    let path = match directory.and_then(|directory| path.strip_prefix(directory)) {
        Some(path) => path.trim_start_matches('/'),
        None if path.starts_with(['/', '~']) => return None,
        None => path.trim_start_matches("./"),
    };
    (!path.is_empty()).then(|| path.to_owned())
}
