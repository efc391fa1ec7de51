//! Where in the body something is: a chain on the stack, written out only when there is an error to report.

use std::fmt;

use super::error::{ApiError, invalid};

/// A place in the body.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    /// The body itself.
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    /// A field of this.
    pub(crate) fn key(&'p self, key: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    /// An item of this.
    pub(crate) fn index(&'p self, index: usize) -> Path<'p> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    /// A 400 at this place.
    pub(crate) fn invalid(&self, message: impl fmt::Display) -> ApiError {
        invalid(format!("{self}: {message}"))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent
            && !matches!(parent.step, Step::Root)
        {
            write!(out, "{parent}.")?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Key(key) => out.write_str(key),
            Step::Index(index) => write!(out, "{index}"),
        }
    }
}
