//! Server-sent events: bytes in whatever pieces they come, frames out.
//!
//! Lines end in LF, CR or CRLF, wherever the pieces are cut. A frame is handed on at the empty line behind it; what
//! stands before the end of the bytes without one is not, as the rules of the format say, but [`Frames::is_pending`]
//! tells. Each byte is looked at once, whatever the pieces: only the line that has no end yet is held back, and it
//! is not searched again. What the frames mean is not known here.

use std::str::from_utf8;

use memchr::{memchr, memchr2};

/// Most bytes of one line, and of the data of one frame.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 20;

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The name in its `event` line, where there is one.
    pub(crate) event: Option<&'a str>,
    /// Its `data` lines, joined by line feeds.
    pub(crate) data: &'a str,
}

/// Why bytes are no stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// A line or a frame goes on and on.
    #[error("an event of the stream is larger than {FRAME_BYTES_MAX} bytes")]
    TooLarge,
    /// The text is no UTF-8.
    #[error("an event of the stream is not UTF-8")]
    NotUtf8,
}

/// Whether more frames are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Yes.
    GoOn,
    /// No; the rest of the bytes is of no interest.
    Stop,
}

/// Cuts a stream of bytes into frames.
#[derive(Debug)]
pub(crate) struct Frames {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The last `event` line of the frame.
    event: Vec<u8>,
    /// The `data` lines of the frame.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return: a line feed right behind it belongs to the same line end.
    after_return: bool,
    /// No line has ended yet: a byte order mark may stand before the first.
    at_start: bool,
    bytes_max: usize,
}

impl Frames {
    /// A scanner before the first byte, with a limit on lines and on the data of a frame.
    pub(crate) fn new(bytes_max: usize) -> Frames {
        Frames {
            line: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
            bytes_max,
        }
    }

    /// Takes the next bytes and hands every frame that they end to `sink`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(Frame<'_>) -> Flow,
    ) -> Result<(), FrameError> {
        let mut rest = bytes;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, behind) = rest.split_at(end);
            rest = match behind {
                [b'\r', b'\n', behind @ ..] | [_, behind @ ..] => behind,
                [] => behind,
            };
            self.after_return = behind == b"\r";
            if self.end_line(line, &mut sink)? == Flow::Stop {
                return Ok(());
            }
        }
        self.hold(rest)
    }

    /// Whether the bytes so far end inside of a frame.
    pub(crate) fn is_pending(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// Keeps a piece of a line until the rest of it comes.
    fn hold(&mut self, piece: &[u8]) -> Result<(), FrameError> {
        if self.line.len() + piece.len() > self.bytes_max {
            return Err(FrameError::TooLarge);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self, end: &[u8], sink: &mut impl FnMut(Frame<'_>) -> Flow) -> Result<Flow, FrameError> {
        if self.line.is_empty() && end.len() <= self.bytes_max {
            return self.take_line(end, sink);
        }
        self.hold(end)?;
        let mut line = std::mem::take(&mut self.line);
        let flow = self.take_line(&line, sink);
        // The allocation is kept for the next line that comes in pieces.
        line.clear();
        self.line = line;
        flow
    }

    fn take_line(
        &mut self,
        line: &[u8],
        sink: &mut impl FnMut(Frame<'_>) -> Flow,
    ) -> Result<Flow, FrameError> {
        let line = if std::mem::take(&mut self.at_start) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            return self.end_frame(sink);
        }
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.data.len() + value.len() + 1 > self.bytes_max {
                    return Err(FrameError::TooLarge);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            // Comments have no name; `id` and `retry` are for readers that reconnect; others have no meaning.
            _ => {}
        }
        Ok(Flow::GoOn)
    }

    fn end_frame(&mut self, sink: &mut impl FnMut(Frame<'_>) -> Flow) -> Result<Flow, FrameError> {
        let mut flow = Flow::GoOn;
        if self.has_data {
            let data = from_utf8(&self.data).map_err(|_| FrameError::NotUtf8)?;
            let event = from_utf8(&self.event).map_err(|_| FrameError::NotUtf8)?;
            flow = sink(Frame { event: Some(event).filter(|event| !event.is_empty()), data });
        }
        self.data.clear();
        self.event.clear();
        self.has_data = false;
        Ok(flow)
    }
}
