//! The known word that a mistyped one is nearest to, for errors that say what to write instead.

/// The end of a sentence about an unknown word: a question for the nearest known one, if one is near.
pub fn meant(word: &str, known: &[&str]) -> String {
    nearest(word, known).map_or(".".to_owned(), |near| format!("; did you mean `{near}`?"))
}

/// The nearest of the known words, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).map(|letter| letter.to_ascii_lowercase()).collect();
    let most = if word.len() < 4 { 1 } else { word.len() / 4 + 1 };
    known
        .iter()
        .map(|candidate| (distance(&word, candidate), *candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, taken out or replaced, great or small.
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
    fn a_slip_is_understood_and_a_stranger_is_not() {
        let known = ["cut", "split", "malformed", "retry-after", "Stop"];
        let cases = [
            ("splt", Some("split")),
            ("malfromed", Some("malformed")),
            ("slpit", Some("split")),
            ("Retry_after", Some("retry-after")),
            ("Sotp", Some("Stop")),
        ];
        for (word, wanted) in cases {
            assert_eq!(nearest(word, &known), wanted, "{word}");
        }
        assert_eq!(nearest("bananas", &known), None);
        assert_eq!(distance(&['k', 'i', 't', 't', 'e', 'n'], "sitting"), 3);
        assert_eq!(distance(&[], "abc"), 3);
    }
}
