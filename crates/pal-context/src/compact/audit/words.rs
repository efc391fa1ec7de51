//! The user's words: each stands word for word in the summary, in the kept messages or behind the summary; or, beyond
//! the budget, the model is told where it stands.

use pal_extract::{contains_words, cut};
use pal_model::{Carried, CarriedWords, EntryId};

use super::AuditInput;

/// What was found of the user's words.
pub(super) struct Checked {
    /// All of them, with those that only the log holds.
    pub all: u64,
    pub verbatim: u64,
    pub repaired: u64,
    pub by_pointer: u64,
    pub carried: Carried,
    pub repairs: String,
}

/// One message, with its texts.
struct Message<'a> {
    entry: Option<EntryId>,
    texts: Vec<&'a str>,
}

/// What becomes of a message that is not in sight.
enum Fate {
    /// It fits into the budget.
    Guaranteed,
    /// It is longer than the budget: its beginning is said.
    Beginning,
    /// It is older than what fits.
    Pointed,
}

/// Bytes of the beginning of a message that is too long to be repeated.
const BEGINNING: usize = 400;

/// Checks the user's words.
pub(super) fn check(input: &AuditInput<'_>) -> Checked {
    let messages = messages(input);
    let pointed = input.carried.pointed.max(input.facts.pointed);
    let mut checked = Checked {
        all: messages.len() as u64 + pointed,
        verbatim: 0,
        repaired: 0,
        by_pointer: pointed,
        carried: carried(&messages, pointed, input),
        repairs: String::new(),
    };
    let is_kept: Vec<bool> =
        messages.iter().map(|message| message.texts.iter().all(|text| is_in_kept(input, text))).collect();
    let costs = messages.iter().zip(&is_kept).map(|(message, is_kept)| (message, !is_kept));
    let fates = fates(costs, pointed, input);
    let mut lines = String::new();
    let mut beyond = pointed;
    let mut is_pointed = pointed > 0;
    for ((message, fate), is_kept) in messages.iter().zip(fates).zip(is_kept) {
        beyond += u64::from(!is_kept && matches!(fate, Fate::Pointed));
        let is_missing = |text: &&&str| !is_in_kept(input, text) && !stands_in(input.summary, text);
        let missing: Vec<&str> = message.texts.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            checked.verbatim += 1;
            continue;
        }
        match fate {
            Fate::Guaranteed => {
                checked.repaired += 1;
                lines.push_str(&whole(&missing));
            }
            Fate::Beginning => {
                checked.by_pointer += 1;
                let beginning = beginning(message, input.transcript);
                if !input.summary.contains(&beginning) {
                    lines.push_str(&beginning);
                }
            }
            Fate::Pointed => {
                checked.by_pointer += 1;
                is_pointed = true;
            }
        }
    }
    // The count follows from the budget, not from the summary, or the next audit would count anew.
    let pointer = pointer(beyond, input.transcript);
    if is_pointed && !input.summary.contains(&pointer) {
        checked.repairs.push_str(&pointer);
    }
    if !lines.is_empty() {
        checked.repairs.push_str(HEADING);
        checked.repairs.push_str(&lines);
    }
    checked
}

const HEADING: &str = "\nMessages of the user that the summary lacks, word for word, the oldest first:\n";

fn is_in_kept(input: &AuditInput<'_>, text: &str) -> bool {
    input.kept.iter().any(|kept| stands_in(kept, text))
}

/// Whether a text holds what somebody said, as said. Short words occur anywhere by chance, so they must stand as a
/// message does: on lines of their own, as an item of a list or between quotation marks.
fn stands_in(text: &str, words: &str) -> bool {
    const SHORT: usize = 40;
    if words.chars().count() >= SHORT {
        return contains_words(text, words);
    }
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(words)).map(|found| from + found) {
        let (before, rest) = text.split_at(at);
        if stands_alone(before, rest.get(words.len()..).unwrap_or_default()) {
            return true;
        }
        from = at + rest.chars().next().map_or(1, char::len_utf8);
    }
    false
}

