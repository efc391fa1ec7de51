//! Client of one provider endpoint.

use std::sync::Arc;

use pal_model::{ContentBlock, SharedText};
use pal_wire::{ApiCall, FailureKind, ProviderFailure, RateLimit, ResponseEnd, ResponseEvent};

use crate::answer_stream::{AnswerProgress, AnswerStream};
use crate::client_policy::ClientPolicy;
use crate::client_state::ClientState;
use crate::endpoint::ProviderEndpoint;
use crate::http_transport::{ClientError, HttpRequestParts, HttpTransport, IncomingAnswer};

/// Maximum size of a plain JSON reply, in bytes.
const JSON_BYTES: usize = 16 * 1024 * 1024;

/// Sends calls to one endpoint. Clones share connections.
#[derive(Clone, Debug)]
pub struct ProviderClient {
    shared: Arc<ClientState>,
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteAnswer {
    /// Blocks, in order.
    pub blocks: Vec<ContentBlock>,
    /// Stop reason and usage.
    pub finished: ResponseEnd,
}

impl ProviderClient {
    /// Creates a client. Does not connect yet.
    pub fn new(endpoint: ProviderEndpoint, policy: ClientPolicy) -> Result<ProviderClient, ClientError> {
        let transport = HttpTransport::new(endpoint, policy.timeouts)?;
        Ok(ProviderClient { shared: Arc::new(ClientState::new(transport, policy)) })
    }

    /// Endpoint that receives the calls.
    pub fn endpoint(&self) -> &ProviderEndpoint {
        self.shared.transport.endpoint()
    }

    /// Rate limit in the last answer that reported one.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.shared.transport.rate_limit()
    }

    /// Sends a call and streams the answer. Nothing happens before the first poll.
    pub fn send(&self, call: ApiCall) -> AnswerStream {
        AnswerStream::new(Arc::clone(&self.shared), call)
    }

    /// Sends a call and collects the answer. Waits between attempts are not reported.
    pub async fn collect_answer(&self, call: ApiCall) -> Result<CompleteAnswer, ProviderFailure> {
        let mut answer = self.send(call);
        let mut blocks = Vec::new();
        while let Some(progress) = answer.next().await {
            match progress {
                AnswerProgress::Event(ResponseEvent::Block { block, .. }) => blocks.push(block),
                AnswerProgress::Event(ResponseEvent::Finished(finished)) => {
                    return Ok(CompleteAnswer { blocks, finished });
                }
                AnswerProgress::Event(ResponseEvent::Failed(failure)) => return Err(failure),
                // A failed attempt has shown nothing, so it has no block to drop.
                AnswerProgress::Event(_) | AnswerProgress::Waiting(_) => {}
            }
        }
        Err(ProviderFailure::new(FailureKind::Cut, "the answer ended without a final event"))
    }

    /// Sends a call that returns plain JSON, such as token counting.
    pub async fn post(&self, call: &ApiCall) -> Result<SharedText, ProviderFailure> {
        self.json(HttpRequestParts {
            path: call.path,
            headers: &call.headers,
            body: Some(&call.body),
            stream: false,
        })
        .await
    }

    /// Fetches the JSON at a path such as `/v1/models`.
    pub async fn get(
        &self,
        path: &str,
        headers: &[(&'static str, String)],
    ) -> Result<SharedText, ProviderFailure> {
        self.json(HttpRequestParts { path, headers, body: None, stream: false }).await
    }

    /// Retries until there is JSON or the policy gives up.
    async fn json(&self, outgoing: HttpRequestParts<'_>) -> Result<SharedText, ProviderFailure> {
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

/// Collects the body, which must be a JSON object.
async fn collect(mut incoming: IncomingAnswer) -> Result<SharedText, ProviderFailure> {
    let mut body = Vec::new();
    while let Some(bytes) = incoming.next().await? {
        if body.len() + bytes.len() > JSON_BYTES {
            let message = format!("the answer has more than {JSON_BYTES} bytes");
            return Err(incoming.failure(FailureKind::Malformed, message));
        }
        body.extend_from_slice(&bytes);
    }
    match String::from_utf8(body) {
        Ok(text) if text.trim_start().starts_with('{') => Ok(SharedText::from(text)),
        _ => Err(incoming.failure(FailureKind::Malformed, "the answer is not a JSON object".to_owned())),
    }
}
