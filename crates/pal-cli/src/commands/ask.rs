//! `pal ask`: one question to a model, of its own or at the end of a stored session. Nothing is kept.

use std::io::Write;
use std::process::ExitCode;

use pal_context::Standing;
use pal_model::{Block, BlockType, Card, Draft, Entry, IdSource, Origin, Text, Timestamp, escape_into};
use pal_provider::{Client, Endpoint, Policy, Progress};
use pal_view::{RenderOptions, Scope, View};
use pal_wire::{Call, Delta, Event, FailureKind, Finished};
use serde_json::json;
use smol_str::SmolStr;

use crate::arguments::{Ask, ProviderName};
use crate::failure::Failure;
use crate::progress::Countdown;
use crate::provider::{call, endpoint, runtime, simulator, usual_dialect, usual_provider};
use crate::session::{Session, card, lens};
use crate::settings::Settings;
use crate::table::{harmless, harmless_lines, usage_line};

/// The model that is asked where neither the user nor the session names one.
const MODEL: &str = "claude-opus-5-5";

pub(crate) fn ask(arguments: &Ask, settings: &Settings, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let session = match &arguments.session {
        Some(path) => Session::read(path, settings)?,
        None => Session { branch: Vec::new(), problems: Vec::new() },
    };
    for problem in &session.problems {
        eprintln!("pal: {problem}");
    }
    let model = arguments.model.clone().or_else(|| session.model_of_request(session.branch.len()));
    let card = card(settings, model.as_deref().unwrap_or(MODEL));
    let provider = arguments.provider.unwrap_or_else(|| usual_provider(&card));
    let question = question(&arguments.text, session.branch.last())?;
    let view = View::of(
        lens(&card, settings.estimator, Scope::Current),
        session.branch.into_iter().chain(std::iter::once(question)),
    );
    let runtime = runtime()?;
    let max_tokens = arguments.max_tokens.min(card.max_output);
    let options = RenderOptions { max_tokens, stream: true, spell_out_unseen: false };
    let request = Standing::default().request(&view, options);
    let betas: Vec<SmolStr> = pal_wire::betas(&card).into_iter().map(SmolStr::new_static).collect();
    let asked = |endpoint: Endpoint| {
        let call = call(&request, &betas, &card, endpoint.dialect());
        (endpoint, call)
    };
    runtime.block_on(async {
        match provider {
            ProviderName::Sim => {
                let (endpoint, server) = simulator(settings, usual_dialect(&card)).await?;
                let (endpoint, call) = asked(endpoint);
                let answered = converse(arguments, &card, endpoint, call, out).await;
                server.abort();
                answered
            }
            _ => {
                let (endpoint, call) = asked(endpoint(provider, &settings.credentials)?);
                converse(arguments, &card, endpoint, call, out).await
            }
        }
    })
}

/// The question as the entry that would follow the last one.
fn question(text: &str, last: Option<&Entry>) -> Result<Entry, Failure> {
    let mut content = String::new();
    escape_into(&mut content, text);
    let at = last.map_or(Timestamp::default(), |entry| entry.at);
    let id = IdSource::seeded(0).next_id(at);
    let line = Draft::user(Origin::Person, &content).into_line(id, last.map(|entry| entry.id), at, None);
    Entry::parse(Text::from(line)).map_err(|error| Failure::new(format!("the question: {error}")))
}

/// Sends the call and shows the answer while it comes.
async fn converse(
    arguments: &Ask,
    card: &Card,
    endpoint: Endpoint,
    call: Call,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let client = Client::new(endpoint, Policy::patient()).map_err(|error| Failure::new(error.to_string()))?;
    let mut answer = client.send(call);
    let mut blocks = Vec::new();
    let mut countdown = Countdown::default();
    while let Some(progress) = answer.next().await {
        if let Progress::Event(_) = progress {
            countdown.end();
        }
        match progress {
            Progress::Waiting(wait) => countdown.show(&wait),
            Progress::Event(Event::Grew { delta: Delta::Text(text), .. }) if !arguments.json => {
                write!(out, "{}", harmless_lines(&text))?;
                out.flush()?;
            }
            Progress::Event(Event::Block { block, .. }) => {
                if !arguments.json {
                    show_block(&block, out)?;
                }
                blocks.push(block);
            }
            Progress::Event(Event::Finished(finished)) => {
                return show_end(arguments, card, &blocks, &finished, out);
            }
            Progress::Event(Event::Failed(failure)) => {
                let wait = failure.retry_after.map_or(String::new(), |wait| {
                    format!(" (the provider asks to wait {} s)", wait.as_secs_f64().ceil())
                });
                let what = format!("{}{wait}", harmless(&failure.message));
                return Err(Failure::with_hint(what, way_on(failure.kind)));
            }
            Progress::Event(_) => {}
        }
    }
    Err(Failure::new("the answer ended without an end"))
}

/// What a reader must know of an answer that did not come to its own end.
fn early_end(stop_reason: &str) -> Option<String> {
    Some(match stop_reason {
        "end_turn" | "tool_use" | "stop_sequence" => return None,
        "max_tokens" => "the answer was cut at --max-tokens".to_owned(),
        "refusal" => "the model refused to answer".to_owned(),
        "model_context_window_exceeded" => "the answer was cut at the end of the model's window".to_owned(),
        other => format!("the answer stopped early: {}", harmless(other)),
    })
}

/// What to do about a failure.
fn way_on(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::TooLong { .. } | FailureKind::TooLarge => {
            "ask a model with a larger window (--model), or a shorter session"
        }
        FailureKind::Authentication | FailureKind::Permission => {
            "check the key: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, or OPENAI_API_KEY"
        }
        FailureKind::Billing => "look at the account's balance and limits with the provider",
        FailureKind::NotFound => "check the name of the model (--model) and the address",
        FailureKind::Connection => "check that the server runs and that the address is right",
        FailureKind::Invalid => "pal render and pal check show what is sent",
        FailureKind::RateLimited | FailureKind::Overloaded => "wait a little, then ask again",
        FailureKind::Conflict
        | FailureKind::Server
        | FailureKind::Timeout
        | FailureKind::Cut
        | FailureKind::Silent
        | FailureKind::Malformed => "ask again; nothing was kept",
    }
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

fn show_end(
    arguments: &Ask,
    card: &Card,
    blocks: &[Block],
    finished: &Finished,
    out: &mut dyn Write,
) -> Result<ExitCode, Failure> {
    let cost = card.cost(&finished.usage);
    // The answer comes before what is said of it on standard error.
    out.flush()?;
    if arguments.json {
        let head = json!({
            "model": finished.model.as_str(), "response": finished.response.as_str(),
            "stop_reason": finished.stop_reason.as_deref(), "usage": finished.usage, "cost_usd": cost,
        })
        .to_string();
        let raw: Vec<&str> = blocks.iter().map(|block| block.raw().as_str()).collect();
        // Blocks go in as they came: putting them through a JSON tree would change their bytes.
        writeln!(out, "{},\"content\":[{}]}}", head.strip_suffix('}').unwrap_or(&head), raw.join(","))?;
    } else {
        if let Some(notice) = finished.stop_reason.as_deref().and_then(early_end) {
            eprintln!("pal: {notice}");
        }
        eprintln!("{}: {}", finished.model, usage_line(&finished.usage, cost));
    }
    Ok(ExitCode::SUCCESS)
}