/// Whether what stands between these two is a line, an item or a quotation.
fn stands_alone(before: &str, after: &str) -> bool {
    const QUOTES: [(char, char); 6] =
        [('"', '"'), ('“', '”'), ('`', '`'), ('\'', '\''), ('‘', '’'), ('«', '»')];
    let is_quoted = QUOTES.iter().any(|(opens, closes)| {
        let outside = before.strip_suffix(*opens);
        // Between two quotations nothing is quoted, and an apostrophe inside of a word opens nothing.
        let opens_here = outside.is_some_and(|outside| !outside.ends_with(char::is_alphanumeric));
        opens_here && after.starts_with(*closes)
    });
    let lead = before.rsplit('\n').next().unwrap_or_default().trim();
    let is_number = lead
        .strip_suffix(['.', ')'])
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let is_start = lead.is_empty() || ["-", "*", "•", ">"].contains(&lead) || is_number;
    is_quoted || (is_start && after.split('\n').next().unwrap_or_default().trim().is_empty())
}

fn whole(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("<user_message>\n{text}\n</user_message>\n")).collect()
}

fn beginning(message: &Message<'_>, transcript: &str) -> String {
    let entry = message.entry.map_or(String::new(), |entry| format!(" (entry {entry})"));
    format!(
        "A message of the user{entry} is too long to be repeated here; it stands whole in the transcript at \
         {transcript} and begins:\n<user_message>\n{}\n</user_message>\n",
        cut(&message.texts.join("\n\n"), BEGINNING)
    )
}

fn pointer(count: u64, transcript: &str) -> String {
    format!(
        "\nThe {count} earliest messages of the user are not repeated here, unless the summary quotes them. They stand in \
         the transcript at {transcript}, in the lines that hold \"origin\":\"person\"; look there when it matters what \
         the user wanted.\n"
    )
}

/// All messages, the oldest first, each once, whatever the number of its texts.
fn messages<'a>(input: &AuditInput<'a>) -> Vec<Message<'a>> {
    let facts = &input.facts.words;
    let known: rustc_hash::FxHashSet<EntryId> = facts.iter().filter_map(|words| words.entry).collect();
    let carried = input.carried.words.iter().filter(|words| !known.contains(&words.entry));
    let carried = carried.map(|words| (Some(words.entry), words.text.trim()));
    let heard = facts.iter().map(|words| (words.entry, words.text.trim()));
    let mut messages: Vec<Message<'a>> = Vec::new();
    let mut places: rustc_hash::FxHashMap<EntryId, usize> = rustc_hash::FxHashMap::default();
    for (entry, text) in carried.chain(heard).filter(|(_, text)| !text.is_empty()) {
        let place = entry.and_then(|entry| places.get(&entry)).and_then(|place| messages.get_mut(*place));
        if let Some(message) = place {
            message.texts.push(text);
            continue;
        }
        if let Some(entry) = entry {
            places.insert(entry, messages.len());
        }
        messages.push(Message { entry, texts: vec![text] });
    }
    messages
}

/// What becomes of each message, the newest being served first.
fn fates<'a>(
    messages: impl DoubleEndedIterator<Item = (&'a Message<'a>, bool)>,
    pointed: u64,
    input: &AuditInput<'_>,
) -> Vec<Fate> {
    let frame = (input.estimate)(HEADING) + (input.estimate)(&pointer(pointed + 1_000_000, input.transcript));
    let budget = input.budgets.user_tokens.saturating_sub(frame);
    let mut left = budget;
    let mut is_full = false;
    let mut fates: Vec<Fate> = messages
        .rev()
        .map(|(message, costs)| {
            let mut fits = |text: &str| {
                let cost = if costs { (input.estimate)(text) } else { 0 };
                is_full = is_full || cost > left;
                left -= if is_full { 0 } else { cost };
                !is_full
            };
            let whole = whole(&message.texts);
            if (input.estimate)(&whole) <= budget {
                if fits(&whole) { Fate::Guaranteed } else { Fate::Pointed }
            } else if fits(&beginning(message, input.transcript)) {
                Fate::Beginning
            } else {
                Fate::Pointed
            }
        })
        .collect();
    fates.reverse();
    fates
}

/// What the next boundary carries: the newest messages that fit into the budget, in sight or not.
fn carried(messages: &[Message<'_>], pointed: u64, input: &AuditInput<'_>) -> Carried {
    let fates = fates(messages.iter().map(|message| (message, true)), pointed, input);
    let mut carried = Carried { words: Vec::new(), pointed };
    for (message, fate) in messages.iter().zip(fates) {
        match (fate, message.entry) {
            (Fate::Guaranteed, Some(entry)) => {
                let words = message.texts.iter().map(|text| CarriedWords { entry, text: (*text).to_owned() });
                carried.words.extend(words);
            }
            _ => carried.pointed += 1,
        }
    }
    carried
}
