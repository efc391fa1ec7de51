//! The ledger of a session that a user names, or of the newest one that is kept of the directory where they stand.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use pal_context::Ledger;
use pal_model::Body;

use crate::aside;
use crate::colour::clipped;
use crate::failure::Failure;
use crate::kept;
use crate::session::Session;
use crate::settings::Settings;
use crate::stored::find;

/// Files with more bytes than this take a moment.
const BYTES_TOLD_FROM: u64 = 8 << 20;

/// A session and its ledger.
pub(crate) struct Books {
    pub(crate) path: PathBuf,
    /// How people call it.
    pub(crate) name: String,
    pub(crate) ledger: Ledger,
}

impl Books {
    pub(crate) fn open(session: Option<&str>, settings: &Settings) -> Result<Books, Failure> {
        let path = match session {
            Some(name) => find(name, settings)?,
            None => newest(settings)?,
        };
        let told = tell(&path);
        let session = Session::read_all(&path, settings)?;
        for problem in &session.problems {
            aside::tell(problem);
        }
        let ledger = Ledger::of(&session.branch, &settings.cards);
        if told {
            eprint!("\r\x1b[2K");
        }
        Ok(Books { name: name(&session, &path), path, ledger })
    }
}

/// A session's name and what is said of it in one line: the name is cut where both do not fit.
pub(crate) fn heading(name: &str, said: &str, columns: usize) -> String {
    let room = columns.saturating_sub(said.chars().count() + 2).max(12);
    clipped(&format!("{}: {said}", clipped(name, room)), columns)
}

/// Says that a large file is being read, where a person waits.
fn tell(path: &Path) -> bool {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let told = bytes > BYTES_TOLD_FROM && aside::is_open() && std::io::stderr().is_terminal();
    if told {
        eprint!("reading {} MB …", bytes >> 20);
    }
    told
}

/// How people call a session: its title, else the name of its file or folder.
pub(crate) fn name(session: &Session, path: &Path) -> String {
    let title = session.branch.iter().rev().find_map(|entry| match &entry.body {
        Body::Decision(decision) => match &decision.kind {
            pal_model::DecisionKind::Title { title } => Some(title.clone()),
            _ => None,
        },
        Body::Session(session) => session.title.clone(),
        _ => None,
    });
    let named =
        if path.file_name().is_some_and(|name| name == "log.jsonl") { path.parent() } else { Some(path) };
    let file = named.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    title.filter(|title| !title.trim().is_empty()).or(file).unwrap_or_default()
}

/// The log that was written last among the sessions kept of the current directory's project, or of the nearest directory
/// around it that has any.
pub(crate) fn newest(settings: &Settings) -> Result<PathBuf, Failure> {
    let current = std::env::current_dir()
        .map_err(|error| Failure::with_hint(format!("the current directory: {error}"), "name a session"))?;
    let sessions = settings.home.as_deref().map_or(Vec::new(), |home| kept::of_directory(home, &current).1);
    let written = |log: &PathBuf| log.metadata().and_then(|metadata| metadata.modified()).ok();
    let newest = sessions.into_iter().filter_map(|kept| Some((written(&kept.log)?, kept.log))).max();
    newest.map(|(_, log)| log).ok_or_else(|| {
        Failure::with_hint(
            format!("no session of {} is kept", current.display()),
            "name one by its path or id; `pal import` takes sessions of other agents over",
        )
    })
}
