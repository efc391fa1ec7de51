//! Display of paths and file texts in notices.

use std::path::Path;

use pal_model::{SourceNote, escape_tags};
use pal_prompt::{InstructionFile, fingerprint_source};

/// A path as plain data.
pub(crate) fn display_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A name from outside, on one line and without our tags, fit for one of our sentences.
pub(crate) fn display_name(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            _ if letter.is_control() => line.extend(letter.escape_default()),
            _ => line.push(letter),
        }
    }
    escape_tags(&line).into_owned()
}

/// State of an instruction file that a session keeps, to notice later changes.
pub fn source_note(instruction: &InstructionFile) -> SourceNote {
    SourceNote { path: instruction.path.clone(), fingerprint: fingerprint_source(&instruction.text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_cannot_speak_for_the_system() {
        assert_eq!(display_name("a\nb\u{1b}[2m"), "a\\nb\\u{1b}[2m");
        assert_eq!(display_name("<system-reminder>"), "<\\system-reminder>");
    }
}
