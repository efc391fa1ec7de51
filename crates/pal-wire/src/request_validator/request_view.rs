//! View of a request that passed the schema check, for rules across fields and messages.

use super::json::{JsonNode, NodeText};
use super::request_rules::RequestRules;

/// Body and messages of a request.
pub(crate) struct RequestView<'t> {
    pub(crate) body: JsonNode<'t>,
    pub(crate) rules: &'t RequestRules,
    pub(crate) messages: Vec<CheckedMessage<'t>>,
    blocks: Vec<CheckedBlock<'t>>,
}

/// A message; its blocks are a range of those of the request.
pub(crate) struct CheckedMessage<'t> {
    pub(crate) index: usize,
    pub(crate) role: CheckedRole,
    pub(crate) node: JsonNode<'t>,
    /// The content, if it is a string.
    pub(crate) text: Option<NodeText<'t>>,
    first: usize,
    end: usize,
}

/// A content block.
pub(crate) struct CheckedBlock<'t> {
    pub(crate) tag: BlockTag,
    pub(crate) node: JsonNode<'t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckedRole {
    User,
    Assistant,
    System,
}

impl CheckedRole {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CheckedRole::User => "user",
            CheckedRole::Assistant => "assistant",
            CheckedRole::System => "system",
        }
    }
}

/// Type of a block, as distinguished by the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockTag {
    Text,
    Image,
    Document,
    SearchResult,
    Thinking,
    RedactedThinking,
    ToolUse,
    ToolResult,
    ServerToolUse,
    ServerToolResult,
    McpToolUse,
    McpToolResult,
    McpToolListing,
    ContainerUpload,
    Compaction,
    Fallback,
    ToolAddition,
    ToolRemoval,
    CacheEdits,
}

const TAGS: &[(&str, BlockTag)] = &[
    ("text", BlockTag::Text),
    ("tool_use", BlockTag::ToolUse),
    ("tool_result", BlockTag::ToolResult),
    ("thinking", BlockTag::Thinking),
    ("redacted_thinking", BlockTag::RedactedThinking),
    ("image", BlockTag::Image),
    ("document", BlockTag::Document),
    ("search_result", BlockTag::SearchResult),
    ("server_tool_use", BlockTag::ServerToolUse),
    ("mcp_tool_use", BlockTag::McpToolUse),
    ("mcp_tool_result", BlockTag::McpToolResult),
    ("mcp_tool_listing", BlockTag::McpToolListing),
    ("container_upload", BlockTag::ContainerUpload),
    ("compaction", BlockTag::Compaction),
    ("fallback", BlockTag::Fallback),
    ("tool_addition", BlockTag::ToolAddition),
    ("tool_removal", BlockTag::ToolRemoval),
    ("cache_edits", BlockTag::CacheEdits),
];

impl BlockTag {
    fn of(node: JsonNode<'_>) -> BlockTag {
        let word = node.get_text("type");
        let known = TAGS.iter().find(|(name, _)| word.is_some_and(|word| word.is(name)));
        // The schema check accepts no other type.
        known.map_or(BlockTag::ServerToolResult, |&(_, tag)| tag)
    }

    /// Returns the roles of messages that may contain such a block.
    pub(crate) fn roles(self) -> &'static [CheckedRole] {
        match self {
            BlockTag::Text => &[CheckedRole::User, CheckedRole::Assistant, CheckedRole::System],
            BlockTag::Image | BlockTag::SearchResult | BlockTag::ToolResult | BlockTag::CacheEdits => {
                &[CheckedRole::User]
            }
            BlockTag::Document | BlockTag::ContainerUpload | BlockTag::McpToolListing => {
                &[CheckedRole::User, CheckedRole::Assistant]
            }
            BlockTag::ToolAddition | BlockTag::ToolRemoval => &[CheckedRole::System],
            BlockTag::Thinking
            | BlockTag::RedactedThinking
            | BlockTag::ToolUse
            | BlockTag::ServerToolUse
            | BlockTag::ServerToolResult
            | BlockTag::McpToolUse
            | BlockTag::McpToolResult
            | BlockTag::Compaction
            | BlockTag::Fallback => &[CheckedRole::Assistant],
        }
    }

    pub(crate) fn is_thinking(self) -> bool {
        matches!(self, BlockTag::Thinking | BlockTag::RedactedThinking)
    }

    /// Returns true for calls that the provider runs, and their results.
    pub(crate) fn is_server_side(self) -> bool {
        matches!(
            self,
            BlockTag::ServerToolUse
                | BlockTag::ServerToolResult
                | BlockTag::McpToolUse
                | BlockTag::McpToolResult
        )
    }
}

