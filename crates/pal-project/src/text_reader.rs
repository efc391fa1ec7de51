//! Reads a file as text up to a limit, or gives the reason why it cannot.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest file that is read. An instruction file of this size would fill a window of a million tokens by a
/// quarter; a larger one is data that was named by mistake.
pub const FILE_BYTES_MAX: u64 = 1_000_000;

/// Endings of files that are not text, so that they need not be opened to know.
const BINARY_ENDINGS: &[&str] = &[
    "7z", "avi", "avif", "bin", "bmp", "bz2", "class", "dll", "doc", "docx", "dylib", "eot", "exe", "flac",
    "gif", "gz", "heic", "ico", "jar", "jpeg", "jpg", "mkv", "mov", "mp3", "mp4", "o", "ogg", "otf", "pdf",
    "png", "ppt", "pptx", "pyc", "rar", "so", "sqlite", "tar", "tgz", "tif", "tiff", "ttf", "wasm", "wav",
    "webm", "webp", "woff", "woff2", "xls", "xlsx", "xz", "zip", "zst",
];

/// The text of a regular file, without a byte order mark, or why it is left out.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    if has_binary_ending(path) {
        return Err("not a text file, by its ending".to_owned());
    }
    let metadata = path.metadata().map_err(|err| unreadable(&err))?;
    // A pipe would block, a device would never end.
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
    // The size may be wrong by now, or never have been right, as under /proc.
    let file = File::open(path).map_err(|err| unreadable(&err))?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|err| unreadable(&err))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large(bytes.len() as u64));
    }
    text_of(bytes)
}

fn text_of(mut bytes: Vec<u8>) -> Result<String, String> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err("UTF-16, not UTF-8".to_owned());
    }
    if bytes.contains(&0) {
        return Err("not a text file: it holds zero bytes".to_owned());
    }
    if bytes.starts_with(&[0xEF, 0xBB, 0xBF]) {
        bytes.drain(..3);
    }
    String::from_utf8(bytes)
        .map_err(|err| format!("not UTF-8, from byte {} on", err.utf8_error().valid_up_to()))
}

fn has_binary_ending(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or("").to_ascii_lowercase();
    BINARY_ENDINGS.binary_search(&ending.as_str()).is_ok()
}

fn too_large(bytes: u64) -> String {
    format!("too large: {bytes} bytes, over {FILE_BYTES_MAX}")
}

fn unreadable(err: &std::io::Error) -> String {
    format!("cannot be read: {}", err.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_sorted_for_the_search() {
        assert!(BINARY_ENDINGS.is_sorted());
        assert!(has_binary_ending(Path::new("a/b.PNG")));
        assert!(!has_binary_ending(Path::new("a/png")));
    }

    #[test]
    fn bytes_become_text_or_a_reason() {
        for (bytes, text) in [
            (&b"\xEF\xBB\xBFhello"[..], Ok("hello")),
            (b"", Ok("")),
            (b"\xFF\xFEh\0", Err("UTF-16, not UTF-8")),
            (b"ab\xE9c", Err("not UTF-8, from byte 2 on")),
            (b"a\0b", Err("not a text file: it holds zero bytes")),
        ] {
            assert_eq!(text_of(bytes.to_vec()), text.map(str::to_owned).map_err(str::to_owned));
        }
    }
}
