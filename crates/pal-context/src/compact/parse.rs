//! Reads answers (provisional).
use pal_model::Block;
pub(crate) fn summary(blocks: &[Block]) -> Result<String, String> {
    let text: String = blocks.iter().filter_map(|block| block.string("text")).collect();
    let text = text
        .split("<summary>")
        .nth(1)
        .map_or(text.as_str(), |text| text.split("</summary>").next().unwrap_or(text))
        .trim()
        .to_owned();
    if text.is_empty() { Err(String::from("it is empty")) } else { Ok(text) }
}
pub(crate) fn provider_block(blocks: &[Block]) -> Result<Block, String> {
    let block = blocks.iter().find(|block| block.kind() == pal_model::BlockType::Compaction);
    block.cloned().ok_or_else(|| String::from("no summary"))
}
