//! The body of a good answer: bytes in, events out, whatever shape it came in.
//!
//! What arrives decides, not what was asked for: a stream of events goes through the decoder as it comes; a JSON
//! object is collected and read whole, also where a stream was wanted; a web page or any other text, the usual
//! mark of a proxy or a wrong address, is a failure that quotes its beginning.

use pal_wire::{Decoder, Delta, Dialect, Event, Failure, FailureKind, decode_whole};

use crate::transport::Incoming;

/// Most blocks of an answer.
const BLOCKS_MAX: usize = 10_000;

/// Bytes on the wire for each byte that an answer may have: the rest is what events are wrapped in, and pings.
const WIRE_FACTOR: usize = 3;

/// Most bytes that are read of something that is no answer.
const STRANGE_BYTES: usize = 4096;

/// As many bytes tell a stream from other texts: the longest name of a field and its colon.
const TELLING_BYTES: usize = 6;

/// An answer that is being read.
pub(crate) struct Reading {
    incoming: Incoming,
    dialect: Dialect,
    shape: Shape,
    amount: Amount,
}

/// How much of an answer has come, and how much may.
#[derive(Debug)]
struct Amount {
    bytes_max: usize,
    /// Bytes on the wire, without what HTTP adds.
    received: usize,
    /// Bytes of text, thinking and tool input.
    grown: usize,
    blocks: usize,
}

