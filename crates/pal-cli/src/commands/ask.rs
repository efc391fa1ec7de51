//! `pal ask`: questions to a model, on their own or at the end of a stored session. Nothing is kept.
//!
//! Every question is a fork of the session (§8.2): it repeats what the session's last request held, byte for byte, and
//! writes nothing to the provider's cache beyond that. Several are on their way at once, but the first alone until its
//! answer begins, so that the others read what it had to write (§5.7).

mod several;
mod words;

use std::io::Write;
use std::process::ExitCode;

use pal_agent::Voice;
use pal_context::Standing;
use pal_model::{Block, BlockType, Card, Draft, Entry, IdSource, Origin, Timestamp, escape_into};
use pal_provider::{Client, Endpoint, Progress, Waiting, Whole};
use pal_view::{RenderOptions, Request, Scope, View};
use pal_wire::{Call, Delta, Event};
use serde_json::json;
use smol_str::SmolStr;

use crate::arguments::{Ask, ProviderName};
use crate::aside;
use crate::carried::{Carried, cache_key, request_at};
use crate::failure::Failure;
use crate::progress::Countdown;
use crate::provider::{endpoint, provider_policy, runtime, simulator, usual_dialect, usual_provider};
use crate::session::{Session, card, lens};
use crate::settings::Settings;
use crate::table::{harmless, harmless_lines, usage_line};

/// The model that is asked where neither the user nor the session names one.
const MODEL: &str = "claude-opus-5-5";

pub(crate) fn ask(arguments: &Ask, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let session = match &arguments.session {
        Some(path) => Session::read(path, settings)?,
        None => Session::default(),
    };
    for problem in &session.problems {
        aside::tell(problem);
    }
    let model = arguments.model.clone().or_else(|| session.model_of_request(session.branch.len()));
    let card = card(settings, model.as_deref().unwrap_or(MODEL));
    let provider = arguments.provider.unwrap_or_else(|| usual_provider(&card));
    let cache_key = cache_key(&session.branch);
    let view = View::of(lens(&card, settings.estimator, Scope::Current), session.branch);
    let max_tokens = arguments.max_tokens.min(card.max_output);
    let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: false };
    let before = request_at(view.branch(), view.branch().len());
    let carried = Carried::like(before, &view, &card, settings);
    carried.tell();
    let forks: Result<Vec<Request>, Failure> = arguments
        .questions
        .iter()
        .map(|question| fork(&view, &carried.standing, question, options))
        .collect();
    let desk =
        Desk { questions: &arguments.questions, forks: forks?, betas: carried.betas, cache_key, card: &card };
    let json = arguments.json;
    runtime()?.block_on(async {
        match provider {
            ProviderName::Sim => {
                let (endpoint, server) = simulator(settings, usual_dialect(&card)).await?;
                let answered = desk.converse(endpoint, settings, json, out).await;
                server.abort();
                answered
            }
            _ => desk.converse(endpoint(provider, settings)?, settings, json, out).await,
        }
    })
}

/// The session's next request with a question at its end. It is not continued, so it writes nothing to the cache that the
/// session itself has not written.
fn fork(
    view: &View,
    standing: &Standing,
    question: &str,
    options: RenderOptions,
) -> Result<Request, Failure> {
    let mut asked = view.clone();
    asked.push(entry(question, view.branch().last())?);
    Ok(standing.repeated(&asked, options))
}

/// A question as the entry that would follow the last one.
fn entry(question: &str, last: Option<&Entry>) -> Result<Entry, Failure> {
    let mut content = String::new();
    escape_into(&mut content, question);
    let at = last.map_or(Timestamp::default(), |entry| entry.at);
    let id = IdSource::seeded(0).next_id(at);
    let entry = Draft::user(Origin::Person, &content).into_entry(id, last.map(|entry| entry.id), at);
    entry.map_err(|error| Failure::new(format!("the question: {error}")))
}

/// What is asked.
struct Desk<'a> {
    questions: &'a [String],
    /// One request a question.
    forks: Vec<Request>,
    betas: Vec<SmolStr>,
    /// The same for all forks of one session.
    cache_key: Option<String>,
    card: &'a Card,
}

