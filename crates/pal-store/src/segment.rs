//! Reading a log in stretches of whole lines, from any place, forwards or backwards.
//!
//! A [`Segment`] is one allocation that all entries of its lines share. Offsets come from the file and may be
//! wrong, so every place is checked to be the start of a line before it is used. Memory is bounded: a segment
//! is one stretch of [`SEGMENT_BYTES`], or one line where a line is longer, and a line has a greatest length.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pal_model::{Entry, Text};

use crate::checksum::{Seal, verify};
use crate::error::{FileError, OpenError, Why};
use crate::salvage::salvage;

/// How much is read at a time.
pub(crate) const SEGMENT_BYTES: u64 = 256 << 10;

/// The greatest length of a line, its line end included.
pub(crate) const LINE_BYTES_MAX: u64 = 256 << 20;

/// The part of a log file that is read: its bytes before `end`.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    pub(crate) end: u64,
}

/// A stretch of whole lines.
pub(crate) struct Segment {
    start: u64,
    bytes: Bytes,
}

enum Bytes {
    Text(Text),
    /// Some line is no UTF-8; the others are cut out one by one.
    Raw(Vec<u8>),
}

/// One line and where it stands.
pub(crate) struct RawLine {
    pub(crate) offset: u64,
    /// Just behind its line end.
    pub(crate) end: u64,
    /// Its bytes if they are no UTF-8.
    text: Result<Text, Vec<u8>>,
}

/// An entry and where its line starts.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub(crate) offset: u64,
    pub(crate) entry: Entry,
    /// Whether the line no longer matches its checksum. Its body then hides nothing.
    pub(crate) is_altered: bool,
    /// Whether the line ends with CRLF, which nothing here ever writes.
    pub(crate) has_crlf: bool,
    /// Whether the line carries a checksum.
    pub(crate) has_checksum: bool,
    /// Whether it was found inside of a line that is no entry itself.
    pub(crate) is_salvaged: bool,
}

impl Located {
    /// Length in bytes, without the line end.
    pub(crate) fn bytes(&self) -> u64 {
        self.entry.line.len() as u64
    }
}

/// A line that is no entry.
pub(crate) struct Bad {
    pub(crate) offset: u64,
    pub(crate) end: u64,
    pub(crate) why: Why,
    /// Entries that stand in it whole.
    pub(crate) found: Vec<Located>,
}

impl<'a> Source<'a> {
    /// Whether a line starts at `offset`.
    pub(crate) fn is_line_start(&self, offset: u64) -> Result<bool, FileError> {
        if offset == 0 || offset >= self.end {
            return Ok(offset == 0 && self.end > 0);
        }
        let mut before = [0];
        self.fill(offset - 1, &mut before)?;
        Ok(before[0] == b'\n')
    }

    /// The line that starts at `offset`; none if no line does.
    pub(crate) fn line_at(self, offset: u64) -> Result<Option<RawLine>, FileError> {
        Cursor::new(self).starting_at(offset)
    }

    /// The last whole lines before `end`, which must be just behind a line.
    pub(crate) fn segment_ending(&self, end: u64) -> Result<Segment, FileError> {
        let mut size = SEGMENT_BYTES;
        loop {
            let start = end.saturating_sub(size);
            let bytes = self.read(start, end)?;
            if start == 0 {
                return Ok(Segment::new(0, &bytes, 0));
            }
            let inner = &bytes[..bytes.len().saturating_sub(1)];
            if let Some(newline) = memchr::memchr(b'\n', inner) {
                return Ok(Segment::new(start, &bytes, newline + 1));
            }
            size = self.longer(size)?;
        }
    }

    /// Whole lines from `start` on, which must be the start of a line.
    pub(crate) fn segment_starting(&self, start: u64) -> Result<Segment, FileError> {
        let mut size = SEGMENT_BYTES;
        loop {
            let end = self.end.min(start.saturating_add(size));
            let mut bytes = self.read(start, end)?;
            if end == self.end {
                return Ok(Segment::new(start, &bytes, 0));
            }
            if let Some(newline) = memchr::memrchr(b'\n', &bytes) {
                bytes.truncate(newline + 1);
                return Ok(Segment::new(start, &bytes, 0));
            }
            size = self.longer(size)?;
        }
    }

