//! Bounded capture of a possibly endless output.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Limits of captured output. Memory is bounded by `whole_max` plus twice the tail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureLimits {
    /// Maximum bytes of an output that is kept whole.
    pub whole_max: usize,
    /// Bytes kept from the beginning of a longer output; at most `whole_max`.
    pub head: usize,
    /// Bytes kept from the end of a longer output.
    pub tail: usize,
    /// File for the whole of a longer output.
    pub overflow: Option<OverflowFile>,
}

impl CaptureLimits {
    /// Keeps up to this many bytes; of longer outputs half from either end, and no file.
    pub fn up_to(bytes: usize) -> CaptureLimits {
        CaptureLimits { whole_max: bytes, head: bytes / 2, tail: bytes - bytes / 2, overflow: None }
    }
}

/// File for a long output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverflowFile {
    /// Path, in an existing folder. It is created on demand, readable by the user only.
    pub file: PathBuf,
    /// Maximum bytes written, so that no command fills the disk.
    pub bytes_max: u64,
}

/// Captured output.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CapturedOutput {
    /// Beginning, or everything if nothing was left out.
    pub head: Vec<u8>,
    /// End, if something was left out in between.
    pub tail: Vec<u8>,
    /// Bytes left out between head and tail.
    pub left_out: u64,
    /// Overflow file and its size in bytes.
    pub file: Option<(PathBuf, u64)>,
    /// Reason why the file is missing or incomplete.
    pub file_failed: Option<String>,
}

impl CapturedOutput {
    /// Total bytes of the output.
    pub fn total(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.left_out
    }

    /// Captured text: invalid UTF-8 is replaced, and a line marks what was left out.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.left_out > 0 {
            text.push_str(&format!("\n[… {} bytes left out …]\n", self.left_out));
            text.push_str(&String::from_utf8_lossy(&self.tail));
        }
        text
    }
}

/// Capture in progress.
#[derive(Debug)]
pub(crate) struct OutputCapture {
    keep: CaptureLimits,
    /// Everything up to `whole_max`; then the beginning.
    head: Vec<u8>,
    /// End of a long output; longer than needed, so that it is rarely moved.
    tail: Vec<u8>,
    total: u64,
    is_cut: bool,
    file: Option<File>,
    file_bytes: u64,
    file_failed: Option<String>,
}

impl OutputCapture {
    pub(crate) fn new(keep: CaptureLimits) -> OutputCapture {
        OutputCapture {
            keep,
            head: Vec::new(),
            tail: Vec::new(),
            total: 0,
            is_cut: false,
            file: None,
            file_bytes: 0,
            file_failed: None,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.is_cut {
            self.write(bytes);
            self.push_tail(bytes);
        } else {
            self.head.extend_from_slice(bytes);
            if self.head.len() > self.keep.whole_max {
                self.cut();
            }
        }
    }

    pub(crate) fn finish(mut self) -> CapturedOutput {
        let surplus = self.tail.len().saturating_sub(self.keep.tail);
        self.tail.drain(..surplus);
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        let file = match (&self.keep.overflow, self.file_bytes) {
            (Some(overflow), 1..) => Some((overflow.file.clone(), self.file_bytes)),
            _ => None,
        };
        CapturedOutput { head: self.head, tail: self.tail, left_out, file, file_failed: self.file_failed }
    }

    /// Switches to keeping only the two ends.
    fn cut(&mut self) {
        self.is_cut = true;
        let whole = std::mem::take(&mut self.head);
        if let Some(overflow) = &self.keep.overflow {
            match create(&overflow.file) {
                Ok(file) => self.file = Some(file),
                Err(error) => self.file_failed = Some(error.to_string()),
            }
        }
        self.write(&whole);
        let (head, rest) = whole.split_at(self.keep.head.min(whole.len()));
        self.head = head.to_vec();
        self.push_tail(rest);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let most = self.keep.tail;
        let bytes = &bytes[bytes.len().saturating_sub(most)..];
        if self.tail.len() + bytes.len() > 2 * most {
            let surplus = (self.tail.len() + bytes.len() - most).min(self.tail.len());
            self.tail.drain(..surplus);
        }
        self.tail.extend_from_slice(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let (Some(file), Some(overflow)) = (&mut self.file, &self.keep.overflow) else { return };
        let room = overflow.bytes_max.saturating_sub(self.file_bytes);
        let part = &bytes[..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        if let Err(error) = file.write_all(part) {
            self.file_failed = Some(error.to_string());
            self.file = None;
            return;
        }
        self.file_bytes += part.len() as u64;
        if part.len() < bytes.len() {
            self.file_failed = Some(format!("it holds no more than {} bytes", overflow.bytes_max));
            self.file = None;
        }
    }
}

/// Creates a file readable by the user only; fails if it exists.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(keep: CaptureLimits, parts: &[&str]) -> CapturedOutput {
        let mut capture = OutputCapture::new(keep);
        parts.iter().for_each(|part| capture.push(part.as_bytes()));
        capture.finish()
    }

    #[test]
    fn both_ends_of_a_long_output_are_kept() {
        let keep = CaptureLimits { whole_max: 8, head: 2, tail: 3, overflow: None };
        let whole = captured(keep.clone(), &["1234", "5678"]);
        assert_eq!((whole.text().as_str(), whole.left_out), ("12345678", 0));
        let text = "1234567890abcdefghij";
        for size in 1..=text.len() {
            let parts: Vec<&str> =
                text.as_bytes().chunks(size).map(|part| std::str::from_utf8(part).expect("ASCII")).collect();
            let cut = captured(keep.clone(), &parts);
            assert_eq!((cut.head.as_slice(), cut.tail.as_slice()), (b"12".as_slice(), b"hij".as_slice()));
            assert_eq!((cut.left_out, cut.total()), (15, 20), "in parts of {size}");
        }
    }

    #[test]
    fn a_long_output_goes_to_the_file_up_to_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("whole");
        let keep = |bytes_max, file: &Path| CaptureLimits {
            whole_max: 4,
            head: 1,
            tail: 1,
            overflow: Some(OverflowFile { file: file.to_owned(), bytes_max }),
        };
        assert_eq!(captured(keep(100, &file), &["1234"]).file, None, "a short one needs none");
        let long = captured(keep(100, &file), &["123", "45", "67"]);
        assert_eq!(long.file, Some((file.clone(), 7)));
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "1234567");
        let again = captured(keep(100, &file), &["12345"]);
        assert!(again.file.is_none() && again.file_failed.is_some(), "nothing is written over");
        let other = folder.path().join("other");
        let limited = captured(keep(6, &other), &["12345", "678"]);
        assert_eq!(limited.file, Some((other.clone(), 6)));
        assert_eq!(std::fs::read_to_string(&other).expect("the file"), "123456");
        assert!(limited.file_failed.is_some());
    }
}
