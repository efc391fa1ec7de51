//! Constraints that the user stated: sentences such as "do not …" and "always …".

use pal_model::{EntryBody, LogEntry, MessageOrigin};

use crate::replay::texts;

/// Words that make a sentence a constraint.
const MARKERS: [&str; 9] =
    ["do not ", "don't ", "dont ", "never ", "always ", "must ", "make sure", "avoid ", "should not "];
/// Longer messages are pasted text.
const MESSAGE_MAX: usize = 4_000;
/// Lengths of a sentence, in bytes.
const SENTENCE: std::ops::RangeInclusive<usize> = 12..=400;

/// Constraints among entries, each once, with single spaces.
pub(crate) fn find_constraints(entries: &[LogEntry]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in entries {
        let EntryBody::User(user) = &entry.body else { continue };
        if user.origin != MessageOrigin::Person {
            continue;
        }
        for text in texts(&user.content) {
            let text = text.trim();
            // Pasted text and what a client inserts as the user.
            if text.len() > MESSAGE_MAX || text.starts_with(['<', '[', '{']) {
                continue;
            }
            for sentence in pal_extract::sentences(text) {
                let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
                let lower = sentence.to_lowercase();
                let is_meant = SENTENCE.contains(&sentence.len())
                    && MARKERS
                        .iter()
                        .any(|marker| lower.starts_with(marker) || lower.contains(&format!(" {marker}")));
                if is_meant && !found.contains(&sentence) {
                    found.push(sentence);
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use pal_testkit::script;

    #[test]
    fn sentences_that_forbid_or_demand_are_constraints() {
        let entries =
            script("user: Fix the parser. Never touch src/gen.rs, please. Mustard is fine.\nmodel m1: I must go on.\n")
                .unwrap();
        assert_eq!(find_constraints(&entries), ["Never touch src/gen.rs, please."]);
    }
}
