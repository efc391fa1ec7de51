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

/// Options that run programs, write files, or read files that git does not know.
const REFUSED: [&str; 18] = [
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
    "untracked",
    "no-exclude-standard",
    "exclude-from",
    "exclude-per-directory",
    "ignore-revs-file",
    "pathspec-from-file",
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
            let end = rest.iter().position(|text| *text == "--").unwrap_or(rest.len());
            for (idx, text) in rest.iter().enumerate() {
                let is_option = idx <= end && text.starts_with('-');
                match text.strip_prefix("-L").and_then(|lines| lines.rsplit_once(':')) {
                    Some((_, file)) if is_option => operands.push(operand(file, OperandKind::Content)),
                    _ if is_option => {}
                    _ => operands.extend(content(text)),
                }
            }
            Some(operands)
        }
        _ => None,
    }
}

fn is_refused(command: &str, text: &str) -> bool {
    let letters = match command {
        "grep" => "Of",
        "blame" => "S",
        "ls-files" => "X",
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

/// Options with which commits are listed and nothing in files is shown.
const OF_LISTS: [&str; 37] = [
    "oneline",
    "graph",
    "all",
    "decorate",
    "no-decorate",
    "format",
    "pretty",
    "since",
    "until",
    "after",
    "before",
    "author",
    "committer",
    "grep",
    "stat",
    "name-only",
    "name-status",
    "numstat",
    "shortstat",
    "summary",
    "dirstat",
    "no-merges",
    "merges",
    "follow",
    "reverse",
    "date",
    "abbrev-commit",
    "first-parent",
    "topo-order",
    "max-count",
    "skip",
    "color",
    "no-color",
    "no-patch",
    "quiet",
    "branches",
    "tags",
];

/// Options that say how much changed instead of what.
const SUMMARIES: [&str; 8] =
    ["stat", "name-only", "name-status", "numstat", "shortstat", "summary", "dirstat", "no-patch"];

/// What of its files a command of git shows, whichever they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shown<'a> {
    Nothing,
    /// What lies at these paths.
    Below(Vec<&'a str>),
    Anything,
}

/// What of its files a command of git shows; its words without the name.
pub(crate) fn shown<'a>(texts: &[&'a str]) -> Shown<'a> {
    let mut texts = texts;
    let mut is_elsewhere = false;
    while let Some((option, rest)) = texts.split_first().filter(|(text, _)| text.starts_with('-')) {
        is_elsewhere |= *option != "--no-pager";
        let has_value = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "-?"].contains(option);
        texts = if has_value { rest.get(1..).unwrap_or_default() } else { rest };
    }
    let Some((command, rest)) = texts.split_first() else { return Shown::Nothing };
    let end = rest.iter().position(|text| *text == "--").unwrap_or(rest.len());
    let options: Vec<&str> = rest[..end].iter().copied().filter(|text| text.starts_with('-')).collect();
    let is_list = options.iter().all(|text| is_of_lists(text));
    let is_summary = options.iter().any(|text| is_one_of(&SUMMARIES, text));
    match *command {
        "log" | "shortlog" | "reflog" if is_list => return Shown::Nothing,
        "diff" | "show" if is_list && is_summary => return Shown::Nothing,
        "show" if options.is_empty() && !rest.is_empty() && rest.iter().all(|text| is_one_file(text)) => {
            return Shown::Nothing;
        }
        "diff-tree" | "diff-index" | "diff-files"
            if options.iter().all(|text| *text == "-r" || is_of_lists(text)) =>
        {
            return Shown::Nothing;
        }
        "grep" | "show" | "log" | "diff" | "whatchanged" | "cat-file" | "archive" | "format-patch"
        | "diff-tree" | "diff-index" | "diff-files" | "range-diff" | "reflog" | "shortlog" | "bundle"
        | "fast-export" => {}
        "stash" if rest.first() == Some(&"show") => {}
        _ => return Shown::Nothing,
    }
    let paths: Vec<&str> = rest.iter().skip(end + 1).copied().collect();
    let is_plain = |path: &&str| !path.contains([':', '*', '?', '[', '\\']);
    if paths.is_empty() || !paths.iter().all(is_plain) || is_elsewhere {
        return Shown::Anything;
    }
    Shown::Below(paths)
}

/// One file of a commit, as in `HEAD:file`.
fn is_one_file(text: &str) -> bool {
    text.split_once(':').is_some_and(|(commit, path)| !commit.is_empty() && !path.is_empty())
}

fn is_of_lists(text: &str) -> bool {
    let is_number = text
        .strip_prefix('-')
        .is_some_and(|rest| rest.trim_start_matches('n').chars().all(|character| character.is_ascii_digit()));
    is_number || text == "-s" || is_one_of(&OF_LISTS, text)
}

fn is_one_of(names: &[&str], text: &str) -> bool {
    let name = text.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or(rest));
    name.is_some_and(|name| names.contains(&name))
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
