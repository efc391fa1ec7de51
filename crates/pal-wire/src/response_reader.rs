//! Interface of a dialect's stream reader: it reads one frame at a time and handles the end of the stream.
//!
//! A reader appends all events but the last to `events` and returns the last one, so that there is exactly one.

use crate::sse::SseFrame;
use crate::{FailureKind, ProviderFailure, ResponseEnd, ResponseEvent};

/// Result of reading a frame: none while the response continues, its end, or a failure.
pub(crate) type FrameResult = Result<Option<ResponseEnd>, Box<ProviderFailure>>;

/// Reader of a streamed response in one dialect.
pub(crate) trait ResponseReader {
    /// Reads one frame. Must not be called again after anything but `Ok(None)`.
    fn frame(&mut self, frame: SseFrame<'_>, events: &mut Vec<ResponseEvent>) -> FrameResult;

    /// Handles the end of the stream without a frame that ends the response.
    fn end(&mut self, events: &mut Vec<ResponseEvent>) -> Result<ResponseEnd, Box<ProviderFailure>>;
}

/// Creates a failure for a response that violates the dialect.
pub(crate) fn malformed(message: impl Into<String>) -> Box<ProviderFailure> {
    Box::new(ProviderFailure::new(FailureKind::Malformed, message))
}

/// Creates a failure for a stream that ended too early.
pub(crate) fn cut(message: impl Into<String>) -> Box<ProviderFailure> {
    Box::new(ProviderFailure::new(FailureKind::Cut, message))
}
