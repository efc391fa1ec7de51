//! Phrases in double quotes of a query: text must contain them word for word.

use std::ops::Range;

/// Opening and closing marks of a phrase.
const MARKS: [(char, char); 2] = [('"', '"'), ('“', '”')];

/// Phrases of a query, normalized.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct QuotedPhrases(Vec<String>);

impl QuotedPhrases {
    /// Reads the phrases of a query. A mark without a partner is ignored.
    pub(crate) fn of(query: &str) -> QuotedPhrases {
        let mut phrases = Vec::new();
        let mut rest = query;
        while let Some((at, (open, close))) =
            MARKS.iter().filter_map(|marks| Some((rest.find(marks.0)?, *marks))).min_by_key(|(at, _)| *at)
        {
            let after = rest.get(at + open.len_utf8()..).unwrap_or_default();
            let Some((phrase, behind)) = after.split_once(close) else { break };
            let phrase = normalize(phrase);
            if !phrase.is_empty() {
                phrases.push(phrase);
            }
            rest = behind;
        }
        QuotedPhrases(phrases)
    }

    /// Returns true if the query quotes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The words of all phrases.
    pub(crate) fn to_query(&self) -> String {
        self.0.join(" ")
    }

    /// Returns true if a text contains all phrases; case and white space are ignored.
    pub(crate) fn are_in(&self, text: &str) -> bool {
        if self.is_empty() {
            return true;
        }
        let text = normalize(text);
        self.0.iter().all(|phrase| text.contains(phrase.as_str()))
    }

    /// Byte range of the first phrase in a text, if it stands there with the same white space.
    pub(crate) fn first_in(&self, text: &str) -> Option<Range<usize>> {
        let phrase = self.0.first()?;
        let at = text.to_ascii_lowercase().find(phrase.as_str())?;
        Some(at..at + phrase.len())
    }
}

fn normalize(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_read_and_compared() {
        let phrases = QuotedPhrases::of("why \"The  Port\" and “is closed” or \"open");
        assert_eq!(phrases.0, ["the port", "is closed"]);
        assert!(phrases.are_in("IS CLOSED: the\nport"));
        assert!(!phrases.are_in("the port was closed"));
        assert_eq!(phrases.first_in("see the port"), Some(4..12));
        assert!(QuotedPhrases::of("no \"\" marks \"").is_empty());
    }
}
