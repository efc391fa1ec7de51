//! Cache breaks: drops in cache-read tokens between requests, and their causes.

use std::fmt;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::text::group_digits;

/// Drop in cache-read tokens from one request of a source to the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CacheBreak {
    /// Size of the drop in tokens.
    pub tokens: u64,
    /// First cause that explains the drop.
    pub cause: BreakCause,
    /// Other causes at the same request, in the order in which causes are checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<BreakCause>,
    /// Extra cost in US dollars: the price paid for the tokens minus the price of reading them from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Provider's own diagnosis, if requested: the type of its reason, such as `system_changed`, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<SmolStr>,
    /// File with a diff of the two requests, relative to the session directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl CacheBreak {
    /// Returns all causes in one sentence without a full stop, like the display of a [`BreakCause`].
    pub fn reason(&self) -> String {
        let mut reason = self.cause.to_string();
        for (at, cause) in self.also.iter().enumerate() {
            reason.push_str(if at == 0 { "; also, " } else { "; " });
            reason.push_str(&cause.to_string());
        }
        reason
    }
}

/// Cause of a cache break, in the order in which causes are checked; expected ones come first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BreakCause {
    /// Announced by a decision: a compaction, a clear, a fold, a cache edit, an undo.
    Expected {
        /// Kind of the decision; `boundary` for a compaction.
        what: SmolStr,
    },
    /// The model changed.
    Model {
        /// Previous model.
        from: SmolStr,
        /// New model.
        to: SmolStr,
    },
    /// A tool definition changed.
    Tool {
        /// Name of the tool.
        name: SmolStr,
        /// Type of change.
        change: RequestChange,
    },
    /// The requested speed changed.
    Speed,
    /// A section of the system prompt changed.
    Section {
        /// Name of the section.
        name: SmolStr,
        /// Type of change.
        change: RequestChange,
        /// Change of length in characters.
        characters: i64,
    },
    /// The scope of the cache breakpoints changed.
    Scopes,
    /// The beta headers changed.
    Betas {
        /// Newly sent headers.
        added: Vec<SmolStr>,
        /// Headers that are no longer sent.
        removed: Vec<SmolStr>,
    },
    /// The thinking setting changed.
    Thinking,
    /// The effort setting changed.
    Effort,
    /// The tool choice changed.
    ToolChoice,
    /// The context-management edits changed.
    Edits,
    /// Another member of the request body changed.
    Member {
        /// Name of the member.
        name: SmolStr,
    },
    /// An already sent message changed or was removed.
    Message {
        /// Index of the message, from 0.
        message: u64,
        /// Index of the block in the message, from 0.
        block: u64,
        /// Type of change.
        change: RequestChange,
        /// Change of length in characters.
        characters: i64,
    },
    /// The TTL of the cache breakpoints changed.
    #[serde(rename = "lifetimes")]
    CacheTtl,
    /// More blocks were added since the last cache breakpoint than the provider looks back.
    LookBack {
        /// Blocks since the breakpoint of the previous request.
        blocks: u64,
    },
    /// No cache breakpoint was set, or the prefix before it was too short to cache.
    #[serde(rename = "unmarked")]
    NoBreakpoint,
    /// The cached prefix had expired.
    Expired {
        /// Milliseconds between the starts of the two requests.
        idle_ms: u64,
        /// Cache TTL in milliseconds.
        lifetime_ms: u64,
    },
    /// Nothing in the transcript changed, and the transcript does not contain the prefix.
    Unseen,
    /// Nothing in the request changed: the provider lost the cached prefix.
    Provider,
}

/// Type of change of a part of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestChange {
    /// New part.
    Added,
    /// Part that is no longer sent.
    Removed,
    /// Same content at another position.
    Moved,
    /// Different content.
    Changed,
}

impl BreakCause {
    /// Returns the name in the log.
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
            BreakCause::CacheTtl => "lifetimes",
            BreakCause::LookBack { .. } => "look_back",
            BreakCause::NoBreakpoint => "unmarked",
            BreakCause::Expired { .. } => "expired",
            BreakCause::Unseen => "unseen",
            BreakCause::Provider => "provider",
        }
    }

    /// Returns true if a decision announced the break.
    pub fn is_expected(&self) -> bool {
        matches!(self, BreakCause::Expected { .. })
    }
}

impl fmt::Display for RequestChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            RequestChange::Added => "was added",
            RequestChange::Removed => "was removed",
            RequestChange::Moved => "moved",
            RequestChange::Changed => "changed",
        })
    }
}

