//! Restoring of defused tags in text that the model copied.

use pal_model::unescape_tags;

/// Restores the program's own tags as in files. The model saw them defused and copies them so.
///
/// Unlike [`unescape_tags`] it leaves a possible partial tag at the end of the text: `<\` may be all that the
/// model wants to write. An appended bracket marks the end.
pub(crate) fn restore_tags(text: &str) -> String {
    let mut restored = unescape_tags(&format!("{text}>")).into_owned();
    restored.pop();
    restored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_tags_are_restored() {
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
            assert_eq!(restore_tags(text), expected, "{text}");
        }
    }
}
