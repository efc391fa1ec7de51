//! Gathers the first request of a session that would start.

use std::path::{Path, PathBuf};

use pal_model::{EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCard};
use pal_prompt::assemble;
use pal_report::PlannedSession;
use pal_view::{Estimator, WindowLimits};

use crate::arguments::ContextArgs;
use crate::failure::Failure;
use crate::open_session::now;
use crate::session_start::{SessionStartInputs, assembly, gather_project, memory_location};
use crate::settings::Settings;

/// Stand-in for the first message.
const STAND_IN: &str = "\"Hello\"";

pub(super) fn gather(
    arguments: &ContextArgs,
    card: &ModelCard,
    estimator: Estimator,
    settings: &Settings,
) -> Result<PlannedSession, Failure> {
    let given = arguments.directory.as_deref().unwrap_or(Path::new("."));
    let directory = directory(given)?;
    let added = arguments.added.iter().map(|added| self::directory(added));
    let added = added.collect::<Result<Vec<PathBuf>, Failure>>()?;
    let start = SessionStartInputs {
        directory: &directory,
        added: &added,
        is_bare: arguments.bare,
        with_instructions: !arguments.no_instructions,
        with_git: !arguments.no_git,
        estimator,
    };
    let gathered = gather_project(&start, settings);
    let home = settings.home.as_deref();
    let memory = home.and_then(|home| memory_location(home, &directory, arguments.bare, settings));
    let window = WindowLimits::new(card, &settings.window_for(&card.model)).window;
    let assembly = assembly(card, window, &gathered, memory.as_ref(), (&directory, settings));
    let assembled = assemble(&assembly);
    Ok(PlannedSession { directory, memory: assembly.memory, gathered, assembled })
}

/// Builds the first entries of the log of the session.
pub(super) fn first_entries(session: &PlannedSession) -> Result<Vec<LogEntry>, Failure> {
    let at = now();
    let mut ids = IdSource::seeded(0);
    let mut parent = None;
    let drafts =
        [EntryDraft::prefix(&session.assembled.prefix), EntryDraft::user(MessageOrigin::Person, STAND_IN)];
    let entries = drafts.map(|draft| {
        let id = ids.next_id(at);
        let entry = draft.into_entry(id, parent.replace(id), at);
        entry.map_err(|error| Failure::new(format!("the prefix: {error}")))
    });
    entries.into_iter().collect()
}

/// Returns the full path of an existing directory.
fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let trouble = match path.canonicalize() {
        Ok(full) if full.is_dir() => return Ok(full),
        Ok(_) => String::from("not a directory"),
        Err(error) => error.to_string(),
    };
    let what = format!("{}: {trouble}", path.display());
    Err(Failure::with_hint(what, "name a directory; --session reports on a session"))
}
