//! What calls of tools mean, as far as the layers need it: one table of the names that agents give them.

use pal_model::{Block, BlockType, fields, member, unescape};

/// The file that a call reads.
pub(crate) fn file_read(block: &Block) -> Option<String> {
    const READERS: [&str; 5] = ["Read", "read", "read_file", "view", "ReadFile"];
    const PATHS: [&str; 3] = ["file_path", "path", "absolute_path"];
    if block.kind() != BlockType::ToolUse || !READERS.contains(&block.string("name")?.as_ref()) {
        return None;
    }
    let input = fields(block.field("input")?).ok()?;
    let path = PATHS.iter().find_map(|name| member(&input, name))?;
    Some(unescape(path)?.into_owned())
}
