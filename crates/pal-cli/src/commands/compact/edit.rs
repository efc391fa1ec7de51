//! A summary in the user's own editor, before it is applied.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use pal_model::Boundary;
use pal_view::View;

use crate::failure::Failure;
use crate::settings::Settings;
use crate::stored::Stored;

/// The user's editor, asked for before a model is.
pub(crate) fn editor(settings: &Settings) -> Result<&str, Failure> {
    settings.editor.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "there is no editor: neither VISUAL nor EDITOR is set",
            "set one, such as EDITOR=vi",
        )
    })
}

/// The boundary as its user wants it.
pub(super) fn edit(
    editor: &str,
    boundary: &Boundary,
    before: &View,
    stored: &Stored,
) -> Result<Boundary, Failure> {
    let path = stored.session.directory().join(format!("summary-{}.md", std::process::id()));
    write(&path, &pal_engine::summary_text(boundary).unwrap_or_default())?;
    let text = run_editor(editor, &path)
        .and_then(|()| std::fs::read_to_string(&path).map_err(|error| Failure::of_file(&path, &error)));
    let edited = text.and_then(|text| {
        if text.trim().is_empty() {
            return Err(Failure::new("the summary was emptied, so nothing was applied"));
        }
        pal_engine::edited(before, boundary, &text).map_err(|error| {
            let kept = format!("nothing was applied; your text is in {}", path.display());
            Failure::with_hint(error.to_string(), kept)
        })
    })?;
    // Only a text that was applied is no longer needed.
    let _ = std::fs::remove_file(&path);
    Ok(edited)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::of_file(path, &error))
}

/// Runs the editor, which may come with arguments of its own.
pub(crate) fn run_editor(editor: &str, path: &Path) -> Result<(), Failure> {
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let _ = std::fs::remove_file(path);
            Err(Failure::new(format!("the editor `{editor}` ended with {status}, so nothing was applied")))
        }
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(Failure::new(format!("the editor `{editor}` does not run: {error}")))
        }
    }
}
