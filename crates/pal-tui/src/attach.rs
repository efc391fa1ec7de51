//! What is sent of what was typed: pictures that are named with an `@` go along.

use std::io::Read;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pal_model::{Content, Text, escape_into};

/// Providers take no larger pictures.
const PICTURE_BYTES_MAX: u64 = 5 << 20;

/// The content of a prompt; and what could not go along, and why.
pub(crate) fn content(text: &str, directory: &Path) -> (Content, Vec<String>) {
    let mut problems = Vec::new();
    let mut blocks = String::new();
    for word in text.split_whitespace().filter_map(|word| word.strip_prefix('@')) {
        let path = directory.join(word);
        match picture(&path) {
            Ok(Some(block)) => {
                blocks.push_str(&block);
                blocks.push(',');
            }
            Ok(None) => {}
            Err(why) => problems.push(format!("@{word}: {why}")),
        }
    }
    if blocks.is_empty() {
        return (Content::of_text(text), problems);
    }
    blocks.insert(0, '[');
    blocks.push_str(r#"{"type":"text","text":"#);
    escape_into(&mut blocks, text);
    blocks.push_str("}]");
    (Content::parse(&Text::from(blocks)), problems)
}

/// A file as a block, if it is a picture that providers take.
fn picture(path: &Path) -> Result<Option<String>, String> {
    let Ok(metadata) = path.metadata() else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut beginning = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut beginning));
    let Some(kind) = read.ok().and_then(|_| infer::get(&beginning)) else { return Ok(None) };
    let kind = kind.mime_type();
    if !matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp") {
        return Ok(None);
    }
    if metadata.len() > PICTURE_BYTES_MAX {
        return Err(format!("pictures of more than {} MB are not taken", PICTURE_BYTES_MAX >> 20));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let data = STANDARD.encode(bytes);
    Ok(Some(format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}}}"#
    )))
}
