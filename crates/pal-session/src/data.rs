//! What goes into the machine and what comes out of it.

use std::time::Duration;

use pal_model::{Aftermath, Block, Content, Origin, Text, ToolUseId, Totals};
use smol_str::SmolStr;

use crate::progress::ProgressLimits;

/// What a run goes by.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSettings {
    /// Tokens that an answer is asked to have at most.
    pub output_tokens: u64,
    /// The same when that was not enough.
    pub output_tokens_most: u64,
    /// Most answers to one prompt.
    pub turns_max: Option<u64>,
    /// Most tokens that one prompt may take, of all kinds together.
    pub tokens_max: Option<u64>,
    /// Most US dollars that one prompt may cost.
    pub cost_max: Option<f64>,
    /// Limits on turns without progress.
    pub progress: ProgressLimits,
}

impl RunSettings {
    /// No limits but those of an answer and of progress.
    pub fn plain(output_tokens: u64, output_tokens_most: u64) -> RunSettings {
        RunSettings {
            output_tokens,
            output_tokens_most,
            turns_max: None,
            tokens_max: None,
            cost_max: None,
            progress: ProgressLimits::STANDARD,
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Input {
    /// A person, or a program in their place, says something. Said while the agent works, it is handed over with the next
    /// results.
    Prompt(Content),
    /// Another agent says something. It is heard as a prompt is, but nobody is asked whether it is to be worked on.
    Message(Content),
    /// Nothing speaks against the prompt.
    PromptPassed,
    /// The prompt is not to be worked on, and why.
    PromptBlocked(String),
    /// The model answered.
    Answered(Answer),
    /// An answer began and broke off.
    Broke(Broken),
    /// There was no answer, and what to do about it.
    Failed(String),
    /// Whether a call may be carried out.
    Judged(ToolUseId, Ruling),
    /// A call returned.
    Returned(Returned),
    /// Nothing speaks against the end.
    StopPassed,
    /// The agent shall go on, and why.
    StopBlocked(String),
    /// Somebody wants it to stop.
    Interrupt,
}

/// Something to be done. What is recorded goes into the log before anything that follows it is done.
#[derive(Clone, PartialEq, Debug)]
pub enum Output {
    /// Find out whether a prompt is to be worked on; answered by `PromptPassed` or `PromptBlocked`.
    CheckPrompt(Content),
    /// Append to the log.
    Record(Record),
    /// Ask the model for an answer of at most so many tokens; answered by `Answered`, `Broke` or `Failed`.
    Ask {
        /// Most tokens of the answer.
        max_tokens: u64,
    },
    /// Wait before the next request, because the run makes no progress; anything that happens ends the wait.
    BackOff {
        /// How long.
        wait: Duration,
        /// Reason, in one line for the user.
        reason: String,
    },
    /// What was shown of the answer does not count: another one is asked for in its place.
    Void,
    /// Find out whether a call may be carried out; answered by `Judged`.
    Judge(Call),
    /// Carry a call out; answered by `Returned`. Several may be under way at once.
    Carry(Call),
    /// Stop whatever is under way; it is answered all the same.
    Cancel,
    /// Find out whether the agent may stop now; answered by `StopPassed` or `StopBlocked`.
    CheckStop {
        /// What the model said last.
        last: String,
        /// Whether it goes on only because it was not allowed to stop before.
        is_repeated: bool,
    },
    /// The prompt is done with.
    Ended(End),
}

/// Something for the log.
#[derive(Clone, PartialEq, Debug)]
pub enum Record {
    /// What a person or another agent said.
    Said(Said),
    /// What the model said, as a part of the conversation.
    Answer(Answer),
    /// What the model said, for the user's eyes only.
    Shown(Answer),
    /// What came of a call.
    Result(Returned),
    /// A call that was not carried out, or not to its end, and why.
    NotRun {
        /// Which call.
        call: ToolUseId,
        /// What the model is told.
        why: String,
    },
    /// Words of the program for the model.
    Note {
        /// What they are about.
        what: &'static str,
        /// The words.
        text: String,
    },
}

/// What was said to the agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Said {
    /// Who said it: a person, or another agent.
    pub origin: Origin,
    /// What.
    pub content: Content,
}

/// An answer of the model.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// What it said.
    pub blocks: Vec<Block>,
    /// The calls among it, in order.
    pub calls: Vec<Call>,
    /// Why it stopped.
    pub stop_reason: Option<SmolStr>,
    /// What the session has taken so far, this answer included.
    pub spent: Totals,
}

/// A call of a tool.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Which call.
    pub id: ToolUseId,
    /// The tool.
    pub name: SmolStr,
    /// What it is called with: a JSON object.
    pub input: Text,
    /// Whether it only looks, so that it may be carried out beside others.
    pub only_looks: bool,
    /// Why it cannot be carried out at all, in words for the model.
    pub problem: Option<String>,
}

/// An answer that broke off.
#[derive(Clone, PartialEq, Debug)]
pub struct Broken {
    /// What arrived of it; its calls are not carried out.
    pub answer: Answer,
    /// Why it broke off.
    pub why: String,
}

/// Whether a call may be carried out.
#[derive(Clone, PartialEq, Debug)]
pub enum Ruling {
    /// It may.
    Allowed {
        /// Another input than the model's, where somebody changed it.
        input: Option<Text>,
    },
    /// It may not; what the model is told.
    Refused(String),
    /// It may not, and the agent shall stop.
    Stop(String),
}

/// What came of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Returned {
    /// Which call.
    pub call: ToolUseId,
    /// What the model reads.
    pub content: Vec<Block>,
    /// Whether it failed.
    pub is_error: bool,
    /// What the session has to remember of it.
    pub aftermath: Aftermath,
    /// How long the call ran.
    pub took: Duration,
    /// Further words for the model, of hooks and rules that it set off.
    pub notes: Vec<(&'static str, String)>,
    /// Why the agent shall stop now, where somebody wants that.
    pub stop: Option<String>,
}

impl Returned {
    /// A result with nothing to remember.
    pub fn plain(call: &ToolUseId, content: Vec<Block>, is_error: bool) -> Returned {
        let aftermath = Aftermath::default();
        let took = Duration::ZERO;
        Returned { call: call.clone(), content, is_error, aftermath, took, notes: Vec::new(), stop: None }
    }

    /// A call that came to nothing, and why.
    pub fn failed(call: &ToolUseId, why: &str) -> Returned {
        Returned::plain(call, vec![Block::text(why)], true)
    }
}

/// How a prompt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The model had nothing left to do.
    Done,
    /// The model refused.
    Refused,
    /// A limit was reached; which.
    Limit(String),
    /// Somebody interrupted it.
    Interrupted,
    /// Something or somebody stands in the way, and what to do about it.
    Failed(String),
}
