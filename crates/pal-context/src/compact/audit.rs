//! The audit of a summary (§4.13): what must survive is in it, or is appended; what it made up is said to be made up.
//!
//! What is guaranteed follows from the facts and the budgets alone, never from the summary: the newest words of the user
//! that fit, the last error, the open tasks and the newest written files that fit. So an audited summary passes its own
//! audit, and a poor one costs no more than a good one.

mod items;
mod words;

use pal_extract::{Facts, RESTORED, paths_named};
use pal_model::{Audit, Carried, escape_into};

/// What is audited, and against what.
#[derive(Clone, Copy)]
pub struct AuditInput<'a> {
    /// What the summarised stretch holds; kept messages may be part of it.
    pub facts: &'a Facts,
    /// What the boundary before carried.
    pub carried: &'a Carried,
    /// The summary.
    pub summary: &'a str,
    /// The texts of the messages that stay in sight beside it.
    pub kept: &'a [&'a str],
    /// What may be appended.
    pub budgets: AuditBudgets,
    /// Tokens of a text.
    pub estimate: &'a dyn Fn(&str) -> u64,
    /// Where the log is, in words for the model.
    pub transcript: &'a str,
    /// Whether something stood anywhere in the session.
    pub seen: &'a dyn Fn(&str) -> bool,
}

/// What may be appended, in tokens, as scaled to the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditBudgets {
    /// For the user's words.
    pub user_tokens: u64,
    /// For everything else.
    pub repair_tokens: u64,
}

/// What the audit says of a summary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audited {
    /// What follows the summary behind an empty line; empty if nothing is missing.
    pub repairs: String,
    /// The figures.
    pub audit: Audit,
    /// What the next audit must know.
    pub carried: Carried,
}

/// Audits a summary.
pub fn audit(input: &AuditInput<'_>) -> Audited {
    let invented = invented(input);
    let words = words::check(input);
    let items = items::check(input, &invented);
    let mut repairs = String::new();
    if !words.repairs.is_empty() || !items.repairs.is_empty() {
        if !input.summary.contains(RESTORED) {
            repairs.push_str(RESTORED);
            repairs.push('\n');
        }
        repairs.push_str(&items.repairs);
        repairs.push_str(&words.repairs);
    }
    let audit = Audit {
        user_messages: words.all,
        user_messages_verbatim: words.verbatim,
        user_messages_repaired: words.repaired,
        user_messages_by_pointer: words.by_pointer,
        paths: items.paths.all,
        paths_kept: items.paths.kept,
        paths_repaired: items.paths.repaired,
        todos: items.todos.all,
        todos_kept: items.todos.kept,
        todos_repaired: items.todos.repaired,
        error_kept: items.error_kept,
        invented,
    };
    Audited { repairs, audit, carried: words.carried }
}

/// The paths that the summary names and the session never did, in order.
fn invented(input: &AuditInput<'_>) -> Vec<String> {
    let named = paths_named(input.summary);
    named.into_iter().filter(|path| !was_seen(input, path)).map(str::to_owned).collect()
}

/// Whether a path, as a summary spells it, stood somewhere: whole, without folders in front of it, or as a name and the
/// folder that it lies in, since listings name files without their folders.
fn was_seen(input: &AuditInput<'_>, path: &str) -> bool {
    let seen = |text: &str| {
        input.facts.mention(text)
            || input.carried.words.iter().any(|words| words.text.contains(text))
            || input.transcript.contains(text)
            || (input.seen)(text)
            || escaped(text).iter().any(|spelled| (input.seen)(spelled))
    };
    let path = path.trim_start_matches("./").trim_start_matches("~/").trim_start_matches("../");
    if seen(path) {
        return true;
    }
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let mut rest = path;
    while let Some((_, shorter)) = rest.split_once('/').filter(|(_, shorter)| shorter.contains('/')) {
        if seen(shorter) {
            return true;
        }
        rest = shorter;
    }
    let parent = folder.rsplit('/').next().unwrap_or_default();
    seen(name) && (parent.is_empty() || seen(parent))
}

/// The other spellings of a text inside of JSON, since logs are searched as they stand: with what must be escaped, with
/// letters beyond ASCII as numbers, and each with escaped slashes.
fn escaped(text: &str) -> Vec<String> {
    let mut quoted = String::new();
    escape_into(&mut quoted, text);
    let needed = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    let numbered = |spell: fn(u16) -> String| {
        let mut out = String::new();
        for letter in needed.chars() {
            if letter.is_ascii() {
                out.push(letter);
            } else {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&spell(*unit)));
            }
        }
        out
    };
    let lower = numbered(|unit| format!("\\u{unit:04x}"));
    let upper = numbered(|unit| format!("\\u{unit:04X}"));
    let mut spellings = vec![needed.to_owned(), lower, upper];
    spellings.extend(spellings.clone().iter().map(|spelled| spelled.replace('/', "\\/")));
    spellings.sort_unstable();
    spellings.dedup();
    spellings.retain(|spelled| spelled != text);
    spellings
}

#[cfg(test)]
mod tests;
