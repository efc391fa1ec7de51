//! An answer on its way out: chunks at their moments, and the ending that the simulator chose.

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
use pal_sim::{Chunk, Ending};
use tokio::time::{Instant, Sleep};

use crate::clock::{Clock, Speed};

/// The body of an answer. Dropping it, as happens when the client leaves, ends it.
pub(crate) struct Playing {
    chunks: VecDeque<Chunk>,
    ending: Ending,
    /// An answer that is no stream of events says how long it is.
    declares_length: bool,
    clock: Arc<Clock>,
    /// When the request came: by the simulator's clock, and by the machine's.
    asked_at: Timestamp,
    started: Instant,
    waiting: Option<Pin<Box<Sleep>>>,
    /// Whether the last chunk had its chance to leave.
    is_flushed: bool,
}

impl Playing {
    pub(crate) fn new(chunks: Vec<Chunk>, ending: Ending, clock: Arc<Clock>, asked_at: Timestamp) -> Playing {
        Playing {
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

    /// The same body with its length declared.
    pub(crate) fn with_length(mut self) -> Playing {
        self.declares_length = true;
        self
    }

    /// Waits until the next chunk is due.
    fn poll_due(&mut self, at: Duration, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.speed() == Speed::Virtual {
            self.clock.reach(self.asked_at.after(at));
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

impl Body for Playing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let playing = self.get_mut();
        let Some(next) = playing.chunks.front() else {
            return match playing.ending {
                Ending::Whole => Poll::Ready(None),
                Ending::Cut if playing.is_flushed => {
                    Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
                }
                // An error drops whatever is not yet on the wire, so the connection is given one round to write it.
                Ending::Cut => {
                    playing.is_flushed = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                // Nobody wakes this: it ends when the client hangs up or the server stops.
                Ending::Silent => Poll::Pending,
            };
        };
        let at = next.at;
        if playing.poll_due(at, context).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(playing.chunks.pop_front().map(|chunk| Ok(Frame::data(chunk.bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty() && self.ending == Ending::Whole
    }

    fn size_hint(&self) -> SizeHint {
        if self.declares_length {
            SizeHint::with_exact(self.chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum())
        } else {
            SizeHint::new()
        }
    }
}
