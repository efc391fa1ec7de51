//! Inputs and outputs of the run state machine.

use std::time::Duration;

use pal_model::{Content, ContentBlock, MessageOrigin, SharedText, ToolEffects, ToolUseId, UsageTotals};
use smol_str::SmolStr;

use crate::progress_detector::ProgressLimits;

/// Budget of a day, over all sessions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DayBudget {
    /// Budget in US dollars.
    pub limit: f64,
    /// US dollars that are left of it when a prompt starts; not positive if it is used up.
    pub left: f64,
}

/// Limits of a run, and its freedom to add notes.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSettings {
    /// `max_tokens` of a request.
    pub output_tokens: u64,
    /// `max_tokens` of the second attempt, after an answer reached the first limit.
    pub output_tokens_max: u64,
    /// Maximum answers per prompt.
    pub turns_max: Option<u64>,
    /// Maximum tokens per prompt, of all kinds together.
    pub tokens_max: Option<u64>,
    /// Maximum cost per prompt, in US dollars.
    pub cost_max: Option<f64>,
    /// Budget of the day that the prompt may use up; none without one.
    pub day: Option<DayBudget>,
    /// Limits on turns without progress.
    pub progress: ProgressLimits,
    /// The run may add notes of its own to the conversation: to continue a truncated or broken answer, or to
    /// tell the model that it repeats itself. Forks send exactly the conversation plus their own turns, so
    /// theirs is false: a truncated answer then counts as complete, and a broken one ends the run.
    pub adds_notes: bool,
}

impl RunSettings {
    /// Settings of a conversation without limits on turns, tokens or cost.
    pub fn plain(output_tokens: u64, output_tokens_max: u64) -> RunSettings {
        RunSettings {
            output_tokens,
            output_tokens_max,
            turns_max: None,
            tokens_max: None,
            cost_max: None,
            day: None,
            progress: ProgressLimits::STANDARD,
            adds_notes: true,
        }
    }
}

/// An event reported to the run.
#[derive(Clone, Debug)]
pub enum RunInput {
    /// The user sends a message. While the agent works, it is passed on with the next results.
    Prompt(Content),
    /// Another agent sends a message. It is treated like a prompt, but without a prompt check.
    Message(Content),
    /// The prompt check passed.
    PromptPassed,
    /// The prompt check failed, with the reason.
    PromptBlocked(String),
    /// The model answered.
    Answered(ModelAnswer),
    /// An answer broke off.
    AnswerBroke(BrokenAnswer),
    /// The request failed. The text says what to do.
    Failed(String),
    /// Ruling on a call.
    CallJudged(ToolUseId, CallRuling),
    /// A call returned.
    CallReturned(ToolCallResult),
    /// The stop check passed.
    StopPassed,
    /// The stop check failed: the agent has to continue, for this reason.
    StopBlocked(String),
    /// The user interrupts the run.
    Interrupt,
}

/// An instruction to the driver. A record is in the log before any later output is executed.
#[derive(Clone, PartialEq, Debug)]
pub enum RunOutput {
    /// Check whether a prompt is accepted; answered by `PromptPassed` or `PromptBlocked`.
    CheckPrompt(Content),
    /// Append to the log.
    Record(RunRecord),
    /// Send a request to the model; answered by `Answered`, `AnswerBroke` or `Failed`.
    RequestModel {
        /// Maximum tokens of the answer.
        max_tokens: u64,
    },
    /// Wait before the next request, because the run makes no progress; any event ends the wait.
    BackOff {
        /// Duration of the wait.
        wait: Duration,
        /// Reason, one line for the user.
        reason: String,
    },
    /// Discard the displayed answer: it is requested again.
    DiscardAnswer,
    /// Check whether a call is allowed; answered by `CallJudged`.
    AuthorizeCall(ToolCall),
    /// Execute a call; answered by `CallReturned`. Several may run at once.
    ExecuteCall(ToolCall),
    /// Stop everything that runs; it is still answered.
    Cancel,
    /// Check whether the agent may stop; answered by `StopPassed` or `StopBlocked`.
    CheckStop {
        /// Last text of the model.
        last: String,
        /// The agent continued only because an earlier stop check failed.
        is_repeated: bool,
    },
    /// The prompt is finished.
    Ended(RunEnd),
}

