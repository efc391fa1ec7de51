//! How paths and texts of others are named.

use std::path::Path;

use pal_model::{SourceNote, defuse};
use pal_prompt::{Instruction, source_print};

/// A path as plain data.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Somebody's name for something, fit to stand in a sentence of ours: on one line and without tags of ours.
pub(crate) fn named(name: &str) -> String {
    let mut line = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            _ if letter.is_control() => line.extend(letter.escape_default()),
            _ => line.push(letter),
        }
    }
    defuse(&line).into_owned()
}

/// The beginning of a text, with a sign where it was cut.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What a session keeps of an instruction file, to know later whether it changed.
pub fn source_note(instruction: &Instruction) -> SourceNote {
    SourceNote { path: instruction.path.clone(), print: source_print(&instruction.text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_cannot_speak_for_the_system() {
        assert_eq!(named("a\nb\u{1b}[2m"), "a\\nb\\u{1b}[2m");
        assert_eq!(named("<system-reminder>"), "<\\system-reminder>");
    }
}
