//! Model calls and file reads for a compaction on the command line.

use std::path::PathBuf;

use pal_agent::restored_file;
use pal_context::{FileRequest, RestoredFile, SummaryQuestion, SummaryReply};
use pal_engine::{
    CompactionObserver, FileReader, ModelClient, Notifier, OutgoingRequest, RequestOutcome, SummaryExchange,
    TimeSource,
};
use pal_model::{ContextOverflow, ModelCard, Timestamp, Usage};
use pal_process::CancelToken;
use pal_provider::{ExchangeEnd, ExchangeStep, ProviderConnection, ProviderExchange, RequestEncoder};
use pal_report::sanitize;
use pal_wire::{ApiCall, BlockDelta, FailureKind, ProviderFailure as WireFailure, ResponseEvent};
use smol_str::SmolStr;

use crate::arguments::ProviderArg;
use crate::failure::Failure;
use crate::notices::print_notice;
use crate::progress::{Countdown, Elapsed};
use crate::provider::{chosen_provider, endpoint, provider_policy, runtime, simulator, usual_dialect};
use crate::settings::Settings;

/// Asks models and reads files for the compaction of a saved session.
pub(crate) struct SummaryClient {
    card: ModelCard,
    /// Routes questions to the session's provider cache.
    cache_key: Option<String>,
    /// Directory whose files may be read, or why none may.
    files: Result<PathBuf, String>,
    connection: Option<ProviderConnection>,
    /// Whether the provider failed in a way that a retry cannot fix.
    is_hopeless: bool,
    pub(crate) totals: QuestionTotals,
    /// Files that could not be read, with the reason.
    pub(crate) not_read: Vec<(String, String)>,
}

/// Number, usage and cost of questions.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct QuestionTotals {
    pub(crate) questions: u64,
    /// Model that answered last.
    pub(crate) model: Option<SmolStr>,
    pub(crate) usage: Usage,
    /// US dollars; none if a price is unknown.
    pub(crate) cost: Option<f64>,
}

impl SummaryClient {
    /// A client that asks no model.
    pub(crate) fn without_provider(
        card: &ModelCard,
        cache_key: Option<String>,
        files: Result<PathBuf, String>,
    ) -> SummaryClient {
        let totals = QuestionTotals { cost: Some(0.0), ..QuestionTotals::default() };
        SummaryClient {
            card: card.clone(),
            cache_key,
            files,
            connection: None,
            is_hopeless: false,
            totals,
            not_read: Vec::new(),
        }
    }

    /// Connects to the named provider, else to the model's own.
    pub(crate) fn connect(&mut self, name: Option<ProviderArg>, settings: &Settings) -> Result<(), Failure> {
        let name = chosen_provider(name, &self.card, settings);
        let runtime = runtime()?;
        let endpoint = match name {
            // The simulator's task lives as long as the runtime.
            ProviderArg::Sim => runtime.block_on(simulator(settings, usual_dialect(&self.card)))?.0,
            _ => endpoint(name, settings)?,
        };
        let policy = provider_policy(&endpoint, settings);
        self.connection = Some(ProviderConnection::new(runtime, endpoint, policy).map_err(Failure::new)?);
        Ok(())
    }

    fn failed(&mut self, failure: &WireFailure) -> SummaryReply {
        let message = sanitize(&failure.message);
        let hopeless = match failure.kind {
            FailureKind::TooLong(overflow) => return SummaryReply::TooLong(overflow),
            FailureKind::TooLarge => return SummaryReply::TooLong(ContextOverflow::UNKNOWN),
            FailureKind::Authentication | FailureKind::Permission => "the provider rejects the API key",
            FailureKind::Billing => "the provider account has a billing problem",
            FailureKind::NotFound => "the provider does not know the model or the URL",
            FailureKind::Connection => "cannot connect to the provider",
            _ => return SummaryReply::Failed(message),
        };
        self.is_hopeless = true;
        SummaryReply::Failed(format!("{hopeless} ({message})"))
    }
}

impl ModelClient for SummaryClient {
    fn send(&mut self, _outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        RequestOutcome::Failed(String::from("this command does not continue the conversation"))
    }