impl Amount {
    /// Counts events; the failure of an answer that is too large.
    fn count(&mut self, events: &[Event]) -> Option<Failure> {
        for event in events {
            match event {
                Event::Grew {
                    delta: Delta::Text(text) | Delta::Thinking(text) | Delta::Input(text), ..
                } => {
                    self.grown += text.len();
                }
                Event::Block { .. } => self.blocks += 1,
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
        Some(Failure::new(FailureKind::AnswerTooLarge, message))
    }
}

/// What the body turned out to be.
enum Shape {
    /// Too little has come to say.
    Unknown(Vec<u8>),
    /// Server-sent events.
    Stream(Box<Decoder>),
    /// One JSON value.
    Whole(Vec<u8>),
    /// Something else.
    Strange(Vec<u8>),
}

impl Reading {
    /// Nothing has been read of the body yet.
    pub(crate) fn new(incoming: Incoming, dialect: Dialect, bytes_max: usize) -> Reading {
        let amount = Amount { bytes_max, received: 0, grown: 0, blocks: 0 };
        Reading { incoming, dialect, shape: Shape::Unknown(Vec::new()), amount }
    }

    /// Reads on and adds what it means. After `Finished` or `Failed` nothing may be read.
    pub(crate) async fn read(&mut self, events: &mut Vec<Event>) {
        match self.incoming.next().await {
            Ok(Some(bytes)) => {
                self.amount.received += bytes.len();
                self.take(&bytes, events);
                self.check_amount(events);
            }
            Ok(None) => self.end(events),
            Err(failure) => self.broken(failure, events),
        }
        match events.last_mut() {
            Some(Event::Failed(failure)) => self.incoming.label(failure),
            Some(Event::Finished(_)) => self.incoming.drain().await,
            _ => {}
        }
    }

    /// Ends an answer that is too large; else notes whether content came.
    fn check_amount(&mut self, events: &mut Vec<Event>) {
        if !events.is_empty() {
            self.incoming.note_content();
        }
        if matches!(events.last(), Some(Event::Finished(_) | Event::Failed(_))) {
            return;
        }
        if let Some(failure) = self.amount.count(events) {
            events.push(Event::Failed(failure));
        }
    }

    fn take(&mut self, bytes: &[u8], events: &mut Vec<Event>) {
        match &mut self.shape {
            Shape::Unknown(head) => {
                head.extend_from_slice(bytes);
                let head = std::mem::take(head);
                match kind_of(&head, self.incoming.is_stream(), false) {
                    Some(kind) => self.begin(kind, &head, events),
                    // Blank lines say nothing, so that any number of them takes no memory.
                    None => self.shape = Shape::Unknown(told(&head).to_vec()),
                }
            }
            Shape::Stream(decoder) => decoder.push(bytes, events),
            Shape::Whole(body) if body.len() + bytes.len() > self.amount.bytes_max => {
                let message = format!("the answer has more than {} MB", self.amount.bytes_max >> 20);
                events.push(Event::Failed(Failure::new(FailureKind::AnswerTooLarge, message)));
            }
            Shape::Whole(body) => body.extend_from_slice(bytes),
            Shape::Strange(body) => {
                body.extend_from_slice(bytes);
                if body.len() >= STRANGE_BYTES {
                    events.push(Event::Failed(self.strange()));
                }
            }
        }
    }

    /// What the body is has become known: what has come so far is read accordingly.
    fn begin(&mut self, kind: Kind, head: &[u8], events: &mut Vec<Event>) {
        self.shape = match kind {
            Kind::Stream => Shape::Stream(Box::new(Decoder::new(self.dialect))),
            Kind::Whole => Shape::Whole(Vec::new()),
            Kind::Strange => Shape::Strange(Vec::new()),
        };
        self.take(head, events);
    }

    fn end(&mut self, events: &mut Vec<Event>) {
        if let Shape::Unknown(head) = &mut self.shape {
            let head = std::mem::take(head);
            if let Some(kind) = kind_of(&head, self.incoming.is_stream(), true) {
                self.begin(kind, &head, events);
            }
        }
        match &mut self.shape {
            Shape::Unknown(_) => {
                let message = "the connection ended before the answer began";
                events.push(Event::Failed(Failure::new(FailureKind::Cut, message)));
            }
            Shape::Stream(decoder) => decoder.finish(events),
            Shape::Whole(body) => {
                let decoded = decode_whole(self.dialect, body);
                // Nothing has been passed on yet, so of an answer that turns out to be bad only that remains.
                let is_bad = matches!(decoded.last(), Some(Event::Failed(_)));
                let from = if is_bad { decoded.len() - 1 } else { 0 };
                events.extend(decoded.into_iter().skip(from));
            }
            Shape::Strange(_) => events.push(Event::Failed(self.strange())),
        }
    }

    /// The connection failed. The decoder has the last word, since all that matters may have come; but why the rest
    /// will not come is known better here.
    fn broken(&mut self, failure: Failure, events: &mut Vec<Event>) {
        if let Shape::Stream(decoder) = &mut self.shape {
            decoder.finish(events);
        }
        match events.last_mut() {
            Some(Event::Finished(_)) => {}
            Some(Event::Failed(cut)) => *cut = failure,
            _ => events.push(Event::Failed(failure)),
        }
    }

    /// The failure of an answer that is none.
    fn strange(&self) -> Failure {
        let body = match &self.shape {
            Shape::Strange(body) => body.as_slice(),
            _ => &[],
        };
        let text = String::from_utf8_lossy(body);
        let words = text.split_whitespace().collect::<Vec<&str>>().join(" ");
        let start: String = words.chars().take(200).collect();
        let kind = self.incoming.content_type();
        let kind = if kind.is_empty() { "something without a type" } else { kind };
        let message = format!(
            "the answer is {kind}, not what a model says; is the base address right? It begins: {start}"
        );
        Failure::new(FailureKind::Malformed, message)
    }
}

/// What a body can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Stream,
    Whole,
    Strange,
}

/// What a body is, by its beginning; nothing if more has to come to say it, or if all of it is blank.
fn kind_of(head: &[u8], is_stream: bool, is_all: bool) -> Option<Kind> {
    let head = told(head);
    match head.first()? {
        b'{' | b'[' => Some(Kind::Whole),
        b'<' => Some(Kind::Strange),
        b':' => Some(Kind::Stream),
        _ if is_stream => Some(Kind::Stream),
        _ => {
            let has_line = head.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b':'));
            let is_known = has_line || head.len() >= TELLING_BYTES || is_all;
            let fields: [&[u8]; 4] = [b"event:", b"data:", b"id:", b"retry:"];
            let is_field = fields.iter().any(|field| head.starts_with(field));
            is_known.then_some(if is_field { Kind::Stream } else { Kind::Strange })
        }
    }
}

/// The beginning of a body without what says nothing.
fn told(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_tells_what_a_body_is() {
        let cases: [(&[u8], bool, Option<Kind>); 13] = [
            (b"", true, None),
            (b" \n\xef", true, Some(Kind::Stream)),
            (b"\xef\xbb\xbf\n{", true, Some(Kind::Whole)),
            (b"{\"type\"", false, Some(Kind::Whole)),
            (b"\n\n<!DOCTYPE html>", true, Some(Kind::Strange)),
            (b"e", false, None),
            (b"event", false, None),
            (b"event: x", false, Some(Kind::Stream)),
            (b"data:{", false, Some(Kind::Stream)),
            (b": keep", false, Some(Kind::Stream)),
            (b"upstream failed", false, Some(Kind::Strange)),
            (b"no\n", false, Some(Kind::Strange)),
            (b"x", true, Some(Kind::Stream)),
        ];
        for (head, is_stream, expected) in cases {
            assert_eq!(kind_of(head, is_stream, false), expected, "{:?}", String::from_utf8_lossy(head));
        }
        assert_eq!(kind_of(b"e", false, true), Some(Kind::Strange));
        assert_eq!(kind_of(b" ", false, true), None);
    }
}
