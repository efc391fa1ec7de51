//! Words that a summary attributes to the user: those that the user never wrote are invented.
//!
//! A summary lists the user's messages in a section of their own and quotes them elsewhere. A shortened or
//! slightly changed message is not invented: most of its words must occur in one message of the user.

use pal_extract::{RESTORED_HEADING, USER_MESSAGES_SECTION, section};

use super::audited_items::INVENTED_WORDS;
use super::named_paths::escaped;
use super::{AuditInput, plain};

/// Share of a claim's significant words that one message must contain, in percent.
const ENOUGH_PERCENT: usize = 60;
/// Minimum number of words of a quotation outside of the list of messages.
const QUOTATION_WORDS: usize = 3;
/// Opening and closing quotation marks.
const QUOTES: [(char, char); 3] = [('"', '"'), ('“', '”'), ('«', '»')];

/// Words in the summary that are given as the user's and that the user never wrote, in order.
pub(super) fn invented(input: &AuditInput<'_>) -> Vec<String> {
    let evidence = Evidence::new(input);
    // The items that the audit appended are facts.
    let summary = input.summary.split(RESTORED_HEADING).next().unwrap_or_default();
    let listed = section(summary, USER_MESSAGES_SECTION);
    let mut invented: Vec<String> = Vec::new();
    let mut add = |claim: &str| {
        if !invented.iter().any(|known| known == claim) {
            invented.push(claim.to_owned());
        }
    };
    // A text that was cut cannot be compared.
    let is_cut = |claim: &str| claim.contains("[…");
    let messages = listed.lines().flat_map(listed_claims);
    messages.filter(|claim| !is_cut(claim) && !evidence.is_said(claim)).for_each(&mut add);
    let others = summary.lines().filter(|line| !line.contains(INVENTED_WORDS));
    let quotations = others.flat_map(attributed_quotations);
    let is_invented = |claim: &&str| !is_cut(claim) && !evidence.is_said(claim) && !evidence.is_seen(claim);
    quotations.filter(is_invented).for_each(&mut add);
    invented
}

/// Texts in which the user's words can stand.
struct Evidence<'a> {
    input: &'a AuditInput<'a>,
    /// The user's messages, normalized.
    messages: Vec<String>,
    /// Earlier summaries, normalized, if they are the only record of some messages.
    summaries: Vec<String>,
}

impl<'a> Evidence<'a> {
    fn new(input: &'a AuditInput<'a>) -> Evidence<'a> {
        let facts = input.facts;
        let words = facts.words.iter().map(|words| words.text.as_str());
        let carried = input.carried.messages.iter().map(|words| words.text.as_str());
        let inserted = facts.inserted_texts.iter().map(String::as_str);
        let messages = words.chain(carried).chain(inserted).chain(input.kept.iter().copied());
        let is_complete = facts.has_earlier_words && facts.omitted_words.max(input.carried.omitted) == 0;
        let summaries = facts.earlier_summaries.iter().filter(|_| !is_complete);
        Evidence {
            input,
            messages: messages.map(plain).collect(),
            summaries: summaries.map(|summary| plain(summary)).collect(),
        }
    }

    /// Returns true if the user wrote a claim, or most of it.
    fn is_said(&self, claim: &str) -> bool {
        let parts: Vec<String> = parts(claim).iter().map(|part| plain(part)).collect();
        let words: Vec<&str> = parts.iter().flat_map(|part| significant_words(part)).collect();
        if words.is_empty() {
            return true;
        }
        let is_in = |text: &String| {
            let there = words.iter().filter(|word| text.contains(**word)).count();
            parts.iter().all(|part| text.contains(part.as_str()))
                || there * 100 >= words.len() * ENOUGH_PERCENT
        };
        self.messages.iter().any(is_in) || (!self.is_flagged(claim) && self.summaries.iter().any(is_in))
    }

    /// Returns true if the session contains a claim, no matter who wrote it.
    fn is_seen(&self, claim: &str) -> bool {
        let seen =
            |part: &str| (self.input.seen)(part) || escaped(part).iter().any(|part| (self.input.seen)(part));
        !self.is_flagged(claim) && parts(claim).iter().all(|part| seen(part.trim()))
    }

    /// Returns true if the previous audit flagged a claim: the summary that it was found in does not confirm it.
    fn is_flagged(&self, claim: &str) -> bool {
        let claim = plain(claim);
        let mut flagged = self.input.previous.iter().flat_map(|audit| &audit.invented_words);
        flagged.any(|flagged| plain(flagged) == claim)
    }
}

