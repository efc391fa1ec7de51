//! Reads a log in segments of whole lines, from any offset, forwards or backwards.
//!
//! A [`Segment`] is one allocation that all entries of its lines share. Offsets come from the file and may be
//! wrong, so each is checked to be the start of a line before it is used. Memory is bounded: a segment holds
//! at most [`SEGMENT_BYTES`], or one line of at most [`LINE_BYTES_MAX`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pal_model::SharedText;

use crate::error::{FileError, LineFault, OpenError};
use crate::located_entry::{LocatedEntry, read_entry};
use crate::salvage::salvage;

/// Bytes read at a time.
pub(crate) const SEGMENT_BYTES: u64 = 256 << 10;

/// Maximum length of a line, line end included.
pub(crate) const LINE_BYTES_MAX: u64 = 256 << 20;

/// Readable part of a log file: its bytes before `end`.
#[derive(Clone, Copy)]
pub(crate) struct LogSource<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    pub(crate) end: u64,
}

/// Consecutive whole lines.
pub(crate) struct Segment {
    start: u64,
    bytes: SegmentBytes,
}

enum SegmentBytes {
    Text(SharedText),
    /// At least one line is not UTF-8; the others are converted one by one.
    Raw(Vec<u8>),
}

/// One line with its position.
pub(crate) struct RawLine {
    pub(crate) offset: u64,
    /// Offset after its line end.
    pub(crate) end: u64,
    /// Raw bytes if the line is not UTF-8.
    text: Result<SharedText, Vec<u8>>,
}

/// A line that is not an entry.
pub(crate) struct UnreadableLine {
    pub(crate) offset: u64,
    pub(crate) end: u64,
    pub(crate) why: LineFault,
    /// Whole entries inside the line.
    pub(crate) found: Vec<LocatedEntry>,
}

impl<'a> LogSource<'a> {
    /// Reports whether a line starts at `offset`.
    pub(crate) fn is_line_start(&self, offset: u64) -> Result<bool, FileError> {
        if offset == 0 || offset >= self.end {
            return Ok(offset == 0 && self.end > 0);
        }
        let mut before = [0];
        self.fill(offset - 1, &mut before)?;
        Ok(before[0] == b'\n')
    }

    /// Returns the line that starts at `offset`, if one does.
    pub(crate) fn line_at(self, offset: u64) -> Result<Option<RawLine>, FileError> {
        LineCursor::new(self).starting_at(offset)
    }

    /// Reads the last whole lines before `end`, which must be the end of a line.
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

    /// Reads whole lines from `start`, which must be the start of a line.
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

    /// Finds the end of the line that starts at `start`.
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

    /// Reads the bytes in `from..to`.
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
    /// Makes a segment of `bytes[from..]`; `bytes` were read at offset `start`.
    fn new(start: u64, bytes: &[u8], from: usize) -> Segment {
        let bytes = match std::str::from_utf8(&bytes[from..]) {
            Ok(text) => SegmentBytes::Text(SharedText::from(text)),
            Err(_) => SegmentBytes::Raw(bytes[from..].to_vec()),
        };
        Segment { start: start + from as u64, bytes }
    }

    /// Offset after its last line.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes().len() as u64
    }

    /// Returns the line that ends at `end`, if this segment holds it.
    pub(crate) fn line_ending(&self, end: u64) -> Option<RawLine> {
        let to = usize::try_from(end.checked_sub(self.start)?).ok()?;
        let before = self.bytes().get(..to)?;
        let inner = before.strip_suffix(b"\n").unwrap_or(before);
        let from = memchr::memrchr(b'\n', inner).map_or(0, |newline| newline + 1);
        (to > 0).then(|| self.cut(from, to))
    }

    /// Returns the line that starts at `start`, if this segment holds one.
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
            SegmentBytes::Text(text) => text.as_bytes(),
            SegmentBytes::Raw(bytes) => bytes,
        }
    }

    fn cut(&self, from: usize, to: usize) -> RawLine {
        let bytes = self.bytes();
        let inner_to = if bytes[from..to].ends_with(b"\n") { to - 1 } else { to };
        let text = match &self.bytes {
            // A line end is a whole character, so slicing next to one never splits another.
            SegmentBytes::Text(text) => Ok(text.slice_of(&text.as_str()[from..inner_to])),
            SegmentBytes::Raw(bytes) => match std::str::from_utf8(&bytes[from..inner_to]) {
                Ok(text) => Ok(SharedText::from(text)),
                Err(_) => Err(bytes[from..inner_to].to_vec()),
            },
        };
        RawLine { offset: self.start + from as u64, end: self.start + to as u64, text }
    }
}

impl RawLine {
    /// Parses the entry and verifies its checksum.
    pub(crate) fn parse(self) -> Result<LocatedEntry, UnreadableLine> {
        let RawLine { offset, end, text } = self;
        let bad = |why, line: &[u8]| {
            let is_newer = matches!(why, LineFault::NotAnEntry(pal_model::EntryError::Version(_)));
            let found = if is_newer { Vec::new() } else { salvage(offset, line) };
            UnreadableLine { offset, end, why, found }
        };
        match text {
            Ok(text) => read_entry(offset, &text).map_err(|why| bad(why, text.as_bytes())),
            Err(bytes) => Err(bad(LineFault::NotUtf8, &bytes)),
        }
    }
}

impl UnreadableLine {
    /// Refuses a line that only a newer program can read; passes any other unreadable line through.
    pub(crate) fn unless_newer(self, path: &Path) -> Result<UnreadableLine, OpenError> {
        match self.why {
            LineFault::NotAnEntry(pal_model::EntryError::Version(version)) => {
                Err(OpenError::Newer { path: path.to_owned(), version })
            }
            _ => Ok(self),
        }
    }
}

/// Moves from line to line, backwards or by offset, and caches one segment.
pub(crate) struct LineCursor<'a> {
    source: LogSource<'a>,
    segment: Option<Segment>,
}

impl<'a> LineCursor<'a> {
    pub(crate) fn new(source: LogSource<'a>) -> LineCursor<'a> {
        LineCursor { source, segment: None }
    }

    /// Returns the line that ends at `end`, which must be the end of a line; none at the start of the file.
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

    /// Returns the line that starts at `start`, if one does.
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

/// Iterates over lines in file order.
pub(crate) struct ForwardCursor<'a> {
    source: LogSource<'a>,
    segment: Option<Segment>,
    at: u64,
}

impl<'a> ForwardCursor<'a> {
    /// Starts at `start`, which must be the start of a line.
    pub(crate) fn new(source: LogSource<'a>, start: u64) -> ForwardCursor<'a> {
        ForwardCursor { source, segment: None, at: start }
    }

    /// Returns the next line; none at the end.
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
