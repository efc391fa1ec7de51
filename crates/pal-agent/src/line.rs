//! The line to a provider: a call goes out, and what comes back is told step by step until it ends, fails or somebody
//! wants it to stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pal_model::{Block, BlockType, Usage};
use pal_process::Cancel;
use pal_provider::{Client, Endpoint, Policy, Progress, Waiting};
use pal_wire::{Call, Delta, Event, Failure, FailureKind, Finished, RateLimit, Started};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// How often somebody who waits is told that time passes.
const TICK: Duration = Duration::from_secs(1);

/// A line to a provider.
#[derive(Debug)]
pub struct Line {
    runtime: Runtime,
    client: Client,
}

/// A step of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Something that the provider said.
    Event(&'a Event),
    /// An attempt failed and another follows.
    Waiting(&'a Waiting),
    /// Time passes; how much has passed.
    Tick(Duration),
}

/// What came of a call.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// How it began, if it did.
    pub started: Option<Started>,
    /// The blocks that are whole and, of an answer that broke off, the words of the one that was not.
    pub blocks: Vec<Block>,
    /// How it ended.
    pub end: ExchangeEnd,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub enum ExchangeEnd {
    /// The answer is whole.
    Finished(Finished),
    /// It will not become whole.
    Failed(Failure),
    /// Somebody wanted it to stop.
    Cancelled,
}

impl Exchange {
    /// What it took, as far as is known.
    pub fn usage(&self) -> Option<&Usage> {
        match &self.end {
            ExchangeEnd::Finished(finished) => Some(&finished.usage),
            ExchangeEnd::Failed(_) | ExchangeEnd::Cancelled => {
                self.started.as_ref().map(|started| &started.usage)
            }
        }
    }
}

impl Line {
    /// A line to an endpoint; nothing is sent yet. Everything that the endpoint's answers need runs on `runtime`.
    pub fn new(runtime: Runtime, endpoint: Endpoint, policy: Policy) -> Result<Line, String> {
        let client = Client::new(endpoint, policy).map_err(|error| error.to_string())?;
        Ok(Line { runtime, client })
    }

    /// Where it leads.
    pub fn endpoint(&self) -> &Endpoint {
        self.client.endpoint()
    }

    /// How much of the provider's limits is left, as the last answer that spoke of them said; none if none did.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        self.client.rate_limit()
    }

    /// Sends a call and waits for its end.
    pub fn exchange(&self, call: Call, cancel: &Cancel, tell: &mut dyn FnMut(Step<'_>)) -> Exchange {
        let wish = Arc::new(Notify::new());
        let watch = {
            let wish = Arc::clone(&wish);
            cancel.watch(move || wish.notify_one())
        };
        let exchange = self.runtime.block_on(exchange(&self.client, call, &wish, tell));
        drop(watch);
        exchange
    }
}

async fn exchange(client: &Client, call: Call, wish: &Notify, tell: &mut dyn FnMut(Step<'_>)) -> Exchange {
    let begun = Instant::now();
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    let mut answer = client.send(call);
    let mut kept = Kept::default();
    let end = loop {
        let progress = tokio::select! {
            biased;
            () = wish.notified() => break ExchangeEnd::Cancelled,
            progress = answer.next() => progress,
            _ = ticks.tick() => {
                tell(Step::Tick(begun.elapsed()));
                continue;
            }
        };
        match progress {
            Some(Progress::Waiting(wait)) => {
                // Nothing of a failed attempt was shown, so there is nothing of it to keep.
                kept = Kept::default();
                tell(Step::Waiting(&wait));
            }
            Some(Progress::Event(event)) => {
                tell(Step::Event(&event));
                match event {
                    Event::Started(started) => kept.started = Some(started),
                    Event::Opened { index, kind, .. } => kept.opened(index, kind),
                    Event::Grew { index, delta: Delta::Text(text) } => kept.grew(index, &text),
                    Event::Grew { .. } => {}
                    Event::Block { block, .. } => kept.closed(block),
                    Event::Finished(finished) => break ExchangeEnd::Finished(finished),
                    Event::Failed(failure) => break ExchangeEnd::Failed(failure),
                }
            }
            None => {
                let failure = Failure::new(FailureKind::Cut, "the answer ended without an end");
                break ExchangeEnd::Failed(failure);
            }
        }
    };
    let started = kept.started.take();
    Exchange { started, blocks: kept.blocks(&end), end }
}

/// What arrived so far.
#[derive(Default)]
struct Kept {
    started: Option<Started>,
    blocks: Vec<Block>,
    /// Words of a block that is not whole yet.
    open: Option<(usize, String)>,
}

impl Kept {
    fn opened(&mut self, index: usize, kind: BlockType) {
        self.open = (kind == BlockType::Text).then(|| (index, String::new()));
    }

    fn grew(&mut self, index: usize, text: &str) {
        if let Some((_, words)) = self.open.as_mut().filter(|(open, _)| *open == index) {
            words.push_str(text);
        }
    }

    fn closed(&mut self, block: Block) {
        self.open = None;
        self.blocks.push(block);
    }

    /// Words that arrived are kept even if their block never became whole; half a thought or half a call is of no use.
    fn blocks(mut self, end: &ExchangeEnd) -> Vec<Block> {
        if !matches!(end, ExchangeEnd::Finished(_))
            && let Some((_, words)) = self.open
            && !words.trim().is_empty()
        {
            self.blocks.push(Block::text(&words));
        }
        self.blocks
    }
}
