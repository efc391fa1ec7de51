//! Page of a text file: numbered lines, read in one pass that also computes the fingerprint.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use pal_process::CancelToken;
use xxhash_rust::xxh3::Xxh3;

use super::file_io::format_fingerprint;

/// Maximum displayed characters of a line.
const LINE_CHARACTERS_MAX: usize = 2_000;

/// Maximum buffered bytes of a line, enough for the displayed characters.
const LINE_BYTES_MAX: usize = LINE_CHARACTERS_MAX * 4;

/// Maximum bytes of a page. Longer results would be spilled to a file, which would have to be read in turn.
const PAGE_BYTES_MAX: usize = 48_000;

/// Range of lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRange {
    /// First line, counted from 1.
    pub(crate) first: u64,
    /// Maximum number of lines.
    pub(crate) most: u64,
}

/// Page of a file.
#[derive(Debug, Default)]
pub(crate) struct TextPage {
    /// Lines, each prefixed by its number and a tab and terminated by a line end.
    pub(crate) text: String,
    /// Number of displayed lines.
    pub(crate) shown: u64,
    /// Number of lines in the file.
    pub(crate) lines: u64,
    /// Fingerprint of the whole file.
    pub(crate) print: String,
    /// Truncated lines with their lengths in bytes.
    pub(crate) cut: Vec<(u64, u64)>,
    /// True if invalid UTF-8 was replaced.
    pub(crate) is_lossy: bool,
    /// Number of displayed lines that end with CR LF.
    pub(crate) carriage_returns: u64,
    /// True if the last line of the file is displayed and has no line end.
    pub(crate) is_open_ended: bool,
    /// True if the page ended at its size limit.
    pub(crate) is_full: bool,
}

/// Reads a page. Memory is bounded by the page, not the file.
pub(crate) fn read_page(file: impl Read, wanted: LineRange, cancel: &CancelToken) -> io::Result<TextPage> {
    const CHUNK: usize = 128 * 1024;
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let mut print = Xxh3::new();
    let mut page = TextPage::default();
    let mut line = LineBuffer::default();
    loop {
        if cancel.is_cancelled() {
            return Err(io::Error::other("the call was cancelled"));
        }
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        print.update(chunk);
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            line.extend(&chunk[from..end]);
            page.take(&line, wanted, true);
            line.clear();
            from = end + 1;
        }
        line.extend(&chunk[from..]);
        let length = chunk.len();
        reader.consume(length);
    }
    if line.length > 0 {
        page.take(&line, wanted, false);
    }
    page.print = format_fingerprint(&print);
    Ok(page)
}

/// Line being read.
#[derive(Default)]
struct LineBuffer {
    bytes: Vec<u8>,
    length: u64,
    ends_in_return: bool,
}

impl LineBuffer {
    fn extend(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let room = LINE_BYTES_MAX.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend_from_slice(&bytes[..room]);
        self.length += bytes.len() as u64;
        self.ends_in_return = *last == b'\r';
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.length = 0;
        self.ends_in_return = false;
    }
}

impl TextPage {
    /// Adds the next line of the file.
    fn take(&mut self, line: &LineBuffer, wanted: LineRange, is_ended: bool) {
        self.lines += 1;
        let is_in_range = self.lines >= wanted.first && self.lines - wanted.first < wanted.most;
        if !is_in_range || self.is_full {
            return;
        }
        let has_return = is_ended && line.ends_in_return;
        let is_whole = line.bytes.len() as u64 == line.length;
        let bytes = match line.bytes.strip_suffix(b"\r") {
            Some(bytes) if has_return && is_whole => bytes,
            _ => &line.bytes,
        };
        let DisplayedLine { text, is_cut, is_lossy } = display_line(bytes, is_whole);
        let row = format!("{}\t{text}", self.lines);
        // The first line is always shown; otherwise no read could get past it.
        if self.shown > 0 && self.text.len() + row.len() > PAGE_BYTES_MAX {
            self.is_full = true;
            return;
        }
        if is_cut {
            self.cut.push((self.lines, line.length));
        }
        self.text.push_str(&row);
        self.text.push('\n');
        self.shown += 1;
        self.is_lossy |= is_lossy;
        self.carriage_returns += u64::from(has_return);
        self.is_open_ended = !is_ended;
    }
}

/// Displayed text of a line.
struct DisplayedLine {
    text: String,
    is_cut: bool,
    is_lossy: bool,
}

/// Formats a line; `is_whole` if these are all of its bytes.
fn display_line(bytes: &[u8], is_whole: bool) -> DisplayedLine {
    // A truncated line may end inside a character, which is not a fault of the file.
    let bytes = match std::str::from_utf8(bytes) {
        Err(err) if !is_whole && err.error_len().is_none() => &bytes[..err.valid_up_to()],
        _ => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, Cow::Owned(_));
    match text.char_indices().nth(LINE_CHARACTERS_MAX) {
        Some((end, _)) => DisplayedLine { text: text[..end].to_owned(), is_cut: true, is_lossy },
        None => DisplayedLine { text: text.into_owned(), is_cut: !is_whole, is_lossy },
    }
}
