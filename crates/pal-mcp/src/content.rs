//! What servers answer with, as blocks that the model reads: bounded, media looked at before they are believed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pal_model::{Block, Text};
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, Resource, ResourceContents,
};
use serde_json::Value;

use crate::words::{NAME_MOST, clean, one_line};

/// Most bytes of text in one answer.
const TEXT_MOST: usize = 1_000_000;
/// Most blocks of one answer.
const BLOCKS_MOST: usize = 200;
/// Most bytes of a picture and of a document, and pictures and documents of one answer.
const IMAGE_MOST: usize = 5 * 1024 * 1024;
const DOCUMENT_MOST: usize = 24 * 1024 * 1024;
const MEDIA_MOST: usize = 20;

/// What the model can look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eyes {
    pub(crate) images: bool,
    pub(crate) documents: bool,
}

/// The result of a call; what went wrong, in the server's words, if it says that it failed.
pub(crate) fn of_call(result: CallToolResult, eyes: Eyes) -> Result<Vec<Block>, String> {
    let mut page = Page::new(eyes);
    let said: Vec<Value> =
        result.content.iter().filter_map(|block| serde_json::from_str(&block.as_text()?.text).ok()).collect();
    for block in result.content {
        page.content(block);
    }
    // Most servers say the structured result once more as text; the others would be misunderstood without it.
    if let Some(structured) =
        result.structured_content.filter(|value| !value.is_null() && !said.contains(value))
    {
        page.text(&structured.to_string());
    }
    if result.is_error == Some(true) {
        return Err(page.words());
    }
    Ok(page.blocks())
}

/// What a resource holds.
pub(crate) fn of_resource(result: ReadResourceResult, eyes: Eyes) -> Vec<Block> {
    let mut page = Page::new(eyes);
    for contents in result.contents {
        page.resource(contents);
    }
    page.blocks()
}

/// What a prompt says.
pub(crate) fn of_prompt(result: GetPromptResult, eyes: Eyes) -> Vec<Block> {
    let mut page = Page::new(eyes);
    for message in result.messages {
        page.content(message.content);
    }
    page.blocks()
}

/// An answer as it is put together.
struct Page {
    eyes: Eyes,
    blocks: Vec<Block>,
    /// The texts among them.
    texts: Vec<String>,
    /// Bytes of text that still fit.
    left: usize,
    media: usize,
    left_out: usize,
}

impl Page {
    fn new(eyes: Eyes) -> Page {
        Page { eyes, blocks: Vec::new(), texts: Vec::new(), left: TEXT_MOST, media: 0, left_out: 0 }
    }

    fn content(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.text(&text.text),
            ContentBlock::Image(image) => self.media(&image.data, Some(&image.mime_type), "a picture"),
            ContentBlock::Audio(audio) => {
                let kind = one_line(&audio.mime_type, NAME_MOST);
                self.text(&format!("[A recording ({kind}), which cannot be listened to here.]"));
            }
            ContentBlock::Resource(embedded) => self.resource(embedded.resource),
            ContentBlock::ResourceLink(link) => self.link(&link),
            _ => self.text("[Something of a kind that is not known here.]"),
        }
    }

    fn resource(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.text(&format!("{}:\n{text}", one_line(&uri, NAME_MOST)));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.media(&blob, mime_type.as_deref(), &one_line(&uri, NAME_MOST));
            }
            _ => self.text("[A resource of a kind that is not known here.]"),
        }
    }

    fn link(&mut self, link: &Resource) {
        let mut text = format!("[Resource {}", one_line(&link.uri, 2_000));
        let name = link.title.as_deref().unwrap_or(&link.name);
        text.push_str(&format!(": {}", one_line(name, NAME_MOST)));
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
        if self.left == 0 || self.blocks.len() >= BLOCKS_MOST {
            self.left_out += text.len();
            return;
        }
        let end = text.floor_char_boundary(self.left.min(text.len()));
        self.left_out += text.len() - end;
        self.left -= end;
        self.texts.push(text[..end].to_owned());
        self.blocks.push(Block::text(&text[..end]));
    }

    /// A picture or a document; what it is said to be does not count, but what its bytes say.
    fn media(&mut self, data: &str, said: Option<&str>, what: &str) {
        let most = DOCUMENT_MOST / 3 * 4 + 8;
        let bytes = if data.len() <= most { STANDARD.decode(data.trim()).ok() } else { None };
        let kind = bytes.as_deref().and_then(kind_of);
        let said = one_line(said.unwrap_or("of no known kind"), NAME_MOST);
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
        self.blocks.push(Block::parse(Text::from(raw)));
    }

    fn can_show(&self, kind: &str, bytes: usize) -> bool {
        let fits = match kind == PDF {
            true => self.eyes.documents && bytes <= DOCUMENT_MOST,
            false => self.eyes.images && bytes <= IMAGE_MOST,
        };
        fits && self.media < MEDIA_MOST && self.blocks.len() < BLOCKS_MOST
    }

    fn blocks(mut self) -> Vec<Block> {
        if self.left_out > 0 {
            let note =
                format!("[{} more bytes of this answer were left out; ask for less at once.]", self.left_out);
            self.blocks.push(Block::text(&note));
        }
        if self.blocks.is_empty() {
            self.blocks.push(Block::text("[The server answered with nothing.]"));
        }
        self.blocks
    }

    fn words(self) -> String {
        let words = clean(&self.texts.join("\n"), 20_000);
        if words.is_empty() { String::from("the server says that it failed, and not why") } else { words }
    }
}

