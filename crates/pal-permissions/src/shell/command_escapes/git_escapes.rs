//! Options and commands by which `git` runs other programs.

use super::{find, is_letter_of, is_short_for};
use crate::shell::ShellWord;

/// Git commands that run others, or decide what later ones run.
const RUNNERS: [&str; 33] = [
    "config",
    "difftool",
    "mergetool",
    "filter-branch",
    "bisect",
    "submodule",
    "send-email",
    "daemon",
    "shell",
    "instaweb",
    "credential",
    "hook",
    "for-each-repo",
    "maintenance",
    "p4",
    "svn",
    "cvsserver",
    "upload-archive",
    "http-backend",
    "web--browse",
    // These write to any given path.
    "bundle",
    "bugreport",
    "diagnose",
    "fast-export",
    "fast-import",
    "checkout-index",
    "merge-index",
    "remote-ext",
    "remote-fd",
    "cvsimport",
    "imap-send",
    "gui",
    "citool",
];

const LONG: [&str; 18] = [
    "upload-pack",
    "receive-pack",
    "exec",
    "exec-path",
    "config",
    "config-env",
    "ext-diff",
    "textconv",
    "output",
    "output-directory",
    "open-files-in-pager",
    "template",
    "extcmd",
    "no-index",
    "git-dir",
    "unsafe-paths",
    "directory",
    "strategy",
];

pub(super) fn find_git_escape(words: &[ShellWord]) -> Option<usize> {
    let command = words.get(1)?.text().unwrap_or("-");
    // `-c`, `-C`, `--exec-path` and the like precede the command.
    if command.starts_with('-') && !matches!(command, "--version" | "--no-pager") {
        return Some(1);
    }
    let letters = match command {
        "clone" | "fetch" | "pull" => "uc",
        "rebase" => "xis",
        "merge" | "cherry-pick" | "revert" => "s",
        "grep" => "Of",
        "log" | "show" | "diff" => "O",
        "archive" | "format-patch" => "o",
        _ => "",
    };
    let option = find(words, |text| {
        is_letter_of(text, letters)
            || LONG.iter().any(|long| is_short_for(text, long))
            || text.contains("ext::")
    });
    let runner = RUNNERS.contains(&command).then_some(2);
    option.into_iter().chain(runner).min()
}
