//! Read-only commands: the exact grammar of what is known to be harmless, and the files that such a command reads.
//!
//! A command is read-only if its program, every option and every operand are listed; there is no word that makes an
//! unlisted one harmless. Interpreters, programs that run others and programs that read further file names from their
//! input are in no list. What passes here still runs in the read-only sandbox.

mod extent;
mod forms;
mod git;
mod options;
mod search;

pub(crate) use git::{Shown, shown};

use super::{Word, peel};
use forms::{CommandForm, FORMS, Globs, Shows};
use options::Argument;

/// A file or folder that a command is given.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// Its name.
    pub(crate) named: String,
    /// What happens to it.
    pub(crate) kind: OperandKind,
}

/// What happens to a file or folder that a command is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandKind {
    /// What is in it is shown; of a folder, what is in its files.
    Content,
    /// What is in it is shown, and in everything below it, but no hidden files.
    Tree,
    /// What is in it is shown, and in everything below it, hidden files too.
    Everything,
    /// Only that it is there, how large it is and the like.
    Names,
    /// It is made.
    Write,
    /// The directory that the command runs in has to be one where a session may start.
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

/// The files that a command reads, if all that it does is known to be harmless. `mkdir` and `touch` are here, too: what
/// they make is an operand that is written.
pub(crate) fn read_only_operands(words: &[Word]) -> Option<Vec<Operand>> {
    let words = peel(words);
    let (name, rest) = words.split_first()?;
    if !name.is_plain() {
        return None;
    }
    let name = name.text()?;
    if let Some(form) = FORMS.iter().find(|form| form.names.contains(&name)) {
        return by_form(form, rest);
    }
    if name == "echo" {
        // Stars in it list files.
        let globs = rest.iter().filter(|word| word.is_glob);
        return globs
            .map(|word| Some(operand(folder_of_glob(word.text.as_deref()?)?, OperandKind::Names)))
            .collect();
    }
    let texts: Vec<&str> = rest.iter().map(known).collect::<Option<_>>()?;
    match (name, texts.as_slice()) {
        ("printf", [format, ..]) => is_harmless_format(format).then(Vec::new),
        ("git", _) => git::operands(&texts),
        ("grep" | "egrep" | "fgrep", _) => search::grep(&texts),
        ("rg", _) => search::ripgrep(&texts),
        ("find", _) => search::find(&texts),
        ("sed", ["-n", script, files @ ..]) => lines_of(script, files),
        ("date", [] | ["-u"] | ["-Iseconds"]) => Some(Vec::new()),
        ("date", [format] | ["-u", format]) => format.starts_with('+').then(Vec::new),
        ("command", ["-v", name]) => (!name.starts_with('-')).then(Vec::new),
        ("test", _) => test(&texts),
        ("mkdir", ["-p", folders @ ..]) | ("mkdir" | "touch", folders) => made(folders),
        _ => None,
    }
}

/// The names of programs that a read-only command may run by itself: the shell's own words, which start no program.
pub(crate) fn is_builtin(name: &str) -> bool {
    [
        "true", "false", ":", "pwd", "type", "exit", "break", "continue", "echo", "printf", "command",
        "test", "cd",
    ]
    .contains(&name)
}

/// What a word is, if it is known. A pattern of names that begins as this option does leaves it this option.
fn known(word: &Word) -> Option<&str> {
    word.text().or_else(|| word.text.as_deref().filter(|text| text.starts_with("--include=")))
}

fn by_form(form: &CommandForm, words: &[Word]) -> Option<Vec<Operand>> {
    let kind = match form.shows {
        Shows::Content => OperandKind::Content,
        Shows::Names | Shows::Nothing => OperandKind::Names,
    };
    let is_refused = |word: &Word| {
        let starts_open = word.raw.starts_with(['*', '?', '[']);
        word.is_glob && (form.globs == Globs::No || (form.globs == Globs::BelowFolder && starts_open))
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
    for argument in options::parse(&texts, &[form.options])? {
        match argument {
            Argument::Operand("-") => {}
            Argument::Operand(text) => operands.push(operand(text, kind)),
            // Which words are values differs between makes of a program: what may be a file is judged as one.
            Argument::Option(_, Some(value)) if !options::is_plain_value(value) => {
                operands.push(operand(value, kind));
            }
            Argument::Option(..) => {}
        }
    }
    let n_operands = operands.len();
    if form.shows == Shows::Nothing {
        operands.clear();
    }
    (n_operands <= form.n_operands_max).then_some(operands)
}

/// Whether a format of `printf` prints and does no more: `%n` sets a variable, and its name may run a command.
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

/// The folder that a pattern of files is about, if its stars stand only for files in it.
fn folder_of_glob(text: &str) -> Option<&str> {
    let (folder, name) = text.rsplit_once('/').unwrap_or((".", text));
    let is_plain = !folder.contains(['*', '?', '[']) && !name.starts_with('-') && !text.starts_with('/');
    (is_plain && !folder.is_empty()).then_some(folder)
}

/// `sed -n 3,7p file`.
fn lines_of(script: &str, files: &[&str]) -> Option<Vec<Operand>> {
    let is_lines = |part: &str| {
        let lines = part.trim().strip_suffix('p').unwrap_or("?");
        lines.chars().all(|character| character.is_ascii_digit() || ",$".contains(character))
    };
    let is_plain = script.split(';').all(is_lines) && !files.iter().any(|file| file.starts_with('-'));
    is_plain.then(|| files.iter().map(|file| operand(file, OperandKind::Content)).collect())
}

/// `test` with questions about files and strings; others calculate, and that may run commands.
fn test(texts: &[&str]) -> Option<Vec<Operand>> {
    const ASKED: [&str; 15] =
        ["-f", "-d", "-e", "-r", "-w", "-x", "-s", "-L", "-h", "-z", "-n", "=", "==", "!=", "!"];
    let is_known = |text: &&str| ASKED.contains(text) || !text.starts_with('-');
    texts.iter().all(is_known).then(Vec::new)
}

/// Folders or files that are made.
fn made(names: &[&str]) -> Option<Vec<Operand>> {
    let is_plain = !names.is_empty() && !names.iter().any(|name| name.starts_with('-') || name.is_empty());
    is_plain.then(|| names.iter().map(|name| operand(name, OperandKind::Write)).collect())
}
