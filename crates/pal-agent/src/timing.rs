//! Questions to the provider, timed and counted while they are under way.

use std::time::{Duration, Instant};

use pal_model::{Card, ResponseId, Source};
use pal_process::Cancel;
use pal_wire::{Call, Dialect, Event as Heard};
use smol_str::SmolStr;
use tracing::{Span, debug, info_span};

use crate::event::{Event, Exchanged};
use crate::handle::{Handle, Signal};
use crate::line::{Exchange, ExchangeEnd, Line, Step};

/// A question that is under way.
pub(crate) struct Timed {
    source: Source,
    provider: &'static str,
    model: SmolStr,
    max_tokens: u64,
    begun: Instant,
    started: Option<Duration>,
    span: Span,
}

impl Timed {
    /// It leaves now.
    pub(crate) fn begin(source: Source, card: &Card, dialect: Dialect, max_tokens: u64) -> Timed {
        let span = info_span!("chat", model = %card.model, source = source.as_str());
        let provider = match dialect {
            Dialect::Messages => "anthropic",
            Dialect::Responses | Dialect::Chat => "openai",
        };
        let model = card.model.clone();
        Timed { source, provider, model, max_tokens, begun: Instant::now(), started: None, span }
    }

    /// What is logged meanwhile belongs to it.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Something came of it.
    pub(crate) fn hear(&mut self, step: &Step<'_>) {
        match step {
            Step::Event(Heard::Started(_)) => self.started = Some(self.begun.elapsed()),
            Step::Waiting(_) => {
                // Whatever began before the wait does not count.
                self.started = None;
            }
            Step::Event(_) | Step::Tick(_) => {}
        }
    }

    /// Asks it aside: nobody watches, and whoever keeps the books is told what it took.
    pub(crate) fn exchange_aside(
        self,
        line: &Line,
        call: Call,
        card: &Card,
        cancel: &Cancel,
        books: &Handle,
    ) -> Exchange {
        let (exchange, exchanged) = self.ask_aside(line, call, card, cancel);
        books.send(Signal::Exchanged(exchanged));
        exchange
    }

    /// The same, where whoever asks keeps the books.
    pub(crate) fn ask_aside(
        mut self,
        line: &Line,
        call: Call,
        card: &Card,
        cancel: &Cancel,
    ) -> (Exchange, Box<Exchanged>) {
        let exchange = line.exchange(call, cancel, &mut |step| self.hear(&step));
        let (_, exchanged) = self.exchanged(&exchange, card);
        (exchange, exchanged)
    }

    /// It has ended; what it took, for those who are told.
    pub(crate) fn end(self, exchange: &Exchange, card: &Card) -> (Duration, Event) {
        let (took, exchanged) = self.exchanged(exchange, card);
        (took, Event::Exchanged(exchanged))
    }

    fn exchanged(self, exchange: &Exchange, card: &Card) -> (Duration, Box<Exchanged>) {
        let took = self.begun.elapsed();
        let begun = exchange.started.as_ref();
        let began = || begun.map(|started| (started.response.clone(), started.model.clone()));
        let mut exchanged = Exchanged {
            source: self.source,
            provider: self.provider,
            model: self.model,
            max_tokens: self.max_tokens,
            answered: began(),
            usage: exchange.usage().cloned(),
            cost: None,
            stop_reason: None,
            failed: None,
            took,
            took_to_start: self.started,
        };
        match &exchange.end {
            ExchangeEnd::Finished(finished) => {
                let answered: (ResponseId, SmolStr) = (finished.response.clone(), finished.model.clone());
                exchanged.answered = Some(answered);
                exchanged.stop_reason.clone_from(&finished.stop_reason);
            }
            ExchangeEnd::Failed(failure) => exchanged.failed = Some(failure.kind.name()),
            ExchangeEnd::Cancelled => exchanged.failed = Some("cancelled"),
        }
        exchanged.cost = exchanged.usage.as_ref().and_then(|usage| card.cost(usage));
        self.span.in_scope(|| log(&exchanged));
        (took, Box::new(exchanged))
    }
}

fn log(exchanged: &Exchanged) {
    let usage = exchanged.usage.as_ref();
    debug!(
        took_ms = exchanged.took.as_millis() as u64,
        prompt_tokens = usage.map(|usage| usage.prompt_tokens()),
        cache_read_tokens = usage.map(|usage| usage.cache_read_input_tokens),
        output_tokens = usage.map(|usage| usage.output_tokens),
        stop_reason = exchanged.stop_reason.as_deref(),
        failed = exchanged.failed,
        "exchanged"
    );
}
