//! Server-sent events: bytes in arbitrary pieces in, frames out.
//!
//! Lines end in LF, CR or CRLF. A frame is complete at the empty line after it; an incomplete frame at the end of the
//! bytes is dropped, as the format demands, but reported by [`SseParser::is_pending`]. Each byte is scanned once: only an
//! unfinished line is buffered, and it is not scanned again.

use std::str::from_utf8;

use memchr::{memchr, memchr2};

/// Maximum bytes of one line, and of the data of one frame.
pub(crate) const FRAME_BYTES_MAX: usize = 16 << 20;

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SseFrame<'a> {
    /// Value of the `event` line, if any.
    pub(crate) event: Option<&'a str>,
    /// `data` lines joined by line feeds.
    pub(crate) data: &'a str,
}

/// Error of parsing a stream of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SseError {
    /// A line or frame exceeds the limit.
    #[error("an event of the stream is larger than {} MB", FRAME_BYTES_MAX >> 20)]
    TooLarge,
    /// The text is not UTF-8.
    #[error("an event of the stream is not UTF-8")]
    NotUtf8,
}

/// Answer of the sink: continue with the next frame, or ignore the rest of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFlow {
    Continue,
    Stop,
}

/// Parser of a stream of frames.
#[derive(Debug)]
pub(crate) struct SseParser {
    /// Beginning of an unfinished line.
    line: Vec<u8>,
    /// Last `event` line of the current frame.
    event: Vec<u8>,
    /// `data` lines of the current frame.
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was a carriage return; a following line feed belongs to the same line ending.
    after_return: bool,
    /// No line has ended yet; a byte order mark may precede the first.
    at_start: bool,
    bytes_max: usize,
}

impl SseParser {
    /// Creates a parser with a limit on lines and on the data of a frame.
    pub(crate) fn new(bytes_max: usize) -> SseParser {
        SseParser {
            line: Vec::new(),
            event: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_return: false,
            at_start: true,
            bytes_max,
        }
    }

    /// Parses the next bytes and passes every completed frame to `sink`.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(SseFrame<'_>) -> FrameFlow,
    ) -> Result<(), SseError> {
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
            if self.end_line(line, &mut sink)? == FrameFlow::Stop {
                return Ok(());
            }
        }
        self.hold(rest)
    }

    /// Returns true if the bytes so far end inside a frame.
    pub(crate) fn is_pending(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    /// Buffers a piece of an unfinished line.
    fn hold(&mut self, piece: &[u8]) -> Result<(), SseError> {
        if self.line.len() + piece.len() > self.bytes_max {
            return Err(SseError::TooLarge);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(
        &mut self,
        end: &[u8],
        sink: &mut impl FnMut(SseFrame<'_>) -> FrameFlow,
    ) -> Result<FrameFlow, SseError> {
        if self.line.is_empty() && end.len() <= self.bytes_max {
            return self.take_line(end, sink);
        }
        self.hold(end)?;
        let mut line = std::mem::take(&mut self.line);
        let flow = self.take_line(&line, sink);
        // Keeps the allocation for the next unfinished line.
        line.clear();
        self.line = line;
        flow
    }

    fn take_line(
        &mut self,
        line: &[u8],
        sink: &mut impl FnMut(SseFrame<'_>) -> FrameFlow,
    ) -> Result<FrameFlow, SseError> {
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
                    return Err(SseError::TooLarge);
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
            // Comments have no name; `id` and `retry` are for clients that reconnect; other fields have no meaning.
            _ => {}
        }
        Ok(FrameFlow::Continue)
    }

    fn end_frame(&mut self, sink: &mut impl FnMut(SseFrame<'_>) -> FrameFlow) -> Result<FrameFlow, SseError> {
        let mut flow = FrameFlow::Continue;
        if self.has_data {
            let data = from_utf8(&self.data).map_err(|_| SseError::NotUtf8)?;
            let event = from_utf8(&self.event).map_err(|_| SseError::NotUtf8)?;
            flow = sink(SseFrame { event: Some(event).filter(|event| !event.is_empty()), data });
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

    type ParsedFrames = (Vec<(Option<String>, String)>, Result<bool, SseError>);

    /// Returns the frames of the pieces, and whether a frame is pending.
    fn read(pieces: &[&[u8]], bytes_max: usize) -> ParsedFrames {
        let mut frames = SseParser::new(bytes_max);
        let mut found = Vec::new();
        for piece in pieces {
            let pushed = frames.push(piece, |frame| {
                found.push((frame.event.map(str::to_owned), frame.data.to_owned()));
                FrameFlow::Continue
            });
            if let Err(error) = pushed {
                return (found, Err(error));
            }
        }
        (found, Ok(frames.is_pending()))
    }

    /// Parses the stream in one piece, byte by byte, and in two pieces split at every position.
    fn check_limited(
        stream: &[u8],
        bytes_max: usize,
        expected: &[(Option<&str>, &str)],
        end: Result<bool, SseError>,
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
    fn lines_end_with_lf_cr_or_crlf() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = ["event: a", "data: 1", "", "data: 2", "", ""].join(end);
            check(stream, &[(Some("a"), "1"), (None, "2")], false);
        }
        check("data: 1\r\ndata: 2\n\r\ndata: 3\r\r", &[(None, "1\n2"), (None, "3")], false);
        check("data: 1\n\n\n\r\n\rdata: 2\n\n", &[(None, "1"), (None, "2")], false);
    }

    #[test]
    fn fields_are_parsed_as_specified() {
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
    fn byte_order_mark_is_accepted_at_the_start_only() {
        check("\u{feff}data: 1\n\n\u{feff}data: 2\n\n", &[(None, "1")], false);
        check("\u{feff}\u{feff}data: 1\n\n", &[], false);
    }

    #[test]
    fn frame_without_empty_line_is_dropped() {
        check("data: 1\n\ndata: 2\n", &[(None, "1")], true);
        check("data: 1\n\ndata: 2", &[(None, "1")], true);
        check("data: 1\n\nevent: x\n", &[(None, "1")], false);
        check("data: 1\r\n\r", &[(None, "1")], false);
    }

    #[test]
    fn split_characters_are_joined_and_invalid_utf8_is_refused() {
        check("event: é\ndata: 日本🙂\n\n", &[(Some("é"), "日本🙂")], false);
        check_limited(b"data: 1\n\ndata: \xff\n\ndata: 2\n\n", 99, &[(None, "1")], Err(SseError::NotUtf8));
        check_limited(b"event: \xc3\ndata: 2\n\n", 99, &[], Err(SseError::NotUtf8));
        // Ignored lines may contain anything.
        check(b": \xff\n\xfe: 1\ndata: 2\n\n", &[(None, "2")], false);
    }

    #[test]
    fn oversized_frame_is_refused() {
        check_limited(b"data: 1\n\ndata: 123456789\n\n", 10, &[(None, "1")], Err(SseError::TooLarge));
        check_limited(b"data: 1\n\n: 123456789", 10, &[(None, "1")], Err(SseError::TooLarge));
        check_limited(b"data:123\ndata:456\ndata:789\n\n", 10, &[], Err(SseError::TooLarge));
        check_limited(
            b"data:123\ndata:456\n\ndata:789\n\n",
            10,
            &[(None, "123\n456"), (None, "789")],
            Ok(false),
        );
    }
}
