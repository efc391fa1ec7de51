//! Read-only git commands.
//!
//! Git takes its settings, and with them programs to run, from the folder that it starts in, and a folder
//! inside a project may be a foreign repository. So these commands are read-only only in a root.

use super::hidden_files::has_harmless_ending;
use super::option_parser::{self, CommandArgument, OptionTable, table};
use super::{Operand, OperandKind, operand};

/// Options that select, order and format commits.
const COMMITS: OptionTable = OptionTable {
    letters: "giEFPqz0123456789",
    letters_with_value: "n",
    long: "oneline graph no-graph all branches tags remotes decorate no-decorate merges no-merges first-parent reverse \
           date-order author-date-order topo-order relative-date abbrev-commit no-abbrev-commit abbrev follow \
           full-history ancestry-path simplify-by-decoration left-right cherry-mark cherry-pick left-only right-only \
           boundary count not no-walk walk-reflogs regexp-ignore-case invert-grep all-match extended-regexp \
           fixed-strings perl-regexp parents children no-notes source full-diff clear-decorations quiet no-color \
           show-linear-break objects use-mailmap no-mailmap",
    long_with_value: "format pretty since until after before author committer grep max-count skip date min-parents \
                      max-parents decorate-refs decorate-refs-exclude exclude color encoding",
};

/// Options that compute and format changes.
const CHANGES: OptionTable = OptionTable {
    letters: "pusMCBDRwbWrtmacz0123456789",
    letters_with_value: "USGL",
    long: "patch no-patch raw patch-with-raw patch-with-stat stat numstat shortstat dirstat cumulative summary \
           name-only name-status minimal patience histogram ignore-space-at-eol ignore-space-change ignore-all-space \
           ignore-blank-lines ignore-cr-at-eol word-diff color-words color-moved no-color-moved no-color full-index \
           binary abbrev find-renames find-copies find-copies-harder break-rewrites irreversible-delete no-renames \
           pickaxe-all pickaxe-regex relative no-relative text function-context cc combined-all-paths exit-code quiet \
           no-ext-diff no-textconv no-prefix default-prefix check ita-invisible-in-index staged cached merge-base \
           no-color-moved-ws indent-heuristic no-indent-heuristic compact-summary root full-tree",
    long_with_value: "unified diff-algorithm anchored word-diff-regex diff-filter inter-hunk-context src-prefix \
                      dst-prefix line-prefix ignore-submodules submodule stat-width stat-count color \
                      color-moved-ws ws-error-highlight",
};

/// Options of every read-only git command. All others ask, above all those that run programs (`--ext-diff`,
/// `--textconv`, `--show-signature`, `--help`, `--open-files-in-pager`, `--alternate-refs`), write
/// (`--output`), read names from the input or a file (`--stdin`, `--batch`, `--pathspec-from-file`) or read
/// files that git does not track (`--no-index`, `--contents`, `--untracked`).
const COMMANDS: &[(&str, &[OptionTable])] = &[
    (
        "status",
        &[table(
            "sbvzunoalrm",
            "",
            "short branch show-stash verbose long ahead-behind no-ahead-behind renames no-renames null column \
             no-column porcelain ignored find-renames untracked-files",
            "ignore-submodules",
        )],
    ),
    ("log", &[COMMITS, CHANGES]),
    ("whatchanged", &[COMMITS, CHANGES]),
    ("show", &[COMMITS, CHANGES]),
    ("diff", &[CHANGES]),
    ("diff-tree", &[CHANGES, table("v", "", "no-commit-id pretty", "")]),
    ("diff-index", &[CHANGES]),
    ("diff-files", &[CHANGES]),
    ("range-diff", &[CHANGES]),
    ("rev-list", &[COMMITS]),
    (
        "rev-parse",
        &[table(
            "q",
            "",
            "verify quiet short abbrev-ref symbolic symbolic-full-name all branches tags remotes show-toplevel git-dir \
             absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository \
             is-shallow-repository show-prefix show-cdup show-superproject-working-tree show-object-format revs-only \
             no-revs no-flags flags",
            "since until after before git-path default",
        )],
    ),
    (
        "ls-files",
        &[table(
            "cdmksutvz",
            "",
            "cached deleted modified killed stage unmerged full-name abbrev debug eol error-unmatch exclude-standard \
             others ignored recurse-submodules deduplicate sparse directory no-empty-directory",
            "format",
        )],
    ),
    (
        "ls-tree",
        &[table("drtlz", "", "long name-only name-status object-only full-name full-tree abbrev", "format")],
    ),
    (
        "blame",
        &[table(
            "bwcfnslteMC0123456789",
            "L",
            "root show-stats porcelain line-porcelain incremental show-name show-number show-email abbrev first-parent \
             minimal color-lines color-by-age",
            "date since ignore-rev",
        )],
    ),
    (
        "describe",
        &[table(
            "",
            "",
            "all tags long always contains first-parent exact-match debug",
            "abbrev candidates match exclude",
        )],
    ),
    ("shortlog", &[COMMITS, table("nsecw", "", "numbered summary email", "group")]),
    ("merge-base", &[table("a", "", "all octopus is-ancestor independent fork-point", "")]),
    ("name-rev", &[table("", "", "tags all name-only no-undefined always", "refs exclude")]),
    (
        "show-ref",
        &[table("dsq", "", "head heads tags branches dereference hash verify quiet abbrev exists", "")],
    ),
    (
        "for-each-ref",
        &[table(
            "",
            "",
            "ignore-case omit-empty include-root-refs",
            "count sort format points-at merged no-merged contains no-contains color exclude",
        )],
    ),
    ("count-objects", &[table("vH", "", "verbose human-readable", "")]),
    (
        "grep",
        &[table(
            "aiIwvhHEGFPnlLzocpqW0123456789",
            "ABCem",
            "text ignore-case word-regexp invert-match full-name extended-regexp basic-regexp fixed-strings \
             perl-regexp line-number column files-with-matches name-only files-without-match null only-matching count \
             color no-color break heading show-function function-context cached all-match and or not quiet \
             recurse-submodules no-recursive recursive no-textconv",
            "max-depth max-count threads after-context before-context context",
        )],
    ),
    ("check-ignore", &[table("qvnz", "", "quiet verbose non-matching no-index", "")]),
    ("cat-file", &[table("teps", "", "", "")]),
    ("cherry", &[table("v", "", "verbose abbrev", "")]),
    (
        "show-branch",
        &[table(
            "rag",
            "",
            "remotes all current topo-order date-order sparse independent merge-base sha1-name no-name topics color \
             no-color list",
            "more reflog",
        )],
    ),
    (
        "branch",
        &[table(
            "arv",
            "",
            "all remotes list verbose show-current ignore-case no-color color omit-empty column no-column contains \
             no-contains merged no-merged points-at",
            "sort format abbrev",
        )],
    ),
    (
        "tag",
        &[table(
            "ln0123456789",
            "",
            "list ignore-case no-color color omit-empty column no-column contains no-contains merged no-merged points-at",
            "sort format",
        )],
    ),
];

