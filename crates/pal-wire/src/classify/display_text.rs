//! Display form of provider text: short, on one line, without markup and keys.

/// Maximum length of a displayed message.
const MESSAGE_CHARS_MAX: usize = 600;
/// Maximum length of a displayed code or id.
const CODE_CHARS_MAX: usize = 96;
/// Bytes of a body that are searched for text; HTML pages begin with long markup.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Bytes of text that are searched for keys.
const MASKED_BYTES_MAX: usize = 4 << 10;

/// Returns a message for display.
pub(super) fn display_message(message: &str) -> String {
    let line = collapse_whitespace(byte_prefix(message, BODY_BYTES_MAX));
    truncate(&mask_keys(byte_prefix(&line, MASKED_BYTES_MAX)), MESSAGE_CHARS_MAX)
}

/// Returns a code or id for display.
pub(super) fn display_code(word: &str) -> String {
    truncate(&mask_keys(&collapse_whitespace(byte_prefix(word, MASKED_BYTES_MAX))), CODE_CHARS_MAX)
}

/// Returns the display text of a body of unknown form: the title of an HTML page, or the text.
pub(crate) fn display_body(body: &str) -> String {
    let body = byte_prefix(body, BODY_BYTES_MAX);
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + 7).and_then(|from| {
        let end = lower[from..].find("</title>")?;
        body.get(from..from + end)
    });
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => display_message(title),
        None if lower.contains("<html") || lower.contains("<!doctype") => {
            display_message(&strip_markup(body))
        }
        None => display_message(body),
    }
}

/// Returns at most `bytes` bytes of a text, cut at a character boundary.
pub(super) fn byte_prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn truncate(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{} …", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Replaces each run of white space and control characters by one space.
fn collapse_whitespace(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in
        text.split(|char: char| char.is_whitespace() || char.is_control()).filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

fn strip_markup(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        text.push(' ');
        let inside = &rest[open..];
        // The content of scripts and styles is not text.
        let end = ["script", "style"].into_iter().find_map(|name| {
            let is_named = inside.get(1..=name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name));
            let close = format!("</{name}");
            is_named.then(|| inside.to_ascii_lowercase().find(&close)).flatten()
        });
        let inside = &inside[end.unwrap_or(0)..];
        rest = inside.find('>').map_or("", |close| &inside[close + 1..]);
    }
    text.push_str(rest);
    text
}

/// Prefixes of keys, in lower case.
const BEFORE_SECRETS: [&str; 7] =
    ["sk-", "bearer ", "x-api-key: ", "x-api-key:", "api_key=", "api-key=", "key="];

/// Replaces everything that looks like a key by an ellipsis.
fn mask_keys(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    while let Some((at, before)) = next_secret(&lower, from) {
        let start = at + before.len();
        let end = lower[start..].find(|char| !is_key_char(char)).map_or(lower.len(), |end| start + end);
        masked.push_str(&text[from..start]);
        // A shorter word is not a key.
        if end - start >= 6 {
            masked.push('…')
        } else {
            masked.push_str(&text[start..end])
        }
        from = end;
    }
    masked.push_str(&text[from..]);
    masked
}

fn next_secret(lower: &str, from: usize) -> Option<(usize, &'static str)> {
    let found = BEFORE_SECRETS.iter().filter_map(|before| {
        // `task-force` is not a key.
        let is_word = |at: &usize| !lower[..*at].ends_with(|char: char| char.is_ascii_alphanumeric());
        let at = lower[from..].match_indices(before).map(|(at, _)| from + at).find(is_word)?;
        Some((at, *before))
    });
    found.min_by_key(|(at, before)| (*at, std::cmp::Reverse(before.len())))
}

fn is_key_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '*' | '+' | '/' | '=' | '~')
}
