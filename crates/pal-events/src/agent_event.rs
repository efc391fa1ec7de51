//! Events of a session, as plain data for user interfaces, recorders and telemetry.

use std::time::Duration;

use pal_model::{
    Boundary, CacheBreak, LogEntry, RequestSource, ResponseId, ResponseRecord, ToolUseId, Usage, UsageTotals,
};
use serde::Serialize;
use smol_str::SmolStr;

use crate::ResponseProgress;

/// An event of an agent.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// The session is open. Comes once, first.
    SessionStarted(Box<SessionInfo>),
    /// A message was appended to the log: a `user` or `assistant` entry.
    Message {
        /// The log entry.
        entry: Box<LogEntry>,
        /// Usage of a response.
        usage: Option<Box<Usage>>,
        /// Price in US dollars, if known.
        cost: Option<f64>,
    },
    /// More text of the answer.
    Text(String),
    /// More visible thinking of the answer.
    Thinking(String),
    /// A step of a response that is still streaming, in full detail; its text comes as [`AgentEvent::Text`], too.
    Progress(Box<ResponseProgress>),
    /// The answer shown so far is discarded; another one replaces it.
    AnswerDiscarded {
        /// Reason.
        why: String,
    },
    /// A retry follows after a wait.
    Waiting {
        /// Error of the last attempt.
        why: String,
        /// Number of the next attempt, counted from 1.
        attempt: u32,
        /// Maximum number of attempts.
        of: u32,
        /// Time until the next attempt.
        left: Duration,
    },
    /// A tool starts.
    ToolStarted {
        /// Id of the call.
        call: ToolUseId,
        /// Name of the tool.
        name: SmolStr,
        /// Input of the call: a JSON object.
        input: String,
    },
    /// Output of a running tool.
    ToolPrinted {
        /// Id of the call.
        call: ToolUseId,
        /// The output.
        text: String,
    },
    /// A tool has ended; its result follows in a message.
    ToolEnded {
        /// Id of the call.
        call: ToolUseId,
        /// Name of the tool.
        name: SmolStr,
        /// True if it failed.
        is_error: bool,
        /// Duration.
        took: Duration,
        /// Bytes of its result.
        bytes: u64,
    },
    /// An exchange with the provider ended: a response of the conversation, or a summary.
    ExchangeEnded(Box<ExchangeReport>),
    /// A compaction starts. It ends with [`AgentEvent::Compacted`] or without effect.
    Compacting {
        /// Tokens of the context before.
        tokens: u64,
    },
    /// The conversation was compacted.
    Compacted(Box<Boundary>),
    /// Cache reads dropped, with the cause.
    CacheBroken(Box<CacheBreak>),
    /// A prompt goes into an expired cache and costs at least the price that users want to hear of.
    ColdTurn {
        /// Time since the cache expired.
        expired_for: Duration,
        /// Tokens that the request writes to the cache.
        tokens: u64,
        /// Price of writing them in US dollars, if known.
        cost: Option<f64>,
        /// All of it in one line.
        text: String,
    },
    /// Something costly and unexpected that users want to hear of at once.
    Alarm {
        /// What happened: `cache_break`.
        kind: &'static str,
        /// Its price in US dollars.
        cost: f64,
        /// One line about it.
        text: String,
    },
    /// A subagent's progress line.
    SubagentActivity {
        /// Name of the subagent.
        agent: String,
        /// The line.
        doing: String,
    },
    /// The permission mode changed; its name.
    Mode(SmolStr),
    /// One line for the user.
    Notice(String),
    /// One line that every form of output shows: damage, refusals, distrust.
    Warning(String),
    /// A prompt has ended. Comes once per prompt.
    Ended(PromptResult),
}