/// Options that turn operands into search patterns instead of new names.
const LISTS: [&str; 7] = ["l", "list", "contains", "no-contains", "merged", "no-merged", "points-at"];

/// Sections of the configuration without credentials.
const CONFIGURATION: [&str; 8] = ["user.", "core.", "branch.", "init.", "pull.", "push.", "merge.", "diff."];

/// Files that a git command reads, if it is read-only; `texts` are its words after `git`.
pub(super) fn operands(texts: &[&str]) -> Option<Vec<Operand>> {
    let texts = texts.strip_prefix(&["--no-pager"]).unwrap_or(texts);
    let root = operand(".", OperandKind::Root);
    let (command, rest) = texts.split_first()?;
    let is_plain = |text: &&str| !text.starts_with('-');
    match (*command, rest) {
        ("--version" | "version", []) => return Some(Vec::new()),
        ("remote", [] | ["-v"])
        | ("stash", ["list"])
        | ("worktree", ["list"] | ["list", "--porcelain" | "-v"])
        | ("reflog", [] | ["show"]) => return Some(vec![root]),
        ("remote", ["get-url", name]) => return is_plain(name).then(|| vec![root]),
        ("config", ["--get", name]) => {
            let is_open = CONFIGURATION.iter().any(|start| name.starts_with(start));
            return is_open.then(|| vec![root]);
        }
        ("stash" | "reflog", ["list" | "show", rest @ ..]) => {
            option_parser::parse(rest, &[COMMITS])?.iter().all(is_harmless).then_some(())?;
            return Some(vec![root]);
        }
        _ => {}
    }
    let (_, tables) = COMMANDS.iter().find(|(name, _)| name == command)?;
    let arguments = option_parser::parse(rest, tables)?;
    if !arguments.iter().all(is_harmless) {
        return None;
    }
    if ["branch", "tag"].contains(command) {
        let is_list = |argument: &CommandArgument<'_>| matches!(argument, CommandArgument::Option(name, _) if LISTS.contains(name));
        let makes = arguments.iter().any(|argument| matches!(argument, CommandArgument::Operand(_)));
        return (!makes || arguments.iter().any(is_list)).then(|| vec![root]);
    }
    let mut operands = vec![root];
    for argument in arguments {
        match argument {
            CommandArgument::Operand(text) if is_unclear_pathspec(text) => return None,
            CommandArgument::Operand(text) => operands.extend(content(text)),
            CommandArgument::Option("L", Some(lines)) => {
                operands.extend(lines.rsplit_once(':').map(|(_, file)| operand(file, OperandKind::Content)));
            }
            CommandArgument::Option(..) => {}
        }
    }
    Some(operands)
}