    fn ask(&mut self, question: &SummaryQuestion, betas: &[SmolStr], _now: Timestamp) -> SummaryExchange {
        if self.is_hopeless {
            let why = String::from("not asked, for the same reason");
            return SummaryExchange { reply: SummaryReply::Failed(why), answered: None };
        }
        let Some(connection) = &self.connection else {
            let why = String::from("no provider");
            return SummaryExchange { reply: SummaryReply::Failed(why), answered: None };
        };
        // Another model than the session's shares no cache with it.
        let card = question.card.as_deref().unwrap_or(&self.card).clone();
        let key = self.cache_key.clone().filter(|_| question.card.is_none());
        let mut encoder = RequestEncoder::new(&card, connection.endpoint().dialect(), key);
        let call = encoder.encode(&question.request, betas);
        let what = format!("{} writes a summary ({})", card.model, question.method.name());
        let exchange = exchange_with_progress(connection, call, what);
        match exchange.end {
            ExchangeEnd::Finished(finished) => {
                let cost = card.cost(&finished.usage);
                self.totals.add(&finished.usage, cost);
                self.totals.model = Some(card.model);
                let reply = SummaryReply::of_answer(exchange.blocks, finished.stop_reason.as_deref());
                SummaryExchange { reply, answered: Some((finished.response, finished.usage, cost)) }
            }
            ExchangeEnd::Failed(failure) => {
                let reply = self.failed(&failure);
                // The session's own model may be reached nevertheless.
                self.is_hopeless &= question.card.is_none();
                SummaryExchange { reply, answered: None }
            }
            // This command never cancels.
            ExchangeEnd::Cancelled => {
                SummaryExchange { reply: SummaryReply::Failed(String::from("stopped")), answered: None }
            }
        }
    }
}

impl FileReader for SummaryClient {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        let read = match &self.files {
            Ok(directory) => restored_file(directory, &wanted.path, wanted.bytes_max),
            Err(why) => Err(why.clone()),
        };
        let read = read.map_err(|why| self.not_read.push((wanted.path.clone(), why))).ok();
        let (text, seen) = read.unzip();
        RestoredFile { path: wanted.path.clone(), text, first_line: 1, seen: seen.flatten() }
    }
}

impl Notifier for SummaryClient {
    fn notice(&mut self, line: &str) {
        print_notice(format_args!("{}", sanitize(line)));
    }
}

impl TimeSource for SummaryClient {}

impl CompactionObserver for SummaryClient {}

impl QuestionTotals {
    fn add(&mut self, usage: &Usage, cost: Option<f64>) {
        self.questions += 1;
        self.usage.input_tokens += usage.input_tokens;
        self.usage.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        self.usage.cache_read_input_tokens += usage.cache_read_input_tokens;
        self.usage.output_tokens += usage.output_tokens;
        // A provider's own compaction is billed beside the totals.
        for pass in usage.iterations.iter().flatten().filter(|pass| pass.kind == "compaction") {
            self.usage.input_tokens += pass.input_tokens;
            self.usage.cache_creation_input_tokens += pass.cache_creation_input_tokens;
            self.usage.cache_read_input_tokens += pass.cache_read_input_tokens;
            self.usage.output_tokens += pass.output_tokens;
        }
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
}

/// Sends a call, and shows elapsed time and retries on standard error.
fn exchange_with_progress(connection: &ProviderConnection, call: ApiCall, what: String) -> ProviderExchange {
    let mut elapsed = Elapsed::new(what);
    let mut countdown = Countdown::default();
    let mut characters = 0;
    let exchange = connection.exchange(call, &CancelToken::new(), &mut |step| match step {
        ExchangeStep::Tick(passed) => elapsed.show(passed, characters),
        ExchangeStep::Waiting(wait) => countdown.show(wait),
        ExchangeStep::Event(ResponseEvent::BlockDelta { delta, .. }) => {
            let (BlockDelta::Text(text) | BlockDelta::Thinking(text) | BlockDelta::Input(text)) = delta;
            characters += text.chars().count();
        }
        ExchangeStep::Event(_) => countdown.end(),
    });
    countdown.end();
    elapsed.end();
    exchange
}
