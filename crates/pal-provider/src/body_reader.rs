//! Reads the body of a successful reply: bytes in, events out.
//!
//! The format is detected from the content, not from the request: an event stream is decoded as it arrives; a
//! JSON object is collected and decoded whole, even if a stream was requested; a web page or other text,
//! usual for proxies and wrong addresses, is a failure that quotes its beginning.

use pal_wire::{
    BlockDelta, Dialect, FailureKind, ProviderFailure, ResponseDecoder, ResponseEvent, decode_response,
};

use crate::http_transport::IncomingAnswer;

/// Maximum number of blocks in an answer.
const BLOCKS_MAX: usize = 10_000;

/// Bytes allowed on the wire per byte of answer: event framing and pings take the rest.
const WIRE_FACTOR: usize = 3;

/// Maximum bytes read of a body in an unknown format.
const STRANGE_BYTES: usize = 4096;

/// Bytes that suffice to recognize a stream: the longest field name and its colon.
const TELLING_BYTES: usize = 6;

/// Reader of one reply body.
pub(crate) struct BodyReader {
    incoming: IncomingAnswer,
    dialect: Dialect,
    shape: BodyState,
    amount: AnswerSize,
}

/// Received size of an answer and its limit.
#[derive(Debug)]
struct AnswerSize {
    bytes_max: usize,
    /// Bytes on the wire, without HTTP framing.
    received: usize,
    /// Bytes of text, thinking and tool input.
    grown: usize,
    blocks: usize,
}

impl AnswerSize {
    /// Counts events; returns a failure if the answer is too large.
    fn count(&mut self, events: &[ResponseEvent]) -> Option<ProviderFailure> {
        for event in events {
            match event {
                ResponseEvent::BlockDelta {
                    delta: BlockDelta::Text(text) | BlockDelta::Thinking(text) | BlockDelta::Input(text),
                    ..
                } => {
                    self.grown += text.len();
                }
                ResponseEvent::Block { .. } => self.blocks += 1,
                _ => {}
            }
        }
        let mb = self.bytes_max >> 20;
        let message = if self.grown > self.bytes_max {
            format!("the answer has more than {mb} MB")
        } else if self.received > self.bytes_max.saturating_mul(WIRE_FACTOR) {
            format!("the answer takes more than {} MB on the wire", mb * WIRE_FACTOR)
        } else if self.blocks > BLOCKS_MAX {
            format!("the answer has more than {BLOCKS_MAX} blocks")
        } else {
            return None;
        };
        Some(ProviderFailure::new(FailureKind::AnswerTooLarge, message))
    }
}

/// Body received so far, by format.
enum BodyState {
    /// Not enough bytes to tell.
    Unknown(Vec<u8>),
    /// Server-sent events.
    Stream(Box<ResponseDecoder>),
    /// One JSON value.
    Whole(Vec<u8>),
    /// Unknown format.
    Strange(Vec<u8>),
}

impl BodyReader {
    /// Creates a reader; nothing has been read yet.
    pub(crate) fn new(incoming: IncomingAnswer, dialect: Dialect, bytes_max: usize) -> BodyReader {
        let amount = AnswerSize { bytes_max, received: 0, grown: 0, blocks: 0 };
        BodyReader { incoming, dialect, shape: BodyState::Unknown(Vec::new()), amount }
    }

    /// Reads more bytes and appends their events. Must not be called after `Finished` or `Failed`.
    pub(crate) async fn read(&mut self, events: &mut Vec<ResponseEvent>) {
        match self.incoming.next().await {
            Ok(Some(bytes)) => {
                self.amount.received += bytes.len();
                self.take(&bytes, events);
                self.check_amount(events);
            }
            Ok(None) => self.end(events),
            Err(failure) => self.handle_read_failure(failure, events),
        }
        match events.last_mut() {
            Some(ResponseEvent::Failed(failure)) => self.incoming.label(failure),
            Some(ResponseEvent::Finished(_)) => self.incoming.drain().await,
            _ => {}
        }
    }

    /// Fails an answer that is too large; otherwise notes content.
    fn check_amount(&mut self, events: &mut Vec<ResponseEvent>) {
        if !events.is_empty() {
            self.incoming.note_content();
        }
        if matches!(events.last(), Some(ResponseEvent::Finished(_) | ResponseEvent::Failed(_))) {
            return;
        }
        if let Some(failure) = self.amount.count(events) {
            events.push(ResponseEvent::Failed(failure));
        }
    }

    fn take(&mut self, bytes: &[u8], events: &mut Vec<ResponseEvent>) {
        match &mut self.shape {
            BodyState::Unknown(head) => {
                head.extend_from_slice(bytes);
                let head = std::mem::take(head);
                match detect_kind(&head, self.incoming.is_stream(), false) {
                    Some(kind) => self.begin(kind, &head, events),
                    // Blank lines are dropped, so that any number of them takes no memory.
                    None => self.shape = BodyState::Unknown(skip_blank(&head).to_vec()),
                }
            }
            BodyState::Stream(decoder) => decoder.push(bytes, events),
            BodyState::Whole(body) if body.len() + bytes.len() > self.amount.bytes_max => {
                let message = format!("the answer has more than {} MB", self.amount.bytes_max >> 20);
                events
                    .push(ResponseEvent::Failed(ProviderFailure::new(FailureKind::AnswerTooLarge, message)));
            }
            BodyState::Whole(body) => body.extend_from_slice(bytes),
            BodyState::Strange(body) => {
                body.extend_from_slice(bytes);
                if body.len() >= STRANGE_BYTES {
                    events.push(ResponseEvent::Failed(self.unknown_format_failure()));
                }
            }
        }
    }

