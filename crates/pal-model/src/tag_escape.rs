//! Escaping of guarded tags: tags that only the program may write are escaped in content from files, tools and
//! repositories, and unescaped where the model quotes them.
//!
//! A guarded tag gets a backslash after its `<`; one that has some gets one more. So no escaped text can be
//! mistaken for what the program wrote, and [`unescape_tags`] gives back exactly what was there.
//!
//! **Guarded** is everything that a model would still read as such a tag: any case; white space, punctuation and
//! invisible characters before and inside the name; `_` or a space for `-`; lookalike brackets and letters (full-width,
//! mathematical, letterlike, superscript and subscript, Cyrillic, Greek); combining marks; the hidden alphabet of Unicode
//! tags; and a tag of the program that is cut off by the end of the text, because the next text may continue it. Control
//! tokens of chat templates that begin with `<` are guarded, too: `<|im_start|>` and every other `<|name|>`,
//! `<start_of_turn>`, `<<SYS>>`; they matter for servers that interpret them in content.
//!
//! **Not guarded** are ordinary markup, including `<system>`, `<user>` and `<SystemReminder>`; `<s>`, which is also HTML;
//! precomposed accented letters (`<sýstem-reminder>`), which are different letters; tokens without such a bracket
//! (`[INST]`) and role names (`Human:`), which look like prose; and tags written with entities or escapes
//! (`&lt;system-reminder&gt;`), the usual form of text *about* a tag and as harmless as the backslash.

mod guarded_tags;
mod lookalikes;
mod quoted_name;

use std::borrow::Cow;

use lookalikes::{TagAlphabet, is_opener};

pub use lookalikes::is_invisible;
pub use quoted_name::quote_name;

/// Tag name of reminders.
const REMINDER_TAG: &str = "system-reminder";

/// Names of tags that only the program may write.
pub const GUARDED_TAGS: [&str; 4] = [REMINDER_TAG, "git-snapshot", "instruction-file", "memory-note"];

/// Prefix of a text that replaces a tool result whose call is no longer in the view. Such a text is no user message.
pub const EARLIER_RESULT_PREFIX: &str = "[Result of an earlier tool call, ";

/// Escapes all guarded tags, for text from files, tools and repositories. Runs in linear time and copies nothing if
/// there is no such tag.
///
/// Do not apply it twice: each call adds a backslash.
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    edit_backslashes(text, guarded_tags::is_guarded, |backslashes| Some(backslashes + 1))
}

/// Reverts [`escape_tags`]: for every text, `unescape_tags(&escape_tags(text)) == text`.
///
/// For text that a model quotes from what it read: the old and new text of an edit, the content of a file to write, a
/// search pattern. A tool unescapes its input before it accesses files.
pub fn unescape_tags(text: &str) -> Cow<'_, str> {
    edit_backslashes(text, guarded_tags::is_guarded, |backslashes| backslashes.checked_sub(1))
}

/// Escapes guarded tags in all strings of a JSON text, after resolving string escapes. Strings without such a tag keep
/// their bytes.
pub fn escape_tags_in_json(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some(start) = memchr::memchr(b'"', &json.as_bytes()[from..]).map(|at| from + at) {
        let Some(end) = string_end(json.as_bytes(), start + 1) else { break };
        from = end;
        let literal = &json[start..end];
        if may_hold_opener(literal)
            && let Some(text) = crate::unescape(literal)
            && let Cow::Owned(escaped) = escape_tags(&text)
        {
            out.push_str(&json[copied..start]);
            crate::escape_into(&mut out, &escaped);
            copied = end;
        }
    }
    with_rest(json, out, copied)
}

/// Wraps a text in reminder tags. Foreign content in it must already be escaped.
pub fn wrap_reminder(text: &str) -> String {
    format!("<{REMINDER_TAG}>\n{text}\n</{REMINDER_TAG}>")
}

/// Returns the content of a reminder; none unless the whole text is one reminder.
pub fn unwrap_reminder(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix('<')?.strip_prefix(REMINDER_TAG)?.strip_prefix('>')?;
    Some(inside.strip_suffix('>')?.strip_suffix(REMINDER_TAG)?.strip_suffix("</")?.trim_matches('\n'))
}

/// Escapes reminder tags in a text, so that it can be wrapped in a reminder. Tags that are already escaped and other
/// guarded tags stay unchanged.
pub fn escape_reminder_tags(text: &str) -> Cow<'_, str> {
    edit_backslashes(text, guarded_tags::is_reminder, |backslashes| (backslashes == 0).then_some(1))
}

/// Changes the number of backslashes after the opening bracket of the tags that `is_meant` selects.
fn edit_backslashes(
    text: &str,
    is_meant: impl Fn(&str, TagAlphabet) -> bool,
    backslashes: impl Fn(usize) -> Option<usize>,
) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, opener) in tag_openers(text) {
        let behind = at + opener.len_utf8();
        let tag = text[behind..].trim_start_matches('\\');
        let there = text.len() - behind - tag.len();
        if let Some(wanted) = backslashes(there)
            && is_meant(tag, TagAlphabet::after_opener(opener))
        {
            out.push_str(&text[copied..behind]);
            out.extend(std::iter::repeat_n('\\', wanted));
            copied = behind + there;
        }
    }
    with_rest(text, out, copied)
}

/// Appends the rest of `text` from `copied` on; borrows `text` if `out` is empty.
fn with_rest(text: &str, mut out: String, copied: usize) -> Cow<'_, str> {
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Iterates over the brackets that could open a tag.
fn tag_openers(text: &str) -> impl Iterator<Item = (usize, char)> {
    let is_ascii = text.is_ascii();
    let plain = is_ascii.then(|| memchr::memchr_iter(b'<', text.as_bytes()).map(|at| (at, '<')));
    let others = (!is_ascii).then(|| text.char_indices().filter(|(_, letter)| is_opener(*letter)));
    plain.into_iter().flatten().chain(others.into_iter().flatten())
}

/// Returns true if a JSON string could contain the opening bracket of a tag.
fn may_hold_opener(literal: &str) -> bool {
    let bytes = literal.as_bytes();
    memchr::memchr(b'<', bytes).is_some()
        || memchr::memmem::find(bytes, b"\\u").is_some()
        || !literal.is_ascii()
}

/// End offset of the JSON string whose first character is at `from`.
fn string_end(json: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', json.get(from..)?)?;
        match json[at] {
            b'"' => return Some(at + 1),
            _ => from = at + 2,
        }
    }
}

#[cfg(test)]
mod tests;
