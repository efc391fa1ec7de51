//! Where the files of sessions are: logs, the logs of agents that they sent, and what was too long for a log.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

/// The log of a session or of an agent.
const LOG: &str = "log.jsonl";
/// The agents of a session, each with a folder like that of a session.
const AGENTS: &str = "agents";
/// Texts that went to disk: long results, long outputs of commands, outputs of commands in the background.
const TEXTS: [&str; 3] = ["tool-results", "outputs", "background"];
/// Agents that send agents: that deep.
const DEEPEST: usize = 8;

/// The sessions in the folder of a project.
pub fn sessions_folder(project: &Path) -> PathBuf {
    project.join("sessions")
}

/// The folder of the project that a log belongs to, and the id of its session; none for a log that lies elsewhere.
pub fn project_and_session(log: &Path) -> Option<(PathBuf, String)> {
    let folders: Vec<&Path> = log.ancestors().collect();
    folders.windows(2).find_map(|pair| {
        let [session, sessions] = pair else { return None };
        let project = sessions.parent()?;
        let is_ours = sessions.file_name()? == "sessions" && project.parent()?.file_name()? == "projects";
        is_ours.then(|| Some((project.to_owned(), session.file_name()?.to_str()?.to_owned())))?
    })
}

/// The one session that counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Only {
    /// The name of its folder.
    pub(crate) session: String,
    /// The name of its log.
    pub(crate) log: String,
}

/// A file that is indexed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Source {
    /// Its path from the folder of all sessions on, with `/`: `<session>/agents/<agent>/log.jsonl`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) is_log: bool,
}

/// The files of all sessions, logs before the texts beside them. Links are not followed, and names that are no Unicode are no
/// names of ours. `only` is the one session that counts.
pub(crate) fn sources(sessions: &Path, only: Option<&Only>) -> Vec<Source> {
    let mut found = Vec::new();
    if let Some(Only { session, log }) = only {
        gather(&sessions.join(session), (session, log), DEEPEST, &mut found);
        return found;
    }
    for session in children(sessions) {
        if let Some(name) = session.file_name().to_str().filter(|_| is_folder(&session)) {
            gather(&session.path(), (name, LOG), DEEPEST, &mut found);
        }
    }
    found
}

fn gather(folder: &Path, (name, log): (&str, &str), depth: usize, found: &mut Vec<Source>) {
    let mut add = |path: PathBuf, name: String, is_log: bool| {
        if let Some(metadata) = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file) {
            found.push(Source { name, path, bytes: metadata.len(), is_log });
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
            gather(&agent.path(), (&format!("{name}/{AGENTS}/{own}"), LOG), depth - 1, found);
        }
    }
}

/// What a folder holds, in the order of the names.
fn children(folder: &Path) -> Vec<DirEntry> {
    let mut found: Vec<DirEntry> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    found.sort_by_key(DirEntry::file_name);
    found
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// The session of a file by its name, and the agent that it is of.
pub(crate) fn session_and_agent(name: &str) -> (&str, Option<String>) {
    let mut parts = name.split('/');
    let session = parts.next().unwrap_or_default();
    let mut agents = Vec::new();
    while parts.next() == Some(AGENTS) {
        agents.extend(parts.next());
    }
    (session, (!agents.is_empty()).then(|| agents.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_known_by_where_they_lie() {
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
