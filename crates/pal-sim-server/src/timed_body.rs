//! Response body that sends chunks at their times and ends as the simulator chose.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pal_model::Timestamp;
use pal_sim::{ReplyChunk, ReplyEnding};
use tokio::time::{Instant, Sleep};

use crate::sim_clock::{ClockSpeed, SimClock};

/// Body of a reply. Dropping it, as when the client disconnects, ends it.
pub(crate) struct TimedBody {
    chunks: VecDeque<ReplyChunk>,
    ending: ReplyEnding,
    /// True for replies that are not event streams, which declare their length.
    declares_length: bool,
    clock: Arc<SimClock>,
    /// Arrival of the request, by the simulator's clock and by the system clock.
    asked_at: Timestamp,
    started: Instant,
    waiting: Option<Pin<Box<Sleep>>>,
    /// True once the last chunk had a chance to be written.
    is_flushed: bool,
}

impl TimedBody {
    pub(crate) fn new(
        chunks: Vec<ReplyChunk>,
        ending: ReplyEnding,
        clock: Arc<SimClock>,
        asked_at: Timestamp,
    ) -> TimedBody {
        TimedBody {
            chunks: chunks.into(),
            ending,
            declares_length: false,
            clock,
            asked_at,
            started: Instant::now(),
            waiting: None,
            is_flushed: false,
        }
    }

    /// Declares the body's length.
    pub(crate) fn with_length(mut self) -> TimedBody {
        self.declares_length = true;
        self
    }

    /// Polls until the next chunk is due.
    fn poll_due(&mut self, at: Duration, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.speed() == ClockSpeed::Virtual {
            self.clock.move_to(self.asked_at.after(at));
            return Poll::Ready(());
        }
        let due = self.started + at;
        if due <= Instant::now() {
            self.waiting = None;
            return Poll::Ready(());
        }
        let sleep = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        match sleep.as_mut().poll(context) {
            Poll::Ready(()) => {
                self.waiting = None;
                Poll::Ready(())
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let playing = self.get_mut();
        let Some(next) = playing.chunks.front() else {
            return match playing.ending {
                ReplyEnding::Whole => Poll::Ready(None),
                ReplyEnding::Cut if playing.is_flushed => {
                    Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
                }
                // An error drops unwritten bytes, so the connection first gets one poll to write them.
                ReplyEnding::Cut => {
                    playing.is_flushed = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                // Never woken: it ends when the client disconnects or the server stops.
                ReplyEnding::Silent => Poll::Pending,
            };
        };
        let at = next.at;
        if playing.poll_due(at, context).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(playing.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk.bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty() && self.ending == ReplyEnding::Whole
    }

    fn size_hint(&self) -> SizeHint {
        if self.declares_length {
            SizeHint::with_exact(self.chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum())
        } else {
            SizeHint::new()
        }
    }
}