    /// Switches to the detected format and processes the bytes so far.
    fn begin(&mut self, kind: BodyKind, head: &[u8], events: &mut Vec<ResponseEvent>) {
        self.shape = match kind {
            BodyKind::Stream => BodyState::Stream(Box::new(ResponseDecoder::new(self.dialect))),
            BodyKind::Whole => BodyState::Whole(Vec::new()),
            BodyKind::Strange => BodyState::Strange(Vec::new()),
        };
        self.take(head, events);
    }

    fn end(&mut self, events: &mut Vec<ResponseEvent>) {
        if let BodyState::Unknown(head) = &mut self.shape {
            let head = std::mem::take(head);
            if let Some(kind) = detect_kind(&head, self.incoming.is_stream(), true) {
                self.begin(kind, &head, events);
            }
        }
        match &mut self.shape {
            BodyState::Unknown(_) => {
                let message = "the connection ended before the answer began";
                events.push(ResponseEvent::Failed(ProviderFailure::new(FailureKind::Cut, message)));
            }
            BodyState::Stream(decoder) => decoder.finish(events),
            BodyState::Whole(body) => {
                let decoded = decode_response(self.dialect, body);
                // Nothing was passed on yet, so only the failure of a bad answer remains.
                let is_bad = matches!(decoded.last(), Some(ResponseEvent::Failed(_)));
                let from = if is_bad { decoded.len() - 1 } else { 0 };
                events.extend(decoded.into_iter().skip(from));
            }
            BodyState::Strange(_) => events.push(ResponseEvent::Failed(self.unknown_format_failure())),
        }
    }

    /// Handles a failed connection. The decoder finishes first, since everything needed may have arrived;
    /// otherwise the connection's failure is more precise.
    fn handle_read_failure(&mut self, failure: ProviderFailure, events: &mut Vec<ResponseEvent>) {
        if let BodyState::Stream(decoder) = &mut self.shape {
            decoder.finish(events);
        }
        match events.last_mut() {
            Some(ResponseEvent::Finished(_)) => {}
            Some(ResponseEvent::Failed(cut)) => *cut = failure,
            _ => events.push(ResponseEvent::Failed(failure)),
        }
    }

    /// Failure of a body in an unknown format.
    fn unknown_format_failure(&self) -> ProviderFailure {
        let body = match &self.shape {
            BodyState::Strange(body) => body.as_slice(),
            _ => &[],
        };
        let text = String::from_utf8_lossy(body);
        let words = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        let start: String = words.chars().take(200).collect();
        let kind = self.incoming.content_type();
        let kind = if kind.is_empty() { "of unknown type" } else { kind };
        let message =
            format!("the answer is {kind}, not a model's answer; check the base address. It begins: {start}");
        ProviderFailure::new(FailureKind::Malformed, message)
    }
}

/// Body formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    Stream,
    Whole,
    Strange,
}

/// Detects the format from the beginning of a body; `None` if more bytes are needed or everything is blank.
fn detect_kind(head: &[u8], is_stream: bool, is_all: bool) -> Option<BodyKind> {
    let head = skip_blank(head);
    match head.first()? {
        b'{' | b'[' => Some(BodyKind::Whole),
        b'<' => Some(BodyKind::Strange),
        b':' => Some(BodyKind::Stream),
        _ if is_stream => Some(BodyKind::Stream),
        _ => {
            let has_line = head.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b':'));
            let is_known = has_line || head.len() >= TELLING_BYTES || is_all;
            let fields: [&[u8]; 4] = [b"event:", b"data:", b"id:", b"retry:"];
            let is_field = fields.iter().any(|field| head.starts_with(field));
            is_known.then_some(if is_field { BodyKind::Stream } else { BodyKind::Strange })
        }
    }
}

/// Beginning of a body without byte order mark and white space.
fn skip_blank(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_format_is_detected_from_its_beginning() {
        let cases: [(&[u8], bool, Option<BodyKind>); 13] = [
            (b"", true, None),
            (b" \n\xef", true, Some(BodyKind::Stream)),
            (b"\xef\xbb\xbf\n{", true, Some(BodyKind::Whole)),
            (b"{\"type\"", false, Some(BodyKind::Whole)),
            (b"\n\n<!DOCTYPE html>", true, Some(BodyKind::Strange)),
            (b"e", false, None),
            (b"event", false, None),
            (b"event: x", false, Some(BodyKind::Stream)),
            (b"data:{", false, Some(BodyKind::Stream)),
            (b": keep", false, Some(BodyKind::Stream)),
            (b"upstream failed", false, Some(BodyKind::Strange)),
            (b"no\n", false, Some(BodyKind::Strange)),
            (b"x", true, Some(BodyKind::Stream)),
        ];
        for (head, is_stream, expected) in cases {
            assert_eq!(detect_kind(head, is_stream, false), expected, "{:?}", String::from_utf8_lossy(head));
        }
        assert_eq!(detect_kind(b"e", false, true), Some(BodyKind::Strange));
        assert_eq!(detect_kind(b" ", false, true), None);
    }
}
