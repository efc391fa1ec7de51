//! Audit of the user's words: each message is verbatim in the summary, in the kept messages or appended;
//! beyond the budget, a pointer tells the model where it is.

use pal_extract::{contains_bounded, truncate};
use pal_model::{EntryId, PriorUserMessage, PriorUserMessages};

use super::AuditInput;

/// Result of the check.
pub(super) struct WordsCheck {
    /// All messages, including those that only the log holds.
    pub all: u64,
    pub verbatim: u64,
    pub repaired: u64,
    pub by_pointer: u64,
    pub carried: PriorUserMessages,
    pub repairs: String,
}

/// One message, with its texts.
struct AuditedMessage<'a> {
    entry: Option<EntryId>,
    texts: Vec<&'a str>,
}

/// Treatment of a message that is not visible.
enum MessageTreatment {
    /// Fits the budget.
    Guaranteed,
    /// Longer than the budget: only its beginning is quoted.
    Beginning,
    /// Older than the messages that fit.
    Pointed,
}

/// Quoted bytes of a message that is too long.
const BEGINNING: usize = 400;

/// Checks the user's words.
pub(super) fn check(input: &AuditInput<'_>) -> WordsCheck {
    let messages = messages(input);
    let pointed = input.carried.omitted.max(input.facts.omitted_words);
    let mut checked = WordsCheck {
        all: messages.len() as u64 + pointed,
        verbatim: 0,
        repaired: 0,
        by_pointer: pointed,
        carried: prior_messages(&messages, pointed, input),
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
        beyond += u64::from(!is_kept && matches!(fate, MessageTreatment::Pointed));
        let is_missing = |text: &&&str| !is_in_kept(input, text) && !stands_in(input.summary, text);
        let missing: Vec<&str> = message.texts.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            checked.verbatim += 1;
            continue;
        }
        match fate {
            MessageTreatment::Guaranteed => {
                checked.repaired += 1;
                lines.push_str(&whole(&missing));
            }
            MessageTreatment::Beginning => {
                checked.by_pointer += 1;
                let beginning = truncated_message(message, input.transcript);
                if !input.summary.contains(&beginning) {
                    lines.push_str(&beginning);
                }
            }
            MessageTreatment::Pointed => {
                checked.by_pointer += 1;
                is_pointed = true;
            }
        }
    }
    // The count depends on the budget, not on the summary, or the next audit would count differently.
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

/// Returns true if a text contains the words verbatim. Short words occur by chance, so they must be on their
/// own lines, a list item or between quotation marks.
fn stands_in(text: &str, words: &str) -> bool {
    const SHORT: usize = 40;
    if words.chars().count() >= SHORT {
        return contains_bounded(text, words);
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

/// Returns true if the text between these two is a line, an item or a quotation.
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

fn truncated_message(message: &AuditedMessage<'_>, transcript: &str) -> String {
    let entry = message.entry.map_or(String::new(), |entry| format!(" (entry {entry})"));
    format!(
        "A message of the user{entry} is too long to be repeated here; it stands whole in the transcript at \
         {transcript} and begins:\n<user_message>\n{}\n</user_message>\n",
        truncate(&message.texts.join("\n\n"), BEGINNING)
    )
}

fn pointer(count: u64, transcript: &str) -> String {
    format!(
        "\nThe {count} earliest messages of the user are not repeated here, unless the summary quotes them. They stand in \
         the transcript at {transcript}, in the lines that hold \"origin\":\"person\"; look there when it matters what \
         the user wanted.\n"
    )
}

/// All messages, oldest first, each once with all its texts.
fn messages<'a>(input: &AuditInput<'a>) -> Vec<AuditedMessage<'a>> {
    let facts = &input.facts.words;
    let known: rustc_hash::FxHashSet<EntryId> = facts.iter().filter_map(|words| words.entry).collect();
    let carried = input.carried.messages.iter().filter(|words| !known.contains(&words.entry));
    let carried = carried.map(|words| (Some(words.entry), words.text.trim()));
    let heard = facts.iter().map(|words| (words.entry, words.text.trim()));
    let mut messages: Vec<AuditedMessage<'a>> = Vec::new();
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
        messages.push(AuditedMessage { entry, texts: vec![text] });
    }
    messages
}

/// Treatment of each message; the newest are served first.
fn fates<'a>(
    messages: impl DoubleEndedIterator<Item = (&'a AuditedMessage<'a>, bool)>,
    pointed: u64,
    input: &AuditInput<'_>,
) -> Vec<MessageTreatment> {
    let frame = (input.estimate)(HEADING) + (input.estimate)(&pointer(pointed + 1_000_000, input.transcript));
    let budget = input.budgets.user_tokens.saturating_sub(frame);
    let mut left = budget;
    let mut is_full = false;
    let mut fates: Vec<MessageTreatment> = messages
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
                if fits(&whole) { MessageTreatment::Guaranteed } else { MessageTreatment::Pointed }
            } else if fits(&truncated_message(message, input.transcript)) {
                MessageTreatment::Beginning
            } else {
                MessageTreatment::Pointed
            }
        })
        .collect();
    fates.reverse();
    fates
}

/// Messages for the next boundary: the newest that fit the budget, visible or not.
fn prior_messages(
    messages: &[AuditedMessage<'_>],
    pointed: u64,
    input: &AuditInput<'_>,
) -> PriorUserMessages {
    let fates = fates(messages.iter().map(|message| (message, true)), pointed, input);
    let mut carried = PriorUserMessages { messages: Vec::new(), omitted: pointed };
    for (message, fate) in messages.iter().zip(fates) {
        match (fate, message.entry) {
            (MessageTreatment::Guaranteed, Some(entry)) => {
                let words =
                    message.texts.iter().map(|text| PriorUserMessage { entry, text: (*text).to_owned() });
                carried.messages.extend(words);
            }
            _ => carried.omitted += 1,
        }
    }
    carried
}
