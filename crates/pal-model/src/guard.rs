//! What keeps content from speaking for the system: the tags that only the program may write, defused where they come
//! from files, tools and repositories, and brought back where the model quotes them.
//!
//! A guarded tag gets a backslash behind its `<`; one that has some gets one more. So nothing that is defused can be
//! mistaken for what the program wrote, and [`restore`] gives back exactly what was there.
//!
//! **What counts as a tag** is what a model would still read as one: any case, white space, punctuation and invisible
//! characters in front of the name and inside it, `_` or a space for `-`, brackets and letters that look alike
//! (full-width, mathematical, letterlike, raised and lowered, Cyrillic, Greek), marks written over letters, the hidden
//! alphabet of Unicode tags, and a tag of ours that the end of the text cuts off, because the next text may begin with
//! its rest. Control tokens of chat templates that begin with `<` count, too: `<|im_start|>` and every other `<|name|>`,
//! `<start_of_turn>`, `<<SYS>>`; they matter for servers that read them in content.
//!
//! **What does not**: ordinary markup, `<system>`, `<user>` and `<SystemReminder>` among it; `<s>`, which is HTML as
//! well; letters with an accent built in (`<sýstem-reminder>`), which are other letters; tokens without such a bracket
//! (`[INST]`), and words that only name a role (`Human:`), since nothing tells them from prose; a tag spelled with
//! entities or escapes (`&lt;system-reminder&gt;`), which is how text *about* a tag is written everywhere, and is as
//! harmless as our backslash.

mod letters;
mod line;
mod names;

use std::borrow::Cow;

use letters::{Alphabet, is_opener};

pub use letters::is_unseen;
pub use line::one_line;

/// The tag around reminders.
pub const REMINDER: &str = "system-reminder";

/// Names of tags that only the program may write.
pub const GUARDED: [&str; 4] = [REMINDER, "git-snapshot", "instruction-file", "memory-note"];

/// How a text begins that stands for a tool result whose call is gone: nobody's words, whatever follows.
pub const EARLIER_RESULT: &str = "[Result of an earlier tool call, ";

/// A text in which no guarded tag stands, for whatever a file, a tool or a repository says. Takes time in proportion to
/// the text, and copies nothing if there is no such tag.
///
/// Not for a text that was defused before: each time adds a backslash.
pub fn defuse(text: &str) -> Cow<'_, str> {
    edited(text, names::is_guarded, |backslashes| Some(backslashes + 1))
}

/// What a defused text was before; for every text, `restore(&defuse(text)) == text`.
///
/// For what a model writes by quoting what it read: the old and the new text of an edit, the content of a file to be
/// written, a pattern to search for. A tool whose input came from a model restores it before it looks at files.
pub fn restore(text: &str) -> Cow<'_, str> {
    edited(text, names::is_guarded, |backslashes| backslashes.checked_sub(1))
}

/// JSON in whose strings no guarded tag stands, however they are spelled: what counts is the characters that the
/// escapes stand for. Strings without one keep their spelling.
pub fn defuse_json(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut from = 0;
    while let Some(start) = memchr::memchr(b'"', &json.as_bytes()[from..]).map(|at| from + at) {
        let Some(end) = string_end(json.as_bytes(), start + 1) else { break };
        from = end;
        let literal = &json[start..end];
        if may_hold_opener(literal)
            && let Some(text) = crate::unescape(literal)
            && let Cow::Owned(defused) = defuse(&text)
        {
            out.push_str(&json[copied..start]);
            crate::escape_into(&mut out, &defused);
            copied = end;
        }
    }
    finished(json, out, copied)
}

/// A text wrapped as a reminder. What came from elsewhere in it must have been defused.
pub fn reminder(text: &str) -> String {
    format!("<{REMINDER}>\n{text}\n</{REMINDER}>")
}

/// What a reminder says, if the whole text is one.
pub fn reminded(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix('<')?.strip_prefix(REMINDER)?.strip_prefix('>')?;
    Some(inside.strip_suffix('>')?.strip_suffix(REMINDER)?.strip_suffix("</")?.trim_matches('\n'))
}

/// What a reminder may hold: a text in which no reminder begins or ends. Tags that were defused, and other tags of the
/// program, stay as they are.
pub fn without_nested(text: &str) -> Cow<'_, str> {
    edited(text, names::is_reminder, |backslashes| (backslashes == 0).then_some(1))
}

/// The text with another number of backslashes behind the opening bracket of some tags.
fn edited(
    text: &str,
    is_meant: impl Fn(&str, Alphabet) -> bool,
    backslashes: impl Fn(usize) -> Option<usize>,
) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, opener) in openers(text) {
        let behind = at + opener.len_utf8();
        let tag = text[behind..].trim_start_matches('\\');
        let there = text.len() - behind - tag.len();
        if let Some(wanted) = backslashes(there)
            && is_meant(tag, Alphabet::behind(opener))
        {
            out.push_str(&text[copied..behind]);
            out.extend(std::iter::repeat_n('\\', wanted));
            copied = behind + there;
        }
    }
    finished(text, out, copied)
}

/// What was written so far and the rest; the text itself if nothing was.
fn finished(text: &str, mut out: String, copied: usize) -> Cow<'_, str> {
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The brackets that could open a tag.
fn openers(text: &str) -> impl Iterator<Item = (usize, char)> {
    let is_ascii = text.is_ascii();
    let plain = is_ascii.then(|| memchr::memchr_iter(b'<', text.as_bytes()).map(|at| (at, '<')));
    let others = (!is_ascii).then(|| text.char_indices().filter(|(_, letter)| is_opener(*letter)));
    plain.into_iter().flatten().chain(others.into_iter().flatten())
}

/// Whether a JSON string could hold the opening bracket of a tag.
fn may_hold_opener(literal: &str) -> bool {
    let bytes = literal.as_bytes();
    memchr::memchr(b'<', bytes).is_some()
        || memchr::memmem::find(bytes, b"\\u").is_some()
        || !literal.is_ascii()
}

/// Where a JSON string ends whose first character stands at `from`.
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
