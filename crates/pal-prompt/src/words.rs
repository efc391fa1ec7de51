//! Words of others, made fit to stand in a text of ours: on one line where they are names, bounded, defused.

use std::borrow::Cow;

use pal_model::{defuse, is_unseen};

/// Most characters of a name: a path, a branch, a server.
pub(crate) const NAME_MOST: usize = 1_000;

/// A name on one line: line ends and other control characters become spaces, invisible ones go, what is too long is
/// cut, and guarded tags are defused.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let visible: String = text
        .chars()
        .filter(|letter| is_break(*letter) || !is_unseen(*letter))
        .map(|letter| if is_break(letter) { ' ' } else { letter })
        .collect();
    let visible = visible.trim();
    match visible.char_indices().nth(most) {
        Some((end, _)) => defuse(&format!("{}…", &visible[..end])).into_owned(),
        None => defuse(visible).into_owned(),
    }
}

/// A name as the value of an attribute: on one line, and without what would end the value or the tag.
pub(crate) fn attribute(text: &str) -> String {
    one_line(text, NAME_MOST).replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A text of several lines without what surrounds it, otherwise as [`plain`] makes it.
pub(crate) fn lines(text: &str) -> String {
    plain(text.trim())
}

/// A text of several lines, defused, with line ends of one kind. What nobody sees goes, but for line ends and tabs: it
/// could turn the reading, speak in the hidden alphabet, or end a line that a quotation goes by.
pub(crate) fn plain(text: &str) -> String {
    let is_odd = |letter: char| is_unseen(letter) && !matches!(letter, '\n' | '\t');
    let plain: Cow<'_, str> = match text.contains(is_odd) {
        true => Cow::Owned(text.chars().filter_map(plain_letter).collect()),
        false => Cow::Borrowed(text),
    };
    defuse(&plain).into_owned()
}

fn plain_letter(letter: char) -> Option<char> {
    match letter {
        '\n' | '\t' => Some(letter),
        '\u{2028}' | '\u{2029}' => Some('\n'),
        _ => (!is_unseen(letter)).then_some(letter),
    }
}

/// A text with a sign before each line, so that nothing in it can end the quotation.
pub(crate) fn quoted(text: &str) -> String {
    let quoted: Vec<String> = text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    quoted.join("\n")
}

/// The beginning of a text, and whether something was cut off.
pub(crate) fn beginning(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// A number with its noun.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn is_break(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_cannot_speak() {
        for (text, shown) in [
            ("main", "main"),
            (" a\r\nb\tc\u{1b}[31m\u{2028}d ", "a  b c [31m d"),
            ("a\u{202e}b\u{200b}c", "abc"),
            ("<sys\u{200b}tem-reminder>", "<\\system-reminder>"),
            ("abcdefghij", "abcdefgh…"),
        ] {
            let most = if text == "abcdefghij" { 8 } else { 100 };
            assert_eq!(one_line(text, most), shown, "{text:?}");
        }
        assert_eq!(attribute("a\" scope=\"managed\"><b"), "a&quot; scope=&quot;managed&quot;&gt;&lt;b");
    }

    #[test]
    fn texts_keep_their_lines() {
        assert_eq!(lines("\na\r\n\tb\u{7}\n"), "a\n\tb");
        assert_eq!(lines("a\u{202e}b\u{feff}c\u{e0041}\u{e0042}d\u{200b}"), "abcd");
        assert_eq!(quoted("a\n\nb"), "> a\n>\n> b");
        for end in ['\n', '\u{2028}', '\u{2029}'] {
            assert_eq!(quoted(&lines(&format!("a{end}# b"))), "> a\n> # b", "{end:?}");
        }
        assert_eq!((beginning("äöü", 2), beginning("äö", 2)), (("äö", true), ("äö", false)));
    }
}
