//! Response decoding for all dialects: bytes in, events out.
//!
//! The events do not depend on how the bytes are split. There is exactly one last event, `Finished` or `Failed`; bytes
//! after it are ignored.

use crate::response_reader::{FrameResult, ResponseReader, cut, malformed};
use crate::sse::{FRAME_BYTES_MAX, FrameFlow, SseFrame, SseParser};
use crate::{Dialect, ProviderFailure, ResponseEnd, ResponseEvent, chat, messages, responses};

/// Decodes a streamed response.
///
/// ```
/// use pal_wire::{Dialect, FailureKind, ResponseDecoder, ResponseEvent};
///
/// let mut decoder = ResponseDecoder::new(Dialect::Messages);
/// let mut events = Vec::new();
/// decoder.push(b"event: ping\ndata: {\"type\":", &mut events);
/// decoder.push(b"\"ping\"}\n\n", &mut events);
/// decoder.finish(&mut events);
/// let [ResponseEvent::Failed(failure)] = events.as_slice() else { panic!("{events:?}") };
/// assert_eq!(failure.kind, FailureKind::Cut);
/// ```
pub struct ResponseDecoder {
    frames: SseParser,
    answer: DialectReader,
    has_ended: bool,
}

/// Stream reader of one dialect.
enum DialectReader {
    Messages(messages::MessagesStream),
    Responses(responses::ResponsesStream),
    Chat(chat::ChatStream),
}

impl ResponseDecoder {
    /// Creates a decoder for one response.
    pub fn new(dialect: Dialect) -> ResponseDecoder {
        let answer = match dialect {
            Dialect::Messages => DialectReader::Messages(messages::MessagesStream::default()),
            Dialect::Responses => DialectReader::Responses(responses::ResponsesStream::default()),
            Dialect::Chat => DialectReader::Chat(chat::ChatStream::default()),
        };
        ResponseDecoder { frames: SseParser::new(FRAME_BYTES_MAX), answer, has_ended: false }
    }

    /// Decodes the next bytes of the body and appends their events to `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<ResponseEvent>) {
        if self.has_ended {
            return;
        }
        let (answer, has_ended) = (&mut self.answer, &mut self.has_ended);
        let pushed = self.frames.push(bytes, |frame| {
            match answer.frame(frame, events) {
                Ok(None) => return FrameFlow::Continue,
                Ok(Some(finished)) => events.push(ResponseEvent::Finished(finished)),
                Err(failure) => events.push(ResponseEvent::Failed(*failure)),
            }
            *has_ended = true;
            FrameFlow::Stop
        });
        if let Err(error) = pushed {
            events.push(ResponseEvent::Failed(*malformed(error.to_string())));
            self.has_ended = true;
        }
    }

    /// Ends the body, because it is complete or the connection broke. An incomplete response fails with
    /// [`crate::FailureKind::Cut`].
    pub fn finish(&mut self, events: &mut Vec<ResponseEvent>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        match self.answer.end(events) {
            Ok(finished) => events.push(ResponseEvent::Finished(finished)),
            Err(mut failure) => {
                if self.frames.is_pending() {
                    failure.message.push_str(" (inside an event)");
                }
                events.push(ResponseEvent::Failed(*failure));
            }
        }
    }

    /// Returns true after the last event; further bytes are ignored.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl ResponseReader for DialectReader {
    fn frame(&mut self, frame: SseFrame<'_>, events: &mut Vec<ResponseEvent>) -> FrameResult {
        match self {
            DialectReader::Messages(stream) => stream.frame(frame, events),
            DialectReader::Responses(stream) => stream.frame(frame, events),
            DialectReader::Chat(stream) => stream.frame(frame, events),
        }
    }

    fn end(&mut self, events: &mut Vec<ResponseEvent>) -> Result<ResponseEnd, Box<ProviderFailure>> {
        match self {
            DialectReader::Messages(stream) => stream.end(events),
            DialectReader::Responses(stream) => stream.end(events),
            DialectReader::Chat(stream) => stream.end(events),
        }
    }
}

/// Decodes a response that was not streamed into the events that its stream would produce.
pub fn decode_response(dialect: Dialect, body: &[u8]) -> Vec<ResponseEvent> {
    let mut events = Vec::new();
    let read = match std::str::from_utf8(body) {
        Ok("") => Err(cut("the response is empty")),
        Ok(text) => match dialect {
            Dialect::Messages => messages::read_complete(text, &mut events),
            Dialect::Responses => responses::read_complete(text, &mut events),
            Dialect::Chat => chat::read_complete(text, &mut events),
        },
        Err(_) => Err(malformed("the response is not UTF-8")),
    };
    events.push(match read {
        Ok(finished) => ResponseEvent::Finished(finished),
        Err(failure) => ResponseEvent::Failed(*failure),
    });
    events
}
