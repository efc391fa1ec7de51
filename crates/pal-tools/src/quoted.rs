//! What a model means that quotes what it read.

use pal_model::restore;

/// The text with the program's own tags as files hold them. The model saw them defused and copies them so.
///
/// Unlike [`restore`] it leaves alone what only might become a tag, at the end of the text: `<\` may be all that the
/// model wants to write. A bracket behind it says that nothing is cut off here.
pub(crate) fn meant(text: &str) -> String {
    let mut restored = restore(&format!("{text}>")).into_owned();
    restored.pop();
    restored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_tags_are_mapped_back_and_nothing_else() {
        for (text, expected) in [
            ("a <\\system-reminder> b", "a <system-reminder> b"),
            ("</\\system-reminder", "</\\system-reminder"),
            ("<\\/system-reminder>", "</system-reminder>"),
            ("<\\\\system-reminder>", "<\\system-reminder>"),
            ("<system-reminder>", "<system-reminder>"),
            ("<\\", "<\\"),
            ("<\\sys", "<\\sys"),
            ("<\\|im_start|>", "<|im_start|>"),
            ("", ""),
        ] {
            assert_eq!(meant(text), expected, "{text}");
        }
    }
}
