//! Content blocks: the raw JSON of each, with its type and the ids that pairing needs beside it.
//!
//! A block is never rewritten here. A type this program does not know is [`BlockType::Unknown`] and keeps its
//! bytes like any other.

use std::borrow::Cow;

use crate::json::{Field, array_items, escape_into, fields, member, unescape};
use crate::{Text, ToolUseId};

macro_rules! block_types {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// What a content block is, by its `type` field.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum BlockType {
            $($(#[$doc])* $name,)*
            /// A type that this program does not know, or none.
            Unknown,
        }

        impl BlockType {
            /// The type with this name.
            pub fn from_name(name: &str) -> BlockType {
                match name {
                    $($text => BlockType::$name,)*
                    _ => BlockType::Unknown,
                }
            }

            /// The name on the wire; none for unknown types.
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
    /// A picture.
    Image = "image",
    /// A PDF or text document.
    Document = "document",
    /// A search hit that a tool returns.
    SearchResult = "search_result",
    /// Signed reasoning of the model.
    Thinking = "thinking",
    /// Reasoning of the model that only the provider can read.
    RedactedThinking = "redacted_thinking",
    /// Reasoning in the form of the Responses dialect: an item that goes back as it came.
    Reasoning = "reasoning",
    /// A call of a client tool.
    ToolUse = "tool_use",
    /// The answer to a call of a client tool.
    ToolResult = "tool_result",
    /// A call of a tool that the provider runs.
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
    /// A file put into the provider's container.
    ContainerUpload = "container_upload",
    /// Result of a provider's adviser.
    AdvisorToolResult = "advisor_tool_result",
    /// A call of a tool behind the provider's MCP connector.
    McpToolUse = "mcp_tool_use",
    /// Its result.
    McpToolResult = "mcp_tool_result",
    /// The pinned tool list of an MCP server.
    McpToolListing = "mcp_tool_listing",
    /// A provider's own summary of what came before.
    Compaction = "compaction",
    /// A provider's note that another model answered.
    Fallback = "fallback",
    /// A tool added in the middle of a conversation.
    ToolAddition = "tool_addition",
    /// A tool removed in the middle of a conversation.
    ToolRemoval = "tool_removal",
    /// A tool named by a tool search.
    ToolReference = "tool_reference",
    /// What a browser shows, inside a tool result.
    BrowserState = "browser_state",
}

/// One content block, as it was said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    raw: Text,
    kind: BlockType,
    id: Option<ToolUseId>,
    /// Where the fields stand in the raw text, so that a large block is read once; none if it is no object or its
    /// keys are not spelled plainly.
    spans: Option<Box<[Span]>>,
}

/// A field of a block: the key without its quotes, and the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    key: (u32, u32),
    value: (u32, u32),
}

/// Where a part of a text stands in it.
fn place(whole: &str, part: &str) -> Option<(u32, u32)> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    Some((u32::try_from(start).ok()?, u32::try_from(start + part.len()).ok()?))
}

fn spans(raw: &str, fields: &[Field<'_>]) -> Option<Box<[Span]>> {
    let span = |(key, value): &Field<'_>| match key {
        Cow::Borrowed(key) => Some(Span { key: place(raw, key)?, value: place(raw, value)? }),
        Cow::Owned(_) => None,
    };
    fields.iter().map(span).collect()
}

impl Block {
    /// Reads the type and ids of a block. Anything is a block: what is no object is of unknown type.
    pub fn parse(raw: Text) -> Block {
        let mut kind = BlockType::Unknown;
        let mut id = None;
        let mut tool_use_id = None;
        let known = fields(&raw);
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
        Block { raw, kind, id, spans }
    }

    /// A text block that says `text`.
    pub fn text(text: &str) -> Block {
        let mut raw = String::with_capacity(text.len() + 32);
        raw.push_str(r#"{"type":"text","text":"#);
        escape_into(&mut raw, text);
        raw.push('}');
        Block::parse(Text::from(raw))
    }

    /// The fields of the block, in order; none if it is no object.
    pub fn fields(&self) -> Option<Vec<Field<'_>>> {
        let raw = self.raw.as_str();
        let Some(spans) = &self.spans else { return fields(raw).ok() };
        let text = |(start, end): (u32, u32)| &raw[start as usize..end as usize];
        Some(spans.iter().map(|span| (Cow::Borrowed(text(span.key)), text(span.value))).collect())
    }

