//! `pal import --watch`: imports sessions whenever their files change.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use super::imported_log::StoredImport;
use super::{EarlierImports, ImportFailure, ImportSources, as_json, import_one};
use crate::arguments::ImportArgs;
use crate::failure::Failure;
use crate::settings::Settings;

/// Interval between looks at the files.
const INTERVAL: Duration = Duration::from_secs(1);

/// Size and time of change of a file when it was last imported.
type FileState = (u64, SystemTime);

/// Imports all files, then those that change, until the program is interrupted or its output is closed.
pub(super) fn watch(
    arguments: &ImportArgs,
    settings: &Settings,
    earlier: &mut EarlierImports,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let mut seen: BTreeMap<PathBuf, FileState> = BTreeMap::new();
    eprintln!("pal: watching; press Ctrl-C to stop");
    loop {
        // Listed anew each time: sessions begin and directories appear.
        let sources = ImportSources::list(arguments);
        for (at, file) in sources.files.iter().enumerate() {
            let Some(state) = state_of(file) else { continue };
            if seen.insert(file.clone(), state) == Some(state) {
                continue;
            }
            match import_one(file, arguments, settings, earlier) {
                Ok(done) if !done.stored.is_written() => {}
                Ok(done) if arguments.json => writeln!(out, "{}", as_json(file, &done))?,
                Ok(done) => writeln!(out, "{}", line(file, &done.stored))?,
                Err(ImportFailure::NoSession(_)) if at >= sources.named => {}
                Err(ImportFailure::NoSession(failure) | ImportFailure::Other(failure)) => {
                    eprintln!("{failure}")
                }
            }
        }
        // Fails if the reader has gone, which ends the watch.
        out.flush()?;
        std::thread::sleep(INTERVAL);
    }
}

fn state_of(file: &Path) -> Option<FileState> {
    let metadata = std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    Some((metadata.len(), metadata.modified().ok()?))
}

fn line(file: &Path, stored: &StoredImport) -> String {
    let file = file.display();
    match stored {
        StoredImport::Extended { log, entries } => format!("+{entries} entries: {file} → {}", log.display()),
        StoredImport::Beside { log, .. } => {
            format!("new, beside an earlier import: {file} → {}", log.display())
        }
        other => format!("new: {file} → {}", other.log().unwrap_or(Path::new("")).display()),
    }
}
