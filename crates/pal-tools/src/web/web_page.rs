//! Conversion of web pages to text.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_8};
use htmd::HtmlToMarkdown;

/// Maximum displayed characters.
const CHARACTERS_MAX: usize = 100_000;

/// Maximum bytes of HTML that are converted, far more than is usually shown.
const HTML_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Elements without text.
const TEXTLESS_ELEMENTS: [&str; 8] =
    ["script", "style", "noscript", "svg", "iframe", "template", "canvas", "form"];

/// Maximum nesting of elements; the conversion is recursive.
const DEPTH_MAX: usize = 500;

/// Elements without an end tag, or with an optional one.
const ENDS_ITSELF: [&str; 22] = [
    "br", "hr", "img", "input", "link", "meta", "source", "wbr", "area", "base", "col", "p", "li", "td",
    "th", "tr", "tbody", "thead", "tfoot", "dt", "dd", "option",
];

/// Maximum bytes of an element name.
const NAME_BYTES_MAX: usize = 32;

/// Stack size for the recursive conversion.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// Format of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PageFormat {
    /// HTML.
    Html,
    /// Plain text, shown unchanged.
    Plain,
}

/// Format of a content type; `None` if it is not text.
pub(super) fn format_of(content_type: &str) -> Option<PageFormat> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Some(PageFormat::Html),
        "application/json"
        | "application/xml"
        | "application/markdown"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/javascript"
        | "application/x-ndjson" => Some(PageFormat::Plain),
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => {
            Some(PageFormat::Plain)
        }
        _ => None,
    }
}

/// Decodes a body by the encoding that its type or the page names.
pub(super) fn decode_body(body: &[u8], content_type: &str) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(2_048)]).to_ascii_lowercase();
    let named = charset(&content_type.to_ascii_lowercase()).or_else(|| charset(&head));
    named.unwrap_or(UTF_8).decode(body).0.into_owned()
}

/// Encoding after `charset=`.
fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, value) = text.split_once("charset=")?;
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_:.".contains(letter));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

/// Converts to displayed text; returns whether it was truncated. HTML is converted on a thread with a large
/// stack, which need not be joined.
pub(super) async fn readable(text: String, sort: PageFormat) -> (String, bool) {
    let (text, is_cut) = match sort {
        PageFormat::Plain => (text, false),
        PageFormat::Html => {
            let (send, translated) = tokio::sync::oneshot::channel();
            let translate = move || {
                let _ = send.send(markdown(&text));
            };
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(translate);
            match (thread, translated.await) {
                (Ok(_), Ok(translated)) => translated,
                _ => (String::from("[The page cannot be translated into text.]"), false),
            }
        }
    };
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => (text[..end].to_owned(), true),
        None => (text, is_cut),
    }
}

/// Converts HTML to Markdown; returns whether it was truncated. An extremely nested page only loses its tags.
fn markdown(html: &str) -> (String, bool) {
    let spoken = remove_scripts(html);
    let html = &spoken[..spoken.floor_char_boundary(HTML_BYTES_MAX)];
    let is_cut = html.len() < spoken.len();
    if depth(html) > DEPTH_MAX {
        return (without_tags(html), is_cut);
    }
    let translated = HtmlToMarkdown::builder().skip_tags(TEXTLESS_ELEMENTS.to_vec()).build().convert(html);
    (translated.unwrap_or_else(|_| without_tags(html)), is_cut)
}

/// Removes scripts and styles.
fn remove_scripts(html: &str) -> String {
    // ASCII case conversion keeps byte offsets.
    let lower = html.to_ascii_lowercase();
    let mut spoken = String::with_capacity(html.len());
    let mut from = 0;
    while let Some((start, name)) = next_script(&lower, from) {
        spoken.push_str(&html[from..start]);
        let end = lower[start..].find(&format!("</{name}")).map(|at| start + at);
        from = end.and_then(|end| lower[end..].find('>').map(|at| end + at + 1)).unwrap_or(html.len());
    }
    spoken.push_str(&html[from..]);
    spoken
}

/// Start and name of the next script or style.
fn next_script(lower: &str, from: usize) -> Option<(usize, &'static str)> {
    memchr::memmem::find_iter(&lower.as_bytes()[from..], b"<s").find_map(|at| {
        let tag = &lower[from + at + 1..];
        let name = ["script", "style"].into_iter().find(|name| tag.starts_with(name))?;
        let is_whole = !tag.as_bytes().get(name.len()).is_some_and(u8::is_ascii_alphanumeric);
        is_whole.then_some((from + at, name))
    })
}

/// Maximum nesting of elements, counted by name because an unmatched end tag ends nothing: never less than a
/// parser finds, and equal for valid pages.
fn depth(html: &str) -> usize {
    let mut open: HashMap<String, usize> = HashMap::new();
    let (mut depth, mut deepest) = (0_usize, 0);
    for (at, _) in html.match_indices('<') {
        let tag = &html[at + 1..];
        let (is_end, name) = tag.strip_prefix('/').map_or((false, tag), |name| (true, name));
        let length = name.bytes().take(NAME_BYTES_MAX).take_while(u8::is_ascii_alphanumeric).count();
        let name = name[..length].to_ascii_lowercase();
        if name.is_empty() || ENDS_ITSELF.contains(&name.as_str()) {
            continue;
        }
        let count = open.entry(name).or_default();
        if is_end && *count > 0 {
            (*count, depth) = (*count - 1, depth - 1);
        } else if !is_end {
            (*count, depth) = (*count + 1, depth + 1);
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Text between tags.
fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len() / 2);
    for piece in html.split('<') {
        let said = piece.split_once('>').map_or("", |(_, said)| said);
        if !said.trim().is_empty() {
            text.push_str(said.trim());
            text.push('\n');
        }
    }
    text
}
