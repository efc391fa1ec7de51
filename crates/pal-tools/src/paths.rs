//! Paths: what a model writes, and where that really is.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// Links that are followed before a path counts as one that leads in circles.
const LINKS_MAX: usize = 40;

/// A path with `~` spelled out and made absolute; links, `.` and `..` are still in it.
pub(crate) fn spelled_out(named: &str, directory: &Path, home: Option<&Path>) -> PathBuf {
    let at_home = named.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (at_home, home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => directory.join(named),
    }
}

/// Where an absolute path really is: links followed in every part that exists, also those that lead to nothing yet, and
/// nothing of `.` and `..` left. A `..` is taken where the links before it lead, as the system does.
pub(crate) fn real(path: &Path) -> PathBuf {
    let mut ahead: VecDeque<Step> = steps(path).collect();
    let mut so_far = PathBuf::new();
    let mut links = 0;
    while let Some(step) = ahead.pop_front() {
        match step {
            Step::Root(root) => so_far.push(root),
            Step::Up => {
                so_far.pop();
            }
            Step::Down(name) => {
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

/// The path with the part that exists spelled as the disk spells it, where capital and small letters are the same.
fn as_on_disk(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let (Ok(spelled), Ok(rest)) = (existing.canonicalize(), path.strip_prefix(existing)) {
            return if rest.as_os_str().is_empty() { spelled } else { spelled.join(rest) };
        }
    }
    path.to_owned()
}

enum Step {
    Root(OsString),
    Up,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::Prefix(prefix) => Some(Step::Root(prefix.as_os_str().to_owned())),
        Component::RootDir => Some(Step::Root(component.as_os_str().to_owned())),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    })
}

/// What went wrong with a file, in words for the model.
pub(crate) fn trouble(named: &str, err: &io::Error) -> String {
    match err.kind() {
        io::ErrorKind::NotFound => format!("{named} does not exist."),
        io::ErrorKind::PermissionDenied => format!("{named}: the system does not let this program do that."),
        _ => format!("{named}: {err}."),
    }
}
