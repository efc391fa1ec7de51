//! What a session has done for it: a model is asked, files are read, people are told. The only place that joins the
//! engine and a provider.

use std::path::PathBuf;

use pal_agent::{Exchange, ExchangeEnd, Line, Step, Voice, text_inside};
use pal_context::{FileRead, FileWanted, Question, Reply};
use pal_engine::{Asked, Errands, Outcome, Outgoing};
use pal_model::{Card, Timestamp, Usage};
use pal_process::Cancel;
use pal_wire::{Call, Delta, Event, Failure as WireFailure, FailureKind};
use smol_str::SmolStr;

use crate::arguments::ProviderName;
use crate::aside;
use crate::failure::Failure;
use crate::progress::{Countdown, Elapsed};
use crate::provider::{endpoint, provider_policy, runtime, simulator, usual_dialect, usual_provider};
use crate::settings::Settings;
use crate::table::harmless;

/// Errands of a session that a command works on.
pub(crate) struct Helper {
    card: Card,
    /// Steers what is asked to the cache of the session.
    cache_key: Option<String>,
    /// The directory whose files may be read, or why there is none.
    files: Result<PathBuf, String>,
    line: Option<Line>,
    /// Whether further questions make no sense.
    is_hopeless: bool,
    /// What questions took.
    pub(crate) taken: Taken,
    /// Files that were wanted and not read, and why.
    pub(crate) not_read: Vec<(String, String)>,
}

/// What questions took.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Taken {
    pub(crate) questions: u64,
    pub(crate) usage: Usage,
    /// US dollars; none if a price is not known.
    pub(crate) cost: Option<f64>,
}

impl Helper {
    /// Errands without a provider.
    pub(crate) fn alone(card: &Card, cache_key: Option<String>, files: Result<PathBuf, String>) -> Helper {
        let taken = Taken { cost: Some(0.0), ..Taken::default() };
        Helper {
            card: card.clone(),
            cache_key,
            files,
            line: None,
            is_hopeless: false,
            taken,
            not_read: Vec::new(),
        }
    }

    /// The same with a provider: the one that is named, or whoever offers the model.
    pub(crate) fn connect(&mut self, name: Option<ProviderName>, settings: &Settings) -> Result<(), Failure> {
        let name = name.unwrap_or_else(|| usual_provider(&self.card));
        let runtime = runtime()?;
        let endpoint = match name {
            // The simulator's task lives as long as the runtime.
            ProviderName::Sim => runtime.block_on(simulator(settings, usual_dialect(&self.card)))?.0,
            _ => endpoint(name, settings)?,
        };
        let policy = provider_policy(&endpoint, settings);
        self.line = Some(Line::new(runtime, endpoint, policy).map_err(Failure::new)?);
        Ok(())
    }

    fn failed(&mut self, failure: &WireFailure) -> Reply {
        let message = harmless(&failure.message);
        let hopeless = match failure.kind {
            FailureKind::TooLong { have, limit } => return Reply::TooLong { have, limit },
            FailureKind::TooLarge => return Reply::TooLong { have: None, limit: None },
            FailureKind::Authentication | FailureKind::Permission => "the provider refuses the key",
            FailureKind::Billing => "the provider wants to be paid",
            FailureKind::NotFound => "the provider does not know the model or the address",
            FailureKind::Connection => "there is no connection",
            _ => return Reply::Failed(message),
        };
        self.is_hopeless = true;
        Reply::Failed(format!("{hopeless} ({message})"))
    }
}

impl Errands for Helper {
    fn send(&mut self, _outgoing: &Outgoing<'_>) -> Outcome {
        Outcome::Failed(String::from("this command sends no request of the conversation"))
    }

    fn ask(&mut self, question: &Question, betas: &[SmolStr], _now: Timestamp) -> Asked {
        if self.is_hopeless {
            let why = String::from("not asked, for the same reason");
            return Asked { reply: Reply::Failed(why), answered: None };
        }
        let Some(line) = &self.line else {
            let why = String::from("there is no provider to ask");
            return Asked { reply: Reply::Failed(why), answered: None };
        };
        let mut voice = Voice::new(&self.card, line.endpoint().dialect(), self.cache_key.clone());
        let call = voice.call(&question.request, betas);
        let what = format!("{} writes a summary ({})", self.card.model, question.how.name());
        let exchange = watched(line, call, what);
        match exchange.end {
            ExchangeEnd::Finished(finished) => {
                let cost = self.card.cost(&finished.usage);
                self.taken.add(&finished.usage, cost);
                let reply = Reply::of_answer(exchange.blocks, finished.stop_reason.as_deref());
                Asked { reply, answered: Some((finished.response, finished.usage, cost)) }
            }
            ExchangeEnd::Failed(failure) => Asked { reply: self.failed(&failure), answered: None },
            // Nobody here wants it to stop.
            ExchangeEnd::Cancelled => Asked { reply: Reply::Failed(String::from("stopped")), answered: None },
        }
    }

    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        let read = match &self.files {
            Ok(directory) => text_inside(directory, &wanted.path, wanted.bytes_max),
            Err(why) => Err(why.clone()),
        };
        let text = read.map_err(|why| self.not_read.push((wanted.path.clone(), why))).ok();
        FileRead { path: wanted.path.clone(), text, seen: None }
    }

    fn notice(&mut self, line: &str) {
        aside::tell(format_args!("{}", harmless(line)));
    }
}

impl Taken {
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

/// Sends a call and tells how long its answer takes, and how long until the next attempt.
fn watched(line: &Line, call: Call, what: String) -> Exchange {
    let mut elapsed = Elapsed::new(what);
    let mut countdown = Countdown::default();
    let mut characters = 0;
    let exchange = line.exchange(call, &Cancel::new(), &mut |step| match step {
        Step::Tick(passed) => elapsed.show(passed, characters),
        Step::Waiting(wait) => countdown.show(wait),
        Step::Event(Event::Grew { delta, .. }) => {
            let (Delta::Text(text) | Delta::Thinking(text) | Delta::Input(text)) = delta;
            characters += text.chars().count();
        }
        Step::Event(_) => countdown.end(),
    });
    countdown.end();
    elapsed.end();
    exchange
}
