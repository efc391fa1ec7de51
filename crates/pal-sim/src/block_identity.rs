//! Identity of JSON blocks.
//!
//! Identity for the cache ignores the block's breakpoint, white space, escapes and the order of the
//! provider's own fields, but not the order of keys inside client JSON (a call's input, a schema). Identity
//! for bound thinking ignores that order too.

use std::borrow::Cow;

use pal_model::escape_into;
use pal_wire::{JsonNode, NodeType, RequestDocument};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// Hash of a sequence, from the hash of all members but the last and that member.
pub(crate) fn mix(before: u128, member: u128) -> u128 {
    let mut bytes = [0; 32];
    let (first, second) = bytes.split_at_mut(16);
    first.copy_from_slice(&before.to_le_bytes());
    second.copy_from_slice(&member.to_le_bytes());
    xxh3_128(&bytes)
}

/// Hash of JSON by value: white space and key order do not count.
pub(crate) fn hash_by_value(json: &str) -> u128 {
    let wrapped = format!(r#"{{"value":{json}}}"#);
    match RequestDocument::new(wrapped.as_bytes(), usize::MAX) {
        Ok(reading) => binding_identity(reading.root()),
        Err(_) => xxh3_128(json.as_bytes()),
    }
}

/// Fields whose value is client JSON.
const FREE: &[&str] = &["input", "input_schema", "input_examples", "schema"];

/// Identity of a block for the cache.
pub(crate) fn cache_identity(block: JsonNode<'_>) -> u128 {
    identity(block, true)
}

/// Identity of a block for bound thinking.
pub(crate) fn binding_identity(block: JsonNode<'_>) -> u128 {
    identity(block, false)
}

fn identity(block: JsonNode<'_>, keeps_order: bool) -> u128 {
    let mut hasher = Xxh3::new();
    digest(block, DigestMode { is_outermost: true, is_free: false, keeps_order }, &mut hasher);
    hasher.digest128()
}

#[derive(Clone, Copy)]
struct DigestMode {
    /// The block itself, whose breakpoint does not count.
    is_outermost: bool,
    /// Inside client JSON.
    is_free: bool,
    /// True if key order counts inside client JSON.
    keeps_order: bool,
}

impl DigestMode {
    /// Members that count, in canonical order.
    fn members(self, object: JsonNode<'_>) -> Vec<(Cow<'_, str>, JsonNode<'_>)> {
        let mut members: Vec<(Cow<'_, str>, JsonNode<'_>)> = object
            .entries()
            .map(|(key, value)| (key.decoded(), value))
            .filter(|(key, value)| {
                self.is_free || !(value.is_null() || self.is_outermost && key == "cache_control")
            })
            .collect();
        if !(self.is_free && self.keeps_order) {
            // Stable, so that repeated keys keep their order.
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
        }
        members
    }

    /// Mode for the value of a key.
    fn under(self, key: &str) -> DigestMode {
        DigestMode { is_outermost: false, is_free: self.is_free || FREE.contains(&key), ..self }
    }
}

/// Canonical text of a block, without breakpoint and white space: equal for blocks that the cache considers
/// equal.
pub(crate) fn canonical_block(block: JsonNode<'_>) -> String {
    let mut out = String::new();
    write(block, DigestMode { is_outermost: true, is_free: false, keeps_order: true }, &mut out);
    out
}

/// Canonical text of client JSON, without white space between tokens.
pub(crate) fn canonical_json(value: JsonNode<'_>) -> String {
    let mut out = String::new();
    write(value, DigestMode { is_outermost: false, is_free: true, keeps_order: true }, &mut out);
    out
}

/// The scanner limits the nesting depth, which limits the recursion.
fn write(node: JsonNode<'_>, how: DigestMode, out: &mut String) {
    match node.kind() {
        NodeType::Object => {
            out.push('{');
            for (at, (key, value)) in how.members(node).into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                escape_into(out, &key);
                out.push(':');
                write(value, how.under(&key), out);
            }
            out.push('}');
        }
        NodeType::Array => {
            out.push('[');
            for (at, item) in node.items().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write(item, DigestMode { is_outermost: false, ..how }, out);
            }
            out.push(']');
        }
        NodeType::Text => escape_into(out, &node.text().map_or(Cow::Borrowed(""), |text| text.decoded())),
        NodeType::Number | NodeType::Bool | NodeType::Null => out.push_str(node.raw()),
    }
}

