//! A scanned document, and cheap handles to the values in it.

use super::scan::{Entry, JsonError, scan};
use super::text::Text;

/// A body whose grammar is right.
pub(crate) struct Document<'t> {
    text: &'t str,
    entries: Vec<Entry>,
}

/// What a JSON value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Fields with names.
    Object,
    /// Items in an order.
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

impl<'t> Document<'t> {
    /// Reads the whole body.
    pub(crate) fn parse(body: &'t [u8]) -> Result<Document<'t>, String> {
        let text = match std::str::from_utf8(body) {
            Ok(text) => text,
            Err(error) => {
                let good = body.get(..error.valid_up_to()).and_then(|good| std::str::from_utf8(good).ok());
                return Err(describe(good.unwrap_or_default(), &JsonError::utf8(error.valid_up_to())));
            }
        };
        let entries = scan(text).map_err(|error| describe(text, &error))?;
        Ok(Document { text, entries })
    }

    /// The outermost value.
    pub(crate) fn root(&self) -> Node<'_> {
        Node { document: self, at: 0 }
    }

    fn byte(&self, at: usize) -> u8 {
        self.entries
            .get(at)
            .and_then(|entry| self.text.as_bytes().get(entry.start as usize))
            .copied()
            .unwrap_or(0)
    }

    /// The entry that follows the value at `at`.
    fn after(&self, at: usize) -> usize {
        self.entries.get(at).map_or(at + 1, |entry| entry.next as usize)
    }
}

/// The message with the place, counted as the provider counts it: in characters.
fn describe(text: &str, error: &JsonError) -> String {
    let before = text.get(..error.offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}: line {line} column {column} (char {})", error.message, before.chars().count())
}

/// A value in a body that was read: a cheap handle.
#[derive(Clone, Copy)]
pub struct Node<'t> {
    document: &'t Document<'t>,
    at: usize,
}

impl<'t> Node<'t> {
    /// What it is.
    pub fn kind(self) -> Type {
        match self.document.byte(self.at) {
            b'{' => Type::Object,
            b'[' => Type::Array,
            b'"' => Type::Text,
            b't' | b'f' => Type::Bool,
            b'n' => Type::Null,
            _ => Type::Number,
        }
    }

    /// The bytes of the value, as they stand in the body.
    pub fn raw(self) -> &'t str {
        let document = self.document;
        document
            .entries
            .get(self.at)
            .and_then(|entry| document.text.get(entry.start as usize..entry.end as usize))
            .unwrap_or_default()
    }

    /// The string, if it is one.
    pub fn text(self) -> Option<Text<'t>> {
        match self.kind() {
            Type::Text => {
                let quoted = self.raw();
                quoted.get(1..quoted.len().saturating_sub(1)).map(Text::new)
            }
            _ => None,
        }
    }

    /// The number, if it is an integer that fits.
    pub fn integer(self) -> Option<i64> {
        if self.kind() == Type::Number { self.raw().parse().ok() } else { None }
    }

    /// The number, if it is one.
    pub fn number(self) -> Option<f64> {
        if self.kind() == Type::Number { self.raw().parse().ok() } else { None }
    }

    /// Whether it is `true`.
    pub fn is_true(self) -> bool {
        self.document.byte(self.at) == b't'
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Type::Null
    }

    /// The items of an array; none of anything else.
    pub fn items(self) -> impl Iterator<Item = Node<'t>> {
        let document = self.document;
        let end = if self.kind() == Type::Array { document.after(self.at) } else { self.at };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            (at < end).then(|| {
                let node = Node { document, at };
                at = document.after(at);
                node
            })
        })
    }

    /// The fields of an object, in their order; none of anything else.
    pub fn entries(self) -> impl Iterator<Item = (Text<'t>, Node<'t>)> {
        let document = self.document;
        let end = if self.kind() == Type::Object { document.after(self.at) } else { self.at };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let key = Node { document, at }.text()?;
            let value = Node { document, at: at + 1 };
            at = document.after(at + 1);
            Some((key, value))
        })
    }

    /// A field that is there and not null.
    pub fn get(self, name: &str) -> Option<Node<'t>> {
        self.entries().find(|(key, _)| key.is(name)).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// A field that is a string.
    pub fn get_text(self, name: &str) -> Option<Text<'t>> {
        self.get(name).and_then(Node::text)
    }
}
