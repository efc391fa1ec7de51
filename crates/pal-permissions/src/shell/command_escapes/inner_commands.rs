//! Command lines inside commands, such as the text after `bash -c`.

use super::program_lists::{RUNNERS, SHELLS};
use super::{ShellWord, file_name, find, is_letter_of, is_one_of, is_short_for, runs_another, shows_content};

/// Commands that a command runs besides itself, as far as its words tell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct InnerCommands {
    /// Command lines that it runs.
    pub(crate) lines: Vec<String>,
    /// Texts that it may run as command lines.
    pub(crate) maybe: Vec<String>,
    /// Reason if it runs something that its words do not show; completes a sentence that begins with "it".
    pub(crate) unseen: Option<&'static str>,
    /// True if it shows files that its words do not name.
    pub(crate) shows_unnamed: bool,
}

/// Finds the commands that a command runs besides itself.
pub(crate) fn find_inner_commands(words: &[ShellWord]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    if !runs_another(words) {
        return inner;
    }
    let name = words.first().and_then(file_name).unwrap_or_default();
    let is_asked_where =
        name == "command" && words.get(1).is_some_and(|word| ["-v", "-V"].contains(&word.raw.as_str()));
    if is_asked_where {
        return inner;
    }
    let hands_on = ["xargs", "parallel", "find"].contains(&name);
    for start in (0..words.len()).filter(|start| may_start(name, words, *start)) {
        inner.add(&words[start..]);
        inner.shows_unnamed |= hands_on && start > 0 && shows_content(&words[start..]);
    }
    let is_line = |text: &&str| text.contains([' ', '\t', '\n', ';', '|', '&']);
    for word in &words[1..] {
        inner.maybe.extend(word.text.as_deref().filter(is_line).map(String::from));
    }
    let lines = std::mem::take(&mut inner.maybe);
    inner.maybe = lines.into_iter().filter(|line| !inner.lines.contains(line)).collect();
    inner
}

/// Returns whether another command may start at a word.
fn may_start(name: &str, words: &[ShellWord], start: usize) -> bool {
    let before = start.checked_sub(1).map(|before| words[before].raw.as_str());
    match (before, words[start].raw.as_str()) {
        (None, _) => true,
        (Some(before), _) if name == "find" => ["-exec", "-execdir", "-ok", "-okdir"].contains(&before),
        // Elsewhere `.` is a folder.
        (Some(before), "." | "source") => ["builtin", "command"].contains(&before),
        _ => true,
    }
}

impl InnerCommands {
    /// Adds a command or one that follows another.
    fn add(&mut self, words: &[ShellWord]) {
        let Some(name) = words.first().and_then(file_name) else { return };
        match name {
            _ if is_one_of(SHELLS, name) => self.shell(words),
            "eval" => {
                let texts: Option<Vec<&str>> = words[1..].iter().map(|word| word.text.as_deref()).collect();
                self.line(texts.map(|texts| texts.join(" ")));
            }
            "trap" => {
                self.line(words.get(1).and_then(|word| word.text.clone()).filter(|_| words.len() > 2));
                self.unseen = Some("says what runs later");
            }
            "env"
                if find(words, |text| is_letter_of(text, "S") || is_short_for(text, "split-string"))
                    .is_some() =>
            {
                self.unseen = Some("takes a command out of a text");
            }
            "source" | "." if words.get(1).is_none_or(is_stream) => {
                self.unseen = Some("runs what it reads");
            }
            "alias" | "hash" | "enable" | "bind" | "complete" => {
                self.unseen = Some("may give commands other names");
            }
            "mapfile" | "readarray" if find(words, |text| is_letter_of(text, "C")).is_some() => {
                self.unseen = Some("runs commands for what it reads");
            }
            "xargs" | "parallel" if hands_to_runner(words) => self.unseen = Some("runs what it reads"),
            _ => {}
        }
    }

    fn line(&mut self, line: Option<String>) {
        match line {
            Some(line) if !self.lines.contains(&line) => self.lines.push(line),
            Some(_) => {}
            None => self.unseen = Some("runs a text that is known only then"),
        }
    }

    /// Adds a shell, which runs a text, a file or its input.
    fn shell(&mut self, words: &[ShellWord]) {
        let option =
            words.iter().skip(1).position(|word| word.text().is_some_and(|text| is_letter_of(text, "c")));
        if let Some(at) = option {
            // Options in between decide which later word is the text.
            let later = &words[at + 2..];
            self.line(later.first().and_then(|word| word.text.clone()));
            let is_option = |word: &ShellWord| word.raw.starts_with(['-', '+']);
            if later.first().is_some_and(is_option) {
                later.iter().skip(1).for_each(|word| self.line(word.text.clone()));
            }
            return;
        }
        if find(words, |text| matches!(text, "--version" | "--help")).is_none() && !runs_file(words) {
            self.unseen = Some("starts a shell that runs what it reads");
        }
    }
}

/// Returns whether a shell gets a script file after options without values.
fn runs_file(words: &[ShellWord]) -> bool {
    let is_flag = |word: &&ShellWord| {
        let is_group = |text: &str| {
            text.strip_prefix('-')
                .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|flag| "euxlvnf".contains(flag)))
        };
        word.text().is_some_and(|text| {
            is_group(text) || ["--login", "--norc", "--noprofile", "--posix"].contains(&text)
        })
    };
    let script = words.iter().skip(1).find(|word| !is_flag(word));
    script.is_some_and(|word| !word.raw.starts_with(['-', '+']) && !is_stream(word))
}

/// Returns whether a word may stand for the input instead of a file.
fn is_stream(word: &ShellWord) -> bool {
    word.text().is_none_or(|text| text == "-" || text.starts_with("/dev/") || text.starts_with("/proc/"))
}

/// Returns whether the input becomes a command: as argument of a program that runs others, or as the program
/// name.
fn hands_to_runner(words: &[ShellWord]) -> bool {
    let raw = |idx: usize| words[idx].raw.as_str();
    let is_option = |idx: usize| raw(idx).starts_with('-');
    let is_value = |idx: usize| ["-I", "-J", "--replace"].contains(&raw(idx - 1));
    // Placeholder for the input words.
    let given = (1..words.len()).find_map(|idx| match raw(idx) {
        "-I" | "-J" => words.get(idx + 1).map(|word| word.raw.as_str()),
        text => text.strip_prefix("-I").or_else(|| text.strip_prefix("--replace=")),
    });
    let sign = given.unwrap_or("{}");
    let may_be_first = |idx: usize| (1..idx).all(|before| is_option(before) || is_option(before - 1));
    (1..words.len()).filter(|idx| may_be_first(*idx) && !is_option(*idx)).any(|idx| {
        let name = file_name(&words[idx]).unwrap_or_default();
        let is_runner = is_one_of(RUNNERS, name) || is_one_of(SHELLS, name);
        is_runner || (!is_value(idx) && !sign.is_empty() && raw(idx).contains(sign))
    })
}
