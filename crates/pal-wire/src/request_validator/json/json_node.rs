//! Scanned JSON documents, and cheap handles to their values.

use super::json_scanner::{JsonSyntaxError, ValueSpan, scan};
use super::node_text::NodeText;

/// A JSON document with valid syntax.
pub(crate) struct JsonDocument<'t> {
    text: &'t str,
    entries: Vec<ValueSpan>,
}

/// JSON type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// `{…}`.
    Object,
    /// `[…]`.
    Array,
    /// A string.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `null`.
    Null,
}

impl<'t> JsonDocument<'t> {
    /// Scans a whole body; the error is the provider's message.
    pub(crate) fn parse(body: &'t [u8]) -> Result<JsonDocument<'t>, String> {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text,
            Err(error) => {
                let good = body.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok());
                return Err(describe(good.unwrap_or_default(), &JsonSyntaxError::utf8(error.valid_up_to())));
            }
        };
        let entries = scan(text).map_err(|error| describe(text, &error))?;
        Ok(JsonDocument { text, entries })
    }

    /// Returns the outermost value.
    pub(crate) fn root(&self) -> JsonNode<'_> {
        JsonNode { document: self, at: 0 }
    }

    fn byte(&self, at: usize) -> u8 {
        self.entries
            .get(at)
            .and_then(|entry| self.text.as_bytes().get(entry.start as usize))
            .copied()
            .unwrap_or(0)
    }

    /// Returns the index of the span after the value at `at`.
    fn after(&self, at: usize) -> usize {
        self.entries.get(at).map_or(at + 1, |entry| entry.next as usize)
    }
}

/// Formats an error with its position in characters, as the provider does.
fn describe(text: &str, error: &JsonSyntaxError) -> String {
    let before = text.get(..error.offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}: line {line} column {column} (char {})", error.message, before.chars().count())
}

/// Handle to a value in a scanned document.
#[derive(Clone, Copy)]
pub struct JsonNode<'t> {
    document: &'t JsonDocument<'t>,
    at: usize,
}

impl<'t> JsonNode<'t> {
    /// Returns the JSON type.
    pub fn kind(self) -> NodeType {
        match self.document.byte(self.at) {
            b'{' => NodeType::Object,
            b'[' => NodeType::Array,
            b'"' => NodeType::Text,
            b't' | b'f' => NodeType::Bool,
            b'n' => NodeType::Null,
            _ => NodeType::Number,
        }
    }

    /// Returns the raw text of the value.
    pub fn raw(self) -> &'t str {
        let document = self.document;
        document
            .entries
            .get(self.at)
            .and_then(|entry| document.text.get(entry.start as usize..entry.end as usize))
            .unwrap_or_default()
    }

    /// Returns the value if it is a string.
    pub fn text(self) -> Option<NodeText<'t>> {
        match self.kind() {
            NodeType::Text => {
                let quoted = self.raw();
                quoted.get(1..quoted.len().saturating_sub(1)).map(NodeText::new)
            }
            _ => None,
        }
    }

    /// Returns the value if it is an integer in range.
    pub fn integer(self) -> Option<i64> {
        if self.kind() == NodeType::Number { self.raw().parse().ok() } else { None }
    }

    /// Returns the value if it is a number.
    pub fn number(self) -> Option<f64> {
        if self.kind() == NodeType::Number { self.raw().parse().ok() } else { None }
    }

    /// Returns true for `true`.
    pub fn is_true(self) -> bool {
        self.document.byte(self.at) == b't'
    }

    /// Returns true for `null`.
    pub fn is_null(self) -> bool {
        self.kind() == NodeType::Null
    }

    /// Iterates over the items of an array; empty for other types.
    pub fn items(self) -> impl Iterator<Item = JsonNode<'t>> {
        let document = self.document;
        let end = if self.kind() == NodeType::Array { document.after(self.at) } else { self.at };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let node = JsonNode { document, at };
                at = document.after(at);
                node
            })
        })
    }

    /// Iterates over the fields of an object in order; empty for other types.
    pub fn entries(self) -> impl Iterator<Item = (NodeText<'t>, JsonNode<'t>)> {
        let document = self.document;
        let end = if self.kind() == NodeType::Object { document.after(self.at) } else { self.at };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = JsonNode { document, at }.text()?;
            let value = JsonNode { document, at: at + 1 };
            at = document.after(at + 1);
            Some((key, value))
        })
    }

    /// Returns a field; none if it is missing or null.
    pub fn get(self, name: &str) -> Option<JsonNode<'t>> {
        self.entries().find(|(key, _)| key.is(name)).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Returns a string field.
    pub fn get_text(self, name: &str) -> Option<NodeText<'t>> {
        self.get(name).and_then(JsonNode::text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_is_the_value_as_it_stands() {
        let body = br#" { "a" : [ 1 , {"b":"\u00e9"} , [ ] ] , "c" : { } , "d":"x\"y" } "#;
        let document = JsonDocument::parse(body).unwrap();
        let root = document.root();
        assert_eq!(root.raw(), r#"{ "a" : [ 1 , {"b":"\u00e9"} , [ ] ] , "c" : { } , "d":"x\"y" }"#);
        let list = root.get("a").unwrap();
        assert_eq!(list.raw(), r#"[ 1 , {"b":"\u00e9"} , [ ] ]"#);
        assert_eq!(list.items().map(JsonNode::raw).collect::<Vec<_>>(), ["1", r#"{"b":"\u00e9"}"#, "[ ]"]);
        assert_eq!((root.get("c").unwrap().raw(), root.get("d").unwrap().raw()), ("{ }", r#""x\"y""#));
        assert_eq!(root.get_text("d").unwrap().decoded(), "x\"y");
    }
}
