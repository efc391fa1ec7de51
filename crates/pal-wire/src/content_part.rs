//! Conversion of log blocks to content parts of OpenAI's dialects: text, images and files, borrowed from the block.
//!
//! Nothing is lost: a block without an equivalent becomes text. Thinking blocks are not converted.

use std::borrow::Cow;

use pal_model::{
    BlockType, Content, ContentBlock, SharedText, array_items, member, member_string, object_fields,
};

use crate::chunk_writer::{ChunkWriter, literal_inner};

/// A part of a block's content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ContentPart {
    /// Text of the block: the inside of a string literal, still escaped.
    Literal(SharedText),
    /// Generated text.
    Text(String),
    /// Image.
    Image(MediaSource),
    /// File with its name, still escaped.
    File(MediaSource, SharedText),
}

/// Source of an image or file; strings are still escaped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MediaSource {
    /// Inline data.
    Data {
        /// MIME type, such as `image/png`.
        media_type: SharedText,
        /// Content in base64.
        data: SharedText,
    },
    /// URL.
    Address(SharedText),
}

impl ContentPart {
    /// Returns true for text parts.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self, ContentPart::Literal(_) | ContentPart::Text(_))
    }

    /// Writes the part inside an open string literal; media become a bracketed description.
    pub(crate) fn write(&self, writer: &mut ChunkWriter) {
        match self {
            ContentPart::Literal(text) => writer.shared(text, text),
            ContentPart::Text(words) => writer.inside(words),
            ContentPart::Image(medium) => medium.write_name(writer, "image"),
            ContentPart::File(medium, _) => medium.write_name(writer, "file"),
        }
    }
}

impl MediaSource {
    /// Writes the URL, or a data URL, inside an open string literal.
    pub(crate) fn write_address(&self, writer: &mut ChunkWriter) {
        match self {
            MediaSource::Address(address) => writer.shared(address, address),
            MediaSource::Data { media_type, data } => {
                writer.raw("data:");
                writer.shared(media_type, media_type);
                writer.raw(";base64,");
                writer.shared(data, data);
            }
        }
    }

    fn write_name(&self, writer: &mut ChunkWriter, what: &str) {
        writer.raw("[");
        writer.raw(what);
        match self {
            MediaSource::Address(address) => {
                writer.raw(" at ");
                writer.shared(address, address);
            }
            MediaSource::Data { media_type, .. } => {
                writer.raw(", ");
                writer.shared(media_type, media_type);
            }
        }
        writer.raw("]");
    }
}

/// Writes parts as one string literal, with a separator between them.
pub(crate) fn write_joined(writer: &mut ChunkWriter, parts: &[ContentPart], separator: &str) {
    writer.raw("\"");
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            writer.raw(separator);
        }
        part.write(writer);
    }
    writer.raw("\"");
}

/// Returns the parts of system blocks.
pub(crate) fn system_parts(blocks: &[SharedText]) -> Vec<ContentPart> {
    blocks.iter().flat_map(|block| content_parts(&ContentBlock::parse(block.clone()))).collect()
}

/// Returns the parts of a block.
pub(crate) fn content_parts(block: &ContentBlock) -> Vec<ContentPart> {
    let known = match block.kind() {
        BlockType::Text => literal(block, "text").map(|text| vec![ContentPart::Literal(text)]),
        BlockType::Image => image(block).map(|image| vec![image]),
        BlockType::Document => document(block),
        BlockType::SearchResult => search_result(block),
        BlockType::ToolReference => {
            block.string("tool_name").map(|name| vec![ContentPart::Text(format!("Tool found: {name}"))])
        }
        _ => None,
    };
    known.unwrap_or_else(|| vec![ContentPart::Text(block_as_text(block))])
}

/// Returns the parts of a tool result. These dialects have no error flag, so a text part reports a failed call.
pub(crate) fn tool_result_parts(block: &ContentBlock) -> Vec<ContentPart> {
    let mut parts = Vec::new();
    if block.field("is_error") == Some("true") {
        parts.push(ContentPart::Text(String::from("[the call failed]")));
    }
    match block.field("content") {
        // A string is shared, not wrapped in a block.
        Some(raw) if raw.starts_with('"') => match literal_inner(raw) {
            "" => {}
            inner => parts.push(ContentPart::Literal(block.raw().slice_of(inner))),
        },
        _ => parts.extend(block.content().blocks().iter().flat_map(content_parts)),
    }
    parts
}

/// Returns a block as text.
pub(crate) fn block_as_text(block: &ContentBlock) -> String {
    let raw = block.raw();
    let name = block.string("type").unwrap_or(Cow::Borrowed("unknown"));
    format!("[{name} block, kept as text] {raw}")
}

/// Returns the inside of a string field, still escaped.
fn literal(block: &ContentBlock, name: &str) -> Option<SharedText> {
    block.field(name).and_then(|raw| quoted(block, raw))
}

