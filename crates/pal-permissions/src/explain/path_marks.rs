//! Marks for paths in a command or a file tool call.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{CommandMark, CommandMarkKind, reveal};
use crate::sensitive_paths::{credential, protected};
use crate::{PermissionContext, TargetPath};

/// Devices that discard or pass on what is written to them.
const STREAMS: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/urandom"];

/// Directories of system programs; a command named by a path in one of them gets no mark.
const PROGRAM_DIRECTORIES: [&str; 6] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// Returns whether a command name is the path of a system program.
pub(super) fn is_system_program(named: &str) -> bool {
    Path::new(named)
        .parent()
        .is_some_and(|parent| PROGRAM_DIRECTORIES.iter().any(|directory| parent == Path::new(directory)))
}

/// Marks for the file that a tool reads or writes.
pub(super) fn marks_of_target(
    target: &TargetPath,
    is_write: bool,
    context: &PermissionContext<'_>,
) -> Vec<CommandMark> {
    let reasons = reasons(&target.named, std::slice::from_ref(target), is_write, context);
    let range = 0..target.named.len();
    reasons.into_iter().map(|(kind, sentence)| CommandMark { range: range.clone(), kind, sentence }).collect()
}

/// Marks for a path in a command that may run in several directories.
pub(super) fn reasons_of_word(
    named: &str,
    directories: &[PathBuf],
    is_write: bool,
    context: &PermissionContext<'_>,
) -> Vec<(CommandMarkKind, String)> {
    let targets: Vec<TargetPath> =
        directories.iter().map(|directory| context.target(named, directory)).collect();
    reasons(named, &targets, is_write, context)
}

fn reasons(
    named: &str,
    targets: &[TargetPath],
    is_write: bool,
    context: &PermissionContext<'_>,
) -> Vec<(CommandMarkKind, String)> {
    let mut reasons = Vec::new();
    let shown = reveal(named);
    let is_stream = |target: &TargetPath| STREAMS.iter().any(|stream| target.real == Path::new(stream));
    let targets: Vec<&TargetPath> = targets.iter().filter(|target| !is_stream(target)).collect();
    let faces = |target: &TargetPath| {
        let [real, called] = context.rule_paths(target);
        [below(&real, context), below(&called, context)]
    };
    let is_memory = |target: &TargetPath| context.is_memory(&target.real);
    let secret = targets
        .iter()
        .filter(|target| !is_memory(target))
        .find_map(|target| faces(target).iter().find_map(|path| credential(path)));
    if let Some(name) = secret {
        let sentence = format!("`{shown}` may hold credentials (`{}`)", reveal(&name));
        reasons.push((CommandMarkKind::CredentialPath, sentence));
    }
    let guarded = targets.iter().find_map(|target| faces(target).iter().find_map(|path| protected(path)));
    if let Some(name) = guarded.filter(|_| is_write) {
        let sentence = format!("changing `{shown}` may change what programs run (`{}`)", reveal(&name));
        reasons.push((CommandMarkKind::GuardedPath, sentence));
    }
    let is_own = |target: &&&TargetPath| {
        context.is_own(&target.real) && !context.is_of_session(&target.real) && !is_memory(target)
    };
    if let Some(target) = targets.iter().find(is_own) {
        let sentence = format!("`{shown}` belongs to the program itself ({})", path_text(&target.real));
        reasons.push((CommandMarkKind::GuardedPath, sentence));
    }
    let is_outside = |target: &&&TargetPath| {
        !context.is_inside(&target.real) && !context.is_of_session(&target.real) && !is_memory(target)
    };
    if let Some(target) = targets.iter().find(is_outside) {
        let real = path_text(&target.real);
        let sentence = match real == shown {
            true => format!("`{shown}` is outside the project"),
            false => format!("`{shown}` is outside the project ({real})"),
        };
        reasons.push((CommandMarkKind::OutsidePath, sentence));
    }
    reasons
}

fn path_text(path: &Path) -> String {
    reveal(&path.display().to_string())
}

/// Path relative to the root that contains it.
fn below(path: &Path, context: &PermissionContext<'_>) -> PathBuf {
    let rests = context.roots.iter().filter_map(|root| path.strip_prefix(root).ok());
    rests.min_by_key(|rest| rest.as_os_str().len()).unwrap_or(path).to_owned()
}

/// Range of the decoded text of a word that may be a path.
pub(super) fn path_candidate(text: &str) -> Option<Range<usize>> {
    let end = text.len();
    if text.contains("://") || text.chars().any(char::is_whitespace) || text.is_empty() {
        return None;
    }
    let value = text.find('=').map(|at| at + 1);
    if text.starts_with('-') {
        // The value of a single letter may be joined to it: `-C/etc`.
        let joined = text.char_indices().nth(2).map(|(at, _)| at);
        let is_path = |at: &usize| text[*at..].starts_with(['/', '~', '.']);
        return value.or_else(|| joined.filter(is_path)).map(|start| start..end);
    }
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let is_setting = |start: &usize| text[..start - 1].chars().all(is_name);
    Some(value.filter(is_setting).unwrap_or(0)..end)
}

/// Returns whether a text is written as a path rather than a bare name.
pub(super) fn is_written_as_path(text: &str) -> bool {
    text.starts_with(['/', '~', '.']) || text.contains('/')
}
