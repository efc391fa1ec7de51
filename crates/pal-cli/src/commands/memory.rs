//! `pal memory`: the memories of a project or an agent, their history and their health.

mod background_runs;
mod edit_commands;
mod history_commands;
mod read_commands;

pub(crate) use edit_commands::remember;
pub(crate) use history_commands::{difference_object, print_diff};

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_memory::{MemoryError, MemoryLocation, MemoryScope, MemoryStore};
use pal_project::{find_project, find_project_root};
use pal_report::TextStyle;

use crate::arguments::{self, MemoryCommand, MemoryScopeArg};
use crate::failure::Failure;
use crate::notices::Notices;
use crate::open_session::now;
use crate::settings::Settings;
use crate::terminal_style::style_for;

/// Context of a memory command.
struct MemoryCommandRun<'a> {
    place: MemoryLocation,
    /// Root for paths of the project.
    root: PathBuf,
    is_json: bool,
    colors: TextStyle,
    settings: &'a Settings,
    notices: &'a Notices,
    out: &'a mut dyn Write,
}

pub(crate) fn memory(
    arguments: &arguments::MemoryArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let directory = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?,
    };
    let mut run = MemoryCommandRun {
        place: place(arguments, settings, &directory)?,
        root: find_project_root(&directory),
        is_json: arguments.json,
        colors: style_for(arguments.color),
        settings,
        notices,
        out,
    };
    match arguments.command.as_ref().unwrap_or(&MemoryCommand::List) {
        MemoryCommand::List => run.list(),
        MemoryCommand::Show { name } => run.show(name),
        MemoryCommand::Search { query, limit } => run.search(&query.join(" "), *limit),
        MemoryCommand::Add { text, kind, name, description } => {
            run.add(text, *kind, name.as_deref(), description.as_deref())
        }
        MemoryCommand::Edit { name } => run.edit(name),
        MemoryCommand::Rm { name } => run.remove(name),
        MemoryCommand::Log { name } => run.log(name.as_deref()),
        MemoryCommand::Diff { from, to } => run.diff(*from, *to),
        MemoryCommand::Undo { to } => run.undo(*to),
        MemoryCommand::Doctor => run.doctor(),
        MemoryCommand::Ledger { runs } => run.ledger(*runs),
    }
}

fn place(
    arguments: &arguments::MemoryArgs,
    settings: &Settings,
    directory: &Path,
) -> Result<MemoryLocation, Failure> {
    let home = home(settings)?;
    let Some(agent) = &arguments.agent else {
        return Ok(MemoryLocation::of_project(home, &find_project(directory)));
    };
    let scope = match arguments.scope.unwrap_or(MemoryScopeArg::User) {
        MemoryScopeArg::User => MemoryScope::User,
        MemoryScopeArg::Project => MemoryScope::Project,
        MemoryScopeArg::Local => MemoryScope::Local,
    };
    let place = MemoryLocation::of_agent(
        agent,
        scope,
        home,
        settings.user_home.as_deref(),
        &find_project_root(directory),
    );
    place.map_err(|error| failure(&error))
}

fn home(settings: &Settings) -> Result<&Path, Failure> {
    settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "the home directory is unknown",
            "set HOME, or set PAL_HOME to the directory for pal's files",
        )
    })
}

impl MemoryCommandRun<'_> {
    /// Opens the memory directory for changes.
    fn open(&self) -> Result<MemoryStore, Failure> {
        let memory = self.place.open(now()).map_err(|error| failure(&error))?;
        report_manual_changes(&memory, self.notices);
        Ok(memory)
    }

    /// Opens the memory directory if it exists; reading creates nothing.
    fn open_existing_memory(&self) -> Result<Option<MemoryStore>, Failure> {
        let memory = self.place.open_existing(now()).map_err(|error| failure(&error))?;
        memory.iter().for_each(|memory| report_manual_changes(memory, self.notices));
        Ok(memory)
    }

    /// Opens all memory directories: pal's own, then those of other programs.
    fn open_all(&self) -> Result<Vec<MemoryStore>, Failure> {
        let mut all: Vec<MemoryStore> = self.open_existing_memory()?.into_iter().collect();
        all.extend(self.place.open_read_only().map_err(|error| failure(&error))?);
        Ok(all)
    }

    /// Finds a memory by name; returns its directory and slug.
    fn find(&self, name: &str) -> Result<(MemoryStore, String), Failure> {
        let mut missing = None;
        for memory in self.open_all()? {
            match memory.find(name) {
                Ok(slug) => return Ok((memory, slug)),
                Err(error) => missing = missing.or(Some(error)),
            }
        }
        Err(missing.map_or_else(|| self.nothing_yet(name), |error| failure(&error)))
    }

    fn nothing_yet(&self, name: &str) -> Failure {
        Failure::with_hint(
            format!("no memory `{name}`: there are no memories here yet"),
            "add one with `pal memory add TEXT`",
        )
    }
}

fn report_manual_changes(memory: &MemoryStore, notices: &Notices) {
    let files: Vec<&str> = memory
        .outside_changes()
        .iter()
        .flat_map(|change| change.files.iter().map(|changed| changed.file.as_str()))
        .collect();
    if !files.is_empty() {
        let some = files.iter().take(4).copied().collect::<Vec<_>>().join(", ");
        let more = if files.len() > 4 { format!(" and {} more", files.len() - 4) } else { String::new() };
        notices.add(format_args!(
            "changed by hand since the last command, and now in the history: {some}{more}"
        ));
    }
}

/// Converts a memory error and adds the next step.
fn failure(error: &MemoryError) -> Failure {
    let hint = match error {
        MemoryError::Unknown { .. } => "`pal memory list` lists all memories",
        MemoryError::BadSlug { .. } => "choose another name with --name",
        MemoryError::NoSuchPoint { .. } => "`pal memory log` lists all changes",
        MemoryError::VersionLost { .. } => "try another change: `pal memory log` lists them",
        MemoryError::ReadOnly { .. } => "write a new one with `pal memory add`",
        _ => return Failure::new(error.to_string()),
    };
    Failure::with_hint(error.to_string(), hint)
}
