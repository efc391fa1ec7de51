//! Path patterns of rules.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::RuleError;
use crate::PermissionContext;

/// Path pattern: a base directory and a glob below it.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    base: PatternBase,
    /// Pattern text below the base.
    below: String,
    exact: GlobMatcher,
    /// The same glob, ignoring case.
    loose: GlobMatcher,
    /// Folder itself, exact and ignoring case, for a pattern that ends with `/**`.
    folder: Option<(GlobMatcher, GlobMatcher)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PatternBase {
    Project,
    Home,
    FileSystem,
}

impl PathPattern {
    pub(super) fn parse(rule: &str, inside: &str) -> Result<PathPattern, RuleError> {
        let (base, below) = if inside == "~" {
            (PatternBase::Home, "**")
        } else if let Some(below) = inside.strip_prefix("~/") {
            (PatternBase::Home, below)
        } else if inside.starts_with('/') {
            (PatternBase::FileSystem, inside.trim_start_matches('/'))
        } else {
            (PatternBase::Project, inside)
        };
        let mut pieces: Vec<&str> = below.split('/').filter(|piece| !matches!(*piece, "" | ".")).collect();
        if pieces.contains(&"..") {
            return Err(RuleError::parent(rule));
        }
        if inside.ends_with('/') || pieces.is_empty() {
            pieces.push("**");
        }
        let below = pieces.join("/");
        let folder = match below.strip_suffix("/**") {
            Some(folder) => Some((matcher(rule, folder, false)?, matcher(rule, folder, true)?)),
            None => None,
        };
        let (exact, loose) = (matcher(rule, &below, false)?, matcher(rule, &below, true)?);
        Ok(PathPattern { base, below, exact, loose, folder })
    }

    /// Returns whether a path matches exactly.
    pub(crate) fn covers(&self, path: &Path, context: &PermissionContext<'_>) -> bool {
        let Some(below) = self.base(context).and_then(|base| path.strip_prefix(base).ok()) else {
            return false;
        };
        let is_folder = self.folder.as_ref().is_some_and(|(exact, _)| exact.is_match(below));
        self.exact.is_match(below) || is_folder
    }

    /// Matches restrictively: ignoring case, including everything below a matching folder and, for a bare
    /// name, in any folder.
    pub(crate) fn matches_restrictively(&self, path: &Path, context: &PermissionContext<'_>) -> bool {
        let Some(base) = self.base(context) else { return false };
        let Some(below) = strip_loosely(path, &base) else { return false };
        let is_meant = |path: &Path| {
            let is_folder = self.folder.as_ref().is_some_and(|(_, loose)| loose.is_match(path));
            self.loose.is_match(path) || is_folder
        };
        if below.ancestors().any(|part| (part != Path::new("") || self.below == "**") && is_meant(part)) {
            return true;
        }
        let is_name = !self.below.contains('/');
        is_name && below.components().any(|name| is_meant(Path::new(name.as_os_str())))
    }

    /// Returns whether the pattern may match something in a folder.
    pub(crate) fn reaches_into(&self, folder: &Path, context: &PermissionContext<'_>) -> bool {
        let Some(base) = self.base(context) else { return false };
        let fixed = self.below.split('/').take_while(|piece| !piece.contains(['*', '?', '[', '{', '\\']));
        // The last piece is the file itself, and a bare name matches in any folder.
        let n_fixed = fixed.count().min(self.below.split('/').count() - 1);
        let start = self.below.split('/').take(n_fixed).fold(base, |path, piece| path.join(piece));
        strip_loosely(&start, folder).is_some() || strip_loosely(folder, &start).is_some()
    }

    /// Returns whether it matches only hidden files or folders.
    pub(crate) fn is_hidden(&self) -> bool {
        self.below.split('/').any(|piece| piece.starts_with('.'))
    }

    /// Returns whether it names a path component, not by wildcards alone.
    pub(crate) fn names(&self, part: &str) -> bool {
        self.below.split('/').any(|piece| {
            let is_star = piece.chars().all(|character| "*?.".contains(character));
            let glob = GlobBuilder::new(piece).case_insensitive(true).build();
            !is_star && glob.is_ok_and(|glob| glob.compile_matcher().is_match(part))
        })
    }

    fn base(&self, context: &PermissionContext<'_>) -> Option<PathBuf> {
        match self.base {
            PatternBase::Project => context.roots.first().cloned(),
            PatternBase::Home => context.home.clone(),
            PatternBase::FileSystem => Some(PathBuf::from("/")),
        }
    }
}

fn matcher(rule: &str, glob: &str, is_loose: bool) -> Result<GlobMatcher, RuleError> {
    let built = GlobBuilder::new(glob).literal_separator(true).case_insensitive(is_loose).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| RuleError::glob(rule, &error.kind().to_string()))
}

/// Strips a base from a path, ignoring case.
fn strip_loosely(path: &Path, base: &Path) -> Option<PathBuf> {
    let mut left = path.components();
    for wanted in base.components() {
        let found = left.next()?;
        let lower = |component: Component<'_>| component.as_os_str().to_string_lossy().to_lowercase();
        if lower(found) != lower(wanted) {
            return None;
        }
    }
    Some(left.as_path().to_owned())
}
