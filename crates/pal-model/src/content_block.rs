//! Content blocks: raw JSON with its parsed type and tool-use id.
//!
//! A block is never rewritten here. A block of unknown type is [`BlockType::Unknown`] and keeps its bytes.

use std::borrow::Cow;

use crate::raw_json::{JsonField, array_items, escape_into, member, object_fields, unescape};
use crate::{SharedText, ToolUseId};

macro_rules! block_types {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Type of a content block, from its `type` field.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum BlockType {
            $($(#[$doc])* $name,)*
            /// Unknown or missing type.
            Unknown,
        }

        impl BlockType {
            /// Parses the name on the wire; unknown names yield `Unknown`.
            pub fn from_name(name: &str) -> BlockType {
                match name {
                    $($text => BlockType::$name,)*
                    _ => BlockType::Unknown,
                }
            }

            /// Returns the name on the wire; none for `Unknown`.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(BlockType::$name => Some($text),)*
                    BlockType::Unknown => None,
                }
            }
        }
    };
}

block_types! {
    /// Plain text.
    Text = "text",
    /// Image.
    Image = "image",
    /// PDF or text document.
    Document = "document",
    /// Search result returned by a tool.
    SearchResult = "search_result",
    /// Signed reasoning of the model.
    Thinking = "thinking",
    /// Encrypted reasoning that only the provider can read.
    RedactedThinking = "redacted_thinking",
    /// Reasoning item of the Responses dialect, sent back unchanged.
    Reasoning = "reasoning",
    /// Call of a client tool.
    ToolUse = "tool_use",
    /// Result of a client tool call.
    ToolResult = "tool_result",
    /// Call of a tool that the provider runs.
    ServerToolUse = "server_tool_use",
    /// Result of a provider's web search.
    WebSearchToolResult = "web_search_tool_result",
    /// Result of a provider's web fetch.
    WebFetchToolResult = "web_fetch_tool_result",
    /// Result of a provider's code execution.
    CodeExecutionToolResult = "code_execution_tool_result",
    /// Result of a provider's shell.
    BashCodeExecutionToolResult = "bash_code_execution_tool_result",
    /// Result of a provider's file editor.
    TextEditorCodeExecutionToolResult = "text_editor_code_execution_tool_result",
    /// Result of a provider's tool search.
    ToolSearchToolResult = "tool_search_tool_result",
    /// File uploaded to the provider's container.
    ContainerUpload = "container_upload",
    /// Result of a provider's adviser.
    AdvisorToolResult = "advisor_tool_result",
    /// Call of a tool behind the provider's MCP connector.
    McpToolUse = "mcp_tool_use",
    /// Result of an MCP tool call.
    McpToolResult = "mcp_tool_result",
    /// Pinned tool list of an MCP server.
    McpToolListing = "mcp_tool_listing",
    /// Provider's own summary of the preceding conversation.
    Compaction = "compaction",
    /// Provider's note that another model responded.
    Fallback = "fallback",
    /// Tool added in the middle of a conversation.
    ToolAddition = "tool_addition",
    /// Tool removed in the middle of a conversation.
    ToolRemoval = "tool_removal",
    /// Tool named by a tool search.
    ToolReference = "tool_reference",
    /// Browser state inside a tool result.
    BrowserState = "browser_state",
}

/// One content block: raw JSON with its parsed type and tool-use id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContentBlock {
    raw: SharedText,
    kind: BlockType,
    id: Option<ToolUseId>,
    /// Byte ranges of the fields in the raw text, so that a large block is parsed once; none if the block is not an
    /// object or a key contains escapes.
    spans: Option<Box<[FieldSpan]>>,
}

/// Byte ranges of a field: the key without its quotes, and the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FieldSpan {
    key: (u32, u32),
    value: (u32, u32),
}

/// Returns the byte range of `part` within `whole`; none if it does not fit into `u32`.
fn byte_range(whole: &str, part: &str) -> Option<(u32, u32)> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    Some((u32::try_from(start).ok()?, u32::try_from(start + part.len()).ok()?))
}

fn spans(raw: &str, fields: &[JsonField<'_>]) -> Option<Box<[FieldSpan]>> {
    let span = |(key, value): &JsonField<'_>| match key {
        Cow::Borrowed(key) => Some(FieldSpan { key: byte_range(raw, key)?, value: byte_range(raw, value)? }),
        Cow::Owned(_) => None,
    };
    fields.iter().map(span).collect()
}

impl ContentBlock {
    /// Parses the type and id of a block. Never fails: JSON that is not an object is a block of unknown type.
    pub fn parse(raw: SharedText) -> ContentBlock {
        let mut kind = BlockType::Unknown;
        let mut id = None;
        let mut tool_use_id = None;
        let known = object_fields(&raw);
        let spans = known.as_ref().ok().and_then(|known| spans(&raw, known));
        for (key, value) in known.unwrap_or_default() {
            match key.as_ref() {
                "type" => {
                    kind = unescape(value).map_or(BlockType::Unknown, |name| BlockType::from_name(&name));
                }
                "id" => id = unescape(value).map(|id| ToolUseId::from(id.as_ref())),
                "tool_use_id" => tool_use_id = unescape(value).map(|id| ToolUseId::from(id.as_ref())),
                _ => {}
            }
        }
        let id = match kind {
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => id,
            _ => tool_use_id,
        };
        ContentBlock { raw, kind, id, spans }
    }

