//! Reads from the provider's cache that fell, and why.

use std::fmt;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Reads that fell from one request of a source to the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CacheBreak {
    /// By how many tokens.
    pub tokens: u64,
    /// The first thing that explains it.
    pub cause: BreakCause,
    /// What it cost, in US dollars: the tokens at the price that they were paid, less what reading them would have cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What the provider itself says, where it was asked: the type of its reason, such as `system_changed`, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<SmolStr>,
    /// Where a diff of the two requests is kept, relative to the session's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Why reads fell. The order is that in which causes are looked for, expected ones first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BreakCause {
    /// A decision of ours said so before: a compaction, a clear, a fold, an edit of the cache, an undo.
    Expected {
        /// The kind of the decision, `boundary` for a compaction.
        what: SmolStr,
    },
    /// Another model was asked.
    Model {
        /// The one before.
        from: SmolStr,
        /// This one.
        to: SmolStr,
    },
    /// A tool.
    Tool {
        /// Its name.
        name: SmolStr,
        /// What became of it.
        change: Change,
    },
    /// The speed that was asked for.
    Speed,
    /// A section of the system prompt.
    Section {
        /// Its name.
        name: SmolStr,
        /// What became of it.
        change: Change,
        /// By how many characters it became longer, or shorter.
        characters: i64,
    },
    /// The scopes for which what is marked is cached.
    Scopes,
    /// Beta headers.
    Betas {
        /// Those that were not sent before.
        added: Vec<SmolStr>,
        /// Those that are no longer sent.
        removed: Vec<SmolStr>,
    },
    /// How the model shall think.
    Thinking,
    /// How hard it shall think.
    Effort,
    /// Which tools it may call.
    ToolChoice,
    /// What the provider is asked to clear or to edit.
    Edits,
    /// Another member of the body.
    Member {
        /// Its name.
        name: SmolStr,
    },
    /// A message that was sent before is sent otherwise, or no longer.
    Message {
        /// Which, counted from 0.
        message: u64,
        /// Which of its blocks, counted from 0.
        block: u64,
        /// What became of it.
        change: Change,
        /// By how many characters it became longer, or shorter.
        characters: i64,
    },
    /// For how long what is marked is cached.
    Lifetimes,
    /// More was added since the last mark than the provider looks back.
    LookBack {
        /// Blocks since the mark of the request before.
        blocks: u64,
    },
    /// Nothing that was marked was large enough to be cached, or nothing was marked at all.
    Unmarked,
    /// What was cached had expired.
    Expired {
        /// Milliseconds between the starts of the two requests.
        idle_ms: u64,
        /// Milliseconds for which it was cached.
        lifetime_ms: u64,
    },
    /// What stands before the messages is not in the transcript, and nothing that is in it changed.
    Unseen,
    /// Nothing of ours: the provider lost it.
    Provider,
}

/// What became of a part of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there before.
    Added,
    /// It is no longer there.
    Removed,
    /// It stands elsewhere.
    Moved,
    /// It says something else.
    Changed,
}

impl BreakCause {
    /// Whether a decision of ours announced it.
    pub fn is_expected(&self) -> bool {
        matches!(self, BreakCause::Expected { .. })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Change::Added => "was added",
            Change::Removed => "was removed",
            Change::Moved => "stands elsewhere",
            Change::Changed => "changed",
        })
    }
}

/// One sentence without its full stop, for people.
impl fmt::Display for BreakCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakCause::Expected { what } if what == "boundary" => {
                out.write_str("expected: the session was compacted")
            }
            BreakCause::Expected { what } => write!(out, "expected: a decision of the kind `{what}`"),
            BreakCause::Model { from, to } => write!(out, "another model was asked: `{to}` after `{from}`"),
            BreakCause::Tool { name, change } => write!(out, "the tool `{name}` {change}"),
            BreakCause::Speed => out.write_str("another speed was asked for"),
            BreakCause::Section { name, change, characters } => {
                write!(out, "section `{name}` of the system prompt {change}{}", Longer(*characters))
            }
            BreakCause::Scopes => out.write_str("what is marked is cached for others than before"),
            BreakCause::Betas { added, removed } => {
                let listed = |sign: &'static str, names: &[SmolStr]| -> Vec<String> {
                    names.iter().map(|name| format!("{sign}{name}")).collect()
                };
                let all = [listed("+", added), listed("-", removed)].concat();
                write!(out, "other beta headers were sent: {}", all.join(", "))
            }
            BreakCause::Thinking => out.write_str("the model was to think in another way"),
            BreakCause::Effort => out.write_str("another effort was asked for"),
            BreakCause::ToolChoice => out.write_str("another choice of tools was asked for"),
            BreakCause::Edits => out.write_str("the provider was asked to clear otherwise"),
            BreakCause::Member { name } => write!(out, "the member `{name}` of the request changed"),
            BreakCause::Message { message, block, change, characters } => {
                write!(out, "block {block} of message {message} {change}{}", Longer(*characters))
            }
            BreakCause::Lifetimes => out.write_str("what is marked is cached for another time than before"),
            BreakCause::LookBack { blocks } => {
                write!(
                    out,
                    "{blocks} blocks were added since the last mark, more than the provider looks back"
                )
            }
            BreakCause::Unmarked => out.write_str("nothing was marked for the cache"),
            BreakCause::Expired { idle_ms, lifetime_ms } => {
                write!(out, "idle for {}, cached for {}", Span(*idle_ms), Span(*lifetime_ms))
            }
            BreakCause::Unseen => out.write_str(
                "nothing that the transcript holds changed; its system prompt and tools are not in it",
            ),
            BreakCause::Provider => out.write_str("nothing of ours changed: the provider lost it"),
        }
    }
}

/// By how many characters something became longer or shorter.
struct Longer(i64);

impl fmt::Display for Longer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            more @ 1.. => write!(out, ": {more} characters longer"),
            fewer => write!(out, ": {} characters shorter", fewer.unsigned_abs()),
        }
    }
}

/// A time in milliseconds, in the two largest units that say something.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / 1_000;
        let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
        match (days, hours, minutes, seconds % 60) {
            (0, 0, 0, seconds) => write!(out, "{seconds} s"),
            (0, 0, minutes, 0) => write!(out, "{minutes} min"),
            (0, 0, minutes, seconds) => write!(out, "{minutes} min {seconds} s"),
            (0, hours, 0, _) => write!(out, "{hours} h"),
            (0, hours, minutes, _) => write!(out, "{hours} h {minutes} min"),
            (days, 0, ..) => write!(out, "{days} d"),
            (days, hours, ..) => write!(out, "{days} d {hours} h"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_sentences() {
        let section =
            BreakCause::Section { name: "environment".into(), change: Change::Changed, characters: 12 };
        assert_eq!(
            section.to_string(),
            "section `environment` of the system prompt changed: 12 characters longer"
        );
        let expired = BreakCause::Expired { idle_ms: 430_000, lifetime_ms: 300_000 };
        assert_eq!(expired.to_string(), "idle for 7 min 10 s, cached for 5 min");
    }
}
