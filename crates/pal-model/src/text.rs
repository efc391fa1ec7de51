//! Numbers and texts formatted for people: digit grouping, counts with their noun, truncation, one-line texts.
//!
//! For human output only. Texts that a model reads are part of the prompt cache and keep their own formatting.

use std::borrow::Cow;

/// Formats a number with a comma between groups of three digits: `33,887`.
pub fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a token count in three digits or fewer: `850`, `9.4K`, `412K`, `1.2M`.
pub fn short_tokens(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..9_950 => format!("{:.1}K", tokens as f64 / 1e3),
        9_950..999_500 => format!("{:.0}K", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// Formats a count with its noun, which gets an `s` unless the count is 1: `1 file`, `1,200 files`.
pub fn count_noun(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", group_digits(count as u64), if count == 1 { "" } else { "s" })
}

/// Shortens a text to at most `max_chars` characters; the last of them is `…` if something was cut.
pub fn truncate_chars(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.char_indices().nth(max_chars).is_none() {
        return Cow::Borrowed(text);
    }
    let end = text.char_indices().nth(max_chars.saturating_sub(1)).map_or(0, |(at, _)| at);
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Returns the first `max_chars` characters of a text.
pub fn first_chars(text: &str, max_chars: usize) -> &str {
    text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end])
}

/// Keeps the first `kept_chars` characters of a text and appends `…` if something was cut.
pub fn cut_with_ellipsis(text: &str, kept_chars: usize) -> Cow<'_, str> {
    let head = first_chars(text, kept_chars);
    if head.len() < text.len() { Cow::Owned(format!("{head}…")) } else { Cow::Borrowed(text) }
}

/// Joins a text into one line: each run of white space becomes one space, none is left at the ends.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_characters_and_only_cut_texts_get_an_ellipsis() {
        assert_eq!((first_chars("äöü", 2), first_chars("äöü", 3), first_chars("ä", 0)), ("äö", "äöü", ""));
        let cut = ["äöü", "äö", ""].map(|text| cut_with_ellipsis(text, 2));
        assert_eq!(cut, ["äö…", "äö", ""]);
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [0, 999, 1_000, 33_887, 1_234_567].map(group_digits);
        assert_eq!(numbers, ["0", "999", "1,000", "33,887", "1,234,567"]);
        assert_eq!([count_noun(1, "file"), count_noun(1_200, "file")], ["1 file", "1,200 files"]);
    }

    #[test]
    fn truncation_counts_characters_and_marks_the_cut() {
        assert_eq!(truncate_chars("naïve", 5), "naïve");
        assert_eq!(truncate_chars("naïvely", 5), "naïv…");
        assert_eq!(one_line(" a\n\tb  c "), "a b c");
    }
}
