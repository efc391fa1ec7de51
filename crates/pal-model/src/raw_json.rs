//! JSON without trees: the fields of objects and items of arrays as raw slices, and string escaping. Raw slices keep
//! unknown parts byte for byte.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// A field of an object: the unescaped key and the raw value.
pub type JsonField<'a> = (Cow<'a, str>, &'a str);

/// Error of parsing JSON.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(#[from] serde_json::Error);

/// Returns the fields of a JSON object in order; repeated keys stay repeated.
pub fn object_fields(json: &str) -> Result<Vec<JsonField<'_>>, JsonError> {
    struct FieldsVisitor;
    impl<'de> Visitor<'de> for FieldsVisitor {
        type Value = Vec<JsonField<'de>>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<JsonField<'de>>, A::Error> {
            let mut fields = Vec::with_capacity(8);
            while let Some(JsonKey(key)) = map.next_key()? {
                fields.push((key, map.next_value::<&'de RawValue>()?.get()));
            }
            Ok(fields)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    let fields = reader.deserialize_map(FieldsVisitor)?;
    reader.end()?;
    Ok(fields)
}

/// Returns the raw value of a field; of repeated keys, the last one counts.
pub fn member<'a>(fields: &[JsonField<'a>], name: &str) -> Option<&'a str> {
    fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
}

/// Returns the unescaped value of a string field; of repeated keys, the last one counts.
pub fn member_string<'a>(fields: &[JsonField<'a>], name: &str) -> Option<Cow<'a, str>> {
    member(fields, name).and_then(unescape)
}

/// Returns the items of a JSON array as raw slices.
pub fn array_items(json: &str) -> Result<Vec<&str>, JsonError> {
    struct ItemsVisitor;
    impl<'de> Visitor<'de> for ItemsVisitor {
        type Value = Vec<&'de str>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<&'de str>, A::Error> {
            let mut items = Vec::with_capacity(list.size_hint().unwrap_or(2).min(64));
            while let Some(item) = list.next_element::<&'de RawValue>()? {
                items.push(item.get());
            }
            Ok(items)
        }
    }
    let mut reader = serde_json::Deserializer::from_str(json);
    let items = reader.deserialize_seq(ItemsVisitor)?;
    reader.end()?;
    Ok(items)
}

