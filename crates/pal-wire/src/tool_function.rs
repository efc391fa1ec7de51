//! Tools and tool calls as functions of OpenAI's dialects.

use pal_model::ContentBlock;

use crate::WireConversation;
use crate::chunk_writer::{ChunkWriter, CommaSeparator};

/// Writes the member `tools`, each tool with `write`; nothing if there are none.
///
/// Tools without a schema run at another provider and are omitted.
pub(crate) fn write_tools(
    writer: &mut ChunkWriter,
    conversation: &WireConversation<'_>,
    write: fn(&mut ChunkWriter, &ToolFunction<'_>),
) {
    let mut commas = CommaSeparator::default();
    for tool in conversation.tools {
        let tool = ContentBlock::parse(tool.clone());
        let Some(function) = ToolFunction::of(&tool) else { continue };
        if commas.is_first() {
            writer.raw(r#""tools":["#);
        }
        commas.next(writer);
        write(writer, &function);
    }
    if !commas.is_first() {
        writer.raw("],");
    }
}

/// A tool definition as raw JSON values.
pub(crate) struct ToolFunction<'a> {
    tool: &'a ContentBlock,
    name: &'a str,
    description: Option<&'a str>,
    schema: &'a str,
}

impl<'a> ToolFunction<'a> {
    fn of(tool: &'a ContentBlock) -> Option<ToolFunction<'a>> {
        let schema = tool.field("input_schema").filter(|schema| schema.starts_with('{'))?;
        let name = tool.field("name").filter(|name| name.starts_with('"'))?;
        let description = tool.field("description").filter(|words| words.starts_with('"'));
        Some(ToolFunction { tool, name, description, schema })
    }

    /// Writes name, description and parameters.
    pub(crate) fn write(&self, writer: &mut ChunkWriter) {
        let whole = self.tool.raw();
        writer.raw(r#""name":"#);
        writer.shared(whole, self.name);
        if let Some(description) = self.description {
            writer.raw(r#","description":"#);
            writer.shared(whole, description);
        }
        writer.raw(r#","parameters":"#);
        writer.shared(whole, self.schema);
    }
}

/// Writes the name of the called tool, and its input as a string of `arguments`.
pub(crate) fn write_call(writer: &mut ChunkWriter, call: &ContentBlock) {
    writer.raw(r#""name":"#);
    write_string(writer, call, "name");
    writer.raw(r#","arguments":"#);
    writer.quoted(call.field("input").unwrap_or("{}"));
}

/// Writes a string field unchanged; an empty string if it is missing or no string.
pub(crate) fn write_string(writer: &mut ChunkWriter, block: &ContentBlock, name: &str) {
    match block.field(name).filter(|raw| raw.starts_with('"')) {
        Some(raw) => writer.shared(block.raw(), raw),
        None => writer.raw(r#""""#),
    }
}
