//! Events of a response, independent of the dialect.
//!
//! Order: one `Started`; for each block its start, deltas for display, and the complete block for the log; then one last
//! event, `Finished` or `Failed`.

use pal_model::{
    BlockType, ContentBlock, ResponseId, SharedText, Usage, array_items, member, member_string, object_fields,
};
use smol_str::SmolStr;

use crate::ProviderFailure;

/// One event of a response.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseEvent {
    /// The provider accepted the request and started the response.
    Started(ResponseStart),
    /// A block started.
    BlockStart {
        /// Index of the block, from 0.
        index: usize,
        /// Type of the block.
        kind: BlockType,
        /// Name of the tool, for a tool call.
        tool: Option<SmolStr>,
        /// Id of the tool call, if it is known already.
        call: Option<SmolStr>,
    },
    /// A block grew.
    BlockDelta {
        /// Index of the block.
        index: usize,
        /// Added content.
        delta: BlockDelta,
    },
    /// A block is complete: the raw JSON that goes into the log and back to the provider.
    Block {
        /// Index of the block.
        index: usize,
        /// The complete block.
        block: ContentBlock,
    },
    /// The response is complete.
    Finished(ResponseEnd),
    /// The response failed and stays incomplete.
    Failed(ProviderFailure),
}

/// Start of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseStart {
    /// Provider's id of the response.
    pub response: ResponseId,
    /// Responding model.
    pub model: SmolStr,
    /// Usage known so far: the prompt tokens.
    pub usage: Usage,
}

/// Content added to a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockDelta {
    /// Visible text.
    Text(String),
    /// Thinking, if the provider shows it.
    Thinking(String),
    /// Fragment of the JSON input of a tool call.
    Input(String),
}

/// End of a complete response.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseEnd {
    /// Provider's id of the response.
    pub response: ResponseId,
    /// Responding model.
    pub model: SmolStr,
    /// Stop reason in terms of the Messages dialect: `end_turn`, `tool_use`, `max_tokens` …
    pub stop_reason: Option<SmolStr>,
    /// Token counts.
    pub usage: Usage,
    /// Other members of the response (`diagnostics`, `context_management`, `stop_details` …) as a JSON object.
    pub extras: SharedText,
}

impl ResponseEnd {
    /// Returns the tokens that the provider cleared from the context before the model saw it.
    pub fn cleared_tokens(&self) -> u64 {
        let applied = |extras: &str| {
            let extras = object_fields(extras).ok()?;
            let management = object_fields(member(&extras, "context_management")?).ok()?;
            let edits = array_items(member(&management, "applied_edits")?).ok()?;
            let cleared =
                |edit: &&str| member(&object_fields(edit).ok()?, "cleared_input_tokens")?.parse::<u64>().ok();
            Some(edits.iter().filter_map(cleared).fold(0, u64::saturating_add))
        };
        applied(&self.extras).unwrap_or(0)
    }

    /// Returns the type of the provider's cache-miss reason; `none` if it found no miss. None if diagnostics were not
    /// requested or are not ready.
    pub fn cache_miss(&self) -> Option<SmolStr> {
        let extras = object_fields(&self.extras).ok()?;
        let diagnostics = member(&extras, "diagnostics")?;
        if diagnostics == "null" {
            return Some(SmolStr::new_static("none"));
        }
        let reason = object_fields(member(&object_fields(diagnostics).ok()?, "cache_miss_reason")?).ok()?;
        member_string(&reason, "type").map(SmolStr::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(extras: &str) -> ResponseEnd {
        ResponseEnd {
            response: ResponseId::from("msg_1"),
            model: SmolStr::default(),
            stop_reason: None,
            usage: Usage::default(),
            extras: SharedText::from(extras),
        }
    }

    #[test]
    fn cache_miss_reason_is_read() {
        let miss = |extras: &str| finished(extras).cache_miss();
        assert_eq!(miss("{}"), None);
        assert_eq!(miss(r#"{"diagnostics":null}"#).as_deref(), Some("none"));
        assert_eq!(miss(r#"{"diagnostics":{"cache_miss_reason":null}}"#), None);
        let changed = r#"{"diagnostics":{"cache_miss_reason":{"type":"system_changed","cache_missed_input_tokens":9}}}"#;
        assert_eq!(miss(changed).as_deref(), Some("system_changed"));
    }

    #[test]
    fn cleared_tokens_are_summed() {
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
