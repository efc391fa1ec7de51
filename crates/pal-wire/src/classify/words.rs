//! The words of others, made fit to be shown: short, on one line, without markup and without secrets.

/// Most characters of a message.
const MESSAGE_CHARS_MAX: usize = 600;
/// Most characters of a code or an id.
const WORD_CHARS_MAX: usize = 96;
/// No more of a body than this is looked at for words: pages begin with much that is none.
const BODY_BYTES_MAX: usize = 16 << 10;
/// No more of its words than this is looked at for secrets.
const WORDS_BYTES_MAX: usize = 4 << 10;

/// A message as it may be shown.
pub(super) fn shown(message: &str) -> String {
    let squeezed = squeezed(beginning(message, BODY_BYTES_MAX));
    cut(&masked(beginning(&squeezed, WORDS_BYTES_MAX)), MESSAGE_CHARS_MAX)
}

/// A code or an id as it may be shown.
pub(super) fn short(word: &str) -> String {
    cut(&masked(&squeezed(beginning(word, WORDS_BYTES_MAX))), WORD_CHARS_MAX)
}

/// What a body that is no error of any known shape says: the title of a page, or its text.
pub(crate) fn shown_body(body: &str) -> String {
    let body = beginning(body, BODY_BYTES_MAX);
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + 7).and_then(|from| {
        let end = lower[from..].find("</title>")?;
        body.get(from..from + end)
    });
    match title.map(str::trim).filter(|title| !title.is_empty()) {
        Some(title) => shown(title),
        None if lower.contains("<html") || lower.contains("<!doctype") => shown(&without_tags(body)),
        None => shown(body),
    }
}

/// The first bytes of a text, up to the end of a character.
pub(super) fn beginning(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{} …", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// One space for every run of white space and control characters.
fn squeezed(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    for word in
        text.split(|char: char| char.is_whitespace() || char.is_control()).filter(|word| !word.is_empty())
    {
        if !squeezed.is_empty() {
            squeezed.push(' ');
        }
        squeezed.push_str(word);
    }
    squeezed
}

fn without_tags(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        text.push(' ');
        let inside = &rest[open..];
        // What scripts and styles hold is no text for people.
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

/// What stands before a secret, in lower case.
const BEFORE_SECRETS: [&str; 7] =
    ["sk-", "bearer ", "x-api-key: ", "x-api-key:", "api_key=", "api-key=", "key="];

/// The text with everything that looks like a key left out.
fn masked(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut masked = String::with_capacity(text.len());
    let mut from = 0;
    while let Some((at, before)) = next_secret(&lower, from) {
        let start = at + before.len();
        let end = lower[start..].find(|char| !is_of_secret(char)).map_or(lower.len(), |end| start + end);
        masked.push_str(&text[from..start]);
        // A word this short is no key.
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
        // `task-force` is no key.
        let is_word = |at: &usize| !lower[..*at].ends_with(|char: char| char.is_ascii_alphanumeric());
        let at = lower[from..].match_indices(before).map(|(at, _)| from + at).find(is_word)?;
        Some((at, *before))
    });
    found.min_by_key(|(at, before)| (*at, std::cmp::Reverse(before.len())))
}

fn is_of_secret(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '*' | '+' | '/' | '=' | '~')
}
