//! `pal ask`: questions to a model, on their own or at the end of a stored session. Nothing is stored.
//!
//! Every question is a fork of the session (§8.2): it repeats the session's last request byte for byte, and writes nothing more
//! to the provider's cache. Several questions are sent at once, but only after the answer to the first has started, so that the
//! others read what it wrote to the cache (§5.7).

mod answer_notices;
mod question_batch;

use std::io::Write;
use std::process::ExitCode;

use pal_context::RequestParams;
use pal_model::{
    BlockType, ContentBlock, EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCard, Timestamp, escape_into,
};
use pal_provider::RequestEncoder;
use pal_provider::{AnswerProgress, CompleteAnswer, ProviderClient, ProviderEndpoint, RetryWait};
use pal_report::{format_usage, sanitize, sanitize_lines};
use pal_view::{RenderOptions, Request, View, ViewScope};
use pal_wire::{ApiCall, BlockDelta, ResponseEvent};
use serde_json::json;
use smol_str::SmolStr;

use crate::arguments::{AskArgs, ProviderArg};
use crate::failure::Failure;
use crate::loaded_session::{LoadedSession, card, lens};
use crate::next_request::{NextRequestParams, request_at};
use crate::notices::{Notices, print_notice};
use crate::progress::Countdown;
use crate::provider::{chosen_provider, endpoint, provider_policy, runtime, simulator, usual_dialect};
use crate::settings::Settings;
use pal_engine::cache_key;

pub(crate) fn ask(
    arguments: &AskArgs,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let session = match &arguments.session {
        Some(path) => LoadedSession::read(path, settings)?,
        None => LoadedSession::default(),
    };
    for problem in &session.problems {
        print_notice(problem);
    }
    let model = arguments.model.clone().or_else(|| session.model_of_request(session.branch.len()));
    let card = card(settings, model.as_deref().unwrap_or(pal_settings::DEFAULT_MODEL), &Notices::to_stderr());
    let provider = chosen_provider(arguments.provider, &card, settings);
    let cache_key = cache_key(&session.branch);
    let view = View::from_branch(lens(&card, settings.estimator, ViewScope::Current), session.branch);
    let max_tokens = arguments.max_tokens.min(card.max_output);
    let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: false };
    let before = request_at(view.branch(), view.branch().len());
    let carried = NextRequestParams::after_request(before, &view, &card, settings);
    carried.print_notices();
    let forks: Result<Vec<Request>, Failure> =
        arguments.questions.iter().map(|question| fork(&view, &carried.params, question, options)).collect();
    let batch = QuestionBatch {
        questions: &arguments.questions,
        forks: forks?,
        betas: carried.betas,
        cache_key,
        card: &card,
    };
    let json = arguments.json;
    runtime()?.block_on(async {
        match provider {
            ProviderArg::Sim => {
                let (endpoint, server) = simulator(settings, usual_dialect(&card)).await?;
                let answered = batch.converse(endpoint, settings, json, out).await;
                server.abort();
                answered
            }
            _ => batch.converse(endpoint(provider, settings)?, settings, json, out).await,
        }
    })
}

/// Builds the session's next request with a question at its end. It has no successor, so it writes nothing to the cache beyond
/// the session's own content.
fn fork(
    view: &View,
    params: &RequestParams,
    question: &str,
    options: RenderOptions,
) -> Result<Request, Failure> {
    let mut asked = view.clone();
    asked.push(entry(question, view.branch().last())?);
    Ok(params.repeated(&asked, options))
}

/// Builds the entry of a question, which follows the last entry.
fn entry(question: &str, last: Option<&LogEntry>) -> Result<LogEntry, Failure> {
    let mut content = String::new();
    escape_into(&mut content, question);
    let at = last.map_or(Timestamp::default(), |entry| entry.at);
    let id = IdSource::seeded(0).next_id(at);
    let entry =
        EntryDraft::user(MessageOrigin::Person, &content).into_entry(id, last.map(|entry| entry.id), at);
    entry.map_err(|error| Failure::new(format!("the question: {error}")))
}

/// Questions and the requests that carry them.
struct QuestionBatch<'a> {
    questions: &'a [String],
    /// One request per question.
    forks: Vec<Request>,
    betas: Vec<SmolStr>,
    /// The same for all forks of one session.
    cache_key: Option<String>,
    card: &'a ModelCard,
}

