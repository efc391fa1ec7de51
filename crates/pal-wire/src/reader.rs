//! What a dialect must be able to do so that [`crate::Decoder`] can speak it: read a frame, and cope with the end.
//!
//! A reader says everything but the last event through `events`; the last one it returns, so that there is always
//! exactly one.

use crate::sse::Frame;
use crate::{Event, Failure, FailureKind, Finished};

/// How a step of reading went: on, to the end of the answer, or to a failure.
pub(crate) type Step = Result<Option<Finished>, Box<Failure>>;

/// Reads the streamed answer of one dialect.
pub(crate) trait Reader {
    /// Reads one frame. `Ok(None)` means that the answer goes on. It is not called again after anything else.
    fn frame(&mut self, frame: Frame<'_>, events: &mut Vec<Event>) -> Step;

    /// No frame comes any more, and none said that the answer is whole.
    fn end(&mut self, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>>;
}

/// What came is not what the dialect says.
pub(crate) fn malformed(message: impl Into<String>) -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Malformed, message))
}

/// The stream ended too early.
pub(crate) fn cut(message: impl Into<String>) -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Cut, message))
}
