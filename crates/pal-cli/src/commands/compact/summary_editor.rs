//! Editing a summary in the user's editor before it is applied.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use pal_model::Boundary;
use pal_view::View;

use crate::failure::Failure;
use crate::open_session::OpenSession;
use crate::settings::Settings;

/// Returns the user's editor; checked before a model is asked.
pub(crate) fn editor(settings: &Settings) -> Result<&str, Failure> {
    settings.editor.as_deref().ok_or_else(|| {
        Failure::with_hint(
            "no editor is configured: neither VISUAL nor EDITOR is set",
            "set one, such as EDITOR=vi",
        )
    })
}

/// Lets the user edit the summary of a boundary.
pub(super) fn edit_summary(
    editor: &str,
    boundary: &Boundary,
    before: &View,
    stored: &OpenSession,
) -> Result<Boundary, Failure> {
    let path = stored.session.directory().join(format!("summary-{}.md", std::process::id()));
    write(&path, &pal_engine::summary_text(boundary).unwrap_or_default())?;
    let text = run_editor(editor, &path)
        .and_then(|()| std::fs::read_to_string(&path).map_err(|error| Failure::of_file(&path, &error)));
    let edited = text.and_then(|text| {
        if text.trim().is_empty() {
            return Err(Failure::new("the summary is empty, so nothing was applied"));
        }
        pal_engine::edit_summary(before, boundary, &text).map_err(|error| {
            let kept = format!("nothing was applied; your text is saved in {}", path.display());
            Failure::with_hint(error.to_string(), kept)
        })
    })?;
    // Removed only after it was applied.
    let _ = std::fs::remove_file(&path);
    Ok(edited)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::of_file(path, &error))
}

/// Runs the editor command, which may contain arguments.
pub(crate) fn run_editor(editor: &str, path: &Path) -> Result<(), Failure> {
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            let _ = std::fs::remove_file(path);
            Err(Failure::new(format!("the editor `{editor}` exited with {status}, so nothing was applied")))
        }
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(Failure::new(format!("cannot run the editor `{editor}`: {error}")))
        }
    }
}
