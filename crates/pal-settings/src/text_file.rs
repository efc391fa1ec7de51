//! Files of settings: small, and files.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Reads a text file up to a limit: a file of a repository may be a link to an endless device.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    text_up_to(path, BYTES_MAX)
}

/// Reads a text file up to another limit.
pub(crate) fn text_up_to(path: &Path, bytes_max: u64) -> Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "this is no regular file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(Error::new(ErrorKind::FileTooLarge, "it is too large for settings"));
    }
    Ok(text)
}

/// Replaces a private file in one step: a reader sees the old text or the new one.
pub(crate) fn replace_text(path: &Path, text: &str) -> Result<()> {
    let part = path.with_extension("part");
    let options = &mut std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&part, path)
}
