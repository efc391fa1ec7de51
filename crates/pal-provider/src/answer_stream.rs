//! An answer as a stream: attempts, waits between them, events, and exactly one end.
//!
//! It owns the retry loop. No task is spawned: work happens only while the caller polls, and ends when the
//! answer is dropped.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{Stream, StreamExt, unfold};
use pal_wire::{ApiCall, BlockDelta, FailureKind, ProviderFailure, ResponseEvent};
use tokio::time::{Instant, sleep_until};

use crate::body_reader::BodyReader;
use crate::client_state::ClientState;
use crate::http_transport::HttpRequestParts;

/// Interval at which a wait reports its remaining time.
const TICK: Duration = Duration::from_secs(1);

/// One step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerProgress {
    /// A provider event, or the end.
    Event(ResponseEvent),
    /// An attempt failed before any of its answer was shown; another follows.
    Waiting(RetryWait),
}

/// A wait between two attempts, reported when it begins and then once a second.
///
/// Events of the failed attempt are void; they were at most `Started` and blocks opened without content.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryWait {
    /// Number of the next attempt, counted from 1; at least 2.
    pub attempt: u32,
    /// Maximum number of attempts.
    pub max_attempts: u32,
    /// Remaining time.
    pub remaining: Duration,
    /// Failure of the last attempt.
    pub failure: ProviderFailure,
}

/// Answer to one call: a stream that ends after exactly one `Finished` or `Failed`.
///
/// Dropping it at any time cancels the request, closes the connection (over HTTP/2, resets the stream) and
/// prevents further attempts.
pub struct AnswerStream {
    steps: Pin<Box<dyn Stream<Item = AnswerProgress> + Send>>,
}

impl AnswerStream {
    /// Creates the answer to a call, which is sent at the first poll.
    pub(crate) fn new(client: Arc<ClientState>, call: ApiCall) -> AnswerStream {
        let run = AnswerDriver {
            client,
            call,
            attempt: 1,
            shown: false,
            pending: VecDeque::new(),
            stage: AttemptStage::Sending,
        };
        let steps = unfold(run, async |mut run| Some((run.next_step().await?, run)));
        AnswerStream { steps: Box::pin(steps) }
    }

    /// Returns the next step; `None` after the end. Cancel-safe: no step is lost.
    pub async fn next(&mut self) -> Option<AnswerProgress> {
        self.steps.next().await
    }
}

impl Stream for AnswerStream {
    type Item = AnswerProgress;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AnswerProgress>> {
        self.steps.as_mut().poll_next(context)
    }
}

impl fmt::Debug for AnswerStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AnswerStream")
    }
}

/// State of one call.
struct AnswerDriver {
    client: Arc<ClientState>,
    call: ApiCall,
    /// Current or next attempt, counted from 1.
    attempt: u32,
    /// True once the caller has seen content that must not be repeated.
    shown: bool,
    /// Steps not returned yet.
    pending: VecDeque<AnswerProgress>,
    stage: AttemptStage,
}

enum AttemptStage {
    Sending,
    Reading(Box<BodyReader>),
    Waiting { until: Instant, failure: ProviderFailure },
    Ended,
}

impl AnswerDriver {
    /// Runs until there is a step to return.
    async fn next_step(&mut self) -> Option<AnswerProgress> {
        loop {
            if let Some(progress) = self.pending.pop_front() {
                return Some(progress);
            }
            match &mut self.stage {
                AttemptStage::Sending => self.send().await,
                AttemptStage::Reading(reading) => {
                    let mut events = Vec::new();
                    reading.read(&mut events).await;
                    self.queue_events(events);
                }
                AttemptStage::Waiting { until, failure } => {
                    let now = Instant::now();
                    if *until <= now {
                        self.stage = AttemptStage::Sending;
                        continue;
                    }
                    sleep_until((*until).min(now + TICK)).await;
                    let left = until.saturating_duration_since(Instant::now());
                    if !left.is_zero() {
                        let failure = failure.clone();
                        self.pending.push_back(self.retry_wait(left, failure));
                    }
                }
                AttemptStage::Ended => return None,
            }
        }
    }

    async fn send(&mut self) {
        if self.call.dialect != self.client.transport.endpoint().dialect() {
            let message = "the call's dialect differs from the endpoint's";
            return self.end(ResponseEvent::Failed(ProviderFailure::new(FailureKind::Invalid, message)));
        }
        let outgoing = HttpRequestParts {
            path: self.call.path,
            headers: &self.call.headers,
            body: Some(&self.call.body),
            stream: self.call.stream,
        };
        tracing::debug!(attempt = self.attempt, bytes = self.call.body.byte_len(), "sending");
        match self.client.transport.open(outgoing).await {
            Ok(incoming) => {
                let reading = BodyReader::new(incoming, self.call.dialect, self.client.answer_bytes_max());
                self.stage = AttemptStage::Reading(Box::new(reading));
            }
            Err(failure) => self.handle_failure(failure),
        }
    }

    /// Queues events, up to the end of the answer or the attempt.
    fn queue_events(&mut self, events: Vec<ResponseEvent>) {
        for event in events {
            match event {
                ResponseEvent::Failed(failure) => return self.handle_failure(failure),
                ResponseEvent::Finished(_) => return self.end(event),
                event => {
                    self.shown |= shows_content(&event);
                    self.pending.push_back(AnswerProgress::Event(event));
                }
            }
        }
    }

    /// Handles a failed attempt: retries if nothing was shown and the policy allows it.
    fn handle_failure(&mut self, failure: ProviderFailure) {
        let failure = self.client.transport.mask().failure(failure);
        let wait = if self.shown { None } else { self.client.wait(self.attempt, &failure) };
        // Logs the kind only: provider messages may quote requests.
        tracing::debug!(
            attempt = self.attempt,
            failure = failure.kind.name(),
            wait_ms = wait.map(|wait| wait.as_millis() as u64),
            "an attempt failed"
        );
        let Some(wait) = wait else { return self.end(ResponseEvent::Failed(failure)) };
        self.attempt += 1;
        self.pending.push_back(self.retry_wait(wait, failure.clone()));
        self.stage = AttemptStage::Waiting { until: Instant::now() + wait, failure };
    }

    fn end(&mut self, event: ResponseEvent) {
        self.stage = AttemptStage::Ended;
        self.pending.push_back(AnswerProgress::Event(event));
    }

    fn retry_wait(&self, left: Duration, failure: ProviderFailure) -> AnswerProgress {
        AnswerProgress::Waiting(RetryWait {
            attempt: self.attempt,
            max_attempts: self.client.attempts(),
            remaining: left,
            failure,
        })
    }
}

/// True if an event shows content that must not be repeated.
fn shows_content(event: &ResponseEvent) -> bool {
    match event {
        ResponseEvent::Started(_) | ResponseEvent::Finished(_) | ResponseEvent::Failed(_) => false,
        ResponseEvent::BlockStart { tool, .. } => tool.is_some(),
        ResponseEvent::BlockDelta {
            delta: BlockDelta::Text(text) | BlockDelta::Thinking(text) | BlockDelta::Input(text),
            ..
        } => !text.is_empty(),
        ResponseEvent::Block { .. } => true,
    }
}
