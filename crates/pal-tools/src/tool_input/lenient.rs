//! Lenient numbers and booleans as models write them: quoted, with a decimal point, or `null`.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// Non-negative whole number, or `None`.
pub(crate) fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(LenientNumber)
}

/// Boolean; missing is false.
pub(crate) fn bool_or_false<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(LenientBool).map(|said| said.unwrap_or(false))
}

/// Boolean or `None`.
pub(crate) fn optional_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    deserializer.deserialize_any(LenientBool)
}

struct LenientNumber;

impl Visitor<'_> for LenientNumber {
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

struct LenientBool;

impl Visitor<'_> for LenientBool {
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
