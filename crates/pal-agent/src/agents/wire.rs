//! What a team's lead and a teammate in its own process say to each other over the pipes between them, a line of JSON each.
//! Words for each other's models go by mailbox ([`super::mail`]); these are the affairs of the programs.

use std::path::PathBuf;
use std::time::Duration;

use pal_model::{ResponseGot, Source};
use pal_tools::AgentInfo;
use serde::{Deserialize, Serialize};

use crate::event::Exchanged;
use crate::gate::{Answer, Asked};

/// What a teammate is sent for: the first line that it reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Assignment {
    /// What it is called.
    pub name: String,
    /// The definition that it goes by; none if it has no prompt and tools of its own.
    pub definition: Option<AgentInfo>,
    /// What it shall do.
    pub prompt: String,
    /// The folder of the session that leads it.
    pub lead: PathBuf,
    /// The model that it asks.
    pub model: String,
    /// The permission mode that it works in.
    pub mode: String,
    /// What a person has allowed for the session.
    pub allowed: Vec<String>,
    /// Whether it plans first, and has its plan approved.
    pub plans_first: bool,
    /// Whether a person can be asked.
    pub can_ask: bool,
    /// How many agents stand above it.
    pub depth: usize,
}

/// What a teammate says to its lead.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Up {
    /// It asked the provider something.
    Spent { got: Box<ResponseGot>, provider: String, took_ms: u64 },
    /// It does something: a call in a few words.
    Does(String),
    /// It wants to know whether a call may be carried out.
    Asks { id: u64, asked: Asked },
    /// It has nothing to do, or waits for an answer of its lead; which messages it has heard since it said so last.
    Rests { heard: Vec<String> },
    /// It has something to do again.
    Works,
}

/// What the lead says to a teammate.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Down {
    /// The answer to a question.
    Answers { id: u64, answer: Answer },
    /// What it does, in the words of whoever watches.
    Doing(String),
}

impl Up {
    /// What the lead is told of an exchange; none if the provider never answered.
    pub(crate) fn spent(exchanged: &Exchanged) -> Option<Up> {
        let took_ms = u64::try_from(exchanged.took.as_millis()).unwrap_or(u64::MAX);
        let got = Box::new(exchanged.got()?);
        Some(Up::Spent { got, provider: exchanged.provider.to_owned(), took_ms })
    }
}

/// What a teammate spent, as something that the agent of this name asked.
pub(crate) fn exchanged(name: &str, got: ResponseGot, provider: &str, took_ms: u64) -> Exchanged {
    Exchanged {
        source: Source::named(&format!("subagent:{name}")),
        provider: if provider == "openai" { "openai" } else { "anthropic" },
        model: got.model.clone(),
        max_tokens: 0,
        answered: Some((got.response, got.model)),
        usage: Some(got.usage),
        cost: got.cost,
        stop_reason: got.stop_reason,
        failed: None,
        took: Duration::from_millis(took_ms),
        took_to_start: None,
    }
}

/// A line.
pub(crate) fn line(said: &impl Serialize) -> String {
    let mut line = serde_json::to_string(said).unwrap_or_default();
    line.push('\n');
    line
}