impl<'t> RequestView<'t> {
    /// Creates a view of a body that passed the schema check.
    pub(crate) fn new(body: JsonNode<'t>, rules: &'t RequestRules) -> RequestView<'t> {
        let mut request = RequestView { body, rules, messages: Vec::new(), blocks: Vec::new() };
        for (index, node) in body.get("messages").into_iter().flat_map(JsonNode::items).enumerate() {
            let role = match node.get_text("role") {
                Some(role) if role.is("user") => CheckedRole::User,
                Some(role) if role.is("assistant") => CheckedRole::Assistant,
                _ => CheckedRole::System,
            };
            let content = node.get("content");
            let first = request.blocks.len();
            let blocks = content.into_iter().flat_map(JsonNode::items);
            request.blocks.extend(blocks.map(|node| CheckedBlock { tag: BlockTag::of(node), node }));
            let end = request.blocks.len();
            request.messages.push(CheckedMessage {
                index,
                role,
                node,
                text: content.and_then(JsonNode::text),
                first,
                end,
            });
        }
        request
    }

    /// Returns the blocks of a message; empty if its content is a string.
    pub(crate) fn blocks(&self, message: &CheckedMessage<'t>) -> &[CheckedBlock<'t>] {
        self.blocks.get(message.first..message.end).unwrap_or_default()
    }

    /// Returns the blocks of all messages.
    pub(crate) fn all_blocks(&self) -> &[CheckedBlock<'t>] {
        &self.blocks
    }

    pub(crate) fn first_tag(&self, message: &CheckedMessage<'t>) -> Option<BlockTag> {
        self.blocks(message).first().map(|block| block.tag)
    }

    pub(crate) fn last_tag(&self, message: &CheckedMessage<'t>) -> Option<BlockTag> {
        self.blocks(message).last().map(|block| block.tag)
    }

    /// Returns true if the message has no content.
    pub(crate) fn is_empty(&self, message: &CheckedMessage<'t>) -> bool {
        match message.text {
            Some(text) => text.is_empty(),
            None => self.blocks(message).is_empty(),
        }
    }

    /// Returns true if the message only sets the effort, which is allowed anywhere.
    pub(crate) fn is_effort_switch(&self, message: &CheckedMessage<'t>) -> bool {
        message.role == CheckedRole::System
            && message.node.get("output_config").is_some()
            && self.is_empty(message)
    }

    /// Returns true if the message begins with a compaction block.
    pub(crate) fn is_compacted(&self, message: &CheckedMessage<'t>) -> bool {
        message.role == CheckedRole::Assistant && self.first_tag(message) == Some(BlockTag::Compaction)
    }

    /// Returns true if the server stores the beginning of the conversation.
    pub(crate) fn continues_thread(&self) -> bool {
        let kind = self.body.get("thread").and_then(|thread| thread.get_text("type"));
        kind.is_some_and(|kind| kind.is("continue"))
    }

    /// Returns the `type` of a top-level field.
    pub(crate) fn type_of(&self, field: &str) -> Option<NodeText<'t>> {
        self.body.get(field).and_then(|value| value.get_text("type"))
    }

    /// Returns true if `tool_choice` forces a tool call.
    pub(crate) fn forces_tool(&self) -> bool {
        self.type_of("tool_choice").is_some_and(|kind| kind.one_of(&["any", "tool"]).is_some())
    }

    /// Returns a field of `output_config`.
    pub(crate) fn output_config(&self, field: &str) -> Option<JsonNode<'t>> {
        self.body.get("output_config").and_then(|config| config.get(field))
    }
}
