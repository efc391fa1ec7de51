//! Exchanges with the provider, timed and logged.

use std::time::{Duration, Instant};

use pal_events::{AgentEvent, ExchangeReport};
use pal_model::{ModelCard, RequestSource, ResponseId};
use pal_process::CancelToken;
use pal_provider::{ExchangeEnd, ExchangeStep, ProviderConnection, ProviderExchange};
use pal_wire::{ApiCall, Dialect, ResponseEvent as Heard};
use smol_str::SmolStr;
use tracing::{Span, debug, info_span};

/// Receives the reports of background exchanges.
pub trait ExchangeListener: Send + Sync {
    /// Takes the report of an exchange that has ended.
    fn report_exchange(&self, report: Box<ExchangeReport>);
}

/// Ignores all reports.
impl ExchangeListener for () {
    fn report_exchange(&self, _: Box<ExchangeReport>) {}
}

/// An exchange under way.
pub struct TimedExchange {
    source: RequestSource,
    provider: &'static str,
    model: SmolStr,
    window: u64,
    max_tokens: u64,
    begun: Instant,
    started: Option<Duration>,
    span: Span,
}

impl TimedExchange {
    /// Starts the clock.
    pub fn begin(
        source: RequestSource,
        card: &ModelCard,
        dialect: Dialect,
        max_tokens: u64,
    ) -> TimedExchange {
        let span = info_span!("chat", model = %card.model, source = source.as_str());
        let provider = match dialect {
            Dialect::Messages => "anthropic",
            Dialect::Responses | Dialect::Chat => "openai",
        };
        let model = card.model.clone();
        let (window, begun) = (card.window, Instant::now());
        TimedExchange { source, provider, model, window, max_tokens, begun, started: None, span }
    }

    /// Tracing span of the exchange.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// Notes the start of the answer.
    pub fn hear(&mut self, step: &ExchangeStep<'_>) {
        match step {
            ExchangeStep::Event(Heard::Started(_)) => self.started = Some(self.begun.elapsed()),
            ExchangeStep::Waiting(_) => {
                // A retry resets the start.
                self.started = None;
            }
            ExchangeStep::Event(_) | ExchangeStep::Tick(_) => {}
        }
    }

    /// Runs a background exchange and reports it to the listener.
    pub fn exchange_in_background(
        self,
        line: &ProviderConnection,
        call: ApiCall,
        card: &ModelCard,
        cancel: &CancelToken,
        listener: &dyn ExchangeListener,
    ) -> ProviderExchange {
        let (exchange, exchanged) = self.ask_in_background(line, call, card, cancel);
        listener.report_exchange(exchanged);
        exchange
    }

    /// Runs a background exchange and returns its report.
    pub fn ask_in_background(
        mut self,
        line: &ProviderConnection,
        call: ApiCall,
        card: &ModelCard,
        cancel: &CancelToken,
    ) -> (ProviderExchange, Box<ExchangeReport>) {
        let exchange = line.exchange(call, cancel, &mut |step| self.hear(&step));
        let (_, exchanged) = self.exchanged(&exchange, card);
        (exchange, exchanged)
    }

    /// Ends the exchange; returns its duration and event.
    pub fn end(self, exchange: &ProviderExchange, card: &ModelCard) -> (Duration, AgentEvent) {
        let (took, exchanged) = self.exchanged(exchange, card);
        (took, AgentEvent::ExchangeEnded(exchanged))
    }

    fn exchanged(self, exchange: &ProviderExchange, card: &ModelCard) -> (Duration, Box<ExchangeReport>) {
        let took = self.begun.elapsed();
        let begun = exchange.started.as_ref();
        let began = || begun.map(|started| (started.response.clone(), started.model.clone()));
        let mut exchanged = ExchangeReport {
            source: self.source,
            provider: self.provider,
            model: self.model,
            window: Some(self.window),
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

fn log(exchanged: &ExchangeReport) {
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
