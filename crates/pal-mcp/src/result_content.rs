//! Converts results of servers to content blocks for the model: bounded, with media types checked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pal_model::text::group_digits;
use pal_model::{ContentBlock, SharedText};
use rmcp::model::{
    CallToolResult, ContentBlock as McpContent, GetPromptResult, ReadResourceResult, Resource,
    ResourceContents,
};
use serde_json::Value;

use crate::clean_text::{NAME_MAX, clean, one_line};

/// Maximum bytes of text in one result; the agent stores long ones on disk.
const TEXT_BYTES_MAX: usize = 64_000_000;
/// Maximum blocks of one result.
const BLOCKS_MAX: usize = 200;
/// Maximum bytes of an image and of a document, and maximum media blocks of one result.
const IMAGE_BYTES_MAX: usize = 5 * 1024 * 1024;
const DOCUMENT_BYTES_MAX: usize = 24 * 1024 * 1024;
const MEDIA_BLOCKS_MAX: usize = 20;

/// Media that the model accepts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultMediaSupport {
    pub(crate) images: bool,
    pub(crate) documents: bool,
}

/// Converts the result of a call; the error is the server's own text.
pub(crate) fn convert_call_result(
    result: CallToolResult,
    support: ResultMediaSupport,
) -> Result<Vec<ContentBlock>, String> {
    let mut builder = ResultBuilder::new(support);
    let said: Vec<Value> =
        result.content.iter().filter_map(|block| serde_json::from_str(&block.as_text()?.text).ok()).collect();
    for block in result.content {
        builder.content(block);
    }
    // Most servers repeat the structured result as text; add it for the others.
    if let Some(structured) =
        result.structured_content.filter(|value| !value.is_null() && !said.contains(value))
    {
        builder.text(&structured.to_string());
    }
    if result.is_error == Some(true) {
        return Err(builder.error_text());
    }
    Ok(builder.blocks())
}

/// Converts the content of a resource.
pub(crate) fn convert_resource(result: ReadResourceResult, support: ResultMediaSupport) -> Vec<ContentBlock> {
    let mut builder = ResultBuilder::new(support);
    for contents in result.contents {
        builder.resource(contents);
    }
    builder.blocks()
}

/// Converts a prompt.
pub(crate) fn convert_prompt(result: GetPromptResult, support: ResultMediaSupport) -> Vec<ContentBlock> {
    let mut builder = ResultBuilder::new(support);
    for message in result.messages {
        builder.content(message.content);
    }
    builder.blocks()
}

/// A result under construction.
struct ResultBuilder {
    support: ResultMediaSupport,
    blocks: Vec<ContentBlock>,
    /// Text blocks.
    texts: Vec<String>,
    /// Texts beyond the maximum of blocks, which share one.
    crowded: Vec<String>,
    /// Bytes of text that still fit.
    left: usize,
    media: usize,
    left_out: usize,
}

impl ResultBuilder {
    fn new(support: ResultMediaSupport) -> ResultBuilder {
        ResultBuilder {
            support,
            blocks: Vec::new(),
            texts: Vec::new(),
            crowded: Vec::new(),
            left: TEXT_BYTES_MAX,
            media: 0,
            left_out: 0,
        }
    }

    fn content(&mut self, block: McpContent) {
        match block {
            McpContent::Text(text) => self.text(&text.text),
            McpContent::Image(image) => self.media(&image.data, Some(&image.mime_type), "a picture"),
            McpContent::Audio(audio) => {
                let kind = one_line(&audio.mime_type, NAME_MAX);
                self.text(&format!("[A recording ({kind}), which cannot be listened to here.]"));
            }
            McpContent::Resource(embedded) => self.resource(embedded.resource),
            McpContent::ResourceLink(link) => self.link(&link),
            _ => self.text("[Something of a kind that is not known here.]"),
        }
    }

