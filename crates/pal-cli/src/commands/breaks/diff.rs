//! The diff of two requests that a session kept: read only from inside the session's own folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// More of a diff than this is not shown.
const BYTES_MOST: u64 = 1 << 20;

/// The text of a diff, or why it is not shown. The log is a file like any other, and may name any path: what lies
/// elsewhere, a link that leads there included, is left alone.
pub(super) fn read(directory: &Path, path: &str) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("{path}: {error}");
    let directory = directory.canonicalize().map_err(wrong)?;
    let file = directory.join(path).canonicalize().map_err(wrong)?;
    if !file.starts_with(&directory) || !file.is_file() {
        return Err(format!("{path}: this is no file in the session's folder"));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(file).map_err(wrong)?;
    file.by_ref().take(BYTES_MOST).read_to_end(&mut bytes).map_err(wrong)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if bytes.len() as u64 == BYTES_MOST {
        text.push_str("\n… the rest is in the file");
    }
    Ok(text)
}
