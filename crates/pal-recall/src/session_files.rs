//! Files of sessions: logs, logs of subagents, and separate text files.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;

/// Log of a session or subagent.
const LOG: &str = "log.jsonl";
/// Directory of a session's subagents, each laid out like a session.
const AGENTS: &str = "agents";
/// Directories of separate text files: spilled results, command output, background output.
const TEXTS: [&str; 3] = ["tool-results", "outputs", "background"];
/// Maximum nesting of subagents.
const NESTING_MAX: usize = 8;

/// Directory of a project's sessions.
pub(crate) fn sessions_folder(project: &Path) -> PathBuf {
    project.join("sessions")
}

/// Project directory and session id of a log; none for a log elsewhere.
pub fn project_and_session(log: &Path) -> Option<(PathBuf, String)> {
    let folders: Vec<&Path> = log.ancestors().collect();
    folders.windows(2).find_map(|pair| {
        let [session, sessions] = pair else { return None };
        let project = sessions.parent()?;
        let is_ours = sessions.file_name()? == "sessions" && project.parent()?.file_name()? == "projects";
        is_ours.then(|| Some((project.to_owned(), session.file_name()?.to_str()?.to_owned())))?
    })
}

/// Restriction to one session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SessionFilter {
    /// Name of its directory.
    pub(crate) session: String,
    /// File name of its log.
    pub(crate) log: String,
}

/// A file to index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IndexedFile {
    /// Path relative to the directory of all sessions, with `/`: `<session>/agents/<agent>/log.jsonl`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) is_log: bool,
}

/// Files of all sessions, or of one, logs first. Skips links and names that are not Unicode.
pub(crate) fn sources(sessions: &Path, only: Option<&SessionFilter>) -> Vec<IndexedFile> {
    let mut found = Vec::new();
    if let Some(SessionFilter { session, log }) = only {
        collect_files(&sessions.join(session), (session, log), NESTING_MAX, &mut found);
        return found;
    }
    for session in children(sessions) {
        if let Some(name) = session.file_name().to_str().filter(|_| is_folder(&session)) {
            collect_files(&session.path(), (name, LOG), NESTING_MAX, &mut found);
        }
    }
    found
}

fn collect_files(folder: &Path, (name, log): (&str, &str), depth: usize, found: &mut Vec<IndexedFile>) {
    let mut add = |path: PathBuf, name: String, is_log: bool| {
        if let Some(metadata) = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file) {
            found.push(IndexedFile { name, path, bytes: metadata.len(), is_log });
        }
    };
    add(folder.join(log), format!("{name}/{log}"), true);
    for sort in TEXTS {
        for text in children(&folder.join(sort)) {
            if let Some(file) = text.file_name().to_str() {
                add(text.path(), format!("{name}/{sort}/{file}"), false);
            }
        }
    }
    if depth == 0 {
        return;
    }
    for agent in children(&folder.join(AGENTS)) {
        if let Some(own) = agent.file_name().to_str().filter(|_| is_folder(&agent)) {
            collect_files(&agent.path(), (&format!("{name}/{AGENTS}/{own}"), LOG), depth - 1, found);
        }
    }
}

/// Directory entries, sorted by name.
fn children(folder: &Path) -> Vec<DirEntry> {
    let mut found: Vec<DirEntry> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    found.sort_by_key(DirEntry::file_name);
    found
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// Session and subagent of a file, from its relative path.
pub(crate) fn session_and_agent(name: &str) -> (&str, Option<String>) {
    let mut parts = name.split('/');
    let session = parts.next().unwrap_or_default();
    let mut agents = Vec::new();
    while parts.next() == Some(AGENTS) {
        agents.extend(parts.next());
    }
    (session, (!agents.is_empty()).then(|| agents.join("/")))
}

/// Modification time of a file.
pub(crate) fn modified(file: &Path) -> Option<Timestamp> {
    let time = file.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_milliseconds(i64::try_from(since.as_millis()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_and_session_follow_from_the_path() {
        let of = |log: &str| {
            project_and_session(Path::new(log))
                .map(|(project, session)| (project.display().to_string(), session))
        };
        let ours = Some((String::from("/h/projects/-src-a"), String::from("0199")));
        assert_eq!(of("/h/projects/-src-a/sessions/0199/log.jsonl"), ours);
        assert_eq!(of("/h/projects/-src-a/sessions/0199/agents/scout/log.jsonl"), ours);
        assert_eq!(of("/elsewhere/sessions/0199/log.jsonl"), None);
        assert_eq!(of("log.jsonl"), None);
        assert_eq!(session_and_agent("0199/log.jsonl"), ("0199", None));
        assert_eq!(session_and_agent("0199/outputs/agents"), ("0199", None));
        let deep = session_and_agent("0199/agents/scout/agents/second/log.jsonl");
        assert_eq!(deep, ("0199", Some(String::from("scout/second"))));
    }
}
