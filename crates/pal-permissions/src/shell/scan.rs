//! Where words begin and end, by quotes and operators alone: the second reader of a command line.
//!
//! It knows less than a shell and refuses what it does not know. It shares nothing with the grammar, so that a line has
//! to deceive both in the same way.

use std::ops::Range;

use super::DEPTH_MAX;

/// The words of a line, also those inside substitutions; nothing if it cannot be told.
pub(crate) fn words(source: &str) -> Option<Vec<Range<usize>>> {
    let mut scanner = Scanner { source, at: 0, words: Vec::new(), heredocs: Vec::new(), depth: 0 };
    scanner.commands(End::Line)?;
    Some(scanner.words)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Line,
    Parenthesis,
}

struct Heredoc {
    end: String,
    is_raw: bool,
    is_indented: bool,
}

struct Scanner<'a> {
    source: &'a str,
    at: usize,
    words: Vec<Range<usize>>,
    heredocs: Vec<Heredoc>,
    depth: usize,
}

impl Scanner<'_> {
    fn left(&self) -> &str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.left().chars().next()
    }

    fn skip(&mut self, text: &str) -> bool {
        let is_there = self.left().starts_with(text);
        if is_there {
            self.at += text.len();
        }
        is_there
    }

    fn bump(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Everything up to the end of a list of commands.
    fn commands(&mut self, end: End) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        loop {
            let Some(character) = self.peek() else {
                self.depth -= 1;
                return (end == End::Line && self.heredocs.is_empty()).then_some(());
            };
            match character {
                ' ' | '\t' | ';' | '&' | '|' => self.at += 1,
                '\\' if self.left().starts_with("\\\n") => self.at += 2,
                '\n' => {
                    self.at += 1;
                    self.heredoc_bodies()?;
                }
                '#' => self.comment(),
                '(' if self.left().starts_with("((") => return None,
                '(' => {
                    self.at += 1;
                    self.commands(End::Parenthesis)?;
                }
                ')' if end == End::Parenthesis => {
                    self.at += 1;
                    self.depth -= 1;
                    return self.heredocs.is_empty().then_some(());
                }
                ')' => return None,
                '<' | '>' => self.redirection()?,
                _ => self.word()?,
            }
        }
    }

    fn comment(&mut self) {
        self.at += self.left().find('\n').unwrap_or(self.left().len());
    }

    fn redirection(&mut self) -> Option<()> {
        if self.left().starts_with("<(") || self.left().starts_with(">(") {
            return self.word();
        }
        if self.skip("<<<") {
            return Some(());
        }
        if self.skip("<<") {
            return self.heredoc();
        }
        let operators = [">>", ">|", ">&", "<&", "<>", ">", "<"];
        operators.iter().any(|operator| self.skip(operator)).then_some(())
    }

    fn heredoc(&mut self) -> Option<()> {
        let is_indented = self.skip("-");
        while self.skip(" ") || self.skip("\t") {}
        let start = self.at;
        self.word()?;
        let written = self.source.get(start..self.at)?;
        let bare = written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let bare = bare.or_else(|| written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')));
        let end = bare.unwrap_or(written);
        let is_simple = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if end.is_empty() || !end.chars().all(is_simple) || !self.heredocs.is_empty() {
            return None;
        }
        self.heredocs.push(Heredoc { end: String::from(end), is_raw: bare.is_some(), is_indented });
        Some(())
    }

    /// The bodies of what was announced in the line above.
    fn heredoc_bodies(&mut self) -> Option<()> {
        for heredoc in std::mem::take(&mut self.heredocs) {
            let (start, mut end) = (self.at, self.at);
            loop {
                let line = self.source.get(end..)?.split_inclusive('\n').next()?;
                let bare = line.strip_suffix('\n').unwrap_or(line);
                let bare = if heredoc.is_indented { bare.trim_start_matches('\t') } else { bare };
                if bare == heredoc.end {
                    if !heredoc.is_raw {
                        self.at = start;
                        self.substitutions(end)?;
                    }
                    self.at = end + line.len();
                    break;
                }
                end += line.len();
            }
        }
        Some(())
    }

    /// What is put into a text without quotation marks around it.
    fn substitutions(&mut self, end: usize) -> Option<()> {
        while self.at < end {
            match self.bump()? {
                '\\' if self.peek() == Some('\n') => return None,
                '\\' => drop(self.bump()),
                '$' => self.dollar()?,
                // Quoting inside of backticks is a language of its own.
                '`' => return None,
                _ => {}
            }
        }
        (self.at == end).then_some(())
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(character) = self.peek() {
            match character {
                '<' | '>' if self.at == start => {
                    self.at += 2;
                    self.commands(End::Parenthesis)?;
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                _ => {
                    self.at += character.len_utf8();
                    self.piece(character)?;
                }
            }
        }
        let is_descriptor = self.left().starts_with(['<', '>'])
            && self.source.get(start..self.at)?.chars().all(|character| character.is_ascii_digit());
        if !is_descriptor {
            self.words.push(start..self.at);
        }
        Some(())
    }

    /// What follows a character inside a word.
    fn piece(&mut self, character: char) -> Option<()> {
        match character {
            '\\' => self.bump().map(drop),
            '\'' => {
                self.at += self.left().find('\'')? + 1;
                Some(())
            }
            '"' => self.quoted(),
            '$' => self.dollar(),
            '`' => None,
            _ => Some(()),
        }
    }

    fn quoted(&mut self) -> Option<()> {
        loop {
            match self.bump()? {
                '"' => return Some(()),
                '\\' => drop(self.bump()?),
                '$' => self.dollar()?,
                // Quoting inside of backticks is a language of its own.
                '`' => return None,
                _ => {}
            }
        }
    }

    fn dollar(&mut self) -> Option<()> {
        if self.left().starts_with("((") {
            let end = self.left().find("))")?;
            let inside = self.left().get(2..end)?;
            let is_number = |character: char| character.is_ascii_digit() || "+-*/% ".contains(character);
            let is_plain = inside.chars().all(is_number);
            self.at += end + 2;
            return is_plain.then_some(());
        }
        if self.skip("(") {
            return self.commands(End::Parenthesis);
        }
        if self.skip("{") {
            let end = self.left().find('}')?;
            let name = self.left().get(..end)?;
            let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
            let is_plain = !name.is_empty() && name.chars().all(is_name);
            self.at += end + 1;
            return is_plain.then_some(());
        }
        // `$'…'` and `$"…"` have quoting of their own, `$[…]` calculates.
        let is_known = !self.left().starts_with(['\'', '[']);
        is_known.then_some(())
    }
}
