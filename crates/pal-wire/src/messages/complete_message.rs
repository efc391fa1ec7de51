//! Complete responses of the Messages dialect, and blocks that arrive complete.

use pal_model::{BlockType, ContentBlock, SharedText, array_items, member, object_fields};

use super::message_metadata::{MessageMetadata, without_line_breaks};
use super::streamed_block::StreamedBlock;
use crate::classify::{display_body, failure_in};
use crate::response_reader::malformed;
use crate::{BlockDelta, ProviderFailure, ResponseEnd, ResponseEvent};

/// Reads the body of a response that was not streamed.
pub(crate) fn read_complete(
    body: &str,
    events: &mut Vec<ResponseEvent>,
) -> Result<ResponseEnd, Box<ProviderFailure>> {
    let Ok(message) = object_fields(body) else {
        return Err(malformed(format!("the response is not a message: {}", display_body(body))));
    };
    let find = |name: &str| member(&message, name);
    if find("error").is_some_and(|error| error != "null") {
        return Err(Box::new(failure_in(body)));
    }
    let blocks = find("content").and_then(|content| array_items(content).ok());
    let blocks = blocks.ok_or_else(|| malformed("the message has no list of blocks"))?;
    let mut summary = MessageMetadata::new(&message)?;
    events.push(ResponseEvent::Started(summary.started()));
    read_blocks(&blocks, events)?;
    Ok(summary.finished())
}

/// Emits complete blocks as if they were streamed, each with one delta.
pub(crate) fn read_blocks(
    blocks: &[&str],
    events: &mut Vec<ResponseEvent>,
) -> Result<(), Box<ProviderFailure>> {
    for (index, raw) in blocks.iter().enumerate() {
        events.push(StreamedBlock::new(raw)?.opened(index));
        let block = ContentBlock::parse(SharedText::from(without_line_breaks(*raw)));
        let shown = |name: &str| block.string(name).filter(|text| !text.is_empty()).map(String::from);
        let delta = match block.kind() {
            BlockType::Text => shown("text").map(BlockDelta::Text),
            BlockType::Thinking => shown("thinking").map(BlockDelta::Thinking),
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => {
                let input = block.field("input").filter(|input| *input != "{}");
                input.map(|input| BlockDelta::Input(input.to_owned()))
            }
            _ => None,
        };
        events.extend(delta.map(|delta| ResponseEvent::BlockDelta { index, delta }));
        events.push(ResponseEvent::Block { index, block });
    }
    Ok(())
}
