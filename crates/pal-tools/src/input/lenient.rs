//! Numbers and truths as models spell them: often in quotes, sometimes with a decimal point, or `null` for nothing.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// A whole number that is not negative, or nothing.
pub(crate) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(WholeNumber)
}

/// Yes or no; nothing is no.
pub(crate) fn yes_or_no<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(YesOrNo).map(|said| said.unwrap_or(false))
}

/// Yes, no or nothing.
pub(crate) fn perhaps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    deserializer.deserialize_any(YesOrNo)
}

struct WholeNumber;

impl Visitor<'_> for WholeNumber {
    type Value = Option<u64>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<u64>, E> {
        Ok(Some(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<u64>, E> {
        u64::try_from(number).map(Some).map_err(|_| E::invalid_type(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<u64>, E> {
        const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
        if number.fract() == 0.0 && (0.0..EXACT_MAX).contains(&number) {
            return Ok(Some(number as u64));
        }
        Err(E::invalid_type(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<u64>, E> {
        match text.trim() {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| E::invalid_type(Unexpected::Str(text), &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        Ok(None)
    }
}

struct YesOrNo;

impl Visitor<'_> for YesOrNo {
    type Value = Option<bool>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("true or false")
    }

    fn visit_bool<E: Error>(self, said: bool) -> Result<Option<bool>, E> {
        Ok(Some(said))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<bool>, E> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            "" => Ok(None),
            _ => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Option<bool>, E> {
        Ok(None)
    }
}