    /// Just behind the line that starts at `start`.
    fn line_end(&self, start: u64) -> Result<u64, FileError> {
        let mut from = start;
        while from < self.end {
            let to = self.end.min(from + SEGMENT_BYTES / 8);
            if let Some(newline) = memchr::memchr(b'\n', &self.read(from, to)?) {
                return Ok(from + newline as u64 + 1);
            }
            from = to;
        }
        Ok(self.end)
    }

    /// The bytes from `from` to `to`.
    pub(crate) fn read(&self, from: u64, to: u64) -> Result<Vec<u8>, FileError> {
        let mut bytes = vec![0; (to - from) as usize];
        self.fill(from, &mut bytes)?;
        Ok(bytes)
    }

    fn fill(&self, from: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.file.read_exact_at(bytes, from).map_err(|error| FileError::new("read", self.path, error))
    }

    fn longer(&self, size: u64) -> Result<u64, FileError> {
        if size >= LINE_BYTES_MAX {
            let error = io::Error::new(io::ErrorKind::InvalidData, "a line is longer than 256 MiB");
            return Err(FileError::new("read", self.path, error));
        }
        Ok((size * 4).min(LINE_BYTES_MAX))
    }
}

impl Segment {
    /// Of `bytes`, which were read at `start`, those from `from` on.
    fn new(start: u64, bytes: &[u8], from: usize) -> Segment {
        let bytes = match std::str::from_utf8(&bytes[from..]) {
            Ok(text) => Bytes::Text(Text::from(text)),
            Err(_) => Bytes::Raw(bytes[from..].to_vec()),
        };
        Segment { start: start + from as u64, bytes }
    }

    /// Just behind its last line.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }

    /// The line that ends at `end`, if it is in here.
    pub(crate) fn line_ending(&self, end: u64) -> Option<RawLine> {
        let to = usize::try_from(end.checked_sub(self.start)?).ok()?;
        let before = self.bytes().get(..to)?;
        let inner = before.strip_suffix(b"\n").unwrap_or(before);
        let from = memchr::memrchr(b'\n', inner).map_or(0, |newline| newline + 1);
        (to > 0).then(|| self.cut(from, to))
    }

    /// The line that starts at `start`, if a line does and it is in here.
    pub(crate) fn line_starting(&self, start: u64) -> Option<RawLine> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes();
        let rest = bytes.get(from..)?;
        let at_start = from == 0 || bytes[from - 1] == b'\n';
        if !at_start || rest.is_empty() {
            return None;
        }
        let to = memchr::memchr(b'\n', rest).map_or(bytes.len(), |newline| from + newline + 1);
        Some(self.cut(from, to))
    }

    fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Text(text) => text.as_bytes(),
            Bytes::Raw(bytes) => bytes,
        }
    }

    fn cut(&self, from: usize, to: usize) -> RawLine {
        let bytes = self.bytes();
        let inner_to = if bytes[from..to].ends_with(b"\n") { to - 1 } else { to };
        let text = match &self.bytes {
            // A line end is a whole character, so a cut beside one is never inside another.
            Bytes::Text(text) => Ok(text.slice_of(&text.as_str()[from..inner_to])),
            Bytes::Raw(bytes) => match std::str::from_utf8(&bytes[from..inner_to]) {
                Ok(text) => Ok(Text::from(text)),
                Err(_) => Err(bytes[from..inner_to].to_vec()),
            },
        };
        RawLine { offset: self.start + from as u64, end: self.start + to as u64, text }
    }
}