impl QuestionBatch<'_> {
    /// Sends the questions and shows the answers: a single one while it streams, several in order.
    async fn converse(
        &self,
        endpoint: ProviderEndpoint,
        settings: &Settings,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<ExitCode, Failure> {
        let dialect = endpoint.dialect();
        let policy = provider_policy(&endpoint, settings);
        let client =
            ProviderClient::new(endpoint, policy).map_err(|error| Failure::new(error.to_string()))?;
        let mut voice = RequestEncoder::new(self.card, dialect, self.cache_key.clone());
        let calls = self.forks.iter().map(|fork| voice.encode(fork, &self.betas));
        let mut calls: Vec<ApiCall> = calls.collect();
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
        client: &ProviderClient,
        call: ApiCall,
        json: bool,
        out: &mut dyn Write,
    ) -> Result<ExitCode, Failure> {
        let mut countdown = Countdown::default();
        let whole = answer(client, call, |told| {
            match told {
                AnswerUpdate::Waiting(wait) => countdown.show(wait),
                _ => countdown.end(),
            }
            match told {
                AnswerUpdate::Text(text) if !json => {
                    write!(out, "{}", sanitize_lines(text))?;
                    out.flush()
                }
                AnswerUpdate::Block(block) if !json => show_block(block, out),
                _ => Ok(()),
            }
        })
        .await?;
        // The answer comes before the notice on standard error.
        out.flush()?;
        if json {
            writeln!(out, "{}", self.json(question, &whole))?;
        } else {
            self.tell_end(&whole, "");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Formats an answer as one JSON object.
    fn json(&self, question: &str, whole: &CompleteAnswer) -> String {
        let finished = &whole.finished;
        let head = json!({
            "question": question, "model": finished.model.as_str(), "response": finished.response.as_str(),
            "stop_reason": finished.stop_reason.as_deref(), "usage": finished.usage,
            "cost_usd": self.card.cost(&finished.usage),
        })
        .to_string();
        let raw: Vec<&str> = whole.blocks.iter().map(|block| block.raw().as_str()).collect();
        // Blocks are written raw: a JSON tree would change their bytes.
        format!("{},\"content\":[{}]}}", head.strip_suffix('}').unwrap_or(&head), raw.join(","))
    }

    /// Prints an early end and the usage of an answer on standard error.
    fn tell_end(&self, whole: &CompleteAnswer, label: &str) {
        let finished = &whole.finished;
        if let Some(notice) = finished.stop_reason.as_deref().and_then(answer_notices::early_end) {
            print_notice(format_args!("{label}{notice}"));
        }
        let cost = self.card.cost(&finished.usage);
        eprintln!("{label}{}: {}", finished.model, format_usage(&finished.usage, cost));
    }
}

/// Progress of an answer.
#[derive(Clone, Copy)]
enum AnswerUpdate<'a> {
    /// The answer has started.
    Begun,
    Text(&'a str),
    Block(&'a ContentBlock),
    Waiting(&'a RetryWait),
}

/// Sends a call and reports progress until the answer is complete.
async fn answer(
    client: &ProviderClient,
    call: ApiCall,
    mut tell: impl FnMut(AnswerUpdate<'_>) -> std::io::Result<()>,
) -> Result<CompleteAnswer, Failure> {
    let mut answer = client.send(call);
    let mut blocks = Vec::new();
    while let Some(progress) = answer.next().await {
        match progress {
            AnswerProgress::Waiting(wait) => tell(AnswerUpdate::Waiting(&wait))?,
            AnswerProgress::Event(ResponseEvent::BlockDelta { delta: BlockDelta::Text(text), .. }) => {
                tell(AnswerUpdate::Text(&text))?
            }
            AnswerProgress::Event(ResponseEvent::Block { block, .. }) => {
                tell(AnswerUpdate::Block(&block))?;
                blocks.push(block);
            }
            AnswerProgress::Event(ResponseEvent::Finished(finished)) => {
                tell(AnswerUpdate::Begun)?;
                return Ok(CompleteAnswer { blocks, finished });
            }
            AnswerProgress::Event(ResponseEvent::Failed(failure)) => {
                let wait = failure.retry_after.map_or(String::new(), |wait| {
                    format!(" (the provider asks to wait {} s)", wait.as_secs_f64().ceil())
                });
                let what = format!("{}{wait}", sanitize(&failure.message));
                return Err(Failure::with_hint(what, answer_notices::next_step(failure.kind)));
            }
            AnswerProgress::Event(_) => tell(AnswerUpdate::Begun)?,
        }
    }
    Err(Failure::new("the answer stopped without an end marker"))
}

/// Shows a finished block: tool calls, which are not executed here, and line ends after text.
fn show_block(block: &ContentBlock, out: &mut dyn Write) -> std::io::Result<()> {
    match block.kind() {
        BlockType::ToolUse => {
            let name = block.string("name").unwrap_or_default();
            let input = block.field("input").unwrap_or("{}");
            writeln!(out, "[calls {} with {}]", sanitize(&name), sanitize(input))
        }
        BlockType::Text => writeln!(out),
        _ => Ok(()),
    }
}