/// Description of an open session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionInfo {
    /// Session id.
    pub session_id: String,
    /// Path of the log.
    pub transcript_path: String,
    /// Working directory.
    pub cwd: String,
    /// Model.
    pub model: SmolStr,
    /// Tool names on the wire.
    pub tools: Vec<SmolStr>,
    /// Permission mode.
    pub permission_mode: SmolStr,
    /// True if it was resumed.
    pub is_resumed: bool,
    /// Version of the program.
    pub version: String,
    /// MCP servers.
    pub mcp_servers: Vec<McpServerInfo>,
    /// Names of the agents that it can start.
    pub agents: Vec<String>,
    /// Names of the skills that it can use.
    pub skills: Vec<String>,
    /// Name of the output style.
    pub output_style: Option<String>,
}

/// An MCP server of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct McpServerInfo {
    /// Its name.
    pub name: String,
    /// `connected`, `pending` or `failed`.
    pub status: SmolStr,
}

/// Report of one exchange with the provider.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeReport {
    /// Source of the request.
    pub source: RequestSource,
    /// Dialect: `anthropic` or `openai`.
    pub provider: &'static str,
    /// Requested model.
    pub model: SmolStr,
    /// Context window of the requested model, if known: its name alone may not tell, since a suffix can choose a window.
    pub window: Option<u64>,
    /// Maximum tokens of the answer.
    pub max_tokens: u64,
    /// Response id and model, if a response started.
    pub answered: Option<(ResponseId, SmolStr)>,
    /// Token usage, as far as known.
    pub usage: Option<Usage>,
    /// Price in US dollars, if known.
    pub cost: Option<f64>,
    /// Stop reason.
    pub stop_reason: Option<SmolStr>,
    /// Failure in one word: the name of a `pal_wire::FailureKind`, or `cancelled`.
    pub failed: Option<&'static str>,
    /// Duration, including waits and retries.
    pub took: Duration,
    /// Time until the response started.
    pub took_to_start: Option<Duration>,
}

impl ExchangeReport {
    /// Usage record for the log; none if the provider did not respond.
    pub fn response_record(&self) -> Option<ResponseRecord> {
        let (response, model) = self.answered.clone()?;
        Some(ResponseRecord {
            response,
            model,
            source: self.source.clone(),
            usage: self.usage.clone()?,
            stop_reason: self.stop_reason.clone(),
            cost: self.cost,
            cache_break: None,
        })
    }
}

/// Result of a prompt.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptResult {
    /// End.
    pub end: PromptEnd,
    /// Last text of the model; empty if none.
    pub text: String,
    /// Responses since the prompt.
    pub turns: u64,
    /// Duration.
    pub took: Duration,
    /// Time spent waiting for the provider.
    pub took_provider: Duration,
    /// Usage since the prompt, including background work.
    pub spent: UsageTotals,
    /// Calls denied since the prompt.
    pub denials: Vec<ToolDenial>,
    /// Output that fits the schema which the session asks for: raw JSON.
    pub structured_output: Option<String>,
}

/// Error of a prompt that ended without the structured output that was asked for.
pub const NO_STRUCTURED_OUTPUT: &str = "the model gave no output that fits the schema, although it was reminded; simplify the \
                                        schema or say in the prompt what belongs into it";

/// Result of a prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PromptEnd {
    /// The model finished.
    Done,
    /// The model refused; its message.
    Refused(String),
    /// A limit of turns, tokens or money was reached; which, in one sentence.
    Limit(String),
    /// The user interrupted it.
    Interrupted,
    /// An error with the next step. The session can continue.
    Failed(String),
}

impl PromptEnd {
    /// Name for statistics.
    pub fn name(&self) -> &'static str {
        match self {
            PromptEnd::Done => "done",
            PromptEnd::Refused(_) => "refused",
            PromptEnd::Limit(_) => "limit",
            PromptEnd::Interrupted => "interrupted",
            PromptEnd::Failed(_) => "failed",
        }
    }
}

/// A denied call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ToolDenial {
    /// Name of the tool.
    pub tool_name: SmolStr,
    /// Id of the call.
    pub tool_use_id: String,
    /// Input of the call: a JSON object.
    pub tool_input: String,
    /// Reason.
    pub reason: String,
    /// Rule that would allow it, if any.
    pub rule: Option<String>,
}
