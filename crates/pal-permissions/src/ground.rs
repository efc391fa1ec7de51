//! What lies where: what permissions know of the machine.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::{SandboxPolicy, SandboxState, Target};

/// What lies where. Folders come with their links followed, or nothing in them is recognised.
pub struct Ground<'a> {
    /// The folders that a session may work in. Relative patterns of rules are meant from the first one.
    pub roots: Vec<PathBuf>,
    /// The user's home, where known: what `~` in rules and commands stands for.
    pub home: Option<PathBuf>,
    /// The session's folder, whose spilled results may be read.
    pub session: PathBuf,
    /// The program's own folder with settings, keys and all sessions: nothing in it is written for a model.
    pub own: Option<PathBuf>,
    /// The folder in which the session keeps memories, if it does: the files in it are read and, by the tools that put them
    /// on record, written without asking.
    pub memory: Option<PathBuf>,
    /// The directory that commands start in.
    pub directory: PathBuf,
    /// Where a path leads that is named in a directory: absolute, links followed as far as it exists.
    pub resolve: &'a dyn Fn(&str, &Path) -> PathBuf,
    /// Whether a path is a folder.
    pub is_folder: &'a dyn Fn(&Path) -> bool,
    /// What may be done without a rule or a person's yes.
    pub sandbox: SandboxPolicy,
}

impl<'a> Ground<'a> {
    /// The same, with nothing held back by the sandbox.
    pub(crate) fn unconfined(&self) -> Ground<'a> {
        Ground {
            roots: self.roots.clone(),
            home: self.home.clone(),
            session: self.session.clone(),
            own: self.own.clone(),
            memory: self.memory.clone(),
            directory: self.directory.clone(),
            resolve: self.resolve,
            is_folder: self.is_folder,
            sandbox: SandboxPolicy { state: SandboxState::Off, ..self.sandbox.clone() },
        }
    }
}

impl Ground<'_> {
    /// A file as it is named in a directory.
    pub(crate) fn target(&self, named: &str, directory: &Path) -> Target {
        let expanded = self.expand_home(named);
        Target {
            real: normal(&(self.resolve)(&expanded, directory)),
            named: directory.join(expanded).display().to_string(),
        }
    }

    /// A name with the home in place of a leading `~`.
    fn expand_home(&self, named: &str) -> String {
        match (&self.home, named.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", home.display())
            }
            // A home that is not known lies nowhere in the project.
            (None, Some(rest)) if rest.is_empty() || rest.starts_with('/') => format!("/~{rest}"),
            _ => String::from(named),
        }
    }

    /// Whether a path lies in a folder that the session works in.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Whether a path lies among what the session put aside.
    pub(crate) fn is_of_session(&self, path: &Path) -> bool {
        self.session.parent().is_some() && path.starts_with(&self.session)
    }

    /// Whether a path is the file of a memory, or the folder of all: what begins with a dot is the history.
    pub(crate) fn is_memory(&self, path: &Path) -> bool {
        let Some(below) = self.memory.as_ref().and_then(|memory| path.strip_prefix(memory).ok()) else {
            return false;
        };
        let mut names = below.components().map(|component| component.as_os_str().to_string_lossy());
        names.next().is_none_or(|name| !name.starts_with('.')) && names.next().is_none()
    }

    /// Whether a path lies in the program's own folder.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.own.as_ref().is_some_and(|own| own.parent().is_some() && path.starts_with(own))
    }

    /// The paths that a rule is compared with to be on the safe side: where the file is, and how it is called.
    pub(crate) fn faces(&self, target: &Target) -> [PathBuf; 2] {
        let called = self.directory.join(self.expand_home(&target.named));
        [target.real.clone(), normal(&called)]
    }
}

impl fmt::Debug for Ground<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Ground");
        shown.field("roots", &self.roots).field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// A path without `.` and `..`, by its text alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
