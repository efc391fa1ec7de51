//! Reads selected fields of JSON objects in one pass, as raw slices of the source.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Raw field values, in the order of the requested names.
pub(crate) type RawFields<'a, const N: usize> = [Option<&'a str>; N];

/// Raw values of the fields `names` of a JSON object; the last value of a repeated key.
pub(crate) fn pick<'a, const N: usize>(
    json: &'a str,
    names: &[&str; N],
) -> Result<RawFields<'a, N>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let picked = reader.deserialize_map(FieldsVisitor(names))?;
    reader.end()?;
    Ok(picked)
}

/// Raw values of the fields `names` of each object in a JSON array.
pub(crate) fn pick_each<'a, const N: usize>(
    json: &'a str,
    names: &[&str; N],
) -> Result<Vec<RawFields<'a, N>>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(json);
    let picked = reader.deserialize_seq(ObjectsVisitor(names))?;
    reader.end()?;
    Ok(picked)
}

/// Like [`pick`], but finds nothing in JSON that is not an object.
pub(crate) fn pick_or_none<'a, const N: usize>(json: &'a str, names: &[&str; N]) -> RawFields<'a, N> {
    pick(json, names).unwrap_or([None; N])
}

/// Decoded string; `None` if it is not a string, or empty.
pub(crate) fn string(raw: Option<&str>) -> Option<Cow<'_, str>> {
    raw.and_then(pal_model::unescape).filter(|text| !text.is_empty())
}

/// True if a raw value is `true`.
pub(crate) fn is_true(raw: Option<&str>) -> bool {
    raw == Some("true")
}

/// Parses a raw unsigned number.
pub(crate) fn count(raw: Option<&str>) -> Option<u64> {
    raw?.parse().ok()
}

struct FieldsVisitor<'n, const N: usize>(&'n [&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for FieldsVisitor<'_, N> {
    type Value = RawFields<'de, N>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [None; N];
        while let Some(found) = map.next_key_seed(FieldIndexSeed(self.0))? {
            match found {
                Some(at) => values[at] = Some(map.next_value::<&'de RawValue>()?.get()),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(values)
    }
}

impl<'de, const N: usize> DeserializeSeed<'de> for FieldsVisitor<'_, N> {
    type Value = RawFields<'de, N>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

struct ObjectsVisitor<'n, const N: usize>(&'n [&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for ObjectsVisitor<'_, N> {
    type Value = Vec<RawFields<'de, N>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut objects = Vec::with_capacity(1);
        while let Some(object) = list.next_element_seed(FieldsVisitor(self.0))? {
            objects.push(object);
        }
        Ok(objects)
    }
}

/// Index of a key among the names.
struct FieldIndexSeed<'n, const N: usize>(&'n [&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for FieldIndexSeed<'_, N> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<const N: usize> Visitor<'_> for FieldIndexSeed<'_, N> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_repeated_key_wins_and_the_rest_is_skipped() {
        let [b, none, c] = pick(r#"{"a":{"b":1},"b":1,"c":[1 ],"b":2}"#, &["b", "x", "c"]).unwrap();
        assert_eq!((b, none, c), (Some("2"), None, Some("[1 ]")));
        assert!(pick("[1]", &["a"]).is_err());
        assert!(pick("{} {}", &["a"]).is_err());
    }
}
