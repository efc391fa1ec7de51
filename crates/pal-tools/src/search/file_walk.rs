//! Walk over the files below a folder.
//!
//! Ignored and hidden files are left out; links are listed but never followed, so that a search stays where
//! it was allowed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use ignore::types::{Types, TypesBuilder};
use ignore::{DirEntry, WalkBuilder};

use crate::ToolContext;

/// Filter for files.
#[derive(Debug, Default)]
pub(super) struct FileFilter {
    /// Pattern for paths.
    pub(super) pattern: Option<PathGlob>,
    /// File types.
    pub(super) types: Option<Types>,
    /// True to list links, too.
    pub(super) links: bool,
}

/// Glob for paths below a folder.
#[derive(Debug)]
pub(super) struct PathGlob {
    matcher: GlobMatcher,
    is_inverted: bool,
    /// True if it names hidden files.
    names_hidden: bool,
}

impl PathGlob {
    /// Parses a pattern. Without a slash it matches names in any folder; a leading `!` inverts it.
    pub(super) fn new(text: &str) -> Result<PathGlob, String> {
        let (is_inverted, plain) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let plain = plain.trim_start_matches("./");
        let spelled = if plain.contains('/') {
            plain.trim_start_matches('/').to_owned()
        } else {
            format!("**/{plain}")
        };
        let glob = GlobBuilder::new(&spelled).literal_separator(true).build();
        let matcher =
            glob.map_err(|err| format!("The pattern {text} is wrong: {}.", err.kind()))?.compile_matcher();
        let names_hidden = !is_inverted
            && plain.split(['/', '{', ',']).any(|part| part.starts_with('.') && part != "." && part != "..");
        Ok(PathGlob { matcher, is_inverted, names_hidden })
    }

    /// Returns whether a path below the folder matches.
    fn fits(&self, below: &Path) -> bool {
        self.matcher.is_match(below) != self.is_inverted
    }
}

/// File types with this name, such as `rust`.
pub(super) fn types_named(name: &str) -> Result<Types, String> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    let is_known = builder.definitions().iter().any(|known| known.name() == name);
    if !is_known {
        return Err(format!(
            "There is no type of files called {name}. Types are called as in ripgrep: rust, py, js, ts, go, java, c, \
             cpp, md, json …; a `glob` such as *.{name} does the same."
        ));
    }
    builder.select(name);
    builder.build().map_err(|err| err.to_string())
}

/// Matching files below a folder, or the file itself, sorted by path, without those that may not be read.
/// Stops early if cancelled.
pub(super) fn walk_files(root: &Path, wanted: &FileFilter, context: &ToolContext<'_>) -> Vec<PathBuf> {
    let skips_hidden = !wanted.pattern.as_ref().is_some_and(|pattern| pattern.names_hidden);
    let mut builder = WalkBuilder::new(root);
    builder.hidden(skips_hidden).require_git(false).follow_links(false).filter_entry(is_not_git_folder);
    if let Some(types) = &wanted.types {
        builder.types(types.clone());
    }
    let mut found = Vec::new();
    for entry in builder.build() {
        if context.cancel.is_cancelled() {
            break;
        }
        // Unreadable entries are skipped.
        let Ok(entry) = entry else { continue };
        if matches_filter(&entry, root, wanted) && !context.workspace.is_hidden(entry.path()) {
            found.push(entry.into_path());
        }
    }
    found.sort_unstable();
    found
}

/// Returns whether an entry is not a repository's internal folder.
fn is_not_git_folder(entry: &DirEntry) -> bool {
    entry.depth() == 0 || entry.file_name() != ".git"
}

fn matches_filter(entry: &DirEntry, root: &Path, wanted: &FileFilter) -> bool {
    let is_of_kind =
        entry.file_type().is_some_and(|kind| kind.is_file() || wanted.links && kind.is_symlink());
    let below = match entry.path().strip_prefix(root) {
        Ok(below) if !below.as_os_str().is_empty() => below,
        // The root is a single file.
        _ => Path::new(entry.file_name()),
    };
    is_of_kind && wanted.pattern.as_ref().is_none_or(|pattern| pattern.fits(below))
}

/// Sorts files by modification time, newest first.
pub(super) fn newest_first<T>(files: Vec<(PathBuf, T)>) -> Vec<(PathBuf, T)> {
    let changed = |path: &Path| {
        path.symlink_metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut dated: Vec<_> = files.into_iter().map(|(path, what)| (changed(&path), path, what)).collect();
    dated.sort_by(|(a_time, a_path, _), (b_time, b_path, _)| {
        b_time.cmp(a_time).then_with(|| a_path.cmp(b_path))
    });
    dated.into_iter().map(|(_, path, what)| (path, what)).collect()
}
