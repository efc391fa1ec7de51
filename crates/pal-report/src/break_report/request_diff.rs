//! Stored diffs of two requests, read only from inside the session's directory.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a diff that are shown at most.
const DIFF_BYTES_MAX: u64 = 1 << 20;

/// The text of a diff, or why it is not shown. The log is a file like any other, and may name any path: what lies
/// elsewhere, a link that leads there included, is left alone.
pub(super) fn read_diff(directory: &Path, path: &str) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("{path}: {error}");
    let directory = directory.canonicalize().map_err(wrong)?;
    let file = directory.join(path).canonicalize().map_err(wrong)?;
    if !file.starts_with(&directory) || !file.is_file() {
        return Err(format!("{path}: not a file in the session's directory"));
    }
    let mut bytes = Vec::new();
    let mut file = File::open(file).map_err(wrong)?;
    file.by_ref().take(DIFF_BYTES_MAX).read_to_end(&mut bytes).map_err(wrong)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if bytes.len() as u64 == DIFF_BYTES_MAX {
        text.push_str("\n… truncated: the file has the rest");
    }
    Ok(text)
}
