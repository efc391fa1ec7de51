//! Where memories are kept: one directory for a project, and one for each agent in three scopes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_model::Timestamp;
use pal_store::project_directory;

use crate::embeddings::Embeddings;
use crate::error::MemoryError;
use crate::memory::{Memory, check_slug};

/// How far the memory of an agent reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All projects of the user.
    User,
    /// One project, shared with whoever has it.
    Project,
    /// One project, on this machine only.
    Local,
}

impl Scope {
    /// The scope of this name.
    pub fn named(name: &str) -> Option<Scope> {
        match name.trim() {
            "user" => Some(Scope::User),
            "project" => Some(Scope::Project),
            "local" => Some(Scope::Local),
            _ => None,
        }
    }
}

/// A place of memories.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The directory that is written.
    pub directory: PathBuf,
    /// Directories of another program that are read besides.
    pub also_read: Vec<PathBuf>,
    /// What all of it must lie in, links followed: a repository must not lead us elsewhere.
    inside: Option<PathBuf>,
    /// What finds memories by their meaning, besides their words.
    pub embeddings: Option<Arc<Embeddings>>,
}

impl Place {
    /// The memory of a project. `project` is what its worktrees share.
    pub fn of_project(home: &Path, project: &Path) -> Place {
        Place {
            directory: project_directory(home, project).join("memory"),
            also_read: Vec::new(),
            inside: None,
            embeddings: None,
        }
    }

    /// The memory that an agent has in a scope; `root` is the top of the project, `user_home` the user's own home.
    pub fn of_agent(
        name: &str,
        scope: Scope,
        home: &Path,
        user_home: Option<&Path>,
        root: &Path,
    ) -> Result<Place, MemoryError> {
        match scope {
            Scope::User => Place::of_agent_of_user(name, home, user_home),
            Scope::Project => Place::of_agent_in_project(name, root, false),
            Scope::Local => Place::of_agent_in_project(name, root, true),
        }
    }

    /// The memory that an agent has of all projects.
    fn of_agent_of_user(name: &str, home: &Path, user_home: Option<&Path>) -> Result<Place, MemoryError> {
        check_slug(name)?;
        Ok(Place {
            directory: home.join("agents").join(name).join("memory"),
            also_read: user_home
                .map(|home| home.join(".claude/agent-memory").join(name))
                .into_iter()
                .collect(),
            inside: None,
            embeddings: None,
        })
    }

    /// The memory that an agent has of the project at `root`.
    pub(crate) fn of_agent_in_project(name: &str, root: &Path, is_local: bool) -> Result<Place, MemoryError> {
        check_slug(name)?;
        let folder = if is_local { "agent-memory-local" } else { "agent-memory" };
        Ok(Place {
            directory: root.join(".pal").join(folder).join(name),
            also_read: vec![root.join(".claude").join(folder).join(name)],
            inside: Some(root.to_owned()),
            embeddings: None,
        })
    }

    /// The same, with a model that finds memories by their meaning, or without.
    pub fn with_embeddings(self, embeddings: Option<Arc<Embeddings>>) -> Place {
        Place { embeddings, ..self }
    }

    /// Opens the directory, making it if need be.
    pub fn open(&self, now: Timestamp) -> Result<Memory, MemoryError> {
        self.check(&self.directory)?;
        Ok(Memory::open(&self.directory, now)?.with_embeddings(self.embeddings.clone()))
    }

    /// Opens the directory, if it is there.
    pub fn open_existing(&self, now: Timestamp) -> Result<Option<Memory>, MemoryError> {
        self.check(&self.directory)?;
        let memory = Memory::open_existing(&self.directory, now)?;
        Ok(memory.map(|memory| memory.with_embeddings(self.embeddings.clone())))
    }

    /// Opens those of another program that are there.
    pub fn open_others(&self) -> Result<Vec<Memory>, MemoryError> {
        let mut others = Vec::new();
        for directory in &self.also_read {
            self.check(directory)?;
            others.extend(Memory::open_to_read(directory)?);
        }
        Ok(others)
    }

    fn check(&self, directory: &Path) -> Result<(), MemoryError> {
        let Some(inside) = &self.inside else { return Ok(()) };
        let real = |path: &Path| path.canonicalize().map_err(|error| MemoryError::file("open", path, error));
        let there = directory.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(inside);
        // A link that leads nowhere is no better than one that leads elsewhere.
        let is_inside = there
            .canonicalize()
            .is_ok_and(|there| real(inside).is_ok_and(|inside| there.starts_with(inside)));
        match is_inside {
            true => Ok(()),
            false => {
                Err(MemoryError::NotOurs { path: there.to_owned(), what: "it leads out of the project" })
            }
        }
    }
}