/// An entry for the log.
#[derive(Clone, PartialEq, Debug)]
pub enum RunRecord {
    /// Message of the user or another agent.
    Message(IncomingMessage),
    /// Answer of the model, as part of the conversation.
    Answer(ModelAnswer),
    /// Answer of the model that only the user sees.
    DisplayedAnswer(ModelAnswer),
    /// Result of a call.
    Result(ToolCallResult),
    /// A call that was not executed, or not to its end.
    NotRun {
        /// Id of the call.
        call: ToolUseId,
        /// Reason, for the model.
        why: String,
    },
    /// Text of the program for the model.
    Note {
        /// Subject, as a stable identifier.
        what: &'static str,
        /// Text itself.
        text: String,
    },
}

/// Message to the agent.
#[derive(Clone, PartialEq, Debug)]
pub struct IncomingMessage {
    /// Sender: the user or another agent.
    pub origin: MessageOrigin,
    /// Content.
    pub content: Content,
}

/// Answer of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct ModelAnswer {
    /// Content blocks.
    pub blocks: Vec<ContentBlock>,
    /// Tool calls among the blocks, in order.
    pub calls: Vec<ToolCall>,
    /// Stop reason of the provider.
    pub stop_reason: Option<SmolStr>,
    /// Usage of the session so far, including this answer.
    pub spent: UsageTotals,
}

/// A tool call.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolCall {
    /// Id of the call.
    pub id: ToolUseId,
    /// Name of the tool.
    pub name: SmolStr,
    /// Input, a JSON object.
    pub input: SharedText,
    /// The call changes nothing and may run in parallel with others.
    pub is_read_only: bool,
    /// Reason why it cannot be executed at all, for the model.
    pub problem: Option<String>,
}

/// An incomplete answer.
#[derive(Clone, PartialEq, Debug)]
pub struct BrokenAnswer {
    /// Part that arrived; its calls are not executed.
    pub answer: ModelAnswer,
    /// Error that ended it.
    pub why: String,
}

/// Ruling on a tool call.
#[derive(Clone, PartialEq, Debug)]
pub enum CallRuling {
    /// The call may be executed.
    Allowed {
        /// Replacement input, if a hook changed it.
        input: Option<SharedText>,
    },
    /// The call is refused, with the reason for the model.
    Refused(String),
    /// The call is refused and the run ends.
    Stop(String),
}

/// Result of a tool call.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolCallResult {
    /// Id of the call.
    pub call: ToolUseId,
    /// Content for the model.
    pub content: Vec<ContentBlock>,
    /// The call failed.
    pub is_error: bool,
    /// Effects that the session records.
    pub effects: ToolEffects,
    /// Running time.
    pub took: Duration,
    /// Further texts for the model, from hooks and rules: (subject, text).
    pub notes: Vec<(&'static str, String)>,
    /// Reason to end the run now, if any.
    pub stop: Option<String>,
}

impl ToolCallResult {
    /// Makes a result without effects.
    pub fn plain(call: &ToolUseId, content: Vec<ContentBlock>, is_error: bool) -> ToolCallResult {
        let aftermath = ToolEffects::default();
        let took = Duration::ZERO;
        ToolCallResult {
            call: call.clone(),
            content,
            is_error,
            effects: aftermath,
            took,
            notes: Vec::new(),
            stop: None,
        }
    }

    /// Makes a failed result with its reason.
    pub fn failed(call: &ToolUseId, why: &str) -> ToolCallResult {
        ToolCallResult::plain(call, vec![ContentBlock::text(why)], true)
    }
}

/// Outcome of a prompt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// The model finished.
    Done,
    /// The model refused.
    Refused,
    /// A limit was reached; the text names it.
    Limit(String),
    /// The user interrupted the run.
    Interrupted,
    /// The run cannot continue; the text says what to do.
    Failed(String),
}
