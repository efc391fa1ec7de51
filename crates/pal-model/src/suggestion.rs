//! Suggestions for mistyped words, used in error messages.

/// Returns the end of an error about an unknown word: `; did you mean …?` with the closest known word, else a full stop.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    closest_word(word, known).map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"))
}

/// Returns the known word with the smallest edit distance, if it is at most a quarter of the length plus one.
pub fn closest_word<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).map(|letter| letter.to_ascii_lowercase()).collect();
    let most = if word.len() < 4 { 1 } else { word.len() / 4 + 1 };
    known
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, ignoring ASCII case.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (at, letter) in candidate.chars().map(|letter| letter.to_ascii_lowercase()).enumerate() {
        let mut diagonal = at;
        let mut left = at + 1;
        for (cell, wanted) in row.iter_mut().skip(1).zip(word) {
            let above = *cell;
            let best = (diagonal + usize::from(*wanted != letter)).min(above + 1).min(left + 1);
            diagonal = above;
            left = best;
            *cell = best;
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or(candidate.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_match_and_unrelated_words_do_not() {
        let known = ["cut", "split", "malformed", "retry-after", "Stop"];
        let cases = [
            ("splt", Some("split")),
            ("malfromed", Some("malformed")),
            ("slpit", Some("split")),
            ("Retry_after", Some("retry-after")),
            ("Sotp", Some("Stop")),
        ];
        for (word, wanted) in cases {
            assert_eq!(closest_word(word, &known), wanted, "{word}");
        }
        assert_eq!(closest_word("bananas", &known), None);
        assert_eq!(distance(&['k', 'i', 't', 't', 'e', 'n'], "sitting"), 3);
        assert_eq!(distance(&[], "abc"), 3);
    }
}
