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

/// One message.
struct Message<'a> {
    entry: Option<EntryId>,
    text: &'a str,
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
    let is_kept: Vec<bool> = messages
        .iter()
        .map(|message| input.kept.iter().any(|kept| contains_words(kept, message.text)))
        .collect();
    let costs = messages.iter().zip(&is_kept).map(|(message, is_kept)| (message, !is_kept));
    let fates = fates(costs, pointed, input);
    let mut lines = String::new();
    let mut beyond = pointed;
    let mut is_pointed = pointed > 0;
    for ((message, fate), is_kept) in messages.iter().zip(fates).zip(is_kept) {
        beyond += u64::from(!is_kept && matches!(fate, Fate::Pointed));
        if is_kept || contains_words(input.summary, message.text) {
            checked.verbatim += 1;
            continue;
        }
        match fate {
            Fate::Guaranteed => {
                checked.repaired += 1;
                lines.push_str(&whole(message.text));
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

fn whole(text: &str) -> String {
    format!("<user_message>\n{text}\n</user_message>\n")
}

fn beginning(message: &Message<'_>, transcript: &str) -> String {
    let entry = message.entry.map_or(String::new(), |entry| format!(" (entry {entry})"));
    format!(
        "A message of the user{entry} is too long to be repeated here; it stands whole in the transcript at \
         {transcript} and begins:\n<user_message>\n{}\n</user_message>\n",
        cut(message.text, BEGINNING)
    )
}

fn pointer(count: u64, transcript: &str) -> String {
    format!(
        "\nThe {count} earliest messages of the user are not repeated here, unless the summary quotes them. They stand in \
         the transcript at {transcript}, in the lines that hold \"origin\":\"person\"; look there when it matters what \
         the user wanted.\n"
    )
}

/// All messages, the oldest first, each once.
fn messages<'a>(input: &AuditInput<'a>) -> Vec<Message<'a>> {
    let facts = &input.facts.words;
    let known: rustc_hash::FxHashSet<EntryId> = facts.iter().filter_map(|words| words.entry).collect();
    let carried = input.carried.words.iter().filter(|words| !known.contains(&words.entry));
    let carried = carried.map(|words| Message { entry: Some(words.entry), text: words.text.trim() });
    let heard = facts.iter().map(|words| Message { entry: words.entry, text: words.text.trim() });
    carried.chain(heard).filter(|message| !message.text.is_empty()).collect()
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
            let whole = whole(message.text);
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
                carried.words.push(CarriedWords { entry, text: message.text.to_owned() });
            }
            _ => carried.pointed += 1,
        }
    }
    carried
}
