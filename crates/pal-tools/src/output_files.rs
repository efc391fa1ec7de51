//! Files in the session's directory for outputs that do not fit a result, or are no text.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Session folder of the files.
const OUTPUTS: &str = "outputs";

/// Maximum characters of a call's id in a file name.
const NAME_MAX: usize = 100;

/// Returns the path for the output of a call and creates its folder. If that fails, creating the file fails with the
/// reason.
pub(crate) fn output_path(session: &Path, call: &str, extension: &str) -> PathBuf {
    let name: String = call
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' })
        .take(NAME_MAX)
        .collect();
    let folder = session.join(OUTPUTS);
    let _ = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    folder.join(format!("{name}.{extension}"))
}

/// Stores the output of a call byte for byte, readable by its owner only, and returns its path.
///
/// # Errors
///
/// If the file exists or cannot be written.
pub fn store_output(session: &Path, call: &str, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let path = output_path(session, call, extension);
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(named)?;
    file.write_all(bytes).map_err(named)?;
    Ok(path)
}
