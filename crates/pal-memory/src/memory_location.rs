//! Locations of memories: one directory per project, and one per agent in three scopes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pal_model::Timestamp;
use pal_store::project_directory;

use crate::embedding_model::EmbeddingModel;
use crate::error::MemoryError;
use crate::memory_store::{MemoryStore, check_slug};

/// Reach of an agent's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryScope {
    /// All projects of the user.
    User,
    /// One project, shared through its repository.
    Project,
    /// One project, on this machine only.
    Local,
}

impl MemoryScope {
    /// Parses a scope.
    pub fn from_name(name: &str) -> Option<MemoryScope> {
        match name.trim() {
            "user" => Some(MemoryScope::User),
            "project" => Some(MemoryScope::Project),
            "local" => Some(MemoryScope::Local),
            _ => None,
        }
    }
}

/// Directories of a memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryLocation {
    /// Directory that is written.
    pub directory: PathBuf,
    /// Directories of other programs that are also read.
    pub read_only_directories: Vec<PathBuf>,
    /// Directory that must contain all of it, after resolving links: a repository must not redirect us.
    inside: Option<PathBuf>,
    /// Model for semantic search.
    pub embeddings: Option<Arc<EmbeddingModel>>,
}

impl MemoryLocation {
    /// Memory of a project. `project` is the path that its worktrees share.
    pub fn of_project(home: &Path, project: &Path) -> MemoryLocation {
        MemoryLocation {
            directory: project_directory(home, project).join("memory"),
            read_only_directories: Vec::new(),
            inside: None,
            embeddings: None,
        }
    }

    /// Memory of an agent in a scope; `root` is the project's root, `user_home` the user's home.
    pub fn of_agent(
        name: &str,
        scope: MemoryScope,
        home: &Path,
        user_home: Option<&Path>,
        root: &Path,
    ) -> Result<MemoryLocation, MemoryError> {
        match scope {
            MemoryScope::User => MemoryLocation::of_agent_of_user(name, home, user_home),
            MemoryScope::Project => MemoryLocation::of_agent_in_project(name, root, false),
            MemoryScope::Local => MemoryLocation::of_agent_in_project(name, root, true),
        }
    }

    /// Memory of an agent across all projects.
    fn of_agent_of_user(
        name: &str,
        home: &Path,
        user_home: Option<&Path>,
    ) -> Result<MemoryLocation, MemoryError> {
        check_slug(name)?;
        Ok(MemoryLocation {
            directory: home.join("agents").join(name).join("memory"),
            read_only_directories: user_home
                .map(|home| home.join(".claude/agent-memory").join(name))
                .into_iter()
                .collect(),
            inside: None,
            embeddings: None,
        })
    }

    /// Memory of an agent for the project at `root`.
    pub(crate) fn of_agent_in_project(
        name: &str,
        root: &Path,
        is_local: bool,
    ) -> Result<MemoryLocation, MemoryError> {
        check_slug(name)?;
        let folder = if is_local { "agent-memory-local" } else { "agent-memory" };
        Ok(MemoryLocation {
            directory: root.join(".pal").join(folder).join(name),
            read_only_directories: vec![root.join(".claude").join(folder).join(name)],
            inside: Some(root.to_owned()),
            embeddings: None,
        })
    }

    /// Sets the model for semantic search.
    pub fn with_embeddings(self, embeddings: Option<Arc<EmbeddingModel>>) -> MemoryLocation {
        MemoryLocation { embeddings, ..self }
    }

    /// Opens the directory, creating it if needed.
    pub fn open(&self, now: Timestamp) -> Result<MemoryStore, MemoryError> {
        self.check(&self.directory)?;
        Ok(MemoryStore::open(&self.directory, now)?.with_embeddings(self.embeddings.clone()))
    }

    /// Opens the directory, if it exists.
    pub fn open_existing(&self, now: Timestamp) -> Result<Option<MemoryStore>, MemoryError> {
        self.check(&self.directory)?;
        let memory = MemoryStore::open_existing(&self.directory, now)?;
        Ok(memory.map(|memory| memory.with_embeddings(self.embeddings.clone())))
    }

    /// Opens the existing directories of other programs.
    pub fn open_read_only(&self) -> Result<Vec<MemoryStore>, MemoryError> {
        let mut others = Vec::new();
        for directory in &self.read_only_directories {
            self.check(directory)?;
            others.extend(MemoryStore::open_to_read(directory)?);
        }
        Ok(others)
    }

    fn check(&self, directory: &Path) -> Result<(), MemoryError> {
        let Some(inside) = &self.inside else { return Ok(()) };
        let real = |path: &Path| path.canonicalize().map_err(|error| MemoryError::file("open", path, error));
        let there = directory.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(inside);
        // A dangling link is refused as well.
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
