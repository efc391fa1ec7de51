//! Protocol between a lead and a teammate process: one JSON object per line over pipes. Messages for the models
//! use mailboxes instead.

use std::path::PathBuf;
use std::time::Duration;

use pal_events::{ExchangeReport, PermissionAnswer, PermissionQuestion};
use pal_model::{RequestSource, ResponseRecord};
use pal_tools::AgentDefinition;
use serde::{Deserialize, Serialize};

/// Assignment of a teammate: the first line that it reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TeammateAssignment {
    /// Name.
    pub name: String,
    /// Definition; none for the general kind.
    pub definition: Option<AgentDefinition>,
    /// Prompt.
    pub prompt: String,
    /// Directory of the lead's session.
    pub lead: PathBuf,
    /// Model.
    pub model: String,
    /// Permission mode.
    pub mode: String,
    /// Rules that the user allowed for the session.
    pub allowed: Vec<String>,
    /// Whether it starts in plan mode and needs approval.
    pub plans_first: bool,
    /// Whether the user can be asked.
    pub can_ask: bool,
    /// Number of agents above it.
    pub depth: usize,
}

/// Message from a teammate to its lead.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TeammateMessage {
    /// Usage of one exchange with the provider.
    Spent { got: Box<ResponseRecord>, provider: String, took_ms: u64 },
    /// A call, in short.
    Does(String),
    /// A permission question.
    Asks { id: u64, asked: PermissionQuestion },
    /// It is idle or waits for its lead; ids of messages read since it last said so.
    Rests { heard: Vec<String> },
    /// It works again.
    Works,
}

/// Message from the lead to a teammate.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeadMessage {
    /// Answer to a permission question.
    Answers { id: u64, answer: PermissionAnswer },
    /// Progress line about the teammate.
    Doing(String),
}

impl TeammateMessage {
    /// Usage message of an exchange; none if the provider did not respond.
    pub(crate) fn spent(exchanged: &ExchangeReport) -> Option<TeammateMessage> {
        let took_ms = u64::try_from(exchanged.took.as_millis()).unwrap_or(u64::MAX);
        let got = Box::new(exchanged.response_record()?);
        Some(TeammateMessage::Spent { got, provider: exchanged.provider.to_owned(), took_ms })
    }
}

/// Exchange report of a teammate's usage.
pub(crate) fn exchanged(name: &str, got: ResponseRecord, provider: &str, took_ms: u64) -> ExchangeReport {
    ExchangeReport {
        source: RequestSource::from_name(&format!("subagent:{name}")),
        provider: if provider == "openai" { "openai" } else { "anthropic" },
        model: got.model.clone(),
        window: None,
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

/// Serializes a message as one line.
pub(crate) fn line(said: &impl Serialize) -> String {
    let mut line = serde_json::to_string(said).unwrap_or_default();
    line.push('\n');
    line
}
