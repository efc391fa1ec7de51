//! `pal memory`: what is remembered from session to session, its history and its health.

mod changing;
mod history;
mod ledger;
mod looking;

pub(crate) use history::{difference_object, print_diff};

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use pal_memory::{Memory, MemoryError, Place, Scope};
use pal_sources::{project_of, project_root};

use crate::arguments::{self, MemoryCommand, ScopeName};
use crate::aside;
use crate::colour::Colours;
use crate::failure::Failure;
use crate::settings::Settings;
use crate::stored::now;

/// What a command works with.
struct Desk<'a> {
    place: Place,
    /// Where paths of the project are looked up.
    root: PathBuf,
    is_json: bool,
    colours: Colours,
    settings: &'a Settings,
    out: &'a mut dyn Write,
}

pub(crate) fn memory(
    arguments: &arguments::Memory,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let directory = match &arguments.directory {
        Some(directory) => directory.clone(),
        None => std::env::current_dir().map_err(|error| Failure::of_file(Path::new("."), &error))?,
    };
    let mut desk = Desk {
        place: place(arguments, settings, &directory)?,
        root: project_root(&directory),
        is_json: arguments.json,
        colours: Colours::of(arguments.colour),
        settings,
        out,
    };
    match arguments.command.as_ref().unwrap_or(&MemoryCommand::List) {
        MemoryCommand::List => desk.list(),
        MemoryCommand::Show { name } => desk.show(name),
        MemoryCommand::Search { query, limit } => desk.search(&query.join(" "), *limit),
        MemoryCommand::Add { text, kind, name, description } => {
            desk.add(text, *kind, name.as_deref(), description.as_deref())
        }
        MemoryCommand::Edit { name } => desk.edit(name),
        MemoryCommand::Rm { name } => desk.remove(name),
        MemoryCommand::Log { name } => desk.log(name.as_deref()),
        MemoryCommand::Diff { from, to } => desk.diff(*from, *to),
        MemoryCommand::Undo { to } => desk.undo(*to),
        MemoryCommand::Doctor => desk.doctor(),
        MemoryCommand::Ledger { runs } => desk.ledger(*runs),
    }
}

fn place(arguments: &arguments::Memory, settings: &Settings, directory: &Path) -> Result<Place, Failure> {
    let home = settings.home.as_deref().ok_or_else(|| {
        Failure::with_hint("no home is known", "set HOME, or PAL_HOME to where pal keeps its files")
    })?;
    let Some(agent) = &arguments.agent else { return Ok(Place::of_project(home, &project_of(directory))) };
    let scope = match arguments.scope.unwrap_or(ScopeName::User) {
        ScopeName::User => Scope::User,
        ScopeName::Project => Scope::Project,
        ScopeName::Local => Scope::Local,
    };
    let place = Place::of_agent(agent, scope, home, settings.user_home.as_deref(), &project_root(directory));
    place.map_err(|error| failure(&error))
}

impl Desk<'_> {
    /// The directory to be changed.
    fn open(&self) -> Result<Memory, Failure> {
        let memory = self.place.open(now()).map_err(|error| failure(&error))?;
        tell_noticed(&memory);
        Ok(memory)
    }

    /// The directory, if it is there; looking makes nothing.
    fn existing(&self) -> Result<Option<Memory>, Failure> {
        let memory = self.place.open_existing(now()).map_err(|error| failure(&error))?;
        memory.iter().for_each(tell_noticed);
        Ok(memory)
    }

    /// All directories that are looked at: ours, then those of another program.
    fn all(&self) -> Result<Vec<Memory>, Failure> {
        let mut all: Vec<Memory> = self.existing()?.into_iter().collect();
        all.extend(self.place.open_others().map_err(|error| failure(&error))?);
        Ok(all)
    }

    /// The directory with a memory of this name, and its slug.
    fn find(&self, name: &str) -> Result<(Memory, String), Failure> {
        let mut missing = None;
        for memory in self.all()? {
            match memory.find(name) {
                Ok(slug) => return Ok((memory, slug)),
                Err(error) => missing = missing.or(Some(error)),
            }
        }
        Err(missing.map_or_else(|| self.nothing_yet(name), |error| failure(&error)))
    }

    fn nothing_yet(&self, name: &str) -> Failure {
        Failure::with_hint(
            format!("there is no memory `{name}`: nothing is remembered here yet"),
            "`pal memory add TEXT` writes the first one",
        )
    }
}

fn tell_noticed(memory: &Memory) {
    let files: Vec<&str> = memory
        .noticed()
        .iter()
        .flat_map(|change| change.files.iter().map(|changed| changed.file.as_str()))
        .collect();
    if !files.is_empty() {
        let some = files.iter().take(4).copied().collect::<Vec<_>>().join(", ");
        let more = if files.len() > 4 { format!(" and {} more", files.len() - 4) } else { String::new() };
        aside::tell(format!("changed by hand since the last time, and now in the log: {some}{more}"));
    }
}

/// An error with a next step.
fn failure(error: &MemoryError) -> Failure {
    let hint = match error {
        MemoryError::Unknown { .. } => "`pal memory list` has all of them",
        MemoryError::BadSlug { .. } => "choose another name: --name",
        MemoryError::NoSuchPoint { .. } => "`pal memory log` lists all points",
        MemoryError::VersionLost { .. } => "another point may still be whole: `pal memory log`",
        MemoryError::ReadOnly { .. } => "write it anew: `pal memory add`",
        _ => return Failure::new(error.to_string()),
    };
    Failure::with_hint(error.to_string(), hint)
}
