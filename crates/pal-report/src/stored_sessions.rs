//! Sessions stored under the home directory of pal, and the projects that they belong to.

use std::path::{Path, PathBuf};

use pal_project::find_project;
use pal_store::read_session_entry;

/// A session on disk.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StoredSession {
    /// Id of the session: the name of its directory.
    pub id: String,
    /// Path of its log.
    pub log: PathBuf,
}

/// Lists all sessions under a home directory.
pub fn list_sessions(home: &Path) -> Vec<StoredSession> {
    sorted_entries(&home.join("projects")).iter().flat_map(|project| sessions_in_project(project)).collect()
}

/// Returns the project of a directory and its sessions; those of other worktrees and of directories below it count. If there
/// are none, returns the nearest parent directory with sessions.
pub fn project_sessions(home: &Path, directory: &Path) -> (PathBuf, Vec<StoredSession>) {
    let project = find_project(directory);
    let known: Vec<(PathBuf, Option<PathBuf>)> = sorted_entries(&home.join("projects"))
        .into_iter()
        .map(|folder| {
            let began =
                sessions_in_project(&folder).iter().find_map(|kept| read_session_entry(&kept.log)?.cwd);
            (folder, began.map(PathBuf::from))
        })
        .collect();
    for around in project.ancestors() {
        let own = pal_store::project_directory(home, around);
        let belongs = |folder: &Path, began: Option<&PathBuf>| {
            folder == own
                || began.is_some_and(|began| {
                    if around == project {
                        began.starts_with(around) || find_project(began) == around
                    } else {
                        began == around
                    }
                })
        };
        let found = known.iter().filter(|(folder, began)| belongs(folder, began.as_ref()));
        let sessions: Vec<StoredSession> =
            found.flat_map(|(folder, _)| sessions_in_project(folder)).collect();
        if !sessions.is_empty() {
            return (around.to_owned(), sessions);
        }
    }
    (project, Vec::new())
}

/// Lists the sessions in the directory of a project.
fn sessions_in_project(project: &Path) -> Vec<StoredSession> {
    let sessions = sorted_entries(&project.join("sessions")).into_iter();
    let kept = sessions.filter_map(|folder| {
        let id = folder.file_name()?.to_string_lossy().into_owned();
        Some(StoredSession { id, log: pal_store::log_path(&folder) })
    });
    kept.filter(|kept| kept.log.is_file()).collect()
}

/// Lists the entries of a directory, sorted by name.
fn sorted_entries(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}
