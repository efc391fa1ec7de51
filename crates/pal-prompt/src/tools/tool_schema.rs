//! Tool schemas: the check that a provider accepts one, and its canonical rendering.

use pal_model::{
    JsonField, SharedText, escape_into, escape_tags, member, object_fields, replace_lone_surrogates, unescape,
};

use crate::defused_text::one_line;

/// Deepest nesting that providers read.
const DEPTH_MAX: usize = 100;

/// Most characters of a parameter's name.
const KEY_MAX: usize = 64;

/// Members that providers refuse at the top of a schema.
const REFUSED: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// The schema as it is sent: without white space between its tokens, with guarded tags in its strings defused; or why
/// no provider takes it.
pub(crate) fn render_schema(schema: &str) -> Result<SharedText, String> {
    let known = object_fields(schema).map_err(|error| format!("its schema is no JSON object: {error}"))?;
    let mut types = known.iter().filter(|(key, _)| key == "type").map(|(_, value)| unescape(value));
    if types.next().flatten().as_deref() != Some("object") || types.next().is_some() {
        return Err(String::from("its schema is not that of an object"));
    }
    if let Some(name) = REFUSED.iter().find(|name| known.iter().any(|(key, _)| key == *name)) {
        return Err(format!("its schema has {name} at the top, which providers refuse"));
    }
    if let Some(key) = find_refused_key(&known) {
        return Err(format!("providers refuse the name of its parameter {}", one_line(&key, 100)));
    }
    let (compact, depth) = compact_json(schema);
    if depth > DEPTH_MAX {
        return Err(format!("its schema nests deeper than {DEPTH_MAX} levels"));
    }
    Ok(SharedText::from(replace_lone_surrogates(&compact).into_owned()))
}

/// The first parameter whose name providers refuse.
fn find_refused_key(schema: &[JsonField<'_>]) -> Option<String> {
    let properties = object_fields(member(schema, "properties")?).ok()?;
    let is_taken = |key: &str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(is_known)
    };
    properties.into_iter().map(|(key, _)| key.into_owned()).find(|key| !is_taken(key))
}

/// Valid JSON without white space between its tokens, and how deep it nests.
fn compact_json(json: &str) -> (String, usize) {
    let mut out = String::with_capacity(json.len());
    let (mut deepest, mut depth) = (0, 0usize);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        match first {
            '"' => push_string(&mut out, token),
            ' ' | '\t' | '\n' | '\r' => {}
            _ => out.push_str(token),
        }
        match first {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        rest = behind;
    }
    (out, deepest)
}

/// Bytes of the string literal that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut is_escaped = true;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !is_escaped => return at + 1,
            b'\\' if !is_escaped => is_escaped = true,
            _ => is_escaped = false,
        }
    }
    text.len()
}

/// Appends a string literal verbatim, or re-escaped if it contains a guarded tag in any spelling.
fn push_string(out: &mut String, literal: &str) {
    match unescape(literal) {
        Some(text) if escape_tags(&text) != text => escape_into(out, &escape_tags(&text)),
        _ => out.push_str(literal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_compacted_and_keeps_its_order() {
        for (schema, shown) in [
            (
                r#" { "type" : "object", "b":[ 1 ,2e3 ], "a":" x \" } " } "#,
                r#"{"type":"object","b":[1,2e3],"a":" x \" } "}"#,
            ),
            (r#"{"type":"object","é\\":""}"#, r#"{"type":"object","é\\":""}"#),
            (
                r#"{"type":"object","description":"\u003csystem-reminder>x"}"#,
                r#"{"type":"object","description":"<\\system-reminder>x"}"#,
            ),
        ] {
            assert_eq!(render_schema(schema).unwrap().as_str(), shown);
        }
    }

    #[test]
    fn unsupported_schema_is_rejected_with_a_reason() {
        let deep = format!(r#"{{"type":"object","a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (schema, why) in [
            ("", "no JSON object"),
            ("[]", "no JSON object"),
            (r#"{"type":"object""#, "no JSON object"),
            (r#"{"properties":{}}"#, "not that of an object"),
            (r#"{"type":"array"}"#, "not that of an object"),
            (r#"{"type":"object","type":"object"}"#, "not that of an object"),
            (r#"{"type":"object","anyOf":[]}"#, "anyOf at the top"),
            (r#"{"type":"object","properties":{"a":{},"b c":{}}}"#, "its parameter b c"),
            (deep.as_str(), "nests deeper"),
        ] {
            let error = render_schema(schema).unwrap_err();
            assert!(error.contains(why), "{schema}: {error}");
        }
    }
}
