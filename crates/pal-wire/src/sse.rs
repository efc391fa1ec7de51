//! Server-sent events: bytes in whatever pieces they come, frames out.
//!
//! Lines end in LF, CR or CRLF, wherever the pieces are cut. A frame is handed on at the empty line behind it; what
//! stands before the end of the bytes without one is not, as the rules of the format say, but [`Frames::is_pending`]
//! tells. Each byte is looked at once, whatever the pieces: only the line that has no end yet is held back, and it
//! is not searched again. What the frames mean is not known here.

use std::str::from_utf8;

use memchr::{memchr, memchr2};

/// Most bytes of one line, and of the data of one frame.
pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;

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
    #[error("an event of the stream is larger than {} MB", FRAME_BYTES_MAX >> 20)]
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

#[cfg(test)]
mod tests {
    use super::*;

    type Read = (Vec<(Option<String>, String)>, Result<bool, FrameError>);

    /// The frames of the pieces, and whether something was left over.
    fn read(pieces: &[&[u8]], bytes_max: usize) -> Read {
        let mut frames = Frames::new(bytes_max);
        let mut found = Vec::new();
        for piece in pieces {
            let pushed = frames.push(piece, |frame| {
                found.push((frame.event.map(str::to_owned), frame.data.to_owned()));
                Flow::GoOn
            });
            if let Err(error) = pushed {
                return (found, Err(error));
            }
        }
        (found, Ok(frames.is_pending()))
    }

    /// Reads the stream whole, byte by byte, and in two pieces cut anywhere.
    fn check_limited(
        stream: &[u8],
        bytes_max: usize,
        expected: &[(Option<&str>, &str)],
        end: Result<bool, FrameError>,
    ) {
        let expected: Vec<_> =
            expected.iter().map(|(name, data)| (name.map(str::to_owned), (*data).to_owned())).collect();
        let expected = (expected, end);
        assert_eq!(read(&[stream], bytes_max), expected, "{:?} whole", stream.escape_ascii().to_string());
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&single, bytes_max), expected, "{:?} in bytes", stream.escape_ascii().to_string());
        for cut in 0..=stream.len() {
            let (one, two) = stream.split_at(cut);
            assert_eq!(
                read(&[one, b"", two], bytes_max),
                expected,
                "{:?} cut at {cut}",
                stream.escape_ascii().to_string()
            );
        }
    }

    fn check(stream: impl AsRef<[u8]>, expected: &[(Option<&str>, &str)], is_pending: bool) {
        check_limited(stream.as_ref(), FRAME_BYTES_MAX, expected, Ok(is_pending));
    }

    #[test]
    fn lines_end_in_three_ways() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["event: a", "data: 1", "", "data: 2", "", ""].join(end);
            check(stream, &[(Some("a"), "1"), (None, "2")], false);
        }
        check("data: 1\r\ndata: 2\n\r\ndata: 3\r\r", &[(None, "1\n2"), (None, "3")], false);
        check("data: 1\n\n\n\r\n\rdata: 2\n\n", &[(None, "1"), (None, "2")], false);
    }

    #[test]
    fn fields_are_read_as_the_rules_say() {
        check("data:1\n\ndata:  2\n\n", &[(None, "1"), (None, " 2")], false);
        check("data: a\ndata\ndata:\ndata: b:c\n\n", &[(None, "a\n\n\nb:c")], false);
        check("data\n\ndata:\n\n", &[(None, ""), (None, "")], false);
        check(": note\nid: 7\nretry: 10\nother: x\ndatax: y\n data: z\ndata: 1\n\n", &[(None, "1")], false);
        check(
            "event: a\nevent: b\ndata: 1\n\nevent: c\nevent:\ndata: 2\n\n",
            &[(Some("b"), "1"), (None, "2")],
            false,
        );
        check("event: alone\n\ndata: 1\n\n", &[(None, "1")], false);
        check("", &[], false);
    }

    #[test]
    fn a_mark_of_byte_order_may_stand_at_the_start_only() {
        check("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &[(None, "1")], false);
        check("\u{feff}\u{feff}data: 1\n\n", &[], false);
    }

    #[test]
    fn a_frame_without_its_empty_line_is_not_handed_on() {
        check("data: 1\n\ndata: 2\n", &[(None, "1")], true);
        check("data: 1\n\ndata: 2", &[(None, "1")], true);
        check("data: 1\n\nevent: x\n", &[(None, "1")], false);
        check("data: 1\r\n\r", &[(None, "1")], false);
    }

    #[test]
    fn characters_may_be_cut_and_must_be_whole() {
        check("event: é\ndata: 日本🙂\n\n", &[(Some("é"), "日本🙂")], false);
        check_limited(b"data: 1\n\ndata: \xff\n\ndata: 2\n\n", 99, &[(None, "1")], Err(FrameError::NotUtf8));
        check_limited(b"event: \xc3\ndata: 2\n\n", 99, &[], Err(FrameError::NotUtf8));
        // What nobody reads may be anything.
        check(b": \xff\n\xfe: 1\ndata: 2\n\n", &[(None, "2")], false);
    }

    #[test]
    fn a_frame_that_never_ends_is_refused() {
        check_limited(b"data: 1\n\ndata: 123456789\n\n", 10, &[(None, "1")], Err(FrameError::TooLarge));
        check_limited(b"data: 1\n\n: 123456789", 10, &[(None, "1")], Err(FrameError::TooLarge));
        check_limited(b"data:123\ndata:456\ndata:789\n\n", 10, &[], Err(FrameError::TooLarge));
        check_limited(
            b"data:123\ndata:456\n\ndata:789\n\n",
            10,
            &[(None, "123\n456"), (None, "789")],
            Ok(false),
        );
    }
}