    /// Creates a text block.
    pub fn text(text: &str) -> ContentBlock {
        let mut raw = String::with_capacity(text.len() + 32);
        raw.push_str(r#"{"type":"text","text":"#);
        escape_into(&mut raw, text);
        raw.push('}');
        ContentBlock::parse(SharedText::from(raw))
    }

    /// Returns the fields in order; none if the block is not an object.
    pub fn fields(&self) -> Option<Vec<JsonField<'_>>> {
        let raw = self.raw.as_str();
        let Some(spans) = &self.spans else { return object_fields(raw).ok() };
        let text = |(start, end): (u32, u32)| &raw[start as usize..end as usize];
        Some(spans.iter().map(|span| (Cow::Borrowed(text(span.key)), text(span.value))).collect())
    }

    /// Returns the raw JSON, byte for byte.
    pub fn raw(&self) -> &SharedText {
        &self.raw
    }

    /// Returns the type.
    pub fn kind(&self) -> BlockType {
        self.kind
    }

    /// Returns the id of the tool call that this block makes (`tool_use` and its server forms) or answers (results).
    pub fn tool_use_id(&self) -> Option<&ToolUseId> {
        self.id.as_ref()
    }

    /// Returns the raw JSON value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        member(&self.fields()?, name)
    }

    /// Returns the unescaped value of a string field.
    pub fn string(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field(name).and_then(unescape)
    }

    /// Returns the `content` field of a tool result as blocks; a string counts as one text block.
    pub fn content(&self) -> Content {
        self.field("content").map_or(Content::default(), |raw| Content::parse(&self.raw.slice_of(raw)))
    }
}

/// Content of a message or tool result: a list of blocks. On the wire a string may stand for one text block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    blocks: Vec<ContentBlock>,
}

impl Content {
    /// Parses content from the wire: a string or a list of blocks. `null` is empty; any other value becomes one block
    /// of unknown type, so nothing is lost.
    pub fn parse(raw: &SharedText) -> Content {
        let blocks = match raw.trim_start().as_bytes().first() {
            Some(b'[') => array_items(raw)
                .unwrap_or_default()
                .into_iter()
                .map(|item| ContentBlock::parse(raw.slice_of(item)))
                .collect(),
            Some(b'"') => {
                let mut block = String::with_capacity(raw.len() + 32);
                block.push_str(r#"{"type":"text","text":"#);
                block.push_str(raw);
                block.push('}');
                vec![ContentBlock::parse(SharedText::from(block))]
            }
            Some(b'n') | None => Vec::new(),
            Some(_) => vec![ContentBlock::parse(raw.clone())],
        };
        Content { blocks }
    }

    /// Creates content of one text block.
    pub fn from_text(text: &str) -> Content {
        Content { blocks: vec![ContentBlock::text(text)] }
    }

    /// Returns the blocks in order.
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.blocks
    }

    /// Returns the blocks as a JSON array, each byte for byte.
    pub fn to_json(&self) -> String {
        blocks_to_json(&self.blocks)
    }
}

/// Returns blocks as a JSON array, each byte for byte.
pub fn blocks_to_json(blocks: &[ContentBlock]) -> String {
    let raw: Vec<&str> = blocks.iter().map(|block| block.raw().as_str()).collect();
    format!("[{}]", raw.join(","))
}

impl FromIterator<ContentBlock> for Content {
    fn from_iter<I: IntoIterator<Item = ContentBlock>>(blocks: I) -> Content {
        Content { blocks: blocks.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_bytes() {
        let raw = r#"[{"type":"tool_use", "id":"toolu_1","name":"Read","input":{"a":1e2}},{"type":"new_thing","x":[1]},"odd",7]"#;
        let content = Content::parse(&SharedText::from(raw));
        let kinds: Vec<BlockType> = content.blocks().iter().map(ContentBlock::kind).collect();
        assert_eq!(kinds, [BlockType::ToolUse, BlockType::Unknown, BlockType::Unknown, BlockType::Unknown]);
        assert_eq!(content.blocks()[0].tool_use_id().unwrap().as_str(), "toolu_1");
        assert_eq!(content.blocks()[0].field("input"), Some(r#"{"a":1e2}"#));
        assert_eq!(content.blocks()[1].raw().as_str(), r#"{"type":"new_thing","x":[1]}"#);
        assert_eq!(content.blocks()[2].raw().as_str(), r#""odd""#);
        for block in content.blocks() {
            assert_eq!(block.fields(), object_fields(block.raw()).ok());
        }
        let escaped = ContentBlock::parse(SharedText::from(r#"{"\u0074ype":"text","text":"x"}"#));
        assert_eq!((escaped.kind(), escaped.fields()), (BlockType::Text, object_fields(escaped.raw()).ok()));
    }

    #[test]
    fn string_content_is_one_text_block() {
        let content = Content::parse(&SharedText::from(r#""say \"hi\"""#));
        assert_eq!(content.blocks()[0].string("text").unwrap(), "say \"hi\"");
        assert_eq!(content.blocks()[0], ContentBlock::text("say \"hi\""));
        assert!(Content::parse(&SharedText::from("null")).blocks().is_empty());
    }

    #[test]
    fn block_type_names_round_trip() {
        for name in ["text", "thinking", "tool_use", "compaction", "mcp_tool_listing", "browser_state"] {
            assert_eq!(BlockType::from_name(name).name(), Some(name));
        }
        assert_eq!(BlockType::from_name("nonsense"), BlockType::Unknown);
    }
}
