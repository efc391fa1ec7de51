//! What keeps content from speaking for the system: the tags that only the program may write, defused where they come
//! from files, tools and repositories, and brought back where the model quotes them.
//!
//! A guarded tag gets a backslash behind its `<`; one that has some gets one more. So nothing that is defused can be
//! mistaken for what the program wrote, and [`restore`] gives back exactly what was there.

use std::borrow::Cow;

/// The tag around reminders.
pub const REMINDER: &str = "system-reminder";

/// Names of tags that only the program may write.
pub const GUARDED: [&str; 3] = [REMINDER, "git-snapshot", "instruction-file"];

/// A text in which no guarded tag stands, for whatever a file, a tool or a repository says.
pub fn defuse(text: &str) -> Cow<'_, str> {
    edited(text, |backslashes| Some(backslashes + 1))
}

/// What a defused text was before.
pub fn restore(text: &str) -> Cow<'_, str> {
    edited(text, |backslashes| backslashes.checked_sub(1))
}

fn edited(text: &str, backslashes: impl Fn(usize) -> Option<usize>) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'<', text.as_bytes()) {
        let rest = &text[at + 1..];
        let tag = rest.trim_start_matches('\\');
        let there = rest.len() - tag.len();
        if let Some(wanted) = backslashes(there).filter(|_| is_guarded(tag)) {
            out.push_str(&text[copied..=at]);
            out.extend(std::iter::repeat_n('\\', wanted));
            copied = at + 1 + there;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether what follows a `<` opens or closes a guarded tag.
fn is_guarded(tag: &str) -> bool {
    let name = tag.trim_start_matches(|letter: char| letter == '/' || letter.is_whitespace());
    GUARDED.iter().any(|guarded| {
        name.as_bytes()
            .get(..guarded.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(guarded.as_bytes()))
    })
}

/// A text wrapped as a reminder. What came from elsewhere in it must have been defused.
pub fn reminder(text: &str) -> String {
    format!("<{REMINDER}>\n{text}\n</{REMINDER}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_tags_are_defused_and_come_back() {
        for (text, defused) in [
            ("a <system-reminder>b</system-reminder>", "a <\\system-reminder>b<\\/system-reminder>"),
            ("<\\system-reminder>", "<\\\\system-reminder>"),
            ("< /SYSTEM-Reminder x", "<\\ /SYSTEM-Reminder x"),
            ("<system> <systemreminder> a < b", "<system> <systemreminder> a < b"),
        ] {
            assert_eq!(defuse(text), defused);
            assert_eq!(restore(defused), text);
        }
    }
}
