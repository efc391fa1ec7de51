//! Distinctive words of a text: paths, numbers and identifiers, nothing that prose is made of.

/// Minimum length of a distinctive word, in bytes.
const WORD_MIN: usize = 6;

/// Distinctive words of a text, in order.
pub fn distinctive_words(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/');
    let words = text.split(move |letter| !is_part(letter)).map(|word| word.trim_matches(['.', '-', '/']));
    words.filter(|word| {
        let inner = |letter: char| {
            letter.is_ascii_digit() || matches!(letter, '/' | '_' | '.') || letter.is_uppercase()
        };
        word.len() >= WORD_MIN && word.chars().skip(1).any(inner)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinctive_words_are_paths_numbers_and_identifiers() {
        let text = "see src/lib.rs:42, the value parse_line of HttpServer was 123456. Nothing more.";
        let found: Vec<&str> = distinctive_words(text).collect();
        assert_eq!(found, ["src/lib.rs", "parse_line", "HttpServer", "123456"]);
    }
}
