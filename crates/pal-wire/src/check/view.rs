//! A request whose shape is right, laid out for the rules that look across fields and messages.

use super::json::{Node, Text};
use super::rules::Rules;

/// The body and its messages.
pub(crate) struct Request<'t> {
    pub(crate) body: Node<'t>,
    pub(crate) rules: &'t Rules,
    pub(crate) messages: Vec<Message<'t>>,
    blocks: Vec<Block<'t>>,
}

/// A message; its blocks are a range of those of the request.
pub(crate) struct Message<'t> {
    pub(crate) index: usize,
    pub(crate) role: Role,
    pub(crate) node: Node<'t>,
    /// The content, if it is a string.
    pub(crate) text: Option<Text<'t>>,
    first: usize,
    end: usize,
}

/// A content block.
pub(crate) struct Block<'t> {
    pub(crate) tag: Tag,
    pub(crate) node: Node<'t>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    System,
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        }
    }
}

/// The type of a block, as far as the rules tell blocks apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
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

const TAGS: &[(&str, Tag)] = &[
    ("text", Tag::Text),
    ("tool_use", Tag::ToolUse),
    ("tool_result", Tag::ToolResult),
    ("thinking", Tag::Thinking),
    ("redacted_thinking", Tag::RedactedThinking),
    ("image", Tag::Image),
    ("document", Tag::Document),
    ("search_result", Tag::SearchResult),
    ("server_tool_use", Tag::ServerToolUse),
    ("mcp_tool_use", Tag::McpToolUse),
    ("mcp_tool_result", Tag::McpToolResult),
    ("mcp_tool_listing", Tag::McpToolListing),
    ("container_upload", Tag::ContainerUpload),
    ("compaction", Tag::Compaction),
    ("fallback", Tag::Fallback),
    ("tool_addition", Tag::ToolAddition),
    ("tool_removal", Tag::ToolRemoval),
    ("cache_edits", Tag::CacheEdits),
];

impl Tag {
    fn of(node: Node<'_>) -> Tag {
        let word = node.get_text("type");
        let known = TAGS.iter().find(|(name, _)| word.is_some_and(|word| word.is(name)));
        // The shape check lets no other type pass.
        known.map_or(Tag::ServerToolResult, |&(_, tag)| tag)
    }

    /// The roles of the messages in which such a block may stand.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            Tag::Text => &[Role::User, Role::Assistant, Role::System],
            Tag::Image | Tag::SearchResult | Tag::ToolResult | Tag::CacheEdits => &[Role::User],
            Tag::Document | Tag::ContainerUpload | Tag::McpToolListing => &[Role::User, Role::Assistant],
            Tag::ToolAddition | Tag::ToolRemoval => &[Role::System],
            Tag::Thinking
            | Tag::RedactedThinking
            | Tag::ToolUse
            | Tag::ServerToolUse
            | Tag::ServerToolResult
            | Tag::McpToolUse
            | Tag::McpToolResult
            | Tag::Compaction
            | Tag::Fallback => &[Role::Assistant],
        }
    }

    pub(crate) fn is_thinking(self) -> bool {
        matches!(self, Tag::Thinking | Tag::RedactedThinking)
    }

    /// Whether it belongs to a call that the provider itself carries out.
    pub(crate) fn is_server_side(self) -> bool {
        matches!(self, Tag::ServerToolUse | Tag::ServerToolResult | Tag::McpToolUse | Tag::McpToolResult)
    }
}

impl<'t> Request<'t> {
    /// Lays out a body that passed the shape check.
    pub(crate) fn new(body: Node<'t>, rules: &'t Rules) -> Request<'t> {
        let mut request = Request { body, rules, messages: Vec::new(), blocks: Vec::new() };
        for (index, node) in body.get("messages").into_iter().flat_map(Node::items).enumerate() {
            let role = match node.get_text("role") {
                Some(role) if role.is("user") => Role::User,
                Some(role) if role.is("assistant") => Role::Assistant,
                _ => Role::System,
            };
            let content = node.get("content");
            let first = request.blocks.len();
            let blocks = content.into_iter().flat_map(Node::items);
            request.blocks.extend(blocks.map(|node| Block { tag: Tag::of(node), node }));
            let end = request.blocks.len();
            request.messages.push(Message {
                index,
                role,
                node,
                text: content.and_then(Node::text),
                first,
                end,
            });
        }
        request
    }

    /// The blocks of a message; none if its content is a string.
    pub(crate) fn blocks(&self, message: &Message<'t>) -> &[Block<'t>] {
        self.blocks.get(message.first..message.end).unwrap_or_default()
    }

    /// The blocks of all messages.
    pub(crate) fn all_blocks(&self) -> &[Block<'t>] {
        &self.blocks
    }

    pub(crate) fn first_tag(&self, message: &Message<'t>) -> Option<Tag> {
        self.blocks(message).first().map(|block| block.tag)
    }

    pub(crate) fn last_tag(&self, message: &Message<'t>) -> Option<Tag> {
        self.blocks(message).last().map(|block| block.tag)
    }

    /// Whether the message has nothing to say.
    pub(crate) fn is_empty(&self, message: &Message<'t>) -> bool {
        match message.text {
            Some(text) => text.is_empty(),
            None => self.blocks(message).is_empty(),
        }
    }

    /// Whether the message only sets the effort, which it may do anywhere.
    pub(crate) fn is_effort_switch(&self, message: &Message<'t>) -> bool {
        message.role == Role::System && message.node.get("output_config").is_some() && self.is_empty(message)
    }

    /// Whether the message begins with the summary of what came before.
    pub(crate) fn is_compacted(&self, message: &Message<'t>) -> bool {
        message.role == Role::Assistant && self.first_tag(message) == Some(Tag::Compaction)
    }

    /// Whether the server holds the beginning of the conversation.
    pub(crate) fn continues_thread(&self) -> bool {
        let kind = self.body.get("thread").and_then(|thread| thread.get_text("type"));
        kind.is_some_and(|kind| kind.is("continue"))
    }

    /// The `type` of a top-level field.
    pub(crate) fn type_of(&self, field: &str) -> Option<Text<'t>> {
        self.body.get(field).and_then(|value| value.get_text("type"))
    }

    /// Whether the model is made to call a tool.
    pub(crate) fn forces_tool(&self) -> bool {
        self.type_of("tool_choice").is_some_and(|kind| kind.one_of(&["any", "tool"]).is_some())
    }

    /// A field of `output_config`.
    pub(crate) fn output_config(&self, field: &str) -> Option<Node<'t>> {
        self.body.get("output_config").and_then(|config| config.get(field))
    }
}
