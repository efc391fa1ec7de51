//! The user's editor for prompts and plans.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use pal_tui::TextEditorFn;

use crate::commands::run_editor;
use crate::settings::Settings;

/// Editor that is used if none is configured.
const FALLBACK: &str = "vi";

/// Edits a text in a private temporary file.
pub(super) fn text_editor(settings: &Settings) -> TextEditorFn {
    let editor = settings.editor.clone().unwrap_or_else(|| FALLBACK.to_owned());
    Box::new(move |text| edit(&editor, text))
}

fn edit(editor: &str, text: &str) -> Result<String, String> {
    let failure = |error: std::io::Error| format!("the text cannot be edited: {error}");
    let private = std::fs::Permissions::from_mode(0o600);
    let mut file = tempfile::Builder::new()
        .prefix("pal-prompt-")
        .suffix(".md")
        .permissions(private)
        .tempfile()
        .map_err(failure)?;
    file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(failure)?;
    run_editor(editor, file.path()).map_err(|error| error.message())?;
    // An editor may have replaced the file: it is read by its name.
    std::fs::read_to_string(file.path()).map_err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edited_text_comes_back_and_failures_say_why() {
        assert_eq!(edit("sed -i s/one/two/", "one\n").as_deref(), Ok("two\n"));
        assert!(edit("false", "one").unwrap_err().contains("the editor `false` exited"));
    }
}