    fn resource(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.text(&format!("{}:\n{text}", one_line(&uri, NAME_MAX)));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.media(&blob, mime_type.as_deref(), &one_line(&uri, NAME_MAX));
            }
            _ => self.text("[A resource of a kind that is not known here.]"),
        }
    }

    fn link(&mut self, link: &Resource) {
        let mut text = format!("[Resource {}", one_line(&link.uri, 2_000));
        let name = link.title.as_deref().unwrap_or(&link.name);
        text.push_str(&format!(": {}", one_line(name, NAME_MAX)));
        if let Some(description) = &link.description {
            text.push_str(&format!(" ({})", one_line(description, 400)));
        }
        text.push_str("; ReadMcpResource reads it]");
        self.text(&text);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let end = text.floor_char_boundary(self.left.min(text.len()));
        self.left_out += text.len() - end;
        self.left -= end;
        if end == 0 {
            return;
        }
        self.texts.push(text[..end].to_owned());
        if self.blocks.len() < BLOCKS_MAX {
            self.blocks.push(ContentBlock::text(&text[..end]));
        } else {
            self.crowded.push(text[..end].to_owned());
        }
    }

    /// Adds an image or a document. Its bytes decide, not its declared type.
    fn media(&mut self, data: &str, said: Option<&str>, what: &str) {
        let most = DOCUMENT_BYTES_MAX / 3 * 4 + 8;
        let bytes = if data.len() <= most { STANDARD.decode(data.trim()).ok() } else { None };
        let kind = bytes.as_deref().and_then(media_type);
        let said = one_line(said.unwrap_or("of no known kind"), NAME_MAX);
        let shown = match (&bytes, kind) {
            (Some(bytes), Some(kind)) if self.can_show(kind, bytes.len()) => Some((kind, bytes)),
            _ => None,
        };
        let Some((kind, bytes)) = shown else {
            let size = data.len() / 4 * 3;
            self.text(&format!("[{what}: {said}, about {size} bytes, which cannot be shown here.]"));
            return;
        };
        self.media += 1;
        let block = if kind == PDF { "document" } else { "image" };
        let data = STANDARD.encode(bytes);
        let raw = format!(
            r#"{{"type":"{block}","source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}}}"#
        );
        self.blocks.push(ContentBlock::parse(SharedText::from(raw)));
    }

    fn can_show(&self, kind: &str, bytes: usize) -> bool {
        let fits = match kind == PDF {
            true => self.support.documents && bytes <= DOCUMENT_BYTES_MAX,
            false => self.support.images && bytes <= IMAGE_BYTES_MAX,
        };
        fits && self.media < MEDIA_BLOCKS_MAX && self.blocks.len() < BLOCKS_MAX
    }

    fn blocks(mut self) -> Vec<ContentBlock> {
        if !self.crowded.is_empty() {
            self.blocks.push(ContentBlock::text(&self.crowded.join("\n")));
        }
        if self.left_out > 0 {
            let note = format!(
                "[{} more bytes of this answer were not kept; ask for less at once.]",
                group_digits(self.left_out as u64)
            );
            self.blocks.push(ContentBlock::text(&note));
        }
        if self.blocks.is_empty() {
            self.blocks.push(ContentBlock::text("[The server answered with nothing.]"));
        }
        self.blocks
    }

    fn error_text(self) -> String {
        let words = clean(&self.texts.join("\n"), TEXT_BYTES_MAX);
        if words.is_empty() { String::from("the server says that it failed, and not why") } else { words }
    }
}

const PDF: &str = "application/pdf";