/// A key, borrowed if it has no escapes.
struct JsonKey<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for JsonKey<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonKey<'de>, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = JsonKey<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonKey<'de>, E> {
                Ok(JsonKey(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonKey<'de>, E> {
                Ok(JsonKey(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Returns the value of a JSON string literal; none if `json` is not one. A lone surrogate becomes U+FFFD.
pub fn unescape(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let Some(first) = memchr::memchr2(b'\\', b'"', inner.as_bytes()) else {
        return Some(Cow::Borrowed(inner));
    };
    let mut text = String::with_capacity(inner.len());
    let mut from = 0;
    let mut at = first;
    loop {
        text.push_str(&inner[from..at]);
        from = at + 2;
        match inner.as_bytes().get(at..at + 2)? {
            b"\\n" => text.push('\n'),
            b"\\\"" => text.push('"'),
            b"\\\\" => text.push('\\'),
            b"\\/" => text.push('/'),
            b"\\t" => text.push('\t'),
            b"\\r" => text.push('\r'),
            b"\\b" => text.push('\u{8}'),
            b"\\f" => text.push('\u{c}'),
            b"\\u" => from = push_unit(&mut text, inner.as_bytes(), at)?,
            _ => return None,
        }
        match memchr::memchr2(b'\\', b'"', &inner.as_bytes()[from..]) {
            Some(next) => at = from + next,
            None => break,
        }
    }
    text.push_str(&inner[from..]);
    Some(Cow::Owned(text))
}

/// Appends the character of the `\u` escape at `at`, combined with a following low surrogate; returns the end offset.
fn push_unit(text: &mut String, json: &[u8], at: usize) -> Option<usize> {
    let unit = unit_at(json, at)?;
    let low = unit_at(json, at + 6).filter(|low| (0xdc00..0xe000).contains(low));
    match (unit, low) {
        (0xd800..0xdc00, Some(low)) => {
            text.extend(char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)));
            Some(at + 12)
        }
        _ => {
            text.push(char::from_u32(unit).unwrap_or('\u{fffd}'));
            Some(at + 6)
        }
    }
}

/// Appends `text` to `out` as a JSON string literal, quotes included.
pub fn escape_into(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x00..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[from..at]);
        from = at + 1;
        if short.is_empty() {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.push_str("\\u00");
            out.push(DIGITS[usize::from(byte >> 4)] as char);
            out.push(DIGITS[usize::from(byte & 15)] as char);
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
}

/// Returns true if a string in `json` contains an unpaired surrogate escape, which providers refuse.
pub fn has_lone_surrogate(json: &str) -> bool {
    first_lone_surrogate(json.as_bytes(), 0).is_some()
}

/// Replaces every unpaired surrogate escape by the escape of U+FFFD.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let Some(mut lone) = first_lone_surrogate(json.as_bytes(), 0) else { return Cow::Borrowed(json) };
    let mut mended = String::with_capacity(json.len());
    let mut from = 0;
    loop {
        mended.push_str(&json[from..lone]);
        mended.push_str("\\ufffd");
        from = lone + 6;
        match first_lone_surrogate(json.as_bytes(), from) {
            Some(next) => lone = next,
            None => break,
        }
    }
    mended.push_str(&json[from..]);
    Cow::Owned(mended)
}

/// Offset of the first unpaired `\uD8xx`–`\uDFxx` at or after `from`.
fn first_lone_surrogate(json: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = json.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
        at += found;
        match surrogate_at(json, at) {
            Some(unit) if unit < 0xdc00 && surrogate_at(json, at + 6).is_some_and(|low| low >= 0xdc00) => {
                at += 12;
            }
            Some(_) => return Some(at),
            None => at += 2,
        }
    }
    None
}

/// Code unit of the `\u` escape at `at`, if it is a surrogate.
fn surrogate_at(json: &[u8], at: usize) -> Option<u32> {
    unit_at(json, at).filter(|unit| (0xd800..0xe000).contains(unit))
}

/// Code unit of the `\u` escape at `at`.
fn unit_at(json: &[u8], at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | (*digit as char).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_order_repeats_and_bytes() {
        let read = object_fields(r#" {"b": 1e2, "a\n":[1 , 2],"b":23456789012345678901234567} "#).unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(key, value)| (key.as_ref(), *value)).collect();
        assert_eq!(read, [("b", "1e2"), ("a\n", "[1 , 2]"), ("b", "23456789012345678901234567")]);
        assert!(object_fields("[]").is_err());
        assert!(object_fields("{} {}").is_err());
        assert!(object_fields(&"[".repeat(1 << 20)).is_err());
    }

    #[test]
    fn strings_round_trip() {
        for text in ["", "plain", "a\"b\\c\n\r\t\u{1}\u{7f}é漢🙂"] {
            let mut json = String::new();
            escape_into(&mut json, text);
            assert_eq!(unescape(&json).unwrap(), text);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
        for json in [r#""\u00e9\ud83d\ude42\/\b\f""#, r#""\u0000""#] {
            assert_eq!(unescape(json).unwrap(), serde_json::from_str::<String>(json).unwrap());
        }
        for json in ["12", "\"", r#""a"b""#, r#""\""#, r#""\x""#, r#""\u12""#, r#""\u+123""#] {
            assert_eq!(unescape(json), None, "{json}");
        }
    }

    #[test]
    fn lone_surrogates_are_found_and_replaced() {
        assert!(!has_lone_surrogate(r#""\ud83d\ude42 \\ud83d""#));
        assert!(has_lone_surrogate(r#""a\ud83d""#));
        assert!(has_lone_surrogate(r#""\ude42\ud83d""#));
        assert_eq!(
            replace_lone_surrogates(r#"["\ud83dx","\ud83d\ude42","\\\ud83d"]"#),
            r#"["\ufffdx","\ud83d\ude42","\\\ufffd"]"#
        );
        assert_eq!(unescape(r#""x\ud83dy""#).unwrap(), "x\u{fffd}y");
    }
}
