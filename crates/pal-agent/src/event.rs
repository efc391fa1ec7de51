//! What happens in a session, as plain data for whoever shows it.

use std::time::Duration;

use pal_model::{Boundary, CacheBreak, Entry, ResponseGot, ResponseId, Source, ToolUseId, Totals, Usage};
use serde::Serialize;
use smol_str::SmolStr;

/// The members of a call that say most about it, the first that is there.
const TELLING: [&str; 9] =
    ["file_path", "command", "pattern", "url", "path", "query", "skill", "name", "prompt"];

/// What a call is about, by the JSON object that it is called with; empty if nothing in it tells.
pub fn telling(input: &str) -> String {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(input).unwrap_or_default();
    let telling = TELLING.iter().find_map(|name| members.get(*name)?.as_str());
    telling.unwrap_or_default().to_owned()
}

/// A call in a few words.
pub(crate) fn in_short(name: &str, input: &str) -> String {
    let is_plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let what: String = telling(input).chars().take(80).map(is_plain).collect();
    format!("{name} {what}").trim_end().to_owned()
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The session is open: what it consists of. Comes once, first.
    Began(Began),
    /// A message is in the log: what a person said, what the model answered, what tools returned. `entry` is a `user`
    /// or an `assistant` entry.
    Message {
        /// The entry, as it stands in the log.
        entry: Box<Entry>,
        /// What the answer took, if it is the model's.
        usage: Option<Box<Usage>>,
        /// Its price in US dollars, where known.
        cost: Option<f64>,
    },
    /// The answer grew by words for the reader.
    Text(String),
    /// The answer grew by thinking that is shown.
    Thinking(String),
    /// What was shown of this answer does not count: another one takes its place.
    Void {
        /// Why.
        why: String,
    },
    /// The provider is asked again after a while.
    Waiting {
        /// Why the last attempt failed.
        why: String,
        /// The attempt that follows, counted from 1.
        attempt: u32,
        /// How many there are at most.
        of: u32,
        /// How long it takes until then.
        left: Duration,
    },
    /// A tool starts.
    ToolBegan {
        /// Which call.
        call: ToolUseId,
        /// The tool.
        name: SmolStr,
        /// What it is called with: a JSON object.
        input: String,
    },
    /// A running tool printed something.
    ToolPrinted {
        /// Which call.
        call: ToolUseId,
        /// What it printed.
        text: String,
    },
    /// A tool has ended. Its result follows in a message.
    ToolEnded {
        /// Which call.
        call: ToolUseId,
        /// The tool.
        name: SmolStr,
        /// Whether it failed.
        is_error: bool,
        /// How long it took.
        took: Duration,
        /// Bytes of its result.
        bytes: u64,
    },
    /// The provider was asked something, and that has ended: an answer of the conversation, or a summary.
    Exchanged(Box<Exchanged>),
    /// A compaction begins. It ends with [`Event::Compacted`], or comes to nothing.
    Compacting {
        /// Size of the context before, in tokens.
        tokens: u64,
    },
    /// The conversation was compacted.
    Compacted(Box<Boundary>),
    /// Reads from the provider's cache fell, and why.
    CacheBroke(Box<CacheBreak>),
    /// An agent that was sent does something, in a few words of whoever watches it.
    Doing {
        /// The agent.
        agent: String,
        /// What it does.
        doing: String,
    },
    /// The agent began or ended planning: the permission mode by its name.
    Mode(SmolStr),
    /// A line for the user.
    Notice(String),
    /// A line that the user must see in every form of output: something is damaged, was refused or is not trusted.
    Warning(String),
    /// A prompt was worked off, or could not be. Comes once for each prompt.
    Ended(Ended),
}

/// What a session consists of.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Began {
    /// The session's id.
    pub session_id: String,
    /// Its log.
    pub transcript_path: String,
    /// Where it works.
    pub cwd: String,
    /// The model.
    pub model: SmolStr,
    /// Tools by their names on the wire.
    pub tools: Vec<SmolStr>,
    /// The permission mode.
    pub permission_mode: SmolStr,
    /// Whether it went on from an earlier run.
    pub is_resumed: bool,
    /// The program's version.
    pub version: String,
}

/// One question to the provider and what came of it, for whoever counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchanged {
    /// Who asked.
    pub source: Source,
    /// Whose dialect was spoken: `anthropic` or `openai`.
    pub provider: &'static str,
    /// The model that was asked.
    pub model: SmolStr,
    /// Most tokens that the answer could have.
    pub max_tokens: u64,
    /// The answer's id and the model that gave it, where it began.
    pub answered: Option<(ResponseId, SmolStr)>,
    /// What it took, as far as known.
    pub usage: Option<Usage>,
    /// Its price in US dollars, where known.
    pub cost: Option<f64>,
    /// Why the model stopped.
    pub stop_reason: Option<SmolStr>,
    /// What kept the answer from becoming whole, in one word: the name of a [`pal_wire::FailureKind`], or `cancelled`.
    pub failed: Option<&'static str>,
    /// How long it took, waits and further attempts included.
    pub took: Duration,
    /// How long it took until the answer began, where it did.
    pub took_to_start: Option<Duration>,
}

impl Exchanged {
    /// What of it goes into the books; none if the provider never answered.
    pub(crate) fn got(&self) -> Option<ResponseGot> {
        let (response, model) = self.answered.clone()?;
        Some(ResponseGot {
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

/// How a prompt ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    /// How.
    pub end: End,
    /// What the model said last; empty if it said nothing.
    pub text: String,
    /// Answers of the model since the prompt.
    pub turns: u64,
    /// How long it took.
    pub took: Duration,
    /// How long of it was spent waiting for the provider.
    pub took_provider: Duration,
    /// What the session took since the prompt, background work included.
    pub spent: Totals,
    /// Calls that were refused since the prompt.
    pub denials: Vec<Denial>,
}

/// How a prompt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// The model had nothing left to do.
    Done,
    /// The model refused.
    Refused(String),
    /// The most turns, tokens or money were used up; which, in one sentence.
    Limit(String),
    /// Somebody interrupted it.
    Interrupted,
    /// Something went wrong, and what to do about it. The session goes on from here.
    Failed(String),
}

impl End {
    /// Its name, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            End::Done => "done",
            End::Refused(_) => "refused",
            End::Limit(_) => "limit",
            End::Interrupted => "interrupted",
            End::Failed(_) => "failed",
        }
    }
}

/// A call that was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Denial {
    /// The tool.
    pub tool_name: SmolStr,
    /// Which call.
    pub tool_use_id: String,
    /// What it was called with: a JSON object.
    pub tool_input: String,
    /// Why.
    pub reason: String,
    /// The rule that would allow it, where one would.
    pub rule: Option<String>,
}