/// Media type by magic number, if models accept it.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some(PDF),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEES: ResultMediaSupport = ResultMediaSupport { images: true, documents: true };

    fn result(json: Value) -> CallToolResult {
        serde_json::from_value(json).unwrap()
    }

    fn texts(blocks: &[ContentBlock]) -> Vec<String> {
        blocks
            .iter()
            .map(|block| block.string("text").map_or(block.raw().to_string(), |text| text.into_owned()))
            .collect()
    }

    #[test]
    fn every_content_kind_is_converted() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let blocks = convert_call_result(
            result(serde_json::json!({"content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "data": png, "mimeType": "image/jpeg"},
                {"type": "image", "data": "bm90IGFuIGltYWdl", "mimeType": "image/png"},
                {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "note://1", "text": "inside"}},
                {"type": "resource_link", "uri": "note://2", "name": "two", "description": "the second"},
            ]})),
            SEES,
        );
        let shown = texts(&blocks.unwrap());
        assert_eq!(shown[0], "hello");
        assert!(shown[1].contains(r#""media_type":"image/png""#), "its bytes count: {}", shown[1]);
        assert!(
            shown[2].contains("a picture: image/png") && shown[2].contains("cannot be shown"),
            "{}",
            shown[2]
        );
        assert!(shown[3].contains("audio/wav"));
        assert_eq!(shown[4], "note://1:\ninside");
        assert_eq!(shown[5], "[Resource note://2: two (the second); ReadMcpResource reads it]");
    }

    #[test]
    fn unsupported_media_is_described() {
        let data = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let picture = result(
            serde_json::json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}),
        );
        let blind = ResultMediaSupport { images: false, documents: false };
        assert!(
            texts(&convert_call_result(picture, blind).unwrap())[0]
                .starts_with("[a picture: image/png, about ")
        );
    }

    #[test]
    fn structured_result_appears_once() {
        let both = serde_json::json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}], "structuredContent": {"a": 1}});
        assert_eq!(texts(&convert_call_result(result(both), SEES).unwrap()), ["{ \"a\": 1 }"]);
        let alone = serde_json::json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(texts(&convert_call_result(result(alone), SEES).unwrap()), [r#"{"a":1}"#]);
        let differs =
            serde_json::json!({"content": [{"type": "text", "text": "done"}], "structuredContent": {"a": 1}});
        assert_eq!(texts(&convert_call_result(result(differs), SEES).unwrap()), ["done", r#"{"a":1}"#]);
    }

    #[test]
    fn oversized_result_is_truncated_with_a_notice() {
        let long = "ä".repeat(TEXT_BYTES_MAX / 2 + 1_000_000);
        let shown = convert_call_result(
            result(serde_json::json!({"content": [{"type": "text", "text": long}]})),
            SEES,
        )
        .unwrap();
        assert_eq!(texts(&shown)[0].len(), TEXT_BYTES_MAX);
        assert_eq!(
            texts(&shown)[1],
            "[2,000,000 more bytes of this answer were not kept; ask for less at once.]"
        );
    }

    #[test]
    fn texts_beyond_the_maximum_of_blocks_share_one() {
        let many: Vec<Value> = vec![serde_json::json!({"type": "text", "text": "x"}); 1_000];
        let shown = texts(&convert_call_result(result(serde_json::json!({"content": many})), SEES).unwrap());
        assert_eq!(shown.len(), BLOCKS_MAX + 1);
        assert_eq!(shown[BLOCKS_MAX].matches('x').count(), 1_000 - BLOCKS_MAX);
    }

    #[test]
    fn error_results_are_errors() {
        let failed =
            serde_json::json!({"content": [{"type": "text", "text": "no\u{1b} such file"}], "isError": true});
        assert_eq!(convert_call_result(result(failed), SEES), Err(String::from("no such file")));
        let long = "x".repeat(50_000);
        let failed = serde_json::json!({"content": [{"type": "text", "text": long}], "isError": true});
        assert_eq!(
            convert_call_result(result(failed), SEES),
            Err(long),
            "what the agent shortens is on disk"
        );
        assert!(
            convert_call_result(result(serde_json::json!({"content": [], "isError": true})), SEES).is_err()
        );
        assert_eq!(
            texts(&convert_call_result(result(serde_json::json!({"content": []})), SEES).unwrap()).len(),
            1
        );
    }
}
