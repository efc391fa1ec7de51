//! A session that would start: what is around it, put together.

use std::path::{Path, PathBuf};

use pal_model::{Card, Draft, Entry, IdSource, Origin};
use pal_prompt::{Assembled, MemoryIndex, assemble};
use pal_sources::Gathered;
use pal_view::Estimator;

use crate::arguments::Context;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::stored::now;
use crate::surroundings::{Start, assembly, gather_at, memory_place};

/// What somebody would say first: something has to stand there.
const STAND_IN: &str = "\"Hello\"";

/// What is around a session, and what it would begin with.
pub(super) struct Here {
    pub(super) directory: PathBuf,
    pub(super) gathered: Gathered,
    /// What is remembered, as it stands in the context.
    pub(super) memory: Vec<MemoryIndex>,
    pub(super) assembled: Assembled,
}

impl Here {
    pub(super) fn gather(
        arguments: &Context,
        card: &Card,
        estimator: Estimator,
        settings: &Settings,
    ) -> Result<Here, Failure> {
        let given = arguments.directory.as_deref().unwrap_or(Path::new("."));
        let directory = directory(given)?;
        let added = arguments.added.iter().map(|added| self::directory(added));
        let added = added.collect::<Result<Vec<PathBuf>, Failure>>()?;
        let start = Start {
            directory: &directory,
            added: &added,
            is_bare: arguments.bare,
            with_instructions: !arguments.no_instructions,
            with_git: !arguments.no_git,
            estimator,
        };
        let gathered = gather_at(&start, settings);
        let home = settings.home.as_deref();
        let memory = home.and_then(|home| memory_place(home, &directory, arguments.bare, settings));
        let assembly = assembly(card, &gathered, memory.as_ref());
        let assembled = assemble(&assembly);
        Ok(Here { directory, memory: assembly.memory, gathered, assembled })
    }

    /// What the log of the session would begin with.
    pub(super) fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let at = now();
        let mut ids = IdSource::seeded(0);
        let mut parent = None;
        let drafts = [Draft::prefix(&self.assembled.prefix), Draft::user(Origin::Person, STAND_IN)];
        let entries = drafts.map(|draft| {
            let id = ids.next_id(at);
            let entry = draft.into_entry(id, parent.replace(id), at);
            entry.map_err(|error| Failure::new(format!("the prefix: {error}")))
        });
        entries.into_iter().collect()
    }
}

/// A directory that exists, by its full path.
fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let trouble = match path.canonicalize() {
        Ok(full) if full.is_dir() => return Ok(full),
        Ok(_) => String::from("this is no directory"),
        Err(error) => error.to_string(),
    };
    let what = format!("{}: {trouble}", path.display());
    Err(Failure::with_hint(what, "name a directory; --session looks at a session"))
}
