//! Finding a saved session: by path or id, or the newest of the current directory.

use std::path::{Path, PathBuf};

use pal_report::stored_sessions::{self, StoredSession};

use crate::failure::Failure;
use crate::settings::Settings;

/// Finds the file of a named session, or of the newest one of the current directory.
pub(crate) fn find_or_newest(name: Option<&str>, settings: &Settings) -> Result<PathBuf, Failure> {
    name.map_or_else(|| newest(settings), |name| find(name, settings))
}

/// Finds the file of a session by its path, its directory, or its id or the start of it.
pub(crate) fn find(name: &str, settings: &Settings) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    if path.is_dir() && pal_store::log_path(path).is_file() {
        return Ok(pal_store::log_path(path));
    }
    if path.exists() || path.components().count() > 1 {
        return Ok(path.to_owned());
    }
    let sessions = settings.home.as_deref().map_or(Vec::new(), stored_sessions::list_sessions);
    let mut found: Vec<&StoredSession> =
        sessions.iter().filter(|kept| !name.is_empty() && kept.id.starts_with(name)).collect();
    if found.is_empty() {
        let begins = |kept: &&StoredSession| foreign_id(&kept.log).is_some_and(|id| id.starts_with(name));
        found = sessions.iter().filter(begins).collect();
    }
    found.sort();
    match found.as_slice() {
        [kept] => Ok(kept.log.clone()),
        [] => Err(Failure::with_hint(
            format!("no session id starts with `{name}`, and no such file exists"),
            "`pal sessions --all` lists all sessions",
        )),
        several => {
            let ids: Vec<&str> = several.iter().take(5).map(|kept| kept.id.as_str()).collect();
            let more = if several.len() > 5 { " …" } else { "" };
            Err(Failure::with_hint(
                format!("{} session ids start with `{name}`: {}{more}", several.len(), ids.join(", ")),
                "use more characters of the id",
            ))
        }
    }
}

/// Id that another agent gave to an imported session. Reads only the first line.
pub(crate) fn foreign_id(log: &Path) -> Option<String> {
    pal_store::read_session_entry(log)?.foreign_id
}

/// Log of the newest session of the current directory's project, or of the nearest parent directory that has sessions.
pub(crate) fn newest(settings: &Settings) -> Result<PathBuf, Failure> {
    let (current, sessions) = project_logs(settings)?;
    sessions.into_iter().next().ok_or_else(|| no_sessions(&current))
}

/// The current directory, and the logs of its project's sessions, newest first.
pub(crate) fn project_logs(settings: &Settings) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    let current = std::env::current_dir()
        .map_err(|error| Failure::with_hint(format!("the current directory: {error}"), "name a session"))?;
    let sessions = settings
        .home
        .as_deref()
        .map_or(Vec::new(), |home| stored_sessions::project_sessions(home, &current).1);
    let written = |log: &PathBuf| log.metadata().and_then(|metadata| metadata.modified()).ok();
    let mut dated: Vec<_> =
        sessions.into_iter().filter_map(|kept| Some((written(&kept.log)?, kept.log))).collect();
    dated.sort_by(|one, other| other.cmp(one));
    Ok((current, dated.into_iter().map(|(_, log)| log).collect()))
}

pub(crate) fn no_sessions(current: &Path) -> Failure {
    Failure::with_hint(
        format!("no saved sessions for {}", current.display()),
        "name a session by its path or id; `pal import` imports sessions of other agents",
    )
}
