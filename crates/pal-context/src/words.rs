//! Words of reasons and of what the model reads: numbers that a person can read, and texts cut where a line ends.

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}

/// The beginning of a text: at most so many bytes, cut at a line end where one is near, never inside a character.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = &text[..text.floor_char_boundary(most)];
    match cut.rfind('\n') {
        Some(at) if at >= cut.len() / 2 => &cut[..at + 1],
        _ => cut,
    }
}

/// The end of a text, cut in the same way.
pub(crate) fn ending(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = &text[text.ceil_char_boundary(text.len() - most)..];
    match cut.find('\n') {
        Some(at) if at < cut.len() / 2 => &cut[at + 1..],
        _ => cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<String> = [0, 999, 1_000, 84_213, 1_000_000].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1 000", "84 213", "1 000 000"]);
        assert_eq!(
            (counted(1, "result"), counted(1_200, "result")),
            ("1 result".into(), "1 200 results".into())
        );
    }

    #[test]
    fn texts_are_cut_at_line_ends_and_never_inside_a_character() {
        assert_eq!(beginning("one\ntwo\nthree", 9), "one\ntwo\n");
        assert_eq!(beginning("a\nvery long line", 9), "a\nvery lo");
        assert_eq!(beginning("日本語", 4), "日");
        assert_eq!(beginning("short", 9), "short");
        assert_eq!(ending("one\ntwo\nthree", 8), "three");
        assert_eq!(ending("a very long line\nb", 9), "ng line\nb");
        assert_eq!(ending("日本語", 4), "語");
    }
}
