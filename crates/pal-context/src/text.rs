//! Formatting of texts that the model reads. The formats are part of the prompt cache: do not change them.

/// Groups digits by spaces: `33 887`.
pub(crate) fn group_by_spaces(number: u64) -> String {
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

/// Beginning of a text: at most `most` bytes, cut at a line end if one is near, never inside a character.
pub(crate) fn text_head(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let cut = &text[..text.floor_char_boundary(most)];
    match cut.rfind('\n') {
        Some(at) if at >= cut.len() / 2 => &cut[..at + 1],
        _ => cut,
    }
}

/// End of a text, cut in the same way.
pub(crate) fn text_tail(text: &str, most: usize) -> &str {
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
        let shown: Vec<String> = [0, 999, 1_000, 84_213, 1_000_000].map(group_by_spaces).into();
        assert_eq!(shown, ["0", "999", "1 000", "84 213", "1 000 000"]);
    }

    #[test]
    fn texts_are_cut_at_line_ends_and_never_inside_a_character() {
        assert_eq!(text_head("one\ntwo\nthree", 9), "one\ntwo\n");
        assert_eq!(text_head("a\nvery long line", 9), "a\nvery lo");
        assert_eq!(text_head("日本語", 4), "日");
        assert_eq!(text_head("short", 9), "short");
        assert_eq!(text_tail("one\ntwo\nthree", 8), "three");
        assert_eq!(text_tail("a very long line\nb", 9), "ng line\nb");
        assert_eq!(text_tail("日本語", 4), "語");
    }
}
