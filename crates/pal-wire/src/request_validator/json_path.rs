//! Paths in the body: linked on the stack, formatted only for errors.

use std::fmt;

use super::api_error::{ApiError, invalid};

/// A path in the body.
#[derive(Clone, Copy)]
pub(crate) struct JsonPath<'p> {
    parent: Option<&'p JsonPath<'p>>,
    step: JsonPathStep<'p>,
}

#[derive(Clone, Copy)]
enum JsonPathStep<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> JsonPath<'p> {
    /// The body itself.
    pub(crate) const ROOT: JsonPath<'static> = JsonPath { parent: None, step: JsonPathStep::Root };

    /// Returns the path of a field.
    pub(crate) fn key(&'p self, key: &'p str) -> JsonPath<'p> {
        JsonPath { parent: Some(self), step: JsonPathStep::Key(key) }
    }

    /// Returns the path of an array item.
    pub(crate) fn index(&'p self, index: usize) -> JsonPath<'p> {
        JsonPath { parent: Some(self), step: JsonPathStep::Index(index) }
    }

    /// Creates a 400 error for this path.
    pub(crate) fn invalid(&self, message: impl fmt::Display) -> ApiError {
        invalid(format!("{self}: {message}"))
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent
            && !matches!(parent.step, JsonPathStep::Root)
        {
            write!(out, "{parent}.")?;
        }
        match self.step {
            JsonPathStep::Root => Ok(()),
            JsonPathStep::Key(key) => out.write_str(key),
            JsonPathStep::Index(index) => write!(out, "{index}"),
        }
    }
}
