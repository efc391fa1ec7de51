//! Identity of the project that a directory belongs to. Sessions and memories are stored by it.

use std::path::{Path, PathBuf};

use crate::project_bounds::{find_repository, resolve_links};
use crate::text_reader::read_text;

/// The project that a directory belongs to: the top of its repository, the same for all its worktrees; without a repository,
/// the directory itself. All links are followed.
///
/// A worktree says itself whose it is, so anybody could write that down in a folder that they hand out. It is believed only
/// if the repository says the same.
pub fn find_project(directory: &Path) -> PathBuf {
    let directory = resolve_links(directory);
    match find_repository(&directory) {
        Some(top) => repository_of_worktree(&top).unwrap_or(top),
        None => directory,
    }
}

/// The top of the repository that a worktree belongs to; for a bare repository, the repository itself. None if the directory
/// is no worktree: most repositories are the only one, and a submodule is a project of its own.
fn repository_of_worktree(top: &Path) -> Option<PathBuf> {
    let link = top.join(".git");
    let administrative = read_linked_path(&link, Some("gitdir:"), top)?;
    let common = read_linked_path(&administrative.join("commondir"), None, &administrative)?;
    let back = read_linked_path(&administrative.join("gitdir"), None, &administrative)?;
    let is_its_own = administrative.parent().is_some_and(|parent| parent == common.join("worktrees"));
    if back != link.canonicalize().ok()? || !is_its_own {
        return None;
    }
    match common.file_name().is_some_and(|name| name == ".git") {
        true => common.parent().map(Path::to_owned),
        false => Some(common),
    }
}

/// The place that a file of git names in its only line, from `base`; none if there is no such place.
fn read_linked_path(file: &Path, label: Option<&str>, base: &Path) -> Option<PathBuf> {
    if !file.is_file() {
        return None;
    }
    let text = read_text(file).ok()?;
    let line = text.trim_end_matches(['\n', '\r']);
    let named = match label {
        Some(label) => line.strip_prefix(label)?.trim_start(),
        None => line,
    };
    base.join(named).canonicalize().ok()
}
