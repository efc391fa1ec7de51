//! Resolution of paths that a model names.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// Maximum links followed before a path counts as circular.
const LINKS_MAX: usize = 40;

/// Expands `~` and makes a path absolute; links, `.` and `..` stay.
pub(crate) fn expand_path(named: &str, directory: &Path, home: Option<&Path>) -> PathBuf {
    let at_home = named.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (at_home, home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => directory.join(named),
    }
}

/// Resolves an absolute path: follows links in all existing components, including dangling ones, and removes
/// `.` and `..`. A `..` applies after the links before it, as in the system.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    let mut ahead: VecDeque<PathStep> = steps(path).collect();
    let mut so_far = PathBuf::new();
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        match step {
            PathStep::Root(root) => so_far.push(root),
            PathStep::Up => {
                so_far.pop();
            }
            PathStep::Down(name) => {
                let next = so_far.join(name);
                match fs::read_link(&next) {
                    Ok(target) if links < LINKS_MAX => {
                        links += 1;
                        steps(&target).rev().for_each(|step| ahead.push_front(step));
                    }
                    _ => so_far = next,
                }
            }
        }
    }
    as_on_disk(&so_far)
}

/// Spells the existing part of a path as the disk does, for file systems that ignore case.
fn as_on_disk(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let (Ok(spelled), Ok(rest)) = (existing.canonicalize(), path.strip_prefix(existing)) {
            return if rest.as_os_str().is_empty() { spelled } else { spelled.join(rest) };
        }
    }
    path.to_owned()
}

enum PathStep {
    Root(OsString),
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = PathStep> {
    path.components().filter_map(|component| match component {
        Component::Prefix(prefix) => Some(PathStep::Root(prefix.as_os_str().to_owned())),
        Component::RootDir => Some(PathStep::Root(component.as_os_str().to_owned())),
        Component::CurDir => None,
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
    })
}

/// Describes a file error for the model.
pub(crate) fn describe_io_error(named: &str, err: &io::Error) -> String {
    match err.kind() {
        io::ErrorKind::NotFound => format!("{named} does not exist."),
        io::ErrorKind::PermissionDenied => format!("{named}: the system does not let this program do that."),
        _ => format!("{named}: {err}."),
    }
}
