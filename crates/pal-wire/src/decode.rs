//! Answers of any dialect: bytes in, events out.
//!
//! The events are the same whatever pieces the bytes come in. There is exactly one last event, `Finished` or
//! `Failed`; after it nothing more is said, whatever else comes.

use crate::reader::{Reader, Step, cut, malformed};
use crate::sse::{FRAME_BYTES_MAX, Flow, Frame, Frames};
use crate::{Dialect, Event, Failure, Finished, chat, messages, responses};

/// Reads a streamed answer.
///
/// ```
/// use pal_wire::{Decoder, Dialect, Event, FailureKind};
///
/// let mut decoder = Decoder::new(Dialect::Messages);
/// let mut events = Vec::new();
/// decoder.push(b"event: ping\ndata: {\"type\":", &mut events);
/// decoder.push(b"\"ping\"}\n\n", &mut events);
/// decoder.finish(&mut events);
/// let [Event::Failed(failure)] = events.as_slice() else { panic!("{events:?}") };
/// assert_eq!(failure.kind, FailureKind::Cut);
/// ```
pub struct Decoder {
    frames: Frames,
    answer: Answer,
    has_ended: bool,
}

/// The reader of one dialect.
enum Answer {
    Messages(messages::Stream),
    Responses(responses::Stream),
    Chat(chat::Stream),
}

impl Decoder {
    /// A decoder before the first byte.
    pub fn new(dialect: Dialect) -> Decoder {
        let answer = match dialect {
            Dialect::Messages => Answer::Messages(messages::Stream::default()),
            Dialect::Responses => Answer::Responses(responses::Stream::default()),
            Dialect::Chat => Answer::Chat(chat::Stream::default()),
        };
        Decoder { frames: Frames::new(FRAME_BYTES_MAX), answer, has_ended: false }
    }

    /// Reads the next bytes of the body and appends what they say to `events`.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        if self.has_ended {
            return;
        }
        let (answer, has_ended) = (&mut self.answer, &mut self.has_ended);
        let pushed = self.frames.push(bytes, |frame| {
            match answer.frame(frame, events) {
                Ok(None) => return Flow::GoOn,
                Ok(Some(finished)) => events.push(Event::Finished(finished)),
                Err(failure) => events.push(Event::Failed(*failure)),
            }
            *has_ended = true;
            Flow::Stop
        });
        if let Err(error) = pushed {
            events.push(Event::Failed(*malformed(error.to_string())));
            self.has_ended = true;
        }
    }

    /// Says that no byte comes any more, be it that the body ended or that the connection broke. If the answer is
    /// not whole it fails as [`crate::FailureKind::Cut`].
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        match self.answer.end(events) {
            Ok(finished) => events.push(Event::Finished(finished)),
            Err(mut failure) => {
                if self.frames.is_pending() {
                    failure.message.push_str(" (inside of an event)");
                }
                events.push(Event::Failed(*failure));
            }
        }
    }

    /// Whether the last event of the answer was said. What comes behind it is of no interest.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl Reader for Answer {
    fn frame(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Step {
        match self {
            Answer::Messages(stream) => stream.frame(frame, events),
            Answer::Responses(stream) => stream.frame(frame, events),
            Answer::Chat(stream) => stream.frame(frame, events),
        }
    }

    fn end(&mut self, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
        match self {
            Answer::Messages(stream) => stream.end(events),
            Answer::Responses(stream) => stream.end(events),
            Answer::Chat(stream) => stream.end(events),
        }
    }
}

/// Reads an answer that came whole, as the events that its stream would have brought.
pub fn decode_whole(dialect: Dialect, body: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    let read = match std::str::from_utf8(body) {
        Ok("") => Err(cut("the answer is empty")),
        Ok(text) => match dialect {
            Dialect::Messages => messages::read_whole(text, &mut events),
            Dialect::Responses => responses::read_whole(text, &mut events),
            Dialect::Chat => chat::read_whole(text, &mut events),
        },
        Err(_) => Err(malformed("the answer is not UTF-8")),
    };
    events.push(match read {
        Ok(finished) => Event::Finished(finished),
        Err(failure) => Event::Failed(*failure),
    });
    events
}
