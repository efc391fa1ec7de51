//! Commands that only look: what they are, and what they look at.

mod extent;
mod git;
mod options;
mod search;
mod tables;

pub(crate) use git::{Shown, shown};

use super::{Word, peel};
use crate::shell::hatch::{find, is_letter_of, is_short_for};
use tables::{ASKED_FOR_VERSION, Shows, VIEWERS};

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
    /// What is in it is shown.
    Content,
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

/// What a command looks at, if all that it does is known to be harmless.
pub(crate) fn look(words: &[Word]) -> Option<Vec<Operand>> {
    let words = peel(words);
    let (name, rest) = words.split_first()?;
    if !name.is_plain() {
        return None;
    }
    let name = name.text()?;
    if let Some(viewer) = VIEWERS.iter().find(|viewer| viewer.names.contains(&name)) {
        return view(viewer, words);
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
        ("printf", [format, ..]) => (!format.starts_with('-')).then(Vec::new),
        ("git", _) => git::look(&texts),
        ("grep" | "egrep" | "fgrep", _) => search::grep(&texts),
        ("rg", _) => search::ripgrep(&texts),
        ("find", _) => search::find(&texts),
        ("sed", ["-n", script, files @ ..]) => lines_of(script, files),
        ("date", [] | ["-u"] | ["-Iseconds"]) => Some(Vec::new()),
        ("date", [format] | ["-u", format]) => format.starts_with('+').then(Vec::new),
        ("command", ["-v", _]) => Some(Vec::new()),
        ("test", _) => test(&texts),
        ("mkdir", ["-p", folders @ ..]) | ("mkdir" | "touch", folders) => made(folders),
        (_, ["--version" | "-V" | "-v" | "version"]) if ASKED_FOR_VERSION.contains(&name) => Some(Vec::new()),
        _ => None,
    }
}

/// What a word is, if it is known. A pattern of names that begins as this option does leaves it this option.
fn known(word: &Word) -> Option<&str> {
    word.text().or_else(|| word.text.as_deref().filter(|text| text.starts_with("--include=")))
}

fn view(viewer: &tables::Viewer, words: &[Word]) -> Option<Vec<Operand>> {
    let is_refused = |text: &str| {
        is_letter_of(text, viewer.refused) || viewer.refused_long.iter().any(|long| is_short_for(text, long))
    };
    if find(words, is_refused).is_some() {
        return None;
    }
    let kind = match viewer.shows {
        Shows::Content => OperandKind::Content,
        Shows::Names => OperandKind::Names,
        Shows::Nothing => return words.iter().all(|word| word.text().is_some()).then(Vec::new),
    };
    let mut operands = Vec::new();
    let mut are_options = true;
    for word in &words[1..] {
        let text = word.text.as_deref().filter(|_| !word.is_glob || viewer.takes_globs)?;
        let is_option = are_options && text.starts_with('-') && text.len() > 1;
        are_options &= text != "--";
        if word.is_glob {
            operands.push(operand(folder_of_glob(text)?, kind));
        } else if !is_option && !viewer.no_files.contains(&text) {
            operands.push(operand(text, kind));
        }
    }
    (operands.len() <= viewer.n_operands_max).then_some(operands)
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