impl Desk<'_> {
    /// Asks, and shows the answers: while it comes if it is one, else one after the other.
    async fn converse(
        &self,
        endpoint: Endpoint,
        settings: &Settings,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<ExitCode, Failure> {
        let dialect = endpoint.dialect();
        let policy = provider_policy(&endpoint, settings);
        let client = Client::new(endpoint, policy).map_err(|error| Failure::new(error.to_string()))?;
        let mut voice = Voice::new(self.card, dialect, self.cache_key.clone());
        let calls = self.forks.iter().map(|fork| voice.call(fork, &self.betas));
        let mut calls: Vec<Call> = calls.collect();
        match (self.questions, calls.pop()) {
            ([question], Some(call)) => self.one(question, &client, call, json, out).await,
            (_, Some(last)) => {
                calls.push(last);
                self.several(&client, calls, json, out).await
            }
            (_, None) => Ok(ExitCode::SUCCESS),
        }
    }

    async fn one(
        &self,
        question: &str,
        client: &Client,
        call: Call,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<ExitCode, Failure> {
        let mut countdown = Countdown::default();
        let whole = answer(client, call, |told| {
            match told {
                Told::Waiting(wait) => countdown.show(wait),
                _ => countdown.end(),
            }
            match told {
                Told::Text(text) if !json => {
                    write!(out, "{}", harmless_lines(text))?;
                    out.flush()
                }
                Told::Block(block) if !json => show_block(block, out),
                _ => Ok(()),
            }
        })
        .await?;
        // The answer comes before what is said of it on standard error.
        out.flush()?;
        if json {
            writeln!(out, "{}", self.json(question, &whole))?;
        } else {
            self.tell_end(&whole, "");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// An answer as one object.
    fn json(&self, question: &str, whole: &Whole) -> String {
        let finished = &whole.finished;
        let head = json!({
            "question": question, "model": finished.model.as_str(), "response": finished.response.as_str(),
            "stop_reason": finished.stop_reason.as_deref(), "usage": finished.usage,
            "cost_usd": self.card.cost(&finished.usage),
        })
        .to_string();
        let raw: Vec<&str> = whole.blocks.iter().map(|block| block.raw().as_str()).collect();
        // Blocks go in as they came: putting them through a JSON tree would change their bytes.
        format!("{},\"content\":[{}]}}", head.strip_suffix('}').unwrap_or(&head), raw.join(","))
    }

    /// How an answer ended and what it took, on standard error.
    fn tell_end(&self, whole: &Whole, label: &str) {
        let finished = &whole.finished;
        if let Some(notice) = finished.stop_reason.as_deref().and_then(words::early_end) {
            aside::tell(format_args!("{label}{notice}"));
        }
        let cost = self.card.cost(&finished.usage);
        eprintln!("{label}{}: {}", finished.model, usage_line(&finished.usage, cost));
    }
}

/// What happens while an answer comes.
#[derive(Clone, Copy)]
enum Told<'a> {
    /// The provider has begun to answer.
    Begun,
    Text(&'a str),
    Block(&'a Block),
    Waiting(&'a Waiting),
}

/// Sends a call and tells what happens, until the answer is whole.
async fn answer(
    client: &Client,
    call: Call,
    mut tell: impl FnMut(Told<'_>) -> std::io::Result<()>,
) -> Result<Whole, Failure> {
    let mut answer = client.send(call);
    let mut blocks = Vec::new();
    while let Some(progress) = answer.next().await {
        match progress {
            Progress::Waiting(wait) => tell(Told::Waiting(&wait))?,
            Progress::Event(Event::Grew { delta: Delta::Text(text), .. }) => tell(Told::Text(&text))?,
            Progress::Event(Event::Block { block, .. }) => {
                tell(Told::Block(&block))?;
                blocks.push(block);
            }
            Progress::Event(Event::Finished(finished)) => {
                tell(Told::Begun)?;
                return Ok(Whole { blocks, finished });
            }
            Progress::Event(Event::Failed(failure)) => {
                let wait = failure.retry_after.map_or(String::new(), |wait| {
                    format!(" (the provider asks to wait {} s)", wait.as_secs_f64().ceil())
                });
                let what = format!("{}{wait}", harmless(&failure.message));
                return Err(Failure::with_hint(what, words::way_on(failure.kind)));
            }
            Progress::Event(_) => tell(Told::Begun)?,
        }
    }
    Err(Failure::new("the answer ended without an end"))
}

/// What is not shown while it grows: a call, which nobody carries out here.
fn show_block(block: &Block, out: &mut dyn Write) -> std::io::Result<()> {
    match block.kind() {
        BlockType::ToolUse => {
            let name = block.string("name").unwrap_or_default();
            let input = block.field("input").unwrap_or("{}");
            writeln!(out, "[wants to call {} with {}]", harmless(&name), harmless(input))
        }
        BlockType::Text => writeln!(out),
        _ => Ok(()),
    }
}
