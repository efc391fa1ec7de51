//! One page of a file: some of its lines, with their numbers, read in one pass that also makes the fingerprint.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use pal_process::Cancel;
use xxhash_rust::xxh3::Xxh3;

use super::disk::spelled;

/// Most characters of a line that are shown.
const LINE_CHARACTERS_MAX: usize = 2_000;

/// Most bytes of a line that are kept while it is read: enough for the characters that are shown.
const LINE_BYTES_MAX: usize = LINE_CHARACTERS_MAX * 4;

/// Most bytes of a page. Results that are longer are put aside into a file, which would then have to be read.
const PAGE_BYTES_MAX: usize = 48_000;

/// Which lines are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The first line, counted from 1.
    pub(crate) first: u64,
    /// How many.
    pub(crate) most: u64,
}

/// Some lines of a file.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The lines, each with its number and a tab before it and a line end behind it.
    pub(crate) text: String,
    /// How many lines it shows.
    pub(crate) shown: u64,
    /// How many lines the file has.
    pub(crate) lines: u64,
    /// The fingerprint of the whole file.
    pub(crate) print: String,
    /// Lines that were cut, with their lengths in bytes.
    pub(crate) cut: Vec<(u64, u64)>,
    /// Whether something was no UTF-8 and is shown as a replacement character.
    pub(crate) is_lossy: bool,
    /// Lines of the page that end with a carriage return as well.
    pub(crate) carriage_returns: u64,
    /// Whether the file's last line is shown and has no line end.
    pub(crate) is_open_ended: bool,
    /// Whether the page ends for want of room.
    pub(crate) is_full: bool,
}

/// Reads a page. Takes memory for the page alone, whatever the size of the file.
pub(crate) fn page(file: impl Read, wanted: Wanted, cancel: &Cancel) -> io::Result<Page> {
    const CHUNK: usize = 128 * 1024;
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let mut print = Xxh3::new();
    let mut page = Page::default();
    let mut line = Line::default();
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
    page.print = spelled(&print);
    Ok(page)
}

/// The line that is being read.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    length: u64,
    ends_in_return: bool,
}

impl Line {
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

impl Page {
    /// Takes in the next line of the file.
    fn take(&mut self, line: &Line, wanted: Wanted, is_ended: bool) {
        self.lines += 1;
        let is_wanted = self.lines >= wanted.first && self.lines - wanted.first < wanted.most;
        if !is_wanted || self.is_full {
            return;
        }
        let has_return = is_ended && line.ends_in_return;
        let is_whole = line.bytes.len() as u64 == line.length;
        let bytes = match line.bytes.strip_suffix(b"\r") {
            Some(bytes) if has_return && is_whole => bytes,
            _ => &line.bytes,
        };
        let Shown { text, is_cut, is_lossy } = shown(bytes, is_whole);
        let row = format!("{}\t{text}", self.lines);
        // The first line is shown whatever its length: else nobody would ever get past it.
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

/// What is shown of a line.
struct Shown {
    text: String,
    is_cut: bool,
    is_lossy: bool,
}

/// What is shown of a line; `is_whole` says whether these are all of its bytes.
fn shown(bytes: &[u8], is_whole: bool) -> Shown {
    // A line that was cut may have been cut inside a character, which is then no fault of the file.
    let bytes = match std::str::from_utf8(bytes) {
        Err(err) if !is_whole && err.error_len().is_none() => &bytes[..err.valid_up_to()],
        _ => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, Cow::Owned(_));
    match text.char_indices().nth(LINE_CHARACTERS_MAX) {
        Some((end, _)) => Shown { text: text[..end].to_owned(), is_cut: true, is_lossy },
        None => Shown { text: text.into_owned(), is_cut: !is_whole, is_lossy },
    }
}
