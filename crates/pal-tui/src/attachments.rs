//! Content of a prompt, with the images that are named with an `@` or whose path was pasted.

use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pal_model::{Content, SharedText, escape_into};

/// Maximum length of a pasted path, in bytes.
const PATH_BYTES_MAX: usize = 4_096;
/// Maximum image size that providers accept, in bytes.
const PICTURE_BYTES_MAX: u64 = 5 << 20;

/// Builds the content of a prompt; also returns a message for each image that cannot be sent.
pub(crate) fn content(text: &str, pasted: &[PathBuf], directory: &Path) -> (Content, Vec<String>) {
    let mut problems = Vec::new();
    let mut blocks = String::new();
    let named = text.split_whitespace().filter_map(|word| word.strip_prefix('@'));
    let named = named.map(|word| directory.join(word)).filter(|path| !pasted.contains(path));
    for path in named.chain(pasted.iter().cloned()) {
        match picture(&path) {
            Ok(Some(block)) => {
                blocks.push_str(&block);
                blocks.push(',');
            }
            Ok(None) => {}
            Err(why) => problems.push(format!("{}: {why}", path.display())),
        }
    }
    if blocks.is_empty() {
        return (Content::from_text(text), problems);
    }
    blocks.insert(0, '[');
    blocks.push_str(r#"{"type":"text","text":"#);
    escape_into(&mut blocks, text);
    blocks.push_str("}]");
    (Content::parse(&SharedText::from(blocks)), problems)
}

/// Path of the image that a pasted text names: quoted, as a `file://` URI, or with escaped spaces, as terminals and file
/// managers write paths.
pub(crate) fn pasted_image_path(text: &str, directory: &Path) -> Option<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.contains('\n') || text.len() > PATH_BYTES_MAX {
        return None;
    }
    let quoted = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let named = match (quoted, text.strip_prefix("file://")) {
        (Some(quoted), _) => quoted.to_owned(),
        (None, Some(address)) => decode_percent(&address[address.find('/')?..])?,
        (None, None) => remove_escapes(text),
    };
    let path = directory.join(named);
    kind(&path).map(|_| path)
}

/// Decodes percent escapes.
fn decode_percent(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = behind;
            }
            _ => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// Removes shell escapes.
fn remove_escapes(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(if character == '\\' { characters.next().unwrap_or(character) } else { character });
    }
    plain
}

/// Media type of a file, if it is an image that providers accept.
fn kind(path: &Path) -> Option<&'static str> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut beginning = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut beginning)).ok()?;
    let kind = infer::get(&beginning)?.mime_type();
    matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp").then_some(kind)
}

/// Image block of a file; `None` if it is not an image that providers accept.
fn picture(path: &Path) -> Result<Option<String>, String> {
    let (Some(kind), Ok(metadata)) = (kind(path), path.metadata()) else { return Ok(None) };
    if metadata.len() > PICTURE_BYTES_MAX {
        return Err(format!(
            "the image is larger than {} MB, the maximum that providers accept",
            PICTURE_BYTES_MAX >> 20
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let data = STANDARD.encode(bytes);
    Ok(Some(format!(
        r#"{{"type":"image","source":{{"type":"base64","media_type":"{kind}","data":"{data}"}}}}"#
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_image_paths_are_recognized_in_every_notation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a shot (1).png");
        std::fs::write(&path, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
        std::fs::write(folder.path().join("notes.txt"), "text").unwrap();
        let full = path.display().to_string();
        for pasted in [
            full.clone(),
            format!("'{full}'"),
            format!("\"{full}\" \n"),
            full.replace(' ', "\\ ").replace('(', "\\("),
            format!("file://{}", full.replace(' ', "%20")),
            format!("file://localhost{}", full.replace(' ', "%20").replace('(', "%28")),
            String::from("a shot (1).png"),
        ] {
            assert_eq!(pasted_image_path(&pasted, folder.path()).as_ref(), Some(&path), "{pasted}");
        }
        for other in ["notes.txt", "a shot", "", "file://", "file://%zz", "a shot (1).png\nnotes.txt"] {
            assert_eq!(pasted_image_path(other, folder.path()), None, "{other}");
        }
        let (content, problems) = content("what is this?", std::slice::from_ref(&path), folder.path());
        assert!(problems.is_empty());
        assert!(content.to_json().contains(r#""media_type":"image/png""#), "{}", content.to_json());
    }
}