impl RawLine {
    /// Reads the entry.
    pub(crate) fn parse(self) -> Result<Located, Bad> {
        let RawLine { offset, end, text } = self;
        let bad = |why, line: &[u8]| {
            let is_newer = matches!(why, Why::NotAnEntry(pal_model::EntryError::Version(_)));
            let found = if is_newer { Vec::new() } else { salvage(offset, line) };
            Bad { offset, end, why, found }
        };
        match text {
            Ok(text) => read_entry(offset, &text).map_err(|why| bad(why, text.as_bytes())),
            Err(bytes) => Err(bad(Why::NotUtf8, &bytes)),
        }
    }
}

/// Reads the entry of a line that starts at `offset` and compares it with its checksum.
pub(crate) fn read_entry(offset: u64, line: &Text) -> Result<Located, Why> {
    let inner = line.strip_suffix('\r').unwrap_or(line);
    let has_crlf = inner.len() < line.len();
    let seal = verify(inner.as_bytes());
    match Entry::parse(line.slice_of(inner)) {
        Ok(mut entry) => {
            let is_altered = seal == Seal::Broken;
            if is_altered {
                entry.disarm();
            }
            let has_checksum = seal != Seal::Absent;
            Ok(Located { offset, entry, is_altered, has_crlf, has_checksum, is_salvaged: false })
        }
        // Damage may have hit the version: that is not the word of a newer program.
        Err(pal_model::EntryError::Version(_)) if seal == Seal::Broken => Err(Why::Checksum),
        Err(error) => Err(error.into()),
    }
}

impl Bad {
    /// Refuses a line that only a newer program can read; any other bad line passes.
    pub(crate) fn unless_newer(self, path: &Path) -> Result<Bad, OpenError> {
        match self.why {
            Why::NotAnEntry(pal_model::EntryError::Version(version)) => {
                Err(OpenError::Newer { path: path.to_owned(), version })
            }
            _ => Ok(self),
        }
    }
}

/// Goes from line to line backwards and by jumps, with one segment at hand.
pub(crate) struct Cursor<'a> {
    source: Source<'a>,
    segment: Option<Segment>,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(source: Source<'a>) -> Cursor<'a> {
        Cursor { source, segment: None }
    }

    /// The line that ends at `end`, which must be just behind a line; none before the first.
    pub(crate) fn ending_at(&mut self, end: u64) -> Result<Option<RawLine>, FileError> {
        if end == 0 {
            return Ok(None);
        }
        if let Some(line) = self.segment.as_ref().and_then(|segment| segment.line_ending(end)) {
            return Ok(Some(line));
        }
        let segment = self.source.segment_ending(end)?;
        Ok(self.segment.insert(segment).line_ending(end))
    }

    /// The line that starts at `start`; none if no line starts there.
    pub(crate) fn starting_at(&mut self, start: u64) -> Result<Option<RawLine>, FileError> {
        if let Some(segment) = &self.segment
            && (segment.start..segment.end()).contains(&start)
        {
            return Ok(segment.line_starting(start));
        }
        if !self.source.is_line_start(start)? {
            return Ok(None);
        }
        let end = self.source.line_end(start)?;
        let segment = self.source.segment_ending(end)?;
        Ok(self.segment.insert(segment).line_starting(start))
    }
}

/// All lines from one on, forwards.
pub(crate) struct Forward<'a> {
    source: Source<'a>,
    segment: Option<Segment>,
    at: u64,
}

impl<'a> Forward<'a> {
    /// From `start` on, which must be the start of a line.
    pub(crate) fn new(source: Source<'a>, start: u64) -> Forward<'a> {
        Forward { source, segment: None, at: start }
    }

    /// The next line; none behind the last.
    pub(crate) fn next_line(&mut self) -> Result<Option<RawLine>, FileError> {
        if self.at >= self.source.end {
            return Ok(None);
        }
        let line = match self.segment.as_ref().and_then(|segment| segment.line_starting(self.at)) {
            Some(line) => Some(line),
            None => {
                let segment = self.source.segment_starting(self.at)?;
                self.segment.insert(segment).line_starting(self.at)
            }
        };
        self.at = line.as_ref().map_or(self.source.end, |line| line.end);
        Ok(line)
    }
}
