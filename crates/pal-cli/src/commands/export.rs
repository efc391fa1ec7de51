//! `pal export`: a session written down for people or programs.

mod html;
mod json;
mod markdown;
mod masking;
mod transcript;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::arguments::{Export, ExportFormat};
use crate::aside;
use crate::books::newest;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings::Settings;
use crate::stored::find;
use crate::table::counted;
use transcript::Transcript;

pub(crate) fn export(
    arguments: &Export,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let path = match &arguments.session {
        Some(name) => find(name, settings)?,
        None => newest(settings)?,
    };
    // What was left by a rewind was said, too.
    let session = Session::read_all(&path, settings)?;
    for problem in &session.problems {
        aside::tell(problem);
    }
    let format = arguments.format.unwrap_or_else(|| by_ending(arguments.output.as_deref()));
    let mut transcript = Transcript::of(&session, &path, &settings.cards);
    if !arguments.no_mask {
        let masked = masking::mask(&mut transcript);
        if masked > 0 {
            let secrets = counted(masked, "secret");
            aside::say(format_args!("{secrets} masked; export with --no-mask to keep them"));
        }
    }
    let Some(file) = &arguments.output else {
        write(format, &transcript, out)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut text = Vec::new();
    write(format, &transcript, &mut text)?;
    keep(file, &text).map_err(|error| Failure::of_file(file, &error))?;
    aside::say(format_args!("written: {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes a file that only its owner reads, because a session may hold anything, and whole or not at all. What is no regular
/// file, such as a pipe, is written to as it is.
fn keep(file: &Path, text: &[u8]) -> std::io::Result<()> {
    if file.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(file, text);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let part = file.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = write_private(&part, text).and_then(|()| std::fs::rename(&part, file));
    if written.is_err() {
        // It may never have been there.
        let _ = std::fs::remove_file(&part);
    }
    written
}

fn write_private(part: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(part)?;
    file.write_all(text)?;
    file.sync_all()
}

fn write(format: ExportFormat, transcript: &Transcript<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    match format {
        ExportFormat::Markdown => markdown::write(transcript, out),
        ExportFormat::Html => html::write(transcript, out),
        ExportFormat::Json => json::write(transcript, out),
    }
}

fn by_ending(file: Option<&Path>) -> ExportFormat {
    let ending = file.and_then(Path::extension).map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("html" | "htm") => ExportFormat::Html,
        Some("json") => ExportFormat::Json,
        _ => ExportFormat::Markdown,
    }
}