/// Returns whether an argument runs nothing: a format with `%G` runs a signature check.
fn is_harmless(argument: &CommandArgument<'_>) -> bool {
    match argument {
        CommandArgument::Option("format" | "pretty" | "sort", Some(value)) => {
            !value.contains("%G") && !value.contains("signature")
        }
        _ => true,
    }
}

/// Returns whether an operand may be a pathspec that matches credentials: git expands globs itself, and magic
/// such as `:(icase)` changes their meaning.
fn is_unclear_pathspec(text: &str) -> bool {
    let is_magic = text.starts_with([':']) && text[1..].starts_with(['(', '!', '^', '/']);
    is_magic || (text.contains(['*', '?', '[']) && !has_harmless_ending(text))
}

/// Operands for a file or a revision, or both as in `HEAD:file`.
fn content(text: &str) -> Vec<Operand> {
    // `HEAD:file`, `:file`, `:0:file`: the text after any colon may be the path.
    let mut names = vec![text];
    names.extend(text.match_indices(':').map(|(at, _)| &text[at + 1..]).filter(|path| !path.is_empty()));
    names.into_iter().map(|name| operand(name, OperandKind::Tree)).collect()
}

/// Options that list commits without file content.
const LIST_OPTIONS: [&str; 37] = [
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

/// Options that summarize changes without file content.
const SUMMARIES: [&str; 8] =
    ["stat", "name-only", "name-status", "numstat", "shortstat", "summary", "dirstat", "no-patch"];

/// File content that a git command may show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum GitReadScope<'a> {
    Nothing,
    /// Content below these paths.
    Below(Vec<&'a str>),
    Anything,
}

/// Determines the file content that a git command may show; `texts` are its words after `git`.
pub(crate) fn git_read_scope<'a>(texts: &[&'a str]) -> GitReadScope<'a> {
    let mut texts = texts;
    let mut is_elsewhere = false;
    while let Some((option, rest)) = texts.split_first().filter(|(text, _)| text.starts_with('-')) {
        is_elsewhere |= *option != "--no-pager";
        let has_value = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "-?"].contains(option);
        texts = if has_value { rest.get(1..).unwrap_or_default() } else { rest };
    }
    let Some((command, rest)) = texts.split_first() else { return GitReadScope::Nothing };
    let end = rest.iter().position(|text| *text == "--").unwrap_or(rest.len());
    let options: Vec<&str> = rest[..end].iter().copied().filter(|text| text.starts_with('-')).collect();
    let is_list = options.iter().all(|text| is_of_lists(text));
    let is_summary = options.iter().any(|text| is_one_of(&SUMMARIES, text));
    match *command {
        "log" | "shortlog" | "reflog" if is_list => return GitReadScope::Nothing,
        "diff" | "show" if is_list && is_summary => return GitReadScope::Nothing,
        "show" if options.is_empty() && !rest.is_empty() && rest.iter().all(|text| is_one_file(text)) => {
            return GitReadScope::Nothing;
        }
        "diff-tree" | "diff-index" | "diff-files"
            if options.iter().all(|text| *text == "-r" || is_of_lists(text)) =>
        {
            return GitReadScope::Nothing;
        }
        "grep" | "show" | "log" | "diff" | "whatchanged" | "cat-file" | "archive" | "format-patch"
        | "diff-tree" | "diff-index" | "diff-files" | "range-diff" | "reflog" | "shortlog" | "bundle"
        | "fast-export" => {}
        "stash" if rest.first() == Some(&"show") => {}
        _ => return GitReadScope::Nothing,
    }
    let paths: Vec<&str> = rest.iter().skip(end + 1).copied().collect();
    let is_plain = |path: &&str| !path.contains([':', '*', '?', '[', '\\']);
    if paths.is_empty() || !paths.iter().all(is_plain) || is_elsewhere {
        return GitReadScope::Anything;
    }
    GitReadScope::Below(paths)
}

/// Returns whether a word names one file of a commit, as in `HEAD:file`.
fn is_one_file(text: &str) -> bool {
    text.split_once(':').is_some_and(|(commit, path)| !commit.is_empty() && !path.is_empty())
}

fn is_of_lists(text: &str) -> bool {
    let is_number = text
        .strip_prefix('-')
        .is_some_and(|rest| rest.trim_start_matches('n').chars().all(|character| character.is_ascii_digit()));
    is_number || text == "-s" || is_one_of(&LIST_OPTIONS, text)
}

fn is_one_of(names: &[&str], text: &str) -> bool {
    let name = text.strip_prefix("--").map(|rest| rest.split('=').next().unwrap_or(rest));
    name.is_some_and(|name| names.contains(&name))
}
