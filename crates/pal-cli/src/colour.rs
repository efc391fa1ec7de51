//! Colours and columns of a terminal: only where a person looks, and never more than fits.

use std::io::IsTerminal;

use crate::arguments::ColourName;

/// Columns that every terminal has.
pub(crate) const COLUMNS: usize = 80;

/// Whether and how text is coloured.
#[derive(Clone, Copy)]
pub(crate) struct Colours {
    is_on: bool,
}

impl Colours {
    /// What the user asked for; by default colours on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn of(choice: ColourName) -> Colours {
        let is_on = match choice {
            ColourName::Always => true,
            ColourName::Never => false,
            ColourName::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        };
        Colours { is_on }
    }

    pub(crate) fn is_on(self) -> bool {
        self.is_on
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.painted("2", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.painted("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.painted("36", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.painted("32", text)
    }

    /// A text in a colour or style by its code.
    pub(crate) fn painted(self, code: &str, text: &str) -> String {
        if self.is_on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Columns of the terminal that our output goes to; as many as every terminal has if it goes elsewhere.
pub(crate) fn columns() -> usize {
    let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
    width.map_or(COLUMNS, |width| width.clamp(40, 240))
}

/// The beginning of a text in one line of at most so many columns, without anything that drives a terminal.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    let mut line = String::new();
    let mut taken = 0;
    // Where the line must end if the text goes on, for the sign that it does.
    let mut end = 0;
    let mut was_space = true;
    for character in text.chars() {
        let is_space = character.is_whitespace();
        if is_space && was_space {
            continue;
        }
        was_space = is_space;
        let character = if is_space { ' ' } else { harmless_character(character) };
        let wide = columns_of(character);
        if taken + wide > columns {
            line.truncate(end);
            line.push('…');
            return line;
        }
        line.push(character);
        taken += wide;
        if taken < columns {
            end = line.len();
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// A text in lines of at most so many columns, broken at spaces where there are any.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut taken = 0;
    for word in text.split_whitespace() {
        let word: String = word.chars().map(harmless_character).collect();
        let wide: usize = word.chars().map(columns_of).sum();
        if taken > 0 && taken + 1 + wide > columns {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        for character in word.chars() {
            let wide = columns_of(character);
            if taken + wide > columns {
                lines.push(std::mem::take(&mut line));
                taken = 0;
            }
            line.push(character);
            taken += wide;
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Controls, and marks that turn the direction of writing, become a dot.
fn harmless_character(character: char) -> char {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || turns { '·' } else { character }
}

/// Columns that a character takes on a terminal.
fn columns_of(character: char) -> usize {
    match character as u32 {
        0x300..=0x36f | 0x200b..=0x200d | 0xfe00..=0xfe0f | 0x20d0..=0x20f0 => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(text: &str) -> usize {
        text.chars().map(columns_of).sum()
    }

    #[test]
    fn a_line_never_passes_its_columns() {
        assert_eq!(clipped("one\n  two\t three", 40), "one two three");
        assert_eq!(clipped("exactly10!", 10), "exactly10!");
        assert_eq!(clipped("eleven chars", 10), "eleven ch…");
        assert_eq!(clipped("a\x1b[2Jb\u{202e}c", 40), "a·[2Jb·c");
        for text in ["漢字漢字漢字漢字", "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", "🦀🦀🦀🦀🦀"]
        {
            for most in 1..12 {
                let line = clipped(text, most);
                assert!(columns(&line) <= most, "{line} in {most}");
            }
        }
    }

    #[test]
    fn lines_break_at_words_and_lose_nothing() {
        assert_eq!(wrapped("a few words here", 9), ["a few", "words", "here"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("", 4), [""]);
        assert!(wrapped("漢字漢字 words and more 漢字", 7).iter().all(|line| columns(line) <= 7));
    }
}
