//! Conversion of content blocks between the protocol and the model's format.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource, ImageContent, ResourceLink};
use pal_model::{BlockType, Content, ContentBlock as LogBlock, SharedText};
use serde_json::{Value, json};

use crate::agent_host::invalid_params;

/// Image media types that models accept.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Converts a prompt to content for the model; an error if it is empty or has a block that cannot be converted.
pub(crate) fn prompt(blocks: &[ContentBlock]) -> Result<Content, Error> {
    let blocks: Vec<Value> = blocks.iter().map(block).collect::<Result<_, _>>()?;
    let is_empty = |block: &Value| block["text"].as_str().is_some_and(|text| text.trim().is_empty());
    let said: Vec<Value> = blocks.into_iter().filter(|block| !is_empty(block)).collect();
    if said.is_empty() {
        return Err(invalid_params("the prompt is empty"));
    }
    if let [only] = said.as_slice()
        && let Some(text) = only["text"].as_str()
    {
        return Ok(Content::from_text(text));
    }
    Ok(Content::parse(&SharedText::from(Value::from(said).to_string())))
}

/// Splits a prompt that starts with a slash into the command's name and its arguments.
pub(crate) fn command(blocks: &[ContentBlock]) -> Option<(&str, String)> {
    let ContentBlock::Text(first) = blocks.first()? else { return None };
    let words = first.text.trim().strip_prefix('/')?;
    let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    // Further blocks belong to the command's arguments.
    let more = blocks[1..].iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text.clone()),
        ContentBlock::ResourceLink(link) => Some(named(link)),
        _ => None,
    });
    let arguments: Vec<String> = std::iter::once(rest.trim().to_owned()).chain(more).collect();
    Some((name, arguments.join("\n").trim().to_owned()))
}

fn block(block: &ContentBlock) -> Result<Value, Error> {
    Ok(match block {
        ContentBlock::Text(text) => text_block(&text.text),
        ContentBlock::Image(image) => picture(&image.mime_type, &image.data)?,
        ContentBlock::ResourceLink(link) => text_block(&named(link)),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => {
                text_block(&format!("{}:\n{}", path(&text.uri), fenced(&text.text)))
            }
            EmbeddedResourceResource::BlobResourceContents(blob) => {
                let kind = blob.mime_type.as_deref().unwrap_or_default();
                picture(kind, &blob.blob).map_err(|_| {
                    invalid_params(format!(
                        "{}: files of type `{kind}` cannot be embedded in a prompt",
                        blob.uri
                    ))
                })?
            }
            _ => return Err(invalid_params("a block of the prompt has an unknown type")),
        },
        ContentBlock::Audio(_) => return Err(invalid_params("audio is not supported; send text instead")),
        _ => return Err(invalid_params("a block of the prompt has an unknown type")),
    })
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn picture(kind: &str, data: &str) -> Result<Value, Error> {
    if !PICTURES.contains(&kind) {
        return Err(invalid_params(format!(
            "images of type `{kind}` are not supported; use {}",
            PICTURES.join(", ")
        )));
    }
    Ok(json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}))
}

/// Mention of a link: the path for a file, so that tools find it, else the URI.
fn named(link: &ResourceLink) -> String {
    format!("@{}", path(&link.uri))
}

/// Decodes the path of a `file://` URI; returns other URIs unchanged.
fn path(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_owned() };
    // A host name may precede the path.
    let encoded = rest.find('/').map_or(rest, |at| &rest[at..]);
    let mut bytes = Vec::new();
    let mut left = encoded.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let digits = (*first == b'%').then(|| rest.get(..2)).flatten();
        let byte = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                left = &rest[2..];
            }
            None => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Wraps text in a Markdown code fence that is longer than any run of backticks in it.
pub(crate) fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Converts text and image blocks of the log for a client; drops all others.
pub(crate) fn shown(blocks: &[LogBlock]) -> Vec<ContentBlock> {
    let shown = |block: &LogBlock| match block.kind() {
        BlockType::Text => block.string("text").map(|text| ContentBlock::from(text.into_owned())),
        BlockType::Image => shown_picture(block),
        _ => None,
    };
    blocks.iter().filter_map(shown).collect()
}

fn shown_picture(block: &LogBlock) -> Option<ContentBlock> {
    let source: Value = serde_json::from_str(block.field("source")?).ok()?;
    let (data, kind) = (source["data"].as_str()?, source["media_type"].as_str()?);
    Some(ContentBlock::Image(ImageContent::new(data, kind)))
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{BlobResourceContents, EmbeddedResource, TextResourceContents};

    use super::*;

    fn text(blocks: &[ContentBlock]) -> String {
        let content = prompt(blocks).unwrap();
        content.blocks().iter().filter_map(|block| block.string("text")).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn links_and_embedded_files_become_paths_and_text() {
        let link = ContentBlock::ResourceLink(ResourceLink::new("a b.rs", "file:///x/a%20b.rs"));
        let contents = TextResourceContents::new("fn a() {}\n", "file:///x/b.rs");
        let file = ContentBlock::Resource(EmbeddedResource::new(
            EmbeddedResourceResource::TextResourceContents(contents),
        ));
        let read = text(&[ContentBlock::from("Look at"), link, file]);
        assert_eq!(read, "Look at|@/x/a b.rs|/x/b.rs:\n```\nfn a() {}\n```");
    }

    #[test]
    fn images_are_converted_and_unreadable_files_are_named() {
        let picture = ContentBlock::Image(ImageContent::new("aGk=", "image/png"));
        let content = prompt(&[ContentBlock::from("See"), picture]).unwrap();
        assert_eq!(content.blocks()[1].kind(), BlockType::Image);
        assert_eq!(shown(content.blocks()).len(), 2);
        let blob =
            BlobResourceContents::new("aGk=", "file:///x.zip").mime_type(String::from("application/zip"));
        let blob = EmbeddedResource::new(EmbeddedResourceResource::BlobResourceContents(blob));
        let error = prompt(&[ContentBlock::Resource(blob)]).unwrap_err();
        assert!(error.message.contains("x.zip"), "{error:?}");
        assert!(prompt(&[ContentBlock::from("  ")]).is_err());
    }

    #[test]
    fn a_slash_begins_a_command() {
        let blocks = [ContentBlock::from("/fix 7 now "), ContentBlock::from("please")];
        assert_eq!(command(&blocks), Some(("fix", String::from("7 now\nplease"))));
        assert_eq!(command(&[ContentBlock::from("a /b")]), None);
    }

    #[test]
    fn a_fence_is_longer_than_any_backticks_inside() {
        assert_eq!(fenced("a ```` b\n"), "`````\na ```` b\n`````");
    }
}
