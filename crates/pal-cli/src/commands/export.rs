//! `pal export`: writes a session as Markdown, HTML or JSON.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pal_model::text::count_noun;
use pal_report::SessionTranscript;

use crate::arguments::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::loaded_session::LoadedSession;
use crate::notices::Notices;
use crate::session_lookup::{find, newest};
use crate::settings::Settings;

pub(crate) fn export(
    arguments: &ExportArgs,
    settings: &Settings,
    notices: &Notices,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let path = match &arguments.session {
        Some(name) => find(name, settings)?,
        None => newest(settings)?,
    };
    // Abandoned branches are exported, too.
    let session = LoadedSession::read_all(&path, settings)?;
    for problem in &session.problems {
        notices.add(problem);
    }
    let format = arguments.format.unwrap_or_else(|| by_ending(arguments.output.as_deref()));
    let mut transcript = SessionTranscript::new(&session.branch, &session.problems, &path, &settings.cards);
    if !arguments.no_mask {
        let masked = transcript.mask_secrets();
        if masked > 0 {
            let secrets = count_noun(masked, "secret");
            notices.add_plain(format_args!("{secrets} masked; use --no-mask to export them"));
        }
    }
    let Some(file) = &arguments.output else {
        write(format, &transcript, out)?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut text = Vec::new();
    write(format, &transcript, &mut text)?;
    write_file(file, &text).map_err(|error| Failure::of_file(file, &error))?;
    notices.add_plain(format_args!("written: {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Writes a file readable by its owner only, atomically. Anything but a regular file, such as a pipe, is written directly.
fn write_file(file: &Path, text: &[u8]) -> std::io::Result<()> {
    if file.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(file, text);
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let part = file.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = write_private(&part, text).and_then(|()| std::fs::rename(&part, file));
    if written.is_err() {
        // It may not exist.
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

fn write(
    format: ExportFormat,
    transcript: &SessionTranscript<'_>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    match format {
        ExportFormat::Markdown => transcript.write_markdown(out),
        ExportFormat::Html => transcript.write_html(out),
        ExportFormat::Json => transcript.write_json(out),
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
