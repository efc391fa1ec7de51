//! A whole answer of the Messages dialect, and blocks that come whole.

use pal_model::{Block, BlockType, Text, array_items, fields, member};

use super::growing::Growing;
use super::summary::{Summary, on_one_line};
use crate::classify::{failure_in, shown_body};
use crate::reader::malformed;
use crate::{Delta, Event, Failure, Finished};

/// Reads the body of an answer that was not streamed.
pub(crate) fn read_whole(body: &str, events: &mut Vec<Event>) -> Result<Finished, Box<Failure>> {
    let Ok(message) = fields(body) else {
        return Err(malformed(format!("the answer is not a message: {}", shown_body(body))));
    };
    let find = |name: &str| member(&message, name);
    if find("error").is_some_and(|error| error != "null") {
        return Err(Box::new(failure_in(body)));
    }
    let blocks = find("content").and_then(|content| array_items(content).ok());
    let blocks = blocks.ok_or_else(|| malformed("the message has no list of blocks"))?;
    let mut summary = Summary::new(&message)?;
    events.push(Event::Started(summary.started()));
    read_blocks(&blocks, events)?;
    Ok(summary.finished())
}

/// Says blocks that came whole as if they had been streamed, each with one delta.
pub(crate) fn read_blocks(blocks: &[&str], events: &mut Vec<Event>) -> Result<(), Box<Failure>> {
    for (index, raw) in blocks.iter().enumerate() {
        events.push(Growing::new(raw)?.opened(index));
        let block = Block::parse(Text::from(on_one_line(*raw)));
        let shown = |name: &str| block.string(name).filter(|text| !text.is_empty()).map(String::from);
        let delta = match block.kind() {
            BlockType::Text => shown("text").map(Delta::Text),
            BlockType::Thinking => shown("thinking").map(Delta::Thinking),
            BlockType::ToolUse | BlockType::ServerToolUse | BlockType::McpToolUse => {
                let input = block.field("input").filter(|input| *input != "{}");
                input.map(|input| Delta::Input(input.to_owned()))
            }
            _ => None,
        };
        events.extend(delta.map(|delta| Event::Grew { index, delta }));
        events.push(Event::Block { index, block });
    }
    Ok(())
}
