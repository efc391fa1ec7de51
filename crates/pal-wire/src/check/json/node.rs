//! A scanned document, and cheap handles to the values in it.

use super::scan::{Entry, JsonError, scan};
use super::text::Text;

/// A body whose grammar is right.
pub(crate) struct Document<'t> {
    text: &'t str,
    entries: Vec<Entry>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    Text,
    Number,
    Bool,
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
        match self.byte(at) {
            b'{' | b'[' => self.entries.get(at).map_or(at + 1, |entry| entry.end as usize),
            _ => at + 1,
        }
    }
}

/// The message with the place, counted as the provider counts it: in characters.
fn describe(text: &str, error: &JsonError) -> String {
    let before = text.get(..error.offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("{}: line {line} column {column} (char {})", error.message, before.chars().count())
}

/// A value in a document.
#[derive(Clone, Copy)]
pub(crate) struct Node<'t> {
    document: &'t Document<'t>,
    at: usize,
}

impl<'t> Node<'t> {
    pub(crate) fn kind(self) -> Type {
        match self.document.byte(self.at) {
            b'{' => Type::Object,
            b'[' => Type::Array,
            b'"' => Type::Text,
            b't' | b'f' => Type::Bool,
            b'n' => Type::Null,
            _ => Type::Number,
        }
    }

    /// The bytes of a scalar.
    fn scalar(self) -> &'t str {
        let document = self.document;
        document
            .entries
            .get(self.at)
            .and_then(|entry| document.text.get(entry.start as usize..entry.end as usize))
            .unwrap_or_default()
    }

    /// The string, if it is one.
    pub(crate) fn text(self) -> Option<Text<'t>> {
        match self.kind() {
            Type::Text => {
                let quoted = self.scalar();
                quoted.get(1..quoted.len().saturating_sub(1)).map(Text::new)
            }
            _ => None,
        }
    }

    /// The number, if it is an integer that fits.
    pub(crate) fn integer(self) -> Option<i64> {
        if self.kind() == Type::Number { self.scalar().parse().ok() } else { None }
    }

    /// The number, if it is one.
    pub(crate) fn number(self) -> Option<f64> {
        if self.kind() == Type::Number { self.scalar().parse().ok() } else { None }
    }

    pub(crate) fn is_true(self) -> bool {
        self.document.byte(self.at) == b't'
    }

    pub(crate) fn is_null(self) -> bool {
        self.kind() == Type::Null
    }

    /// The items of an array; none of anything else.
    pub(crate) fn items(self) -> impl Iterator<Item = Node<'t>> {
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
    pub(crate) fn entries(self) -> impl Iterator<Item = (Text<'t>, Node<'t>)> {
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
    pub(crate) fn get(self, name: &str) -> Option<Node<'t>> {
        self.entries().find(|(key, _)| key.is(name)).map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// A field that is a string.
    pub(crate) fn get_text(self, name: &str) -> Option<Text<'t>> {
        self.get(name).and_then(Node::text)
    }
}
