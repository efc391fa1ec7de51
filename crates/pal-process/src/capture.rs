//! What is kept of an output that may be endless.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How much of an output is kept. Memory is bounded by `whole_max` and twice the tail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keep {
    /// An output of up to this many bytes is kept as it is.
    pub whole_max: usize,
    /// Of a longer one, this many bytes from its beginning; at most `whole_max`.
    pub head: usize,
    /// And this many from its end.
    pub tail: usize,
    /// Where a longer one goes as a whole.
    pub overflow: Option<Overflow>,
}

impl Keep {
    /// Up to this many bytes as they are; of longer outputs a half from either end, and no file.
    pub fn up_to(bytes: usize) -> Keep {
        Keep { whole_max: bytes, head: bytes / 2, tail: bytes - bytes / 2, overflow: None }
    }
}

/// The file that a long output goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overflow {
    /// Which one; its folder has to exist. It is made when it is needed, for nobody else to read.
    pub file: PathBuf,
    /// No more than this many bytes go there, so that no command fills the disk.
    pub bytes_max: u64,
}

/// What was kept of an output.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Captured {
    /// The beginning; everything, if nothing was left out.
    pub head: Vec<u8>,
    /// The end, if something was left out between.
    pub tail: Vec<u8>,
    /// Bytes between them.
    pub left_out: u64,
    /// The file that holds the whole, and how many bytes of it.
    pub file: Option<(PathBuf, u64)>,
    /// Why there is no such file, or why it ends early.
    pub file_failed: Option<String>,
}

impl Captured {
    /// Bytes of the output, kept or not.
    pub fn total(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + self.left_out
    }

    /// What was kept, as text: what is no UTF-8 is replaced, and a line tells where something was left out.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.left_out > 0 {
            text.push_str(&format!("\n[… {} bytes left out …]\n", self.left_out));
            text.push_str(&String::from_utf8_lossy(&self.tail));
        }
        text
    }
}

/// An output while it comes.
#[derive(Debug)]
pub(crate) struct Capture {
    keep: Keep,
    /// Everything, until it is too much; then the beginning.
    head: Vec<u8>,
    /// The end, once there is too much; more than is kept, so that it is seldom moved.
    tail: Vec<u8>,
    total: u64,
    is_cut: bool,
    file: Option<File>,
    file_bytes: u64,
    file_failed: Option<String>,
}

impl Capture {
    pub(crate) fn new(keep: Keep) -> Capture {
        Capture {
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

    pub(crate) fn finish(mut self) -> Captured {
        let surplus = self.tail.len().saturating_sub(self.keep.tail);
        self.tail.drain(..surplus);
        let left_out = self.total - (self.head.len() + self.tail.len()) as u64;
        let file = match (&self.keep.overflow, self.file_bytes) {
            (Some(overflow), 1..) => Some((overflow.file.clone(), self.file_bytes)),
            _ => None,
        };
        Captured { head: self.head, tail: self.tail, left_out, file, file_failed: self.file_failed }
    }

    /// From now on only the two ends stay here.
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

/// A new file that nobody else can read; one that is there already is not written over.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(keep: Keep, parts: &[&str]) -> Captured {
        let mut capture = Capture::new(keep);
        parts.iter().for_each(|part| capture.push(part.as_bytes()));
        capture.finish()
    }

    #[test]
    fn both_ends_of_a_long_output_are_kept_however_it_comes() {
        let keep = Keep { whole_max: 8, head: 2, tail: 3, overflow: None };
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
    fn the_whole_of_a_long_output_is_in_the_file_up_to_its_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("whole");
        let keep = |bytes_max, file: &Path| Keep {
            whole_max: 4,
            head: 1,
            tail: 1,
            overflow: Some(Overflow { file: file.to_owned(), bytes_max }),
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
