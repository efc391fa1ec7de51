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
    /// Its name in the log.
    pub fn name(&self) -> &'static str {
        match self {
            BreakCause::Expected { .. } => "expected",
            BreakCause::Model { .. } => "model",
            BreakCause::Tool { .. } => "tool",
            BreakCause::Speed => "speed",
            BreakCause::Section { .. } => "section",
            BreakCause::Scopes => "scopes",
            BreakCause::Betas { .. } => "betas",
            BreakCause::Thinking => "thinking",
            BreakCause::Effort => "effort",
            BreakCause::ToolChoice => "tool_choice",
            BreakCause::Edits => "edits",
            BreakCause::Member { .. } => "member",
            BreakCause::Message { .. } => "message",
            BreakCause::Lifetimes => "lifetimes",
            BreakCause::LookBack { .. } => "look_back",
            BreakCause::Unmarked => "unmarked",
            BreakCause::Expired { .. } => "expired",
            BreakCause::Unseen => "unseen",
            BreakCause::Provider => "provider",
        }
    }

    /// Whether a decision of ours announced it.
    pub fn is_expected(&self) -> bool {
        matches!(self, BreakCause::Expected { .. })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Change::Added => "is new",
            Change::Removed => "is gone",
            Change::Moved => "stands elsewhere",
            Change::Changed => "changed",
        })
    }
}

/// One sentence without its full stop, for people: messages and blocks are counted from 1. Names stand in it as the log
/// has them; whoever prints it to a terminal takes control characters out.
impl fmt::Display for BreakCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakCause::Expected { what } => expected(what, out),
            BreakCause::Model { from, to } => write!(out, "another model was asked: {to} instead of {from}"),
            BreakCause::Tool { name, change } => write!(out, "tool `{name}` {change}"),
            BreakCause::Speed => out.write_str("another speed was asked for"),
            BreakCause::Section { name, change, characters } => {
                write!(out, "section `{name}` of the system prompt {change}{}", Longer(*characters))
            }
            BreakCause::Scopes => out.write_str("the scopes for which the prompt is cached changed"),
            BreakCause::Betas { added, removed } => betas(added, removed, out),
            BreakCause::Thinking => out.write_str("the setting for thinking changed"),
            BreakCause::Effort => out.write_str("the effort that the model shall make changed"),
            BreakCause::ToolChoice => out.write_str("which tools the model may call changed"),
            BreakCause::Edits => out.write_str("what the provider is asked to clear or to edit changed"),
            BreakCause::Member { name } => write!(out, "`{name}` of the request changed"),
            BreakCause::Message { message, block, change, characters } => {
                let (message, block) = (message.saturating_add(1), block.saturating_add(1));
                let by = Longer(*characters);
                write!(out, "block {block} of message {message}, which was sent before, {change}{by}")
            }
            BreakCause::Lifetimes => out.write_str("the time for which the prompt is cached changed"),
            BreakCause::LookBack { blocks } => {
                let blocks = Grouped(*blocks);
                write!(out, "{blocks} blocks came since the last mark: more than the provider looks back")
            }
            BreakCause::Unmarked => out.write_str("nothing was marked for the cache, or nothing long enough"),
            BreakCause::Expired { idle_ms, lifetime_ms } => {
                write!(out, "idle for {}, cached for {}", Span(*idle_ms), Span(*lifetime_ms))
            }
            BreakCause::Unseen => {
                out.write_str("nothing in the transcript changed; the system prompt and tools are not in it")
            }
            BreakCause::Provider => out.write_str("nothing of ours changed: the provider lost it"),
        }
    }
}

fn expected(what: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let why = match what {
        "boundary" => "the conversation was compacted",
        "clear" => "old tool results were cleared",
        "provider_clear" => "the provider cleared old tool results",
        "cache_edit" => "old tool results were deleted from the cache",
        "fold" => "a stretch was folded",
        "snip" => "redundant stretches were hidden",
        "strip" => "media were taken out",
        "spill" => "a text that had been sent went to disk",
        "undo" => "a decision was taken back",
        "rewind" => "the conversation went on from an earlier message",
        "compact" => "a summary was asked for by a request of its own",
        "forgotten_thinking" => "the model leaves earlier thinking out once the user speaks",
        other => return write!(out, "expected: {}", other.replace('_', " ")),
    };
    write!(out, "expected: {why}")
}

fn betas(added: &[SmolStr], removed: &[SmolStr], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (added, removed) {
        ([], removed) => write!(out, "beta headers are no longer sent: {}", removed.join(", ")),
        (added, []) => write!(out, "beta headers are new: {}", added.join(", ")),
        (added, removed) => {
            write!(out, "beta headers changed: {} instead of {}", added.join(", "), removed.join(", "))
        }
    }
}

/// By how many characters something became longer or shorter, as the end of a sentence.
struct Longer(i64);

impl fmt::Display for Longer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.unsigned_abs();
        let noun = if count == 1 { "character" } else { "characters" };
        match self.0 {
            0 => Ok(()),
            1.. => write!(out, ": {} {noun} longer", Grouped(count)),
            _ => write!(out, ": {} {noun} shorter", Grouped(count)),
        }
    }
}

/// A number with a space between thousands.
struct Grouped(u64);

impl fmt::Display for Grouped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small @ ..1_000 => write!(out, "{small}"),
            large => write!(out, "{} {:03}", Grouped(large / 1_000), large % 1_000),
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
        let expected = |what: &str| BreakCause::Expected { what: what.into() };
        let said = [
            BreakCause::Section {
                name: "environment".into(),
                change: Change::Changed,
                characters: 1_012_345,
            },
            BreakCause::Message { message: 3, block: 0, change: Change::Removed, characters: -1 },
            BreakCause::Expired { idle_ms: 430_000, lifetime_ms: 300_000 },
            BreakCause::Tool { name: "Read".into(), change: Change::Moved },
            BreakCause::Betas { added: vec!["a-1".into()], removed: Vec::new() },
            expected("boundary"),
            expected("forgotten_thinking"),
            expected("a_later_kind"),
        ]
        .map(|cause| cause.to_string());
        assert_eq!(
            said,
            [
                "section `environment` of the system prompt changed: 1 012 345 characters longer",
                "block 1 of message 4, which was sent before, is gone: 1 character shorter",
                "idle for 7 min 10 s, cached for 5 min",
                "tool `Read` stands elsewhere",
                "beta headers are new: a-1",
                "expected: the conversation was compacted",
                "expected: the model leaves earlier thinking out once the user speaks",
                "expected: a later kind",
            ]
        );
    }
}
