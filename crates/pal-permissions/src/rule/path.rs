//! Patterns of paths.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::RuleError;
use crate::Ground;

/// A pattern of paths: where it begins, and what lies below.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    base: Base,
    /// What is written below the base.
    below: String,
    exact: GlobMatcher,
    /// The same, whatever the capital letters.
    loose: GlobMatcher,
    /// The folder that a pattern with `/**` at its end is about.
    folder: Option<(GlobMatcher, GlobMatcher)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    Root,
    Home,
    Top,
}

impl PathPattern {
    pub(super) fn parse(rule: &str, inside: &str) -> Result<PathPattern, RuleError> {
        let (base, below) = if inside == "~" {
            (Base::Home, "**")
        } else if let Some(below) = inside.strip_prefix("~/") {
            (Base::Home, below)
        } else if inside.starts_with('/') {
            (Base::Top, inside.trim_start_matches('/'))
        } else {
            (Base::Root, inside)
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

    /// Whether a path is meant.
    pub(crate) fn covers(&self, path: &Path, ground: &Ground<'_>) -> bool {
        let Some(below) = self.base(ground).and_then(|base| path.strip_prefix(base).ok()) else {
            return false;
        };
        let is_folder = self.folder.as_ref().is_some_and(|(exact, _)| exact.is_match(below));
        self.exact.is_match(below) || is_folder
    }

    /// Whether a path may be meant, on the safe side: whatever the capital letters; what lies in a folder that is meant;
    /// and, if the pattern is a mere name, in any folder.
    pub(crate) fn suspects(&self, path: &Path, ground: &Ground<'_>) -> bool {
        let Some(base) = self.base(ground) else { return false };
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

    /// Whether something in a folder may be meant.
    pub(crate) fn reaches_into(&self, folder: &Path, ground: &Ground<'_>) -> bool {
        let Some(base) = self.base(ground) else { return false };
        let fixed = self.below.split('/').take_while(|piece| !piece.contains(['*', '?', '[', '{', '\\']));
        // The last piece is the file itself, and a mere name may lie in any folder.
        let n_fixed = fixed.count().min(self.below.split('/').count() - 1);
        let start = self.below.split('/').take(n_fixed).fold(base, |path, piece| path.join(piece));
        strip_loosely(&start, folder).is_some() || strip_loosely(folder, &start).is_some()
    }

    /// Whether it is only about files or folders whose name begins with a dot.
    pub(crate) fn is_hidden(&self) -> bool {
        self.below.split('/').any(|piece| piece.starts_with('.'))
    }

    /// Whether it names a part of a path, not by stars alone.
    pub(crate) fn names(&self, part: &str) -> bool {
        self.below.split('/').any(|piece| {
            let is_star = piece.chars().all(|character| "*?.".contains(character));
            let glob = GlobBuilder::new(piece).case_insensitive(true).build();
            !is_star && glob.is_ok_and(|glob| glob.compile_matcher().is_match(part))
        })
    }

    fn base(&self, ground: &Ground<'_>) -> Option<PathBuf> {
        match self.base {
            Base::Root => ground.roots.first().cloned(),
            Base::Home => ground.home.clone(),
            Base::Top => Some(PathBuf::from("/")),
        }
    }
}

fn matcher(rule: &str, glob: &str, is_loose: bool) -> Result<GlobMatcher, RuleError> {
    let built = GlobBuilder::new(glob).literal_separator(true).case_insensitive(is_loose).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| RuleError::glob(rule, &error.kind().to_string()))
}

/// What of a path lies below another, whatever the capital letters.
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
