//! Parts of a prefix with their sizes, and the parts that were left out.

use serde::Serialize;

/// A part of a prefix.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PrefixPart {
    /// Sort of part.
    pub category: PrefixPartKind,
    /// Its name or path.
    pub name: String,
    /// Bytes of its text.
    pub bytes: u64,
    /// Characters of its text.
    pub characters: u64,
    /// Why it is there.
    pub reason: String,
}

impl PrefixPart {
    pub(crate) fn new(category: PrefixPartKind, name: &str, text: &str, reason: &str) -> PrefixPart {
        PrefixPart {
            category,
            name: name.to_owned(),
            bytes: text.len() as u64,
            characters: text.chars().count() as u64,
            reason: reason.to_owned(),
        }
    }
}

/// Sort of a part of the prefix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PrefixPartKind {
    /// A tool's definition.
    Tool,
    /// A section of the system prompt.
    Section,
    /// An instruction file.
    Instruction,
    /// The index of memory.
    Memory,
    /// The date.
    Date,
}

/// Something that is not in the context, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PrefixOmission {
    /// A path, a tool or a section.
    pub what: String,
    /// Why.
    pub why: String,
}

/// First words of a reason that only the size of the window is.
const SMALL_WINDOW: &str = "the window is small";

impl PrefixOmission {
    /// The end of a file of which a small window shows only the start.
    pub(crate) fn end_of_file(path: &str, shown: usize, bytes: usize) -> PrefixOmission {
        let why = format!("{SMALL_WINDOW}: {shown} of its {bytes} bytes are shown");
        PrefixOmission { what: format!("end of {path}"), why }
    }

    /// Returns whether it would be there in a larger window.
    pub fn is_for_small_window(&self) -> bool {
        self.why.starts_with(SMALL_WINDOW)
    }
}
