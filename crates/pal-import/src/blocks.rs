//! Content blocks: looking into those of others, and making our own.

use std::borrow::Cow;

use pal_model::{BlockType, array_items, escape_into, unescape};

use crate::pick::pick_or_none;

/// One block of raw content.
pub(crate) struct Block<'a> {
    pub(crate) raw: &'a str,
    pub(crate) kind: BlockType,
    /// The raw text of a text block.
    pub(crate) text: Option<&'a str>,
    /// The raw name of a call.
    pub(crate) name: Option<&'a str>,
}

/// The blocks of raw content; a string counts as one text block.
pub(crate) fn scan(content: &str) -> Vec<Block<'_>> {
    if content.starts_with('"') {
        return vec![Block { raw: content, kind: BlockType::Text, text: Some(content), name: None }];
    }
    let items = array_items(content).unwrap_or_default();
    items
        .into_iter()
        .map(|raw| {
            let [kind, text, name] = pick_or_none(raw, &["type", "text", "name"]);
            let kind = kind.and_then(unescape).map_or(BlockType::Unknown, |name| BlockType::from_name(&name));
            Block { raw, kind, text, name }
        })
        .collect()
}

/// The names of the tools that raw content calls.
pub(crate) fn calls(content: &str) -> Vec<Cow<'_, str>> {
    scan(content)
        .into_iter()
        .filter(|block| block.kind == BlockType::ToolUse)
        .map(|block| block.name.and_then(unescape).unwrap_or_default())
        .collect()
}

/// A list of blocks from their raw forms.
pub(crate) fn list<'a>(blocks: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::from("[");
    for block in blocks {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(block);
    }
    list.push(']');
    list
}

/// A JSON string literal.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::new();
    escape_into(&mut out, text);
    out
}

/// A text block around a raw string literal. A lone surrogate, which no provider takes, is mended.
pub(crate) fn text_block(literal: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, pal_model::mend_surrogates(literal))
}

/// A reminder that holds `text`, as the content of one text block.
pub(crate) fn reminder(text: &str) -> String {
    let text = format!("<system-reminder>\n{}\n</system-reminder>", text.trim_end());
    list([text_block(&quoted(&text)).as_str()])
}