/// One sentence without a full stop; messages and blocks are counted from 1. Names are unfiltered: strip control
/// characters before printing to a terminal.
impl fmt::Display for BreakCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakCause::Expected { what } => expected(what, out),
            BreakCause::Model { from, to } => write!(out, "the model changed from {from} to {to}"),
            BreakCause::Tool { name, change } => write!(out, "tool `{name}` {change}"),
            BreakCause::Speed => out.write_str("the requested speed changed"),
            BreakCause::Section { name, change, characters } => {
                write!(out, "section `{name}` of the system prompt {change}{}", LengthChange(*characters))
            }
            BreakCause::Scopes => out.write_str("the scope of the cache breakpoints changed"),
            BreakCause::Betas { added, removed } => betas(added, removed, out),
            BreakCause::Thinking => out.write_str("the thinking setting changed"),
            BreakCause::Effort => out.write_str("the effort setting changed"),
            BreakCause::ToolChoice => out.write_str("the tool choice changed"),
            BreakCause::Edits => out.write_str("the context-management edits changed"),
            BreakCause::Member { name } => write!(out, "request field `{name}` changed"),
            BreakCause::Message { message, block, change, characters } => {
                let (message, block) = (message.saturating_add(1), block.saturating_add(1));
                let by = LengthChange(*characters);
                write!(out, "already sent block {block} of message {message} {change}{by}")
            }
            BreakCause::CacheTtl => out.write_str("the cache TTL changed"),
            BreakCause::LookBack { blocks } => {
                let blocks = group_digits(*blocks);
                write!(
                    out,
                    "{blocks} blocks were added since the last cache breakpoint, more than the provider looks back"
                )
            }
            BreakCause::NoBreakpoint => {
                out.write_str("no cache breakpoint was set, or the prefix was too short to cache")
            }
            BreakCause::Expired { idle_ms, lifetime_ms } => {
                write!(out, "idle for {}, cached for {}", IdleTime(*idle_ms), IdleTime(*lifetime_ms))
            }
            BreakCause::Unseen => out.write_str(
                "nothing in the transcript changed; it does not contain the system prompt and tools",
            ),
            BreakCause::Provider => {
                out.write_str("the request did not change; the provider lost the cached prefix")
            }
        }
    }
}

fn expected(what: &str, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let why = match what {
        "boundary" => "the conversation was compacted",
        "clear" => "old tool results were cleared",
        "provider_clear" => "the provider cleared old tool results",
        "cache_edit" => "old tool results were deleted from the cache",
        "fold" => "a range of messages was folded",
        "snip" => "redundant messages were hidden",
        "strip" => "media was removed",
        "spill" => "sent text was spilled to disk",
        "undo" => "a decision was undone",
        "rewind" => "the conversation was rewound to an earlier message",
        "compact" => "a separate request asked for a summary",
        "forgotten_thinking" => "the model drops earlier thinking at each new user message",
        other => return write!(out, "expected: {}", other.replace('_', " ")),
    };
    write!(out, "expected: {why}")
}

fn betas(added: &[SmolStr], removed: &[SmolStr], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (added, removed) {
        ([], removed) => write!(out, "beta headers were removed: {}", removed.join(", ")),
        (added, []) => write!(out, "beta headers were added: {}", added.join(", ")),
        (added, removed) => {
            write!(out, "beta headers changed: {} instead of {}", added.join(", "), removed.join(", "))
        }
    }
}

/// Formats a change of length in characters as the end of a sentence.
struct LengthChange(i64);

impl fmt::Display for LengthChange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.unsigned_abs();
        let noun = if count == 1 { "character" } else { "characters" };
        match self.0 {
            0 => Ok(()),
            1.. => write!(out, ": {} {noun} longer", group_digits(count)),
            _ => write!(out, ": {} {noun} shorter", group_digits(count)),
        }
    }
}

/// Formats milliseconds in the two largest non-zero units.
struct IdleTime(u64);

impl fmt::Display for IdleTime {
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
    fn causes_display_as_sentences() {
        let expected = |what: &str| BreakCause::Expected { what: what.into() };
        let said = [
            BreakCause::Section {
                name: "environment".into(),
                change: RequestChange::Changed,
                characters: 1_012_345,
            },
            BreakCause::Message { message: 3, block: 0, change: RequestChange::Removed, characters: -1 },
            BreakCause::Expired { idle_ms: 430_000, lifetime_ms: 300_000 },
            BreakCause::Tool { name: "Read".into(), change: RequestChange::Moved },
            BreakCause::Betas { added: vec!["a-1".into()], removed: Vec::new() },
            expected("boundary"),
            expected("forgotten_thinking"),
            expected("a_later_kind"),
        ]
        .map(|cause| cause.to_string());
        assert_eq!(
            said,
            [
                "section `environment` of the system prompt changed: 1,012,345 characters longer",
                "already sent block 1 of message 4 was removed: 1 character shorter",
                "idle for 7 min 10 s, cached for 5 min",
                "tool `Read` moved",
                "beta headers were added: a-1",
                "expected: the conversation was compacted",
                "expected: the model drops earlier thinking at each new user message",
                "expected: a later kind",
            ]
        );
    }
}
