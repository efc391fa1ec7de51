//! Read-only commands: an exact list of harmless forms, and the files that such a command reads.
//!
//! A command is read-only if its program, every option and every operand are listed. Interpreters, programs
//! that run others and programs that read file names from their input are in no list. Read-only commands
//! still run in the read-only sandbox.

mod command_forms;
mod git_commands;
mod hidden_files;
mod option_parser;
mod search_commands;

pub(crate) use git_commands::{GitReadScope, git_read_scope};

use super::{ShellWord, strip_wrappers};
use command_forms::{CommandForm, FORMS, GlobPolicy, OperandDisclosure};
use option_parser::CommandArgument;

/// File or folder operand of a command.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// Path as named.
    pub(crate) named: String,
    /// Use of the operand.
    pub(crate) kind: OperandKind,
}

/// Use of a file or folder by a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandKind {
    /// Content is shown; of a folder, the content of its files.
    Content,
    /// Content is shown recursively, without hidden files.
    Tree,
    /// Content is shown recursively, including hidden files.
    Everything,
    /// Only metadata such as existence and size is shown.
    Names,
    /// The file or folder is created.
    Write,
    /// The directory that the command runs in must be a root.
    Root,
}

impl Operand {
    pub(crate) fn is_write(&self) -> bool {
        self.kind == OperandKind::Write
    }
}

fn operand(named: &str, kind: OperandKind) -> Operand {
    Operand { named: String::from(named), kind }
}

/// Files that a command reads, if it is known to be harmless. `mkdir` and `touch` count, too: their arguments
/// are written operands.
pub(crate) fn read_only_operands(words: &[ShellWord]) -> Option<Vec<Operand>> {
    let words = strip_wrappers(words);
    let (name, rest) = words.split_first()?;
    if !name.is_plain() {
        return None;
    }
    let name = name.text()?;
    if let Some(form) = FORMS.iter().find(|form| form.names.contains(&name)) {
        return by_form(form, rest);
    }
    if name == "echo" {
        // Globs in it list files.
        let globs = rest.iter().filter(|word| word.is_glob);
        return globs
            .map(|word| Some(operand(folder_of_glob(word.text.as_deref()?)?, OperandKind::Names)))
            .collect();
    }
    let texts: Vec<&str> = rest.iter().map(known_text).collect::<Option<_>>()?;
    match (name, texts.as_slice()) {
        ("printf", [format, ..]) => is_harmless_format(format).then(Vec::new),
        ("git", _) => git_commands::operands(&texts),
        ("grep" | "egrep" | "fgrep", _) => search_commands::grep(&texts),
        ("rg", _) => search_commands::ripgrep(&texts),
        ("find", _) => search_commands::find(&texts),
        ("sed", ["-n", script, files @ ..]) => sed_line_operands(script, files),
        ("date", [] | ["-u"] | ["-Iseconds"]) => Some(Vec::new()),
        ("date", [format] | ["-u", format]) => format.starts_with('+').then(Vec::new),
        ("command", ["-v", name]) => (!name.starts_with('-')).then(Vec::new),
        ("test", _) => test(&texts),
        ("mkdir", ["-p", folders @ ..]) | ("mkdir" | "touch", folders) => created_operands(folders),
        _ => None,
    }
}

/// Returns whether a name is a harmless shell builtin, which starts no program.
pub(crate) fn is_builtin(name: &str) -> bool {
    [
        "true", "false", ":", "pwd", "type", "exit", "break", "continue", "echo", "printf", "command",
        "test", "cd",
    ]
    .contains(&name)
}

/// Text of a word, if known. A glob after `--include=` stays that option.
fn known_text(word: &ShellWord) -> Option<&str> {
    word.text().or_else(|| word.text.as_deref().filter(|text| text.starts_with("--include=")))
}

fn by_form(form: &CommandForm, words: &[ShellWord]) -> Option<Vec<Operand>> {
    let kind = match form.shows {
        OperandDisclosure::Content => OperandKind::Content,
        OperandDisclosure::Names | OperandDisclosure::Nothing => OperandKind::Names,
    };
    let is_refused = |word: &ShellWord| {
        let starts_open = word.raw.starts_with(['*', '?', '[']);
        word.is_glob
            && (form.globs == GlobPolicy::No || (form.globs == GlobPolicy::BelowFolder && starts_open))
    };
    if words.iter().any(is_refused) {
        return None;
    }
    let mut operands = Vec::new();
    let mut texts = Vec::new();
    for word in words {
        let text = word.text.as_deref()?;
        if word.is_glob {
            operands.push(operand(folder_of_glob(text)?, kind));
        } else {
            texts.push(text);
        }
    }
    for argument in option_parser::parse(&texts, &[form.options])? {
        match argument {
            CommandArgument::Operand("-") => {}
            CommandArgument::Operand(text) => operands.push(operand(text, kind)),
            // Implementations differ in which words are values: anything that may be a file counts as one.
            CommandArgument::Option(_, Some(value)) if !option_parser::is_plain_value(value) => {
                operands.push(operand(value, kind));
            }
            CommandArgument::Option(..) => {}
        }
    }
    let n_operands = operands.len();
    if form.shows == OperandDisclosure::Nothing {
        operands.clear();
    }
    (n_operands <= form.n_operands_max).then_some(operands)
}

/// Returns whether a `printf` format only prints: `%n` sets a variable, whose name may run a command.
fn is_harmless_format(format: &str) -> bool {
    if format.starts_with('-') {
        return false;
    }
    let mut left = format;
    while let Some(at) = left.find('%') {
        let rest = left[at + 1..].trim_start_matches(|character: char| {
            character.is_ascii_digit() || "#-+ '.*".contains(character)
        });
        let Some(letter) = rest.chars().next() else { return true };
        if !"sdiouxXeEfFgGaAcbq%".contains(letter) {
            return false;
        }
        left = &rest[1..];
    }
    true
}

/// Folder of a glob whose wildcards match only files in it.
fn folder_of_glob(text: &str) -> Option<&str> {
    let (folder, name) = text.rsplit_once('/').unwrap_or((".", text));
    let is_plain = !folder.contains(['*', '?', '[']) && !name.starts_with('-') && !text.starts_with('/');
    (is_plain && !folder.is_empty()).then_some(folder)
}

/// Operands of `sed -n 3,7p file`.
fn sed_line_operands(script: &str, files: &[&str]) -> Option<Vec<Operand>> {
    let is_lines = |part: &str| {
        let lines = part.trim().strip_suffix('p').unwrap_or("?");
        lines.chars().all(|character| character.is_ascii_digit() || ",$".contains(character))
    };
    let is_plain = script.split(';').all(is_lines) && !files.iter().any(|file| file.starts_with('-'));
    is_plain.then(|| files.iter().map(|file| operand(file, OperandKind::Content)).collect())
}

/// Operands of `test` on files and strings; other tests calculate, and that may run commands.
fn test(texts: &[&str]) -> Option<Vec<Operand>> {
    const ASKED: [&str; 15] =
        ["-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-z", "-n", "=", "==", "!=", "!"];
    let is_known = |text: &&str| ASKED.contains(text) || !text.starts_with('-');
    texts.iter().all(is_known).then(Vec::new)
}

/// Operands of commands that create folders or files.
fn created_operands(names: &[&str]) -> Option<Vec<Operand>> {
    let is_plain = !names.is_empty() && !names.iter().any(|name| name.starts_with('-') || name.is_empty());
    is_plain.then(|| names.iter().map(|name| operand(name, OperandKind::Write)).collect())
}
