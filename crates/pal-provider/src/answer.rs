//! An answer as it comes: attempts, waits between them, events; and exactly one end.
//!
//! It owns the rule when to try again. No task is spawned: all work happens while somebody asks for the next
//! step, and ends when the answer is dropped.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt, unfold};
use pal_wire::{Call, Delta, Event, Failure, FailureKind};
use tokio::time::{Instant, sleep_until};

use crate::client::Shared;
use crate::reading::Reading;
use crate::transport::Outgoing;

/// How often a wait tells how much of it is left.
const TICK: Duration = Duration::from_secs(1);

/// One step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Something that the provider said, or the end.
    Event(Event),
    /// An attempt failed before anything of its answer was shown, and another one will follow.
    Waiting(Waiting),
}

/// A wait between two attempts: told when it begins, then once a second.
///
/// Whatever was told of the failed attempt is void. It was no more than a beginning: `Started`, blocks that opened
/// without a word.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The attempt that will follow, counted from 1; so at least 2.
    pub attempt: u32,
    /// How many attempts there are at most.
    pub of: u32,
    /// How long until then.
    pub left: Duration,
    /// Why the last attempt failed.
    pub failure: Failure,
}

/// The answer to one call, step by step: a stream that ends after exactly one `Finished` or `Failed`.
///
/// Dropping it, at any moment, ends everything: the request is not sent on, the connection is closed (over HTTP/2 its
/// stream is reset), no further attempt is made.
pub struct Answer {
    steps: Pin<Box<dyn Stream<Item = Progress> + Send>>,
}

impl Answer {
    /// The answer to a call, which is sent when the first step is asked for.
    pub(crate) fn new(client: Arc<Shared>, call: Call) -> Answer {
        let run =
            Run { client, call, attempt: 1, shown: false, told: VecDeque::new(), stage: Stage::Sending };
        let steps = unfold(run, async |mut run| Some((run.step().await?, run)));
        Answer { steps: Box::pin(steps) }
    }

    /// The next step; nothing after the end. May be given up and asked again: no step is lost.
    pub async fn next(&mut self) -> Option<Progress> {
        self.steps.next().await
    }
}

impl Stream for Answer {
    type Item = Progress;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Progress>> {
        self.steps.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Answer")
    }
}

/// The course of one call.
struct Run {
    client: Arc<Shared>,
    call: Call,
    /// The attempt that is under way or will be next, counted from 1.
    attempt: u32,
    /// Whether the caller has seen something that must not come twice.
    shown: bool,
    /// What has happened and has yet to be told.
    told: VecDeque<Progress>,
    stage: Stage,
}

/// What to do next.
enum Stage {
    Sending,
    Reading(Box<Reading>),
    Waiting { until: Instant, failure: Failure },
    Ended,
}

impl Run {
    /// Works until there is something to tell.
    async fn step(&mut self) -> Option<Progress> {
        loop {
            if let Some(progress) = self.told.pop_front() {
                return Some(progress);
            }
            match &mut self.stage {
                Stage::Sending => self.send().await,
                Stage::Reading(reading) => {
                    let mut events = Vec::new();
                    reading.read(&mut events).await;
                    self.tell(events);
                }
                Stage::Waiting { until, failure } => {
                    let now = Instant::now();
                    if *until <= now {
                        self.stage = Stage::Sending;
                        continue;
                    }
                    sleep_until((*until).min(now + TICK)).await;
                    let left = until.saturating_duration_since(Instant::now());
                    if !left.is_zero() {
                        let failure = failure.clone();
                        self.told.push_back(self.waiting(left, failure));
                    }
                }
                Stage::Ended => return None,
            }
        }
    }

    async fn send(&mut self) {
        if self.call.dialect != self.client.transport.endpoint().dialect() {
            let message = "the call is in another dialect than the endpoint speaks";
            return self.end(Event::Failed(Failure::new(FailureKind::Invalid, message)));
        }
        let outgoing = Outgoing {
            path: self.call.path,
            headers: &self.call.headers,
            body: Some(&self.call.body),
            stream: self.call.stream,
        };
        tracing::debug!(attempt = self.attempt, bytes = self.call.body.bytes(), "sending");
        match self.client.transport.open(outgoing).await {
            Ok(incoming) => {
                let reading = Reading::new(incoming, self.call.dialect, self.client.answer_bytes_max());
                self.stage = Stage::Reading(Box::new(reading));
            }
            Err(failure) => self.fail(failure),
        }
    }

    /// Passes events on, up to the end of the answer or of the attempt.
    fn tell(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Failed(failure) => return self.fail(failure),
                Event::Finished(_) => return self.end(event),
                event => {
                    self.shown |= shows(&event);
                    self.told.push_back(Progress::Event(event));
                }
            }
        }
    }

    /// The attempt failed: another one follows, if nothing was shown and the policy says so.
    fn fail(&mut self, failure: Failure) {
        let failure = self.client.transport.mask().failure(failure);
        let wait = if self.shown { None } else { self.client.wait(self.attempt, &failure) };
        // What failed, never what was said about it: providers quote requests.
        tracing::debug!(
            attempt = self.attempt,
            failure = failure.kind.name(),
            wait_ms = wait.map(|wait| wait.as_millis() as u64),
            "an attempt failed"
        );
        let Some(wait) = wait else { return self.end(Event::Failed(failure)) };
        self.attempt += 1;
        self.told.push_back(self.waiting(wait, failure.clone()));
        self.stage = Stage::Waiting { until: Instant::now() + wait, failure };
    }

    fn end(&mut self, event: Event) {
        self.stage = Stage::Ended;
        self.told.push_back(Progress::Event(event));
    }

    fn waiting(&self, left: Duration, failure: Failure) -> Progress {
        Progress::Waiting(Waiting { attempt: self.attempt, of: self.client.attempts(), left, failure })
    }
}

/// Whether an event shows something of the answer that must not come twice.
fn shows(event: &Event) -> bool {
    match event {
        Event::Started(_) | Event::Finished(_) | Event::Failed(_) => false,
        Event::Opened { tool, .. } => tool.is_some(),
        Event::Grew { delta: Delta::Text(text) | Delta::Thinking(text) | Delta::Input(text), .. } => {
            !text.is_empty()
        }
        Event::Block { .. } => true,
    }
}
