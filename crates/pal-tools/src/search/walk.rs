//! The files below a folder that a search looks at.
//!
//! What the repository ignores and what is hidden is left out; links are listed where they stand and never followed, so
//! that a search stays where it was allowed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{GlobBuilder, GlobMatcher};
use ignore::types::{Types, TypesBuilder};
use ignore::{DirEntry, WalkBuilder};

use crate::Running;

/// Which files are wanted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Only those whose paths fit this pattern.
    pub(super) pattern: Option<Pattern>,
    /// Only those of these types.
    pub(super) types: Option<Types>,
    /// Whether links are listed, too.
    pub(super) links: bool,
}

/// A pattern of paths below a folder.
#[derive(Debug)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    is_inverted: bool,
    /// Whether it asks for hidden files.
    names_hidden: bool,
}

impl Pattern {
    /// Reads a pattern. Without a slash it is about names, wherever the file is; a `!` before it turns it round.
    pub(super) fn new(text: &str) -> Result<Pattern, String> {
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
        Ok(Pattern { matcher, is_inverted, names_hidden })
    }

    /// Whether a path below the folder fits.
    fn fits(&self, below: &Path) -> bool {
        self.matcher.is_match(below) != self.is_inverted
    }
}

/// The types of files with this name, such as `rust`.
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

/// The wanted files below a folder, or the file itself, by path, without those that may not be looked at. Stops in the
/// middle if it is cancelled.
pub(super) fn files(root: &Path, wanted: &Wanted, running: &Running<'_>) -> Vec<PathBuf> {
    let skips_hidden = !wanted.pattern.as_ref().is_some_and(|pattern| pattern.names_hidden);
    let mut builder = WalkBuilder::new(root);
    builder.hidden(skips_hidden).require_git(false).follow_links(false).filter_entry(is_no_repository);
    if let Some(types) = &wanted.types {
        builder.types(types.clone());
    }
    let mut found = Vec::new();
    for entry in builder.build() {
        if running.cancel.is_cancelled() {
            break;
        }
        // What cannot be looked into is not there, as for any other search.
        let Ok(entry) = entry else { continue };
        if is_wanted(&entry, root, wanted) && !running.workspace.is_hidden(entry.path()) {
            found.push(entry.into_path());
        }
    }
    found.sort_unstable();
    found
}

/// The insides of a repository are nobody's files.
fn is_no_repository(entry: &DirEntry) -> bool {
    entry.depth() == 0 || entry.file_name() != ".git"
}

fn is_wanted(entry: &DirEntry, root: &Path, wanted: &Wanted) -> bool {
    let is_of_kind =
        entry.file_type().is_some_and(|kind| kind.is_file() || wanted.links && kind.is_symlink());
    let below = match entry.path().strip_prefix(root) {
        Ok(below) if !below.as_os_str().is_empty() => below,
        // The file that was named itself.
        _ => Path::new(entry.file_name()),
    };
    is_of_kind && wanted.pattern.as_ref().is_none_or(|pattern| pattern.fits(below))
}

/// The files with the last change of each, the newest first.
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
