//! Files of settings: small, and files.

use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// The largest file that is read.
const BYTES_MAX: u64 = 1 << 20;

/// Reads a text file up to a limit: a file of a repository may be a link to an endless device.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "this is no regular file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        return Err(Error::new(ErrorKind::FileTooLarge, "it is too large for settings"));
    }
    Ok(text)
}
