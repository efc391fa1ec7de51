//! The client of one endpoint: what a shell or an engine holds.

use std::sync::Arc;
use std::time::Duration;

use pal_model::{Block, Text};
use pal_wire::{Call, Event, Failure, FailureKind, Finished, RateLimit};

use crate::answer::{Answer, Progress};
use crate::endpoint::Endpoint;
use crate::policy::{Jitter, Policy};
use crate::transport::{ClientError, Incoming, Outgoing, Transport};

/// Most bytes of an answer that is plain JSON.
const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Sends calls to one endpoint. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// What all calls of a client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) transport: Transport,
    policy: Policy,
    jitter: Jitter,
}

impl Shared {
    /// How long to wait after a failed attempt, counted from 1; nothing if there shall be no other.
    pub(crate) fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        self.policy.retries.wait(attempt - 1, failure, self.jitter.next())
    }

    /// Most bytes of one answer.
    pub(crate) fn answer_bytes_max(&self) -> usize {
        self.policy.answer_bytes_max
    }

    /// How many attempts there are at most.
    pub(crate) fn attempts(&self) -> u32 {
        self.policy.retries.retries.saturating_add(1)
    }
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Whole {
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// How it ended, and what it took.
    pub finished: Finished,
}

impl Client {
    /// A client of an endpoint. Connects to nothing yet.
    pub fn new(endpoint: Endpoint, policy: Policy) -> Result<Client, ClientError> {
        let transport = Transport::new(endpoint, policy.timeouts)?;
        let jitter = Jitter::new(policy.seed);
        Ok(Client { shared: Arc::new(Shared { transport, policy, jitter }) })
    }

    /// Where it sends calls.
    pub fn endpoint(&self) -> &Endpoint {
        self.shared.transport.endpoint()
    }

    /// How much of the provider's limits is left, as the last answer that spoke of them said; none if none did.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.shared.transport.rate_limit()
    }

    /// The answer to a call, step by step. Nothing happens before the first step is asked for.
    pub fn send(&self, call: Call) -> Answer {
        Answer::new(Arc::clone(&self.shared), call)
    }

    /// The answer to a call, once it is whole. Waits between attempts pass unseen.
    pub async fn whole(&self, call: Call) -> Result<Whole, Failure> {
        let mut answer = self.send(call);
        let mut blocks = Vec::new();
        while let Some(progress) = answer.next().await {
            match progress {
                Progress::Event(Event::Block { block, .. }) => blocks.push(block),
                Progress::Event(Event::Finished(finished)) => return Ok(Whole { blocks, finished }),
                Progress::Event(Event::Failed(failure)) => return Err(failure),
                // A failed attempt has shown nothing, so there is no block of it to be dropped.
                Progress::Event(_) | Progress::Waiting(_) => {}
            }
        }
        Err(Failure::new(FailureKind::Cut, "the answer ended without an end"))
    }

    /// The JSON that a call without a model's answer returns, such as the counting of tokens.
    pub async fn post(&self, call: &Call) -> Result<Text, Failure> {
        self.json(Outgoing { path: call.path, headers: &call.headers, body: Some(&call.body), stream: false })
            .await
    }

    /// The JSON at a path, such as `/v1/models`.
    pub async fn get(&self, path: &str, headers: &[(&'static str, String)]) -> Result<Text, Failure> {
        self.json(Outgoing { path, headers, body: None, stream: false }).await
    }

    /// Attempts until there is JSON or no more to hope for.
    async fn json(&self, outgoing: Outgoing<'_>) -> Result<Text, Failure> {
        let mut attempt = 1;
        loop {
            let failure = match self.shared.transport.open(outgoing).await {
                Ok(incoming) => match collect(incoming).await {
                    Ok(text) => return Ok(text),
                    Err(failure) => self.shared.transport.mask().failure(failure),
                },
                Err(failure) => failure,
            };
            let Some(wait) = self.shared.wait(attempt, &failure) else { return Err(failure) };
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }
}

/// The whole body, if it is a JSON object.
async fn collect(mut incoming: Incoming) -> Result<Text, Failure> {
    let mut body = Vec::new();
    while let Some(bytes) = incoming.next().await? {
        if body.len() + bytes.len() > JSON_BYTES {
            let message = format!("the answer has more than {JSON_BYTES} bytes");
            return Err(incoming.failure(FailureKind::Malformed, message));
        }
        body.extend_from_slice(&bytes);
    }
    match String::from_utf8(body) {
        Ok(text) if text.trim_start().starts_with('{') => Ok(Text::from(text)),
        _ => Err(incoming.failure(FailureKind::Malformed, "the answer is no JSON object".to_owned())),
    }
}
