//! What a client says in a prompt, as the model reads it; and the other way round.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ContentBlock, EmbeddedResourceResource, ImageContent, ResourceLink};
use pal_model::{Block, BlockType, Content, Text};
use serde_json::{Value, json};

use crate::host::wrong;

/// Kinds of pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A prompt as the model reads it.
pub(crate) fn prompt(blocks: &[ContentBlock]) -> Result<Content, Error> {
    let blocks: Vec<Value> = blocks.iter().map(block).collect::<Result<_, _>>()?;
    let is_empty = |block: &Value| block["text"].as_str().is_some_and(|text| text.trim().is_empty());
    let said: Vec<Value> = blocks.into_iter().filter(|block| !is_empty(block)).collect();
    if said.is_empty() {
        return Err(wrong("the prompt is empty"));
    }
    if let [only] = said.as_slice()
        && let Some(text) = only["text"].as_str()
    {
        return Ok(Content::of_text(text));
    }
    Ok(Content::parse(&Text::from(Value::from(said).to_string())))
}

/// The words of a prompt's first block, if it begins with a slash: the command's name and what stands behind it.
pub(crate) fn command(blocks: &[ContentBlock]) -> Option<(&str, String)> {
    let ContentBlock::Text(first) = blocks.first()? else { return None };
    let words = first.text.trim().strip_prefix('/')?;
    let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    // What else is said is said of the command.
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
                    wrong(format!("{}: files of the kind `{kind}` cannot be read from a prompt", blob.uri))
                })?
            }
            _ => return Err(wrong("a part of the prompt is of a kind that pal does not know")),
        },
        ContentBlock::Audio(_) => return Err(wrong("sound cannot be listened to: say it in words")),
        _ => return Err(wrong("a part of the prompt is of a kind that pal does not know")),
    })
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn picture(kind: &str, data: &str) -> Result<Value, Error> {
    if !PICTURES.contains(&kind) {
        return Err(wrong(format!(
            "pictures of the kind `{kind}` are not taken: {} are",
            PICTURES.join(", ")
        )));
    }
    Ok(json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}))
}

/// A link in words: the path of a file, so that the tools find it, or the address itself.
fn named(link: &ResourceLink) -> String {
    format!("@{}", path(&link.uri))
}

/// The path that an address of a file names; any other address as it is.
fn path(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_owned() };
    // The name of a host may stand before the path.
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

/// A text as Markdown shows it letter by letter.
pub(crate) fn fenced(text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Blocks of ours as a client shows them: words and pictures.
pub(crate) fn shown(blocks: &[Block]) -> Vec<ContentBlock> {
    let shown = |block: &Block| match block.kind() {
        BlockType::Text => block.string("text").map(|text| ContentBlock::from(text.into_owned())),
        BlockType::Image => shown_picture(block),
        _ => None,
    };
    blocks.iter().filter_map(shown).collect()
}

fn shown_picture(block: &Block) -> Option<ContentBlock> {
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
    fn links_and_files_of_the_editor_reach_the_model_as_paths_and_text() {
        let link = ContentBlock::ResourceLink(ResourceLink::new("a b.rs", "file:///x/a%20b.rs"));
        let contents = TextResourceContents::new("fn a() {}\n", "file:///x/b.rs");
        let file = ContentBlock::Resource(EmbeddedResource::new(
            EmbeddedResourceResource::TextResourceContents(contents),
        ));
        let read = text(&[ContentBlock::from("Look at"), link, file]);
        assert_eq!(read, "Look at|@/x/a b.rs|/x/b.rs:\n```\nfn a() {}\n```");
    }

    #[test]
    fn pictures_go_along_and_what_cannot_be_read_is_named() {
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
    fn a_fence_is_longer_than_whatever_it_holds() {
        assert_eq!(fenced("a ```` b\n"), "`````\na ```` b\n`````");
    }
}