const PDF: &str = "application/pdf";

/// What bytes are, if it is something that models look at.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
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

    const SEES: Eyes = Eyes { images: true, documents: true };

    fn result(json: Value) -> CallToolResult {
        serde_json::from_value(json).unwrap()
    }

    fn texts(blocks: &[Block]) -> Vec<String> {
        blocks
            .iter()
            .map(|block| block.string("text").map_or(block.raw().to_string(), |text| text.into_owned()))
            .collect()
    }

    #[test]
    fn each_kind_of_content_becomes_something_that_the_model_reads() {
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let blocks = of_call(
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
    fn a_model_that_cannot_see_is_told_what_there_was() {
        let data = STANDARD.encode(b"\x89PNG\r\n\x1a\nrest");
        let picture = result(
            serde_json::json!({"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}),
        );
        let blind = Eyes { images: false, documents: false };
        assert!(texts(&of_call(picture, blind).unwrap())[0].starts_with("[a picture: image/png, about "));
    }

    #[test]
    fn a_structured_result_is_told_once() {
        let both = serde_json::json!({"content": [{"type": "text", "text": "{ \"a\": 1 }"}], "structuredContent": {"a": 1}});
        assert_eq!(texts(&of_call(result(both), SEES).unwrap()), ["{ \"a\": 1 }"]);
        let alone = serde_json::json!({"content": [], "structuredContent": {"a": 1}});
        assert_eq!(texts(&of_call(result(alone), SEES).unwrap()), [r#"{"a":1}"#]);
        let differs =
            serde_json::json!({"content": [{"type": "text", "text": "done"}], "structuredContent": {"a": 1}});
        assert_eq!(texts(&of_call(result(differs), SEES).unwrap()), ["done", r#"{"a":1}"#]);
    }

    #[test]
    fn what_is_too_much_is_cut_and_said_so() {
        let long = "ä".repeat(TEXT_MOST);
        let shown =
            of_call(result(serde_json::json!({"content": [{"type": "text", "text": long}]})), SEES).unwrap();
        assert_eq!(texts(&shown)[0].len(), TEXT_MOST);
        assert_eq!(
            texts(&shown)[1],
            format!("[{TEXT_MOST} more bytes of this answer were left out; ask for less at once.]")
        );
        let many: Vec<Value> = vec![serde_json::json!({"type": "text", "text": "x"}); 1_000];
        assert_eq!(
            of_call(result(serde_json::json!({"content": many})), SEES).unwrap().len(),
            BLOCKS_MOST + 1
        );
    }

    #[test]
    fn a_failure_is_one() {
        let failed =
            serde_json::json!({"content": [{"type": "text", "text": "no\u{1b} such file"}], "isError": true});
        assert_eq!(of_call(result(failed), SEES), Err(String::from("no such file")));
        assert!(of_call(result(serde_json::json!({"content": [], "isError": true})), SEES).is_err());
        assert_eq!(texts(&of_call(result(serde_json::json!({"content": []})), SEES).unwrap()).len(), 1);
    }
}
