//! Cleans texts of servers: bounded, without invisible characters.

use pal_model::is_invisible;

/// Maximum bytes of a description, and of a name.
pub(crate) const DESCRIPTION_MAX: usize = 2 * 1024;
pub(crate) const NAME_MAX: usize = 128;

/// Removes control and invisible characters, but keeps line ends and tabs.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut clean = String::new();
    for letter in text.trim().chars() {
        let letter = match letter {
            '\n' | '\t' => letter,
            '\u{2028}' | '\u{2029}' => '\n',
            _ if letter.is_control() || is_invisible(letter) => continue,
            _ => letter,
        };
        if clean.len() + letter.len_utf8() > most {
            clean.push('…');
            break;
        }
        clean.push(letter);
    }
    clean
}

/// Same as [`clean`], on one line.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    clean(text, most).replace(['\n', '\t'], " ")
}

/// Name as it appears in tool and command names.
pub(crate) fn tool_name_part(name: &str) -> String {
    name.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed_and_length_is_bounded() {
        assert_eq!(clean("a\u{1b}[31mb\r\n\tc\u{0}\u{202e}d\u{2028}e ", 100), "a[31mb\n\tcd\ne");
        assert_eq!(clean("äöü", 4), "äö…");
        assert_eq!(one_line("a\nb\tc", 10), "a b c");
    }
}
