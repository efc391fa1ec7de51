//! Connection to a provider: sends a call and reports its progress until it ends, fails or is cancelled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_model::{BlockType, ContentBlock, Usage, UsageBasis};
use pal_process::CancelToken;
use pal_wire::{
    ApiCall, BlockDelta, FailureKind, ProviderFailure, RateLimit, ResponseEnd, ResponseEvent, ResponseStart,
};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::{
    AnswerProgress, ClientPolicy, ProviderClient, ProviderEndpoint, RequestStagger, RetryWait, SendPermit,
};

/// Interval of progress ticks.
const TICK: Duration = Duration::from_secs(1);

/// A connection to a provider.
#[derive(Debug)]
pub struct ProviderConnection {
    runtime: Runtime,
    client: ProviderClient,
    stagger: RequestStagger,
}

/// A prefix that several requests share, and the TTL of its cache entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedPrefix {
    /// Fingerprint; equal for requests that read one cache entry.
    pub fingerprint: u128,
    /// TTL of the cache entry.
    pub lifetime: Duration,
}

/// Progress of an answer.
#[derive(Clone, Copy, Debug)]
pub enum ExchangeStep<'a> {
    /// An event of the provider.
    Event(&'a ResponseEvent),
    /// An attempt failed and a retry follows.
    Waiting(&'a RetryWait),
    /// A tick with the elapsed time.
    Tick(Duration),
}

/// Result of a call.
#[derive(Clone, Debug)]
pub struct ProviderExchange {
    /// Start of the answer, if it started.
    pub started: Option<ResponseStart>,
    /// Complete blocks and, for a broken answer, the text of the incomplete one.
    pub blocks: Vec<ContentBlock>,
    /// End of the call.
    pub end: ExchangeEnd,
}

/// End of a call.
#[derive(Clone, Debug)]
pub enum ExchangeEnd {
    /// The complete answer.
    Finished(ResponseEnd),
    /// The answer failed.
    Failed(ProviderFailure),
    /// The call was cancelled.
    Cancelled,
}

impl ProviderExchange {
    /// Marks all usage as simulated.
    fn simulated(mut self) -> ProviderExchange {
        if let ExchangeEnd::Finished(finished) = &mut self.end {
            finished.usage.basis = UsageBasis::Simulated;
        }
        if let Some(started) = &mut self.started {
            started.usage.basis = UsageBasis::Simulated;
        }
        self
    }

    fn cancelled() -> ProviderExchange {
        ProviderExchange { started: None, blocks: Vec::new(), end: ExchangeEnd::Cancelled }
    }

    /// Usage, as far as known.
    pub fn usage(&self) -> Option<&Usage> {
        match &self.end {
            ExchangeEnd::Finished(finished) => Some(&finished.usage),
            ExchangeEnd::Failed(_) | ExchangeEnd::Cancelled => {
                self.started.as_ref().map(|started| &started.usage)
            }
        }
    }
}

impl ProviderConnection {
    /// Connects to an endpoint without sending anything. All I/O runs on `runtime`.
    pub fn new(
        runtime: Runtime,
        endpoint: ProviderEndpoint,
        policy: ClientPolicy,
    ) -> Result<ProviderConnection, String> {
        let client = ProviderClient::new(endpoint, policy).map_err(|error| error.to_string())?;
        Ok(ProviderConnection { runtime, client, stagger: RequestStagger::default() })
    }

    /// Endpoint.
    pub fn endpoint(&self) -> &ProviderEndpoint {
        self.client.endpoint()
    }

    /// Remaining rate limit as last reported by the provider.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.client.rate_limit()
    }

    /// Sends a call and waits for its end.
    pub fn exchange(
        &self,
        call: ApiCall,
        cancel: &CancelToken,
        tell: &mut dyn FnMut(ExchangeStep<'_>),
    ) -> ProviderExchange {
        self.exchange_in_turn(call, None, cancel, tell)
    }

    /// Like [`ProviderConnection::exchange`], but waits while another request with the same prefix is without an answer:
    /// from then on its cache entry can be read (§5.7).
    pub fn exchange_in_turn(
        &self,
        call: ApiCall,
        shared: Option<SharedPrefix>,
        cancel: &CancelToken,
        tell: &mut dyn FnMut(ExchangeStep<'_>),
    ) -> ProviderExchange {
        let wish = Arc::new(Notify::new());
        let watch = {
            let wish = Arc::clone(&wish);
            cancel.watch(move || wish.notify_one())
        };
        let exchange = self.runtime.block_on(async {
            let permit = match shared {
                Some(shared) => tokio::select! {
                    biased;
                    () = wish.notified() => return ProviderExchange::cancelled(),
                    permit = self.stagger.acquire(shared.fingerprint, shared.lifetime) => Some(permit),
                },
                None => None,
            };
            exchange(&self.client, call, permit, &wish, tell).await
        });
        drop(watch);
        if self.endpoint().is_simulated() { exchange.simulated() } else { exchange }
    }
}

async fn exchange(
    client: &ProviderClient,
    call: ApiCall,
    mut permit: Option<SendPermit>,
    wish: &Notify,
    tell: &mut dyn FnMut(ExchangeStep<'_>),
) -> ProviderExchange {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    let mut answer = client.send(call);
    let mut kept = PartialAnswer::default();
    let end = loop {
        let progress = tokio::select! {
            biased;
            () = wish.notified() => break ExchangeEnd::Cancelled,
            progress = answer.next() => progress,
            _ = ticks.tick() => {
                tell(ExchangeStep::Tick(begun.elapsed()));
                continue;
            }
        };
        match progress {
            Some(AnswerProgress::Waiting(wait)) => {
                // A failed attempt showed nothing, so nothing of it is kept.
                kept = PartialAnswer::default();
                tell(ExchangeStep::Waiting(&wait));
            }
            Some(AnswerProgress::Event(event)) => {
                tell(ExchangeStep::Event(&event));
                match event {
                    ResponseEvent::Started(started) => {
                        permit.iter_mut().for_each(SendPermit::mark_begun);
                        kept.started = Some(started);
                    }
                    ResponseEvent::BlockStart { index, kind, .. } => kept.opened(index, kind),
                    ResponseEvent::BlockDelta { index, delta: BlockDelta::Text(text) } => {
                        kept.grew(index, &text)
                    }
                    ResponseEvent::BlockDelta { .. } => {}
                    ResponseEvent::Block { block, .. } => kept.closed(block),
                    ResponseEvent::Finished(finished) => break ExchangeEnd::Finished(finished),
                    ResponseEvent::Failed(failure) => break ExchangeEnd::Failed(failure),
                }
            }
            None => {
                let failure = ProviderFailure::new(FailureKind::Cut, "the answer ended without an end");
                break ExchangeEnd::Failed(failure);
            }
        }
    };
    let started = kept.started.take();
    ProviderExchange { started, blocks: kept.blocks(&end), end }
}

/// Answer received so far.
#[derive(Default)]
struct PartialAnswer {
    started: Option<ResponseStart>,
    blocks: Vec<ContentBlock>,
    /// Text of an incomplete block.
    open: Option<(usize, String)>,
}

impl PartialAnswer {
    fn opened(&mut self, index: usize, kind: BlockType) {
        self.open = (kind == BlockType::Text).then(|| (index, String::new()));
    }

    fn grew(&mut self, index: usize, text: &str) {
        if let Some((_, words)) = self.open.as_mut().filter(|(open, _)| *open == index) {
            words.push_str(text);
        }
    }

    fn closed(&mut self, block: ContentBlock) {
        self.open = None;
        self.blocks.push(block);
    }

    /// Keeps the text of an incomplete block; partial thinking and calls are useless.
    fn blocks(mut self, end: &ExchangeEnd) -> Vec<ContentBlock> {
        if !matches!(end, ExchangeEnd::Finished(_))
            && let Some((_, words)) = self.open
            && !words.trim().is_empty()
        {
            self.blocks.push(ContentBlock::text(&words));
        }
        self.blocks
    }
}