    /// The block as it was said, byte for byte.
    pub fn raw(&self) -> &Text {
        &self.raw
    }

    /// What it is.
    pub fn kind(&self) -> BlockType {
        self.kind
    }

    /// The id of the call that this block makes (`tool_use` and its server forms) or answers (results).
    pub fn tool_use_id(&self) -> Option<&ToolUseId> {
        self.id.as_ref()
    }

    /// The raw value of a field, if the block has it.
    pub fn field(&self, name: &str) -> Option<&str> {
        member(&self.fields()?, name)
    }

    /// The characters of a field that is a string.
    pub fn string(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field(name).and_then(unescape)
    }

    /// The parts of a tool result's content: blocks, a string counting as one text block.
    pub fn content(&self) -> Content {
        self.field("content").map_or(Content::default(), |raw| Content::parse(&self.raw.slice_of(raw)))
    }
}

/// The content of a message or of a tool result: a list of blocks. On the wire a single string may stand for one
/// text block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    blocks: Vec<Block>,
}

impl Content {
    /// Reads content as it stands on the wire: a string, or a list of blocks. `null` is empty; any other value
    /// is one block of unknown type, so nothing is lost.
    pub fn parse(raw: &Text) -> Content {
        let blocks = match raw.trim_start().as_bytes().first() {
            Some(b'[') => array_items(raw)
                .unwrap_or_default()
                .into_iter()
                .map(|item| Block::parse(raw.slice_of(item)))
                .collect(),
            Some(b'"') => {
                let mut block = String::with_capacity(raw.len() + 32);
                block.push_str(r#"{"type":"text","text":"#);
                block.push_str(raw);
                block.push('}');
                vec![Block::parse(Text::from(block))]
            }
            Some(b'n') | None => Vec::new(),
            Some(_) => vec![Block::parse(raw.clone())],
        };
        Content { blocks }
    }

    /// One text.
    pub fn of_text(text: &str) -> Content {
        Content { blocks: vec![Block::text(text)] }
    }

    /// The blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The list of blocks as JSON, each as it came.
    pub fn raw(&self) -> String {
        raw_list(&self.blocks)
    }
}

/// A list of blocks as JSON, each as it came.
pub fn raw_list(blocks: &[Block]) -> String {
    let raw: Vec<&str> = blocks.iter().map(|block| block.raw().as_str()).collect();
    format!("[{}]", raw.join(","))
}

impl FromIterator<Block> for Content {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Content {
        Content { blocks: blocks.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_bytes() {
        let raw = r#"[{"type":"tool_use", "id":"toolu_1","name":"Read","input":{"a":1e2}},{"type":"new_thing","x":[1]},"odd",7]"#;
        let content = Content::parse(&Text::from(raw));
        let kinds: Vec<BlockType> = content.blocks().iter().map(Block::kind).collect();
        assert_eq!(kinds, [BlockType::ToolUse, BlockType::Unknown, BlockType::Unknown, BlockType::Unknown]);
        assert_eq!(content.blocks()[0].tool_use_id().unwrap().as_str(), "toolu_1");
        assert_eq!(content.blocks()[0].field("input"), Some(r#"{"a":1e2}"#));
        assert_eq!(content.blocks()[1].raw().as_str(), r#"{"type":"new_thing","x":[1]}"#);
        assert_eq!(content.blocks()[2].raw().as_str(), r#""odd""#);
        for block in content.blocks() {
            assert_eq!(block.fields(), fields(block.raw()).ok());
        }
        let escaped = Block::parse(Text::from(r#"{"\u0074ype":"text","text":"x"}"#));
        assert_eq!((escaped.kind(), escaped.fields()), (BlockType::Text, fields(escaped.raw()).ok()));
    }

    #[test]
    fn a_string_is_one_text_block() {
        let content = Content::parse(&Text::from(r#""say \"hi\"""#));
        assert_eq!(content.blocks()[0].string("text").unwrap(), "say \"hi\"");
        assert_eq!(content.blocks()[0], Block::text("say \"hi\""));
        assert!(Content::parse(&Text::from("null")).blocks().is_empty());
    }

    #[test]
    fn every_name_leads_back_to_its_type() {
        for name in ["text", "thinking", "tool_use", "compaction", "mcp_tool_listing", "browser_state"] {
            assert_eq!(BlockType::from_name(name).name(), Some(name));
        }
        assert_eq!(BlockType::from_name("nonsense"), BlockType::Unknown);
    }
}