/// Claims of one line of the list of messages: its quotations, or the whole line.
fn listed_claims(line: &str) -> Vec<&str> {
    let line = line.trim().trim_start_matches('\\');
    let number = line.len() - line.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let numbered = line.get(number..).filter(|_| number > 0).and_then(|rest| rest.strip_prefix(['.', ')']));
    let item = numbered.unwrap_or(line).trim_start_matches(['-', '*', '•', '>', ' ']).trim_end();
    // Introductions, and notes about what was left out.
    if item.ends_with(':') || item.starts_with('…') || item.starts_with("None") || item.starts_with('<') {
        return Vec::new();
    }
    let quoted = quotations(item);
    match item.starts_with(['"', '“', '«']) && !quoted.is_empty() {
        true => quoted.into_iter().map(|(_, claim)| claim).collect(),
        false => vec![item],
    }
}

/// Quotations in a line that names the user before them.
fn attributed_quotations(line: &str) -> Vec<&str> {
    let is_attributed = |at: usize| line.get(..at).is_some_and(|lead| lead.to_lowercase().contains("user"));
    let is_long = |claim: &&str| claim.split_whitespace().count() >= QUOTATION_WORDS;
    let quoted = quotations(line).into_iter().filter(|(at, _)| is_attributed(*at));
    quoted.map(|(_, claim)| claim).filter(is_long).collect()
}

/// Texts between quotation marks, with the position of the mark.
fn quotations(line: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(rest) = line.get(from..) {
        let mark = |letter: char| QUOTES.iter().find(|(opens, _)| *opens == letter);
        let open = rest.char_indices().find_map(|(at, letter)| Some((at, letter, mark(letter)?.1)));
        let Some((at, opens, closes)) = open else { break };
        let start = from + at + opens.len_utf8();
        let Some(length) = line.get(start..).and_then(|rest| rest.find(closes)) else { break };
        found.extend(line.get(start..start + length).map(|text| (from + at, text)));
        from = start + length + closes.len_utf8();
    }
    found
}

/// Parts of a claim between omissions, which are marked by dots, or by dots in brackets with a note, and between the
/// borders of boxes, where lines were joined.
fn parts(claim: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = claim;
    while let Some((at, dots)) =
        ["…", "...", "│"].iter().filter_map(|dots| Some((rest.find(dots)?, *dots))).min()
    {
        let (before, after) = rest.split_at(at);
        let bracketed = before.strip_suffix('[');
        parts.push(bracketed.unwrap_or(before));
        let after = after.get(dots.len()..).unwrap_or_default();
        rest = bracketed.and_then(|_| Some(after.split_once(']')?.1)).unwrap_or(after);
    }
    parts.push(rest);
    parts
}

/// Words of more than three letters.
fn significant_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_from_lists_and_quotations() {
        for (line, claims) in [
            ("- fix the parser", vec!["fix the parser"]),
            ("12. \"fix it\" and \"ship it\" (twice)", vec!["fix it", "ship it"]),
            ("- say \"please\" first", vec!["say \"please\" first"]),
            ("- … and 3 earlier ones", vec![]),
            ("After the break:", vec![]),
            ("\\## 7. Pending tasks", vec!["## 7. Pending tasks"]),
        ] {
            assert_eq!(listed_claims(line), claims, "{line}");
        }
        assert_eq!(attributed_quotations("The user: “never push to main”, \"ok\""), ["never push to main"]);
        assert!(attributed_quotations("Said \"a b c\" to the user").is_empty());
        assert_eq!(parts("one [… 20 more bytes]two...three"), ["one ", "two", "three"]);
    }
}
