//! Second parser of a command line: finds words by quotes and operators alone.
//!
//! It knows less than a shell and refuses what it does not know. It shares no code with the grammar, so that
//! a line must deceive both in the same way.

use std::ops::Range;

use super::DEPTH_MAX;

/// Words of a line, including those inside substitutions.
#[derive(Default)]
pub(crate) struct WordSpans {
    /// Byte range of each word.
    pub(crate) spans: Vec<Range<usize>>,
    /// Byte offsets of words that start a command.
    pub(crate) heads: Vec<usize>,
}

/// Words after which another command may start.
const OPENERS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{"];

/// Finds the words of a line; `None` if it is not certain.
pub(crate) fn scan_words(source: &str) -> Option<WordSpans> {
    let mut scanner = WordScanner {
        source,
        at: 0,
        words: WordSpans::default(),
        heredocs: Vec::new(),
        depth: 0,
        next: WordRole::Head,
    };
    scanner.commands(ListEnd::Line)?;
    Some(scanner.words)
}

/// Role of the next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordRole {
    /// Start of a command.
    Head,
    /// Argument of a command.
    Argument,
    /// Target of a redirection; the role before it continues after it.
    RedirectTarget { is_head_after: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListEnd {
    Line,
    Parenthesis,
}

struct Heredoc {
    end: String,
    is_raw: bool,
    is_indented: bool,
}

struct WordScanner<'a> {
    source: &'a str,
    at: usize,
    words: WordSpans,
    next: WordRole,
    heredocs: Vec<Heredoc>,
    depth: usize,
}

impl WordScanner<'_> {
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

    /// Scans up to the end of a command list.
    fn commands(&mut self, end: ListEnd) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let around = std::mem::replace(&mut self.next, WordRole::Head);
        loop {
            let Some(character) = self.peek() else {
                self.depth -= 1;
                return (end == ListEnd::Line && self.heredocs.is_empty()).then_some(());
            };
            match character {
                ' ' | '\t' => self.at += 1,
                // A redirection target must come first.
                ';' | '&' | '|' | '\n' | '(' | ')'
                    if matches!(self.next, WordRole::RedirectTarget { .. }) =>
                {
                    return None;
                }
                '&' if self.left().starts_with("&>") => self.redirection()?,
                // Ends of `case` branches, which are not supported.
                ';' if self.left().starts_with(";;") || self.left().starts_with(";&") => return None,
                ';' | '&' | '|' => {
                    self.at += 1;
                    self.next = WordRole::Head;
                }
                '\\' if self.left().starts_with("\\\n") => self.at += 2,
                '\n' => {
                    self.at += 1;
                    self.next = WordRole::Head;
                    self.heredoc_bodies()?;
                }
                '#' => self.comment(),
                '(' if self.left().starts_with("((") => return None,
                '(' => {
                    self.at += 1;
                    self.commands(ListEnd::Parenthesis)?;
                    self.next = WordRole::Argument;
                }
                ')' if end == ListEnd::Parenthesis => {
                    self.at += 1;
                    self.depth -= 1;
                    self.next = around;
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
        if matches!(self.next, WordRole::RedirectTarget { .. }) {
            return None;
        }
        self.next = WordRole::RedirectTarget { is_head_after: self.next == WordRole::Head };
        if self.left().starts_with("<<") && !self.left().starts_with("<<<") {
            self.at += 2;
            return self.heredoc();
        }
        let operators = ["<<<", "&>>", "&>", ">>", ">|", ">&", "<&", "<>", ">", "<"];
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

    /// Scans the bodies of the heredocs announced in the line above.
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

    /// Scans the substitutions of an unquoted text.
    fn substitutions(&mut self, end: usize) -> Option<()> {
        while self.at < end {
            match self.bump()? {
                '\\' if self.peek() == Some('\n') => return None,
                '\\' => drop(self.bump()),
                '$' => self.dollar()?,
                // Quoting inside backticks has rules of its own.
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
                    self.commands(ListEnd::Parenthesis)?;
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
            self.words.spans.push(start..self.at);
            self.note(start);
        }
        Some(())
    }

    /// Records the word that ends here and the role of the next one.
    fn note(&mut self, start: usize) {
        let text = self.source.get(start..self.at).unwrap_or_default();
        self.next = match self.next {
            WordRole::Head => {
                self.words.heads.push(start);
                let is_name =
                    |character: char| character.is_ascii_alphanumeric() || "_+[]".contains(character);
                let is_setting = text.split_once('=').is_some_and(|(name, _)| name.chars().all(is_name));
                if is_setting || OPENERS.contains(&text) { WordRole::Head } else { WordRole::Argument }
            }
            WordRole::RedirectTarget { is_head_after: true } => WordRole::Head,
            WordRole::Argument | WordRole::RedirectTarget { is_head_after: false } => WordRole::Argument,
        };
    }

    /// Scans what follows a special character inside a word.
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
                // Quoting inside backticks has rules of its own.
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
            return self.commands(ListEnd::Parenthesis);
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
