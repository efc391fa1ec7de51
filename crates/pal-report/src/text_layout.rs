//! Text laid out in terminal columns: clipping, wrapping, and control characters made harmless.

/// Columns that every terminal has.
pub const DEFAULT_COLUMNS: usize = 80;

/// Returns the start of a text as one line of at most `columns` columns, ending in `…` if it was cut. White space collapses,
/// and control characters become dots, so that the text cannot drive a terminal.
pub fn clip_line(text: &str, columns: usize) -> String {
    let mut line = String::new();
    let mut taken = 0;
    // End of the line if the text must be clipped, leaving room for the ellipsis.
    let mut end = 0;
    let mut was_space = true;
    for character in text.chars() {
        let is_space = character.is_whitespace();
        if is_space && was_space {
            continue;
        }
        was_space = is_space;
        let character = if is_space { ' ' } else { sanitize_char(character) };
        let wide = char_columns(character);
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

/// Breaks a text into lines of at most `columns` columns, at spaces where possible. Control characters become dots.
pub fn wrap_lines(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut taken = 0;
    for word in text.split_whitespace() {
        let word: String = word.chars().map(sanitize_char).collect();
        let wide: usize = word.chars().map(char_columns).sum();
        if taken > 0 && taken + 1 + wide > columns {
            lines.push(std::mem::take(&mut line));
            taken = 0;
        }
        if taken > 0 {
            line.push(' ');
            taken += 1;
        }
        for character in word.chars() {
            let wide = char_columns(character);
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

/// Joins a name and a summary into one line of at most `columns` columns; the name is clipped first.
pub(crate) fn heading_line(name: &str, summary: &str, columns: usize) -> String {
    let room = columns.saturating_sub(summary.chars().count() + 2).max(12);
    clip_line(&format!("{}: {summary}", clip_line(name, room)), columns)
}

/// Replaces control characters by dots, so that file content cannot drive a terminal.
pub fn sanitize(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}

/// Replaces control characters except line ends and tabs by dots.
pub fn sanitize_lines(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '·' } else { c }).collect()
}

/// Replaces control characters and marks that change the writing direction by a dot.
fn sanitize_char(character: char) -> char {
    let turns =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if character.is_control() || turns { '·' } else { character }
}

/// Columns that a character occupies on a terminal.
fn char_columns(character: char) -> usize {
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
        text.chars().map(char_columns).sum()
    }

    #[test]
    fn a_line_never_passes_its_columns() {
        assert_eq!(clip_line("one\n  two\t three", 40), "one two three");
        assert_eq!(clip_line("exactly10!", 10), "exactly10!");
        assert_eq!(clip_line("eleven chars", 10), "eleven ch…");
        assert_eq!(clip_line("a\x1b[2Jb\u{202e}c", 40), "a·[2Jb·c");
        for text in ["漢字漢字漢字漢字", "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}", "🦀🦀🦀🦀🦀"]
        {
            for most in 1..12 {
                let line = clip_line(text, most);
                assert!(columns(&line) <= most, "{line} in {most}");
            }
        }
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(sanitize("a\x1b[2Jb\n"), "a·[2Jb·");
    }

    #[test]
    fn lines_break_at_words_and_lose_nothing() {
        assert_eq!(wrap_lines("a few words here", 9), ["a few", "words", "here"]);
        assert_eq!(wrap_lines("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap_lines("", 4), [""]);
        assert!(wrap_lines("漢字漢字 words and more 漢字", 7).iter().all(|line| columns(line) <= 7));
    }
}
