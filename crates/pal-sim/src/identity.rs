//! When two pieces of JSON are the same.
//!
//! A block's identity for the cache leaves out its mark, white space, escapes and the order of the provider's own
//! fields, but not the order of keys inside free JSON (the input of a call, a schema). Its identity for bound thinking
//! leaves out that order, too.

use std::borrow::Cow;

use pal_model::escape_into;
use pal_wire::{Node, NodeType, Reading};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The hash of a sequence, from the hash of all but its last member and that member.
pub(crate) fn mix(before: u128, member: u128) -> u128 {
    let mut bytes = [0; 32];
    let (first, second) = bytes.split_at_mut(16);
    first.copy_from_slice(&before.to_le_bytes());
    second.copy_from_slice(&member.to_le_bytes());
    xxh3_128(&bytes)
}

/// A hash of any JSON by its value: neither white space nor the order of keys counts.
pub(crate) fn by_value(json: &str) -> u128 {
    let wrapped = format!(r#"{{"value":{json}}}"#);
    match Reading::new(wrapped.as_bytes(), usize::MAX) {
        Ok(reading) => for_binding(reading.root()),
        Err(_) => xxh3_128(json.as_bytes()),
    }
}

/// Fields whose value is the client's own JSON.
const FREE: &[&str] = &["input", "input_schema", "input_examples", "schema"];

/// The identity of a block for the cache.
pub(crate) fn for_cache(block: Node<'_>) -> u128 {
    identity(block, true)
}

/// The identity of a block for bound thinking.
pub(crate) fn for_binding(block: Node<'_>) -> u128 {
    identity(block, false)
}

fn identity(block: Node<'_>, keeps_order: bool) -> u128 {
    let mut hasher = Xxh3::new();
    digest(block, Digest { is_outermost: true, is_free: false, keeps_order }, &mut hasher);
    hasher.digest128()
}

#[derive(Clone, Copy)]
struct Digest {
    /// The block itself, whose mark does not count.
    is_outermost: bool,
    /// Inside the client's own JSON.
    is_free: bool,
    /// Whether the order of keys counts there.
    keeps_order: bool,
}

impl Digest {
    /// The members of an object that count, in an order that does not depend on how it is written.
    fn members(self, object: Node<'_>) -> Vec<(Cow<'_, str>, Node<'_>)> {
        let mut members: Vec<(Cow<'_, str>, Node<'_>)> = object
            .entries()
            .map(|(key, value)| (key.decoded(), value))
            .filter(|(key, value)| {
                self.is_free || !(value.is_null() || self.is_outermost && key == "cache_control")
            })
            .collect();
        if !(self.is_free && self.keeps_order) {
            // Stable, so that a key that is there twice keeps its order.
            members.sort_by(|(left, _), (right, _)| left.cmp(right));
        }
        members
    }

    /// How the value of a key is looked at.
    fn under(self, key: &str) -> Digest {
        Digest { is_outermost: false, is_free: self.is_free || FREE.contains(&key), ..self }
    }
}

/// A block written so that equal blocks, as the cache sees them, are the same text: without its mark, without white
/// space between its parts.
pub(crate) fn canonical(block: Node<'_>) -> String {
    let mut out = String::new();
    write(block, Digest { is_outermost: true, is_free: false, keeps_order: true }, &mut out);
    out
}

/// A value of the client's own JSON, without white space between its parts.
pub(crate) fn canonical_free(value: Node<'_>) -> String {
    let mut out = String::new();
    write(value, Digest { is_outermost: false, is_free: true, keeps_order: true }, &mut out);
    out
}

/// The scanner bounds the depth, and so the recursion.
fn write(node: Node<'_>, how: Digest, out: &mut String) {
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
                write(item, Digest { is_outermost: false, ..how }, out);
            }
            out.push(']');
        }
        NodeType::Text => escape_into(out, &node.text().map_or(Cow::Borrowed(""), |text| text.decoded())),
        NodeType::Number | NodeType::Bool | NodeType::Null => out.push_str(node.raw()),
    }
}

/// The scanner bounds the depth, and so the recursion.
fn digest(node: Node<'_>, how: Digest, hasher: &mut Xxh3) {
    let inner = Digest { is_outermost: false, ..how };
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
            let reading = Reading::new(raw.as_bytes(), usize::MAX).unwrap();
            (for_cache(reading.root()), for_binding(reading.root()))
        };
        let (left_both, right_both) = (of(left), of(right));
        assert_eq!(left_both.0 == right_both.0, same_for_cache, "{left} {right}");
        let written = |raw: &str| canonical(Reading::new(raw.as_bytes(), usize::MAX).unwrap().root());
        assert_eq!(written(left) == written(right), same_for_cache, "{left} {right}");
        let again = written(&written(left));
        assert_eq!(again, written(left), "what is written reads as the same");
        assert_eq!(left_both.1 == right_both.1, same_for_binding, "{left} {right}");
    }

    #[test]
    fn identity_leaves_out_what_does_not_count() {
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
        // A key of the client's own that is called like a mark counts.
        check(
            r#"{"type":"tool_use","id":"a","name":"b","input":{"cache_control":1}}"#,
            r#"{"type":"tool_use","id":"a","name":"b","input":{}}"#,
            false,
            false,
        );
    }
}