fn quoted(block: &ContentBlock, raw: &str) -> Option<SharedText> {
    raw.starts_with('"').then(|| block.raw().slice_of(literal_inner(raw)))
}

/// Parsed `source` field of a block.
struct SourceField<'a> {
    block: &'a ContentBlock,
    kind: Cow<'a, str>,
    fields: Vec<pal_model::JsonField<'a>>,
}

impl<'a> SourceField<'a> {
    fn of(block: &'a ContentBlock) -> Option<SourceField<'a>> {
        let fields = object_fields(block.field("source")?).ok()?;
        let kind = member_string(&fields, "type")?;
        Some(SourceField { block, kind, fields })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        member(&self.fields, name)
    }

    fn literal(&self, name: &str) -> Option<SharedText> {
        self.get(name).and_then(|raw| quoted(self.block, raw))
    }

    fn medium(&self) -> Option<MediaSource> {
        match self.kind.as_ref() {
            "base64" => Some(MediaSource::Data {
                media_type: self.literal("media_type")?,
                data: self.literal("data")?,
            }),
            "url" => Some(MediaSource::Address(self.literal("url")?)),
            _ => None,
        }
    }
}

fn image(block: &ContentBlock) -> Option<ContentPart> {
    SourceField::of(block)?.medium().map(ContentPart::Image)
}

fn document(block: &ContentBlock) -> Option<Vec<ContentPart>> {
    let source = SourceField::of(block)?;
    let title = literal(block, "title").filter(|title| !title.is_empty());
    let mut parts = Vec::new();
    match (source.kind.as_ref(), source.medium()) {
        (_, Some(medium)) => {
            let name = title.unwrap_or_else(|| SharedText::from("document.pdf"));
            parts.push(ContentPart::File(medium, name));
        }
        ("text", None) => {
            parts.extend(title.map(ContentPart::Literal));
            parts.push(ContentPart::Literal(source.literal("data")?));
        }
        ("content", None) => {
            parts.extend(title.map(ContentPart::Literal));
            let content = Content::parse(&block.raw().slice_of(source.get("content")?));
            parts.extend(content.blocks().iter().flat_map(content_parts));
        }
        _ => return None,
    }
    parts.extend(literal(block, "context").filter(|context| !context.is_empty()).map(ContentPart::Literal));
    Some(parts)
}

fn search_result(block: &ContentBlock) -> Option<Vec<ContentPart>> {
    let mut parts =
        vec![ContentPart::Literal(literal(block, "title")?), ContentPart::Literal(literal(block, "source")?)];
    for item in array_items(block.field("content")?).ok()? {
        parts.extend(content_parts(&ContentBlock::parse(block.raw().slice_of(item))));
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, expected: &str) {
        let parts: Vec<String> = content_parts(&ContentBlock::parse(SharedText::from(block)))
            .iter()
            .map(|part| match part {
                ContentPart::Literal(text) => format!("={text}"),
                ContentPart::Text(words) => format!("~{words}"),
                ContentPart::Image(MediaSource::Data { media_type, data }) => {
                    format!("picture {media_type} {data}")
                }
                ContentPart::Image(MediaSource::Address(url)) => format!("picture at {url}"),
                ContentPart::File(MediaSource::Data { media_type, data }, name) => {
                    format!("file {name} {media_type} {data}")
                }
                ContentPart::File(MediaSource::Address(url), name) => format!("file {name} at {url}"),
            })
            .collect();
        assert_eq!(parts.join(" | "), expected, "{block}");
    }

    #[test]
    fn every_block_says_something() {
        check(r#"{"type":"text","text":"a\n\"b\""}"#, r#"=a\n\"b\""#);
        check(
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#,
            "picture image/png AA==",
        );
        check(
            r#"{"type":"image","source":{"type":"url","url":"http://a/b.png"}}"#,
            "picture at http://a/b.png",
        );
        check(
            r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
            r#"~[image block, kept as text] {"type":"image","source":{"type":"file","file_id":"f"}}"#,
        );
        check(
            r#"{"type":"document","title":"Plan","context":"old","source":{"type":"base64","media_type":"application/pdf","data":"AA"}}"#,
            "file Plan application/pdf AA | =old",
        );
        check(
            r#"{"type":"document","title":null,"source":{"type":"text","media_type":"text/plain","data":"words"}}"#,
            "=words",
        );
        check(
            r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"new"}]}}"#,
            r#"=a | ~[new block, kept as text] {"type":"new"}"#,
        );
        check(r#"{"type":"document","source":{"type":"url","url":"u"}}"#, "file document.pdf at u");
        check(
            r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"c"}]}"#,
            "=t | =s | =c",
        );
        check(r#"{"type":"text","text":7}"#, r#"~[text block, kept as text] {"type":"text","text":7}"#);
        check("7", "~[unknown block, kept as text] 7");
    }
}
