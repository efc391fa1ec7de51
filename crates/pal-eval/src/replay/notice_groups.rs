//! Groups notices that differ only in numbers, so that each is reported once.

/// Maximum kinds of notices that are reported.
const NOTICES_MAX: usize = 40;

/// Notices in the order of their first, those that differ only in numbers as one: the first of them, and how many more
/// there are.
pub fn group_notices(notices: Vec<String>) -> Vec<String> {
    let mut groups: Vec<(String, String, usize)> = Vec::new();
    for notice in notices {
        let shape = without_numbers(&notice);
        match groups.iter_mut().find(|(known, ..)| *known == shape) {
            Some((_, _, more)) => *more += 1,
            None => groups.push((shape, notice, 0)),
        }
    }
    let told = groups.into_iter().take(NOTICES_MAX).map(|(_, first, more)| match more {
        0 => first,
        more => format!("{first} (and {more} more like it)"),
    });
    told.collect()
}

/// A text with one mark for every number in it.
fn without_numbers(text: &str) -> String {
    let mut shape = String::new();
    for character in text.chars() {
        if !character.is_ascii_digit() {
            shape.push(character);
        } else if !shape.ends_with('\0') {
            shape.push('\0');
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_that_differ_only_in_numbers_are_grouped() {
        let told =
            |notices: &[&str]| group_notices(notices.iter().map(|notice| (*notice).to_owned()).collect());
        assert_eq!(told(&[]), [""; 0]);
        assert_eq!(
            told(&[
                "request 9: 1205 tokens are too many",
                "the model is unknown",
                "request 10: 7 tokens are too many",
                "request 11: the disk is full",
                "request 120: 88 tokens are too many",
            ]),
            [
                "request 9: 1205 tokens are too many (and 2 more like it)",
                "the model is unknown",
                "request 11: the disk is full",
            ]
        );
        assert_eq!(told(&["a 1 b", "a b", "a 1 1 b"]).len(), 3, "numbers are not just left out");
        let kinds = (0..100).map(|kind| "x".repeat(kind)).collect();
        assert_eq!(group_notices(kinds).len(), NOTICES_MAX);
    }
}
