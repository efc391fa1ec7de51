//! Paths and settings that a permission check depends on.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use crate::{SandboxLimits, SandboxState, TargetPath};

/// Paths and settings that a permission check depends on. Folders must have their links resolved, or nothing
/// in them is recognized.
pub struct PermissionContext<'a> {
    /// Folders that the session works in. Relative rule patterns start at the first one.
    pub roots: Vec<PathBuf>,
    /// Home directory, if known: expansion of `~` in rules and commands.
    pub home: Option<PathBuf>,
    /// Session folder; spilled results in it may be read.
    pub session: PathBuf,
    /// Application folder with settings, keys and all sessions. The model may never write to it.
    pub own: Option<PathBuf>,
    /// Memory folder, if the session has one. Files in it may be read, and written by the tools that record
    /// changes, without asking.
    pub memory: Option<PathBuf>,
    /// Working directory of commands.
    pub directory: PathBuf,
    /// Resolves a path against a directory: absolute, links followed as far as the path exists.
    pub resolve: &'a dyn Fn(&str, &Path) -> PathBuf,
    /// Returns whether a path is a folder.
    pub is_folder: &'a dyn Fn(&Path) -> bool,
    /// Permissions that need neither a rule nor a confirmation.
    pub sandbox: SandboxLimits,
}

impl<'a> PermissionContext<'a> {
    /// Copy with the sandbox switched off.
    pub(crate) fn unconfined(&self) -> PermissionContext<'a> {
        PermissionContext {
            roots: self.roots.clone(),
            home: self.home.clone(),
            session: self.session.clone(),
            own: self.own.clone(),
            memory: self.memory.clone(),
            directory: self.directory.clone(),
            resolve: self.resolve,
            is_folder: self.is_folder,
            sandbox: SandboxLimits { state: SandboxState::Off, ..self.sandbox.clone() },
        }
    }
}

impl PermissionContext<'_> {
    /// Resolves a file name in a directory.
    pub(crate) fn target(&self, named: &str, directory: &Path) -> TargetPath {
        let expanded = self.expand_home(named);
        TargetPath {
            real: normalize(&(self.resolve)(&expanded, directory)),
            named: directory.join(expanded).display().to_string(),
        }
    }

    /// Expands a leading `~`.
    fn expand_home(&self, named: &str) -> String {
        match (&self.home, named.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                format!("{}{rest}", home.display())
            }
            // An unknown home is outside the project.
            (None, Some(rest)) if rest.is_empty() || rest.starts_with('/') => format!("/~{rest}"),
            _ => String::from(named),
        }
    }

    /// Returns whether a path is inside a root.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Returns whether a path is in the session folder.
    pub(crate) fn is_of_session(&self, path: &Path) -> bool {
        self.session.parent().is_some() && path.starts_with(&self.session)
    }

    /// Returns whether a path is a memory file or the memory folder. Names with a leading dot are history and
    /// do not count.
    pub(crate) fn is_memory(&self, path: &Path) -> bool {
        let Some(below) = self.memory.as_ref().and_then(|memory| path.strip_prefix(memory).ok()) else {
            return false;
        };
        let mut names = below.components().map(|component| component.as_os_str().to_string_lossy());
        names.next().is_none_or(|name| !name.starts_with('.')) && names.next().is_none()
    }

    /// Returns whether a path is in the application folder.
    pub(crate) fn is_own(&self, path: &Path) -> bool {
        self.own.as_ref().is_some_and(|own| own.parent().is_some() && path.starts_with(own))
    }

    /// Paths that restrictive rules are compared with: the real path and the path as named.
    pub(crate) fn rule_paths(&self, target: &TargetPath) -> [PathBuf; 2] {
        let called = self.directory.join(self.expand_home(&target.named));
        [target.real.clone(), normalize(&called)]
    }
}

impl fmt::Debug for PermissionContext<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("PermissionContext");
        shown.field("roots", &self.roots).field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Removes `.` and `..` lexically.
pub(crate) fn normalize(path: &Path) -> PathBuf {
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
