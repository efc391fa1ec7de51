//! Rules for the images, documents and search results that a provider accepts.

use pal_model::{BlockType, array_items, object_fields, unescape};

use crate::json_object::JsonObject;

/// Returns the fields to send of a media block; `None` if the provider would refuse the block.
pub(crate) fn allowed_fields(kind: BlockType, block: &JsonObject<'_>) -> Option<&'static [&'static str]> {
    let source = block.get("source")?;
    match kind {
        BlockType::Image => is_image_source(source).then_some(&["type", "source"]),
        BlockType::Document => is_document_source(source).then(|| document_fields(block)),
        BlockType::SearchResult => {
            let filled = |name| block.string(name).is_some_and(|text| !text.trim().is_empty());
            let whole = filled("source") && filled("title") && block.get("content").is_some_and(is_text_list);
            whole.then_some(&["type", "source", "title", "content"])
        }
        _ => None,
    }
}

/// Returns true if a block is too large to be spelled out as text.
pub(crate) fn is_bulky(raw: &str) -> bool {
    raw.len() > 4_000
}

fn document_fields(block: &JsonObject<'_>) -> &'static [&'static str] {
    let filled = |name| block.string(name).is_some_and(|text| !text.trim().is_empty());
    match (filled("title"), filled("context")) {
        (true, true) => &["type", "source", "title", "context"],
        (true, false) => &["type", "source", "title"],
        (false, true) => &["type", "source", "context"],
        (false, false) => &["type", "source"],
    }
}

fn is_image_source(source: &str) -> bool {
    const TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let Ok(source) = object_fields(source).map(JsonObject) else { return false };
    match source.string("type").as_deref() {
        Some("base64") => {
            source.is_exact(|name| matches!(name, "type" | "media_type" | "data"))
                && source.string("media_type").is_some_and(|kind| TYPES.contains(&kind.as_ref()))
                && source.string("data").is_some_and(|data| is_base64(&data))
        }
        _ => is_link(&source),
    }
}

fn is_document_source(source: &str) -> bool {
    let Ok(source) = object_fields(source).map(JsonObject) else { return false };
    let media_type = source.string("media_type");
    let known = |name: &str| matches!(name, "type" | "media_type" | "data");
    match source.string("type").as_deref() {
        Some("base64") => {
            source.is_exact(known)
                && media_type.as_deref() == Some("application/pdf")
                && source.string("data").is_some_and(|data| is_base64(&data))
        }
        Some("text") => {
            source.is_exact(known)
                && media_type.as_deref() == Some("text/plain")
                && source.string("data").is_some_and(|data| !data.trim().is_empty())
        }
        _ => is_link(&source),
    }
}

/// Returns true for a source that is only a link.
fn is_link(source: &JsonObject<'_>) -> bool {
    match source.string("type").as_deref() {
        Some("url") => {
            source.is_exact(|name| matches!(name, "type" | "url"))
                && source.string("url").is_some_and(|url| url.starts_with("https://") && url.len() > 8)
        }
        Some("file") => {
            source.is_exact(|name| matches!(name, "type" | "file_id"))
                && source.string("file_id").is_some_and(|id| {
                    !id.is_empty()
                        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
                })
        }
        _ => false,
    }
}

fn is_base64(data: &str) -> bool {
    let body = data.trim_end_matches('=');
    !body.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - body.len() <= 2
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_text_list(raw: &str) -> bool {
    let Ok(items) = array_items(raw) else { return false };
    !items.is_empty()
        && items.iter().all(|item| {
            object_fields(item).map(JsonObject).is_ok_and(|block| {
                block.is_exact(|name| matches!(name, "type" | "text"))
                    && block.get("type").and_then(unescape).as_deref() == Some("text")
                    && block.string("text").is_some_and(|text| !text.trim().is_empty())
            })
        })
}
