//! Terminal clean-up: drops escape sequences and keeps only the last drawn state of a line. Idempotent.

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

/// Removes escapes and redraws; line ends become `\n`.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_dirty = memchr::memchr3(0x1b, b'\r', 0x08, bytes).is_some() || text.contains('\u{9b}');
    if !is_dirty {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (line_idx, line) in text.split('\n').enumerate() {
        if line_idx > 0 {
            out.push('\n');
        }
        clean_line(&mut out, line);
    }
    Cow::Owned(out)
}

/// Appends the last state of a line: text after a carriage return overwrites what was drawn before.
fn clean_line(out: &mut String, line: &str) {
    let start = out.len();
    let mut returned = false;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            '\r' => returned = true,
            '\u{8}' => {
                if out.len() > start {
                    out.pop();
                }
            }
            ESCAPE => skip_escape(&mut characters),
            '\u{9b}' => skip_control(&mut characters),
            _ => {
                if returned {
                    out.truncate(start);
                    returned = false;
                }
                out.push(character);
            }
        }
    }
}

/// Skips the sequence behind an escape character.
fn skip_escape(characters: &mut std::str::Chars<'_>) {
    let mut ahead = characters.clone();
    match ahead.next() {
        Some('[') => {
            *characters = ahead;
            skip_control(characters);
        }
        // Titles and links: up to a bell or a string terminator. One that does not end on its line is no sequence.
        Some(']' | 'P' | '_' | '^') => {
            let mut body = ahead.clone();
            while let Some(character) = body.next() {
                if character == BELL {
                    *characters = body;
                    return;
                }
                if character == ESCAPE {
                    let mut end = body.clone();
                    if end.next() == Some('\\') {
                        *characters = end;
                    } else {
                        *characters = ahead;
                    }
                    return;
                }
            }
            *characters = ahead;
        }
        Some(' '..='/') => {
            ahead.next();
            *characters = ahead;
        }
        Some('0'..='~') => *characters = ahead,
        _ => {}
    }
}

/// Skips the parameters and the final character of a control sequence; a broken one ends where it breaks.
fn skip_control(characters: &mut std::str::Chars<'_>) {
    loop {
        let mut ahead = characters.clone();
        match ahead.next() {
            Some(' '..='?') => *characters = ahead,
            Some('@'..='~') => {
                *characters = ahead;
                return;
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_redraws_are_removed() {
        let table = [
            ("plain\ntext", "plain\ntext"),
            ("\u{1b}[1;31merror\u{1b}[0m: x", "error: x"),
            ("10%\r50%\r100%\nnext", "100%\nnext"),
            ("line\r\nnext\r\n", "line\nnext\n"),
            ("done\r\u{1b}[K", "done"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;https://a.b\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]no end of it", "no end of it"),
            ("|\u{8}/\u{8}-\u{8}ok", "ok"),
            ("\u{1b}(Bx\u{1b}7y\u{9b}2Kz", "xyz"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[31ünd", "ünd"),
        ];
        for (text, expected) in table {
            assert_eq!(clean(text), expected, "{text:?}");
            assert_eq!(clean(expected), expected);
        }
    }
}
