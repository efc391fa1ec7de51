//! Parsing of shell command lines.
//!
//! Two parsers read every line: the tree-sitter grammar finds its parts, and a small scanner that knows only
//! quotes and operators finds its words. A disagreement, a syntax error or a part that is unknown until the
//! line runs is a doubt, and a line with a doubt is never allowed part by part.

mod command_escapes;

mod read_only;
mod rule_suggestion;
mod shell_word;
mod tree_walker;
mod word_scanner;

use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) use command_escapes::{
    InnerCommands, file_name, find_escape, find_inner_commands, is_interpreter, is_recursive_reader,
    runs_another, shows_content, strip_wrappers, unversioned,
};
pub(crate) use read_only::{
    GitReadScope, Operand, OperandKind, git_read_scope, is_builtin, read_only_operands,
};
pub(crate) use rule_suggestion::suggest_rule;
pub(crate) use shell_word::{ShellWord, decode_word};
pub(crate) use tree_walker::parse_command_line;

/// Maximum length of a line that is parsed.
const BYTES_MAX: usize = 32 << 10;

/// Maximum nesting depth that is followed.
const DEPTH_MAX: usize = 40;

/// Parsed command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandLine {
    /// Parts in the order of the line, including nested ones.
    pub(crate) parts: Vec<CommandPart>,
    /// Reasons why it may do more, each completing a sentence that begins with "it".
    pub(crate) doubts: Vec<String>,
    /// Variables not set by the line, in texts passed to commands.
    pub(crate) variables: Vec<String>,
    /// Ranges of parts that may run concurrently or repeatedly.
    concurrent: Vec<Range<usize>>,
}

impl CommandLine {
    /// Returns whether another part may change what the paths of this one resolve to before it runs.
    pub(crate) fn has_unstable_paths(&self, idx: usize) -> bool {
        let is_before = |other: usize| {
            other < idx
                || self
                    .concurrent
                    .iter()
                    .any(|mark_concurrent| mark_concurrent.contains(&idx) && mark_concurrent.contains(&other))
        };
        let moves = |part: &CommandPart| matches!(&part.action, CommandAction::Run(words) if command_escapes::changes_paths(strip_wrappers(words)) && read_only_operands(words).is_none());
        self.parts.iter().enumerate().any(|(other, part)| other != idx && is_before(other) && moves(part))
    }
}

/// Part of a command line.
#[derive(Clone, Debug)]
pub(crate) struct CommandPart {
    /// Text in the line.
    pub(crate) text: String,
    /// Byte offsets of the command's words in the line.
    pub(crate) starts: Vec<usize>,
    /// Action of the part.
    pub(crate) action: CommandAction,
    /// Directories that it may run in.
    pub(crate) directories: Vec<PathBuf>,
    /// Variables in it that the line did not set.
    pub(crate) variables: Vec<String>,
}

/// Action of a part of a command line.
#[derive(Clone, Debug)]
pub(crate) enum CommandAction {
    /// Runs a program or a shell builtin.
    Run(Vec<ShellWord>),
    /// Changes the directory.
    ChangeDirectory(ShellWord),
    /// Reads a file by redirection.
    ReadFile(ShellWord),
    /// Writes a file by redirection or `tee`.
    WriteFile(ShellWord),
}

/// Returns whether a command line changes nothing, so that it may run in parallel with other read-only ones.
pub fn is_read_only(command: &str) -> bool {
    let script = parse_command_line(command, Path::new("/"), &|named, directory| directory.join(named));
    script.doubts.is_empty()
        && !script.parts.is_empty()
        && script.parts.iter().all(|part| match &part.action {
            CommandAction::Run(words) => read_only_operands(words)
                .is_some_and(|operands| !operands.iter().any(|operand| operand.is_write())),
            CommandAction::ReadFile(_) => true,
            // The next command would start in another directory.
            CommandAction::ChangeDirectory(_) | CommandAction::WriteFile(_) => false,
        })
}

/// Trims the whitespace that the shell ignores.
pub(crate) fn trimmed(command: &str) -> &str {
    command.trim_matches([' ', '\t', '\n'])
}

/// Splits a rule pattern into words.
pub(crate) fn split(text: &str) -> Vec<String> {
    let spans = word_scanner::scan_words(text).unwrap_or_default().spans;
    let decoded: Option<Vec<String>> =
        spans.iter().map(|span| text.get(span.clone()).and_then(|raw| decode_word(raw).text)).collect();
    match decoded {
        Some(words) if !words.is_empty() => words,
        _ => text.split_whitespace().map(String::from).collect(),
    }
}
