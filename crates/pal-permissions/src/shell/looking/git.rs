//! Commands of git that only look.
//!
//! Git takes its settings, and with them programs to run, from the folder that it is started in: a folder inside a
//! project may be a repository that somebody else made. So these commands only look where a session may start.

use super::{Operand, OperandKind, operand};
use crate::shell::hatch::{is_letter_of, is_short_for};

/// Commands that look, whatever they are given but for the options below.
const VIEWERS: [&str; 26] = [
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "rev-list",
    "ls-files",
    "ls-tree",
    "blame",
    "describe",
    "shortlog",
    "merge-base",
    "name-rev",
    "show-ref",
    "for-each-ref",
    "count-objects",
    "diff-tree",
    "diff-index",
    "diff-files",
    "grep",
    "whatchanged",
    "check-ignore",
    "cat-file",
    "cherry",
    "range-diff",
    "show-branch",
];

const REFUSED: [&str; 12] = [
    "output",
    "ext-diff",
    "textconv",
    "filters",
    "no-index",
    "open-files-in-pager",
    "show-signature",
    "contents",
    "exec",
    "upload-pack",
    "parseopt",
    "sq-quote",
];

const LISTING: [&str; 18] = [
    "-a",
    "-r",
    "-v",
    "-vv",
    "-av",
    "-avv",
    "-l",
    "-n",
    "--all",
    "--list",
    "--remotes",
    "--verbose",
    "--show-current",
    "--contains",
    "--no-contains",
    "--merged",
    "--no-merged",
    "--points-at",
];

/// With one of these, names are what is looked for and not what is made.
const LOOKING_FOR: [&str; 4] = ["--list", "--contains", "--merged", "--no-merged"];

pub(super) fn look(texts: &[&str]) -> Option<Vec<Operand>> {
    let texts = texts.strip_prefix(&["--no-pager"]).unwrap_or(texts);
    let root = operand(".", OperandKind::Root);
    let (command, rest) = texts.split_first()?;
    match (*command, rest) {
        ("--version" | "version", []) => Some(Vec::new()),
        ("branch" | "tag", rest) => lists(rest).then(|| vec![root]),
        ("remote", [] | ["-v"] | ["get-url", _])
        | ("stash", ["list", ..])
        | ("worktree", ["list", ..])
        | ("reflog", [] | ["show", ..])
        | ("config", ["--get", _]) => {
            (!rest.iter().any(|text| is_refused(command, text))).then(|| vec![root])
        }
        (command, rest) if VIEWERS.contains(&command) => {
            if rest.iter().any(|text| is_refused(command, text)) {
                return None;
            }
            let mut operands = vec![root];
            operands.extend(rest.iter().filter(|text| !text.starts_with('-')).flat_map(|text| content(text)));
            Some(operands)
        }
        _ => None,
    }
}

fn is_refused(command: &str, text: &str) -> bool {
    let letters = match command {
        "grep" => "Of",
        "blame" => "S",
        "log" | "show" | "diff" | "whatchanged" => "O",
        _ => "",
    };
    is_letter_of(text, letters) || REFUSED.iter().any(|long| is_short_for(text, long))
}

/// A file or a revision, or both as in `HEAD:file`.
fn content(text: &str) -> Vec<Operand> {
    let mut names = vec![text];
    names.extend(text.split_once(':').map(|(_, path)| path).filter(|path| !path.is_empty()));
    names.into_iter().map(|name| operand(name, OperandKind::Content)).collect()
}

/// Whether branches or tags are listed, not made, moved or deleted.
fn lists(rest: &[&str]) -> bool {
    let is_looked_for = rest.iter().any(|text| LOOKING_FOR.contains(text));
    rest.iter().all(|text| match text.strip_prefix("--").and_then(|option| option.split_once('=')) {
        Some((option, _)) => {
            ["sort", "format", "contains", "merged", "points-at", "color", "column"].contains(&option)
        }
        None => LISTING.contains(text) || (is_looked_for && !text.starts_with('-')),
    })
}
