//! What an answer consists of, whatever dialect it came in.
//!
//! The order: one `Started`; deltas of a block, to be shown while it grows, then the whole `Block`, to be kept;
//! and one last event, `Finished` or `Failed`. After that nothing comes.

use pal_model::{Block, BlockType, ResponseId, Text, Usage, array_items, fields, member, member_string};
use smol_str::SmolStr;

use crate::Failure;

/// One step of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The provider took the request and began to answer.
    Started(Started),
    /// A block began.
    Opened {
        /// Which block, counted from 0.
        index: usize,
        /// What it is.
        kind: BlockType,
        /// The tool's name, where it is a call.
        tool: Option<SmolStr>,
    },
    /// A block grew.
    Grew {
        /// Which block.
        index: usize,
        /// By what.
        delta: Delta,
    },
    /// A block is whole: the raw JSON that goes into the log and back to the provider.
    Block {
        /// Which block.
        index: usize,
        /// The block.
        block: Block,
    },
    /// The answer is whole.
    Finished(Finished),
    /// The answer will not become whole.
    Failed(Failure),
}

/// The beginning of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// The id of the response.
    pub response: ResponseId,
    /// The model that answers.
    pub model: SmolStr,
    /// What is known of the usage so far: the prompt's side.
    pub usage: Usage,
}

/// What a block grew by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Words for the reader.
    Text(String),
    /// Thinking, as far as the provider shows it.
    Thinking(String),
    /// A piece of the JSON that a tool is called with.
    Input(String),
}

/// The end of a whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The id of the response.
    pub response: ResponseId,
    /// The model that answered.
    pub model: SmolStr,
    /// Why it stopped, in the words of the Messages dialect: `end_turn`, `tool_use`, `max_tokens` …
    pub stop_reason: Option<SmolStr>,
    /// What it took.
    pub usage: Usage,
    /// Whatever else the provider said about the answer as a whole (`diagnostics`, `context_management`,
    /// `stop_details` …): a JSON object.
    pub extras: Text,
}

impl Finished {
    /// Tokens of the context that the provider cleared before the model saw it.
    pub fn cleared_tokens(&self) -> u64 {
        let applied = |extras: &str| {
            let extras = fields(extras).ok()?;
            let management = fields(member(&extras, "context_management")?).ok()?;
            let edits = array_items(member(&management, "applied_edits")?).ok()?;
            let cleared =
                |edit: &&str| member(&fields(edit).ok()?, "cleared_input_tokens")?.parse::<u64>().ok();
            Some(edits.iter().filter_map(cleared).fold(0, u64::saturating_add))
        };
        applied(&self.extras).unwrap_or(0)
    }

    /// Why the provider could not read what it had cached, by the type of its reason; `none` if it had nothing to say
    /// against it. None if it was not asked, or is still comparing.
    pub fn cache_miss(&self) -> Option<SmolStr> {
        let extras = fields(&self.extras).ok()?;
        let diagnostics = member(&extras, "diagnostics")?;
        if diagnostics == "null" {
            return Some(SmolStr::new_static("none"));
        }
        let reason = fields(member(&fields(diagnostics).ok()?, "cache_miss_reason")?).ok()?;
        member_string(&reason, "type").map(SmolStr::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(extras: &str) -> Finished {
        Finished {
            response: ResponseId::from("msg_1"),
            model: SmolStr::default(),
            stop_reason: None,
            usage: Usage::default(),
            extras: Text::from(extras),
        }
    }

    #[test]
    fn the_provider_says_what_it_could_not_read() {
        let miss = |extras: &str| finished(extras).cache_miss();
        assert_eq!(miss("{}"), None);
        assert_eq!(miss(r#"{"diagnostics":null}"#).as_deref(), Some("none"));
        assert_eq!(miss(r#"{"diagnostics":{"cache_miss_reason":null}}"#), None);
        let changed = r#"{"diagnostics":{"cache_miss_reason":{"type":"system_changed","cache_missed_input_tokens":9}}}"#;
        assert_eq!(miss(changed).as_deref(), Some("system_changed"));
    }

    #[test]
    fn what_was_cleared_is_added_up() {
        let cleared = |extras: &str| finished(extras).cleared_tokens();
        let two = r#"{"context_management":{"applied_edits":[{"type":"a","cleared_input_tokens":50120},{"type":"b","cleared_thinking_turns":3,"cleared_input_tokens":15000}]}}"#;
        assert_eq!(cleared(two), 65_120);
        for nothing in [
            "{}",
            r#"{"context_management":null}"#,
            r#"{"context_management":{"applied_edits":[]}}"#,
            r#"{"context_management":{"applied_edits":[{"cleared_input_tokens":-1},7]}}"#,
        ] {
            assert_eq!(cleared(nothing), 0, "{nothing}");
        }
    }
}
