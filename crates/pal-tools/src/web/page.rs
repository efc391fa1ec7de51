//! What came over the network, as text that a model can read.

use std::collections::HashMap;

use encoding_rs::{Encoding, UTF_8};
use htmd::HtmlToMarkdown;

/// Most characters that are shown.
const CHARACTERS_MAX: usize = 100_000;

/// Most bytes of a page that are translated: far more than is shown of it, in all but a few pages.
const HTML_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Elements that say nothing.
const SILENT: [&str; 8] = ["script", "style", "noscript", "svg", "iframe", "template", "canvas", "form"];

/// Elements within each other that a page may have; the translation goes down into each.
const DEPTH_MAX: usize = 500;

/// Elements that have no end tag, or whose end tag is often left out because the next of them ends them.
const ENDS_ITSELF: [&str; 22] = [
    "br", "hr", "img", "input", "link", "meta", "source", "wbr", "area", "base", "col", "p", "li", "td",
    "th", "tr", "tbody", "thead", "tfoot", "dt", "dd", "option",
];

/// Letters of a name by which an element is counted.
const NAME_BYTES_MAX: usize = 32;

/// Memory for going down into a page.
const STACK_BYTES: usize = 64 * 1024 * 1024;

/// What sort of text it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// A page of the web.
    Html,
    /// Text that is shown as it is.
    Plain,
}

/// The sort of a content type, without its parameters; nothing if it is no text.
pub(super) fn sort_of(content_type: &str) -> Option<Sort> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Some(Sort::Html),
        "application/json"
        | "application/xml"
        | "application/markdown"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/javascript"
        | "application/x-ndjson" => Some(Sort::Plain),
        other if other.starts_with("text/") || other.ends_with("+json") || other.ends_with("+xml") => {
            Some(Sort::Plain)
        }
        _ => None,
    }
}

/// The text of a body, by the encoding that its type or the page itself names.
pub(super) fn decoded(body: &[u8], content_type: &str) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(2_048)]).to_ascii_lowercase();
    let named = charset(&content_type.to_ascii_lowercase()).or_else(|| charset(&head));
    named.unwrap_or(UTF_8).decode(body).0.into_owned()
}

/// The encoding behind `charset=`.
fn charset(text: &str) -> Option<&'static Encoding> {
    let (_, value) = text.split_once("charset=")?;
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|letter: char| !letter.is_ascii_alphanumeric() && !"-_:.".contains(letter));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

/// The text as it is shown, and whether it was cut. A page is translated in a thread of its own, which has room to go down
/// into every element, and which nobody has to wait for.
pub(super) async fn readable(text: String, sort: Sort) -> (String, bool) {
    let (text, is_cut) = match sort {
        Sort::Plain => (text, false),
        Sort::Html => {
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

/// A page in Markdown, and whether a part was left out; one that is deeper than any that a person wrote loses its tags
/// instead.
fn markdown(html: &str) -> (String, bool) {
    let spoken = without_silent(html);
    let html = &spoken[..spoken.floor_char_boundary(HTML_BYTES_MAX)];
    let is_cut = html.len() < spoken.len();
    if depth(html) > DEPTH_MAX {
        return (without_tags(html), is_cut);
    }
    let translated = HtmlToMarkdown::builder().skip_tags(SILENT.to_vec()).build().convert(html);
    (translated.unwrap_or_else(|_| without_tags(html)), is_cut)
}

/// The page without scripts and styles, which may be most of it and say nothing.
fn without_silent(html: &str) -> String {
    // Small letters have as many bytes as the capital ones, so what is found in one is in the same place in the other.
    let lower = html.to_ascii_lowercase();
    let mut spoken = String::with_capacity(html.len());
    let mut from = 0;
    while let Some((start, name)) = next_silent(&lower, from) {
        spoken.push_str(&html[from..start]);
        let end = lower[start..].find(&format!("</{name}")).map(|at| start + at);
        from = end.and_then(|end| lower[end..].find('>').map(|at| end + at + 1)).unwrap_or(html.len());
    }
    spoken.push_str(&html[from..]);
    spoken
}

/// Where the next script or style begins.
fn next_silent(lower: &str, from: usize) -> Option<(usize, &'static str)> {
    memchr::memmem::find_iter(&lower.as_bytes()[from..], b"<s").find_map(|at| {
        let tag = &lower[from + at + 1..];
        let name = ["script", "style"].into_iter().find(|name| tag.starts_with(name))?;
        let is_whole = !tag.as_bytes().get(name.len()).is_some_and(u8::is_ascii_alphanumeric);
        is_whole.then_some((from + at, name))
    })
}

/// How many elements are open within each other at most. It is counted by name, because an end tag that fits nothing
/// ends nothing: what is counted is never less than what a parser finds, and for tidy pages the same.
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

/// The text between tags.
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
