//! Parsers of numbers on the command line, whose errors say what is expected.

use std::str::FromStr;

/// Parses a whole number.
pub(super) fn whole_number<T: FromStr>(text: &str) -> Result<T, &'static str> {
    text.parse()
        .map_err(|_| if is_digits(text) { "the number is too large" } else { "expected a whole number" })
}

/// Parses a whole number of at least 1.
pub(super) fn at_least_one(text: &str) -> Result<u64, &'static str> {
    match whole_number(text) {
        Ok(number) if number > 0 => Ok(number),
        Err(error) if is_digits(text) => Err(error),
        _ => Err("expected a whole number, at least 1"),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit())
}