/// The scanner limits the nesting depth, which limits the recursion.
fn digest(node: JsonNode<'_>, how: DigestMode, hasher: &mut Xxh3) {
    let inner = DigestMode { is_outermost: false, ..how };
    match node.kind() {
        NodeType::Object => {
            hasher.update(b"{");
            for (key, value) in how.members(node) {
                part(b'k', &key, hasher);
                digest(value, how.under(&key), hasher);
            }
            hasher.update(b"}");
        }
        NodeType::Array => {
            hasher.update(b"[");
            node.items().for_each(|item| digest(item, inner, hasher));
            hasher.update(b"]");
        }
        NodeType::Text => part(b's', &node.text().map_or(Cow::Borrowed(""), |text| text.decoded()), hasher),
        NodeType::Number if !how.keeps_order => match node.number() {
            Some(number) => part(b'n', &number.to_string(), hasher),
            None => part(b'n', node.raw(), hasher),
        },
        NodeType::Number | NodeType::Bool | NodeType::Null => part(b'n', node.raw(), hasher),
    }
}

fn part(tag: u8, text: &str, hasher: &mut Xxh3) {
    hasher.update(&[tag]);
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(left: &str, right: &str, same_for_cache: bool, same_for_binding: bool) {
        let of = |raw: &str| {
            let reading = RequestDocument::new(raw.as_bytes(), usize::MAX).unwrap();
            (cache_identity(reading.root()), binding_identity(reading.root()))
        };
        let (left_both, right_both) = (of(left), of(right));
        assert_eq!(left_both.0 == right_both.0, same_for_cache, "{left} {right}");
        let written =
            |raw: &str| canonical_block(RequestDocument::new(raw.as_bytes(), usize::MAX).unwrap().root());
        assert_eq!(written(left) == written(right), same_for_cache, "{left} {right}");
        let again = written(&written(left));
        assert_eq!(again, written(left), "what is written reads as the same");
        assert_eq!(left_both.1 == right_both.1, same_for_binding, "{left} {right}");
    }

    #[test]
    fn identity_ignores_breakpoints_white_space_and_field_order() {
        let text = r#"{"type":"text","text":"é\n"}"#;
        check(text, r#"{ "text" : "\u00e9\u000a", "type":"text" }"#, true, true);
        check(text, r#"{"type":"text","text":"é\n","cache_control":{"type":"ephemeral"}}"#, true, true);
        check(text, r#"{"type":"text","text":"é\n","citations":null}"#, true, true);
        check(text, r#"{"type":"text","text":"é"}"#, false, false);
        let call = r#"{"type":"tool_use","id":"a","name":"b","input":{"x":1,"y":[{"p":1,"q":2}]}}"#;
        check(
            call,
            r#"{"input":{"x":1,"y":[{"p":1,"q":2}]},"name":"b","id":"a","type":"tool_use"}"#,
            true,
            true,
        );
        check(
            call,
            r#"{"type":"tool_use","id":"a","name":"b","input":{"y":[{"p":1,"q":2}],"x":1}}"#,
            false,
            true,
        );
        check(
            call,
            r#"{"type":"tool_use","id":"a","name":"b","input":{"x":1,"y":[{"q":2,"p":1}]}}"#,
            false,
            true,
        );
        check(
            call,
            r#"{"type":"tool_use","id":"a","name":"b","input":{"x":2,"y":[{"p":1,"q":2}]}}"#,
            false,
            false,
        );
        // A client key named like a breakpoint counts.
        check(
            r#"{"type":"tool_use","id":"a","name":"b","input":{"cache_control":1}}"#,
            r#"{"type":"tool_use","id":"a","name":"b","input":{}}"#,
            false,
            false,
        );
    }
}
