//! The nine sections of a summary: their names and shares, and finding them again in an earlier one.

/// The sections, each with its share of the room in hundredths.
pub(crate) const SECTIONS: [(&str, usize); 9] = [
    ("Request and intent", 6),
    ("Key concepts and decisions", 6),
    ("Files and code", 16),
    ("Errors and fixes", 8),
    ("Problem solving", 8),
    ("All user messages", 42),
    ("Pending tasks", 4),
    ("Current work", 7),
    ("Next step", 3),
];
/// Which of them holds the user's words.
pub(crate) const WORDS: usize = 5;
/// What an empty section says.
pub(crate) const NOTHING: &str = "None seen.";

/// Phrases with which summaries of other agents begin.
const OF_OTHERS: [&str; 4] = [
    "This session is being continued from a previous conversation",
    "The session so far was compacted",
    "Another language model started to solve this problem",
    "<state_snapshot>",
];

/// The heading of a section.
pub(crate) fn heading(index: usize) -> String {
    let name = SECTIONS.get(index).map_or("", |(name, _)| name);
    format!("## {}. {name}", index + 1)
}

/// Whether a text is a summary in our form.
pub(crate) fn is_ours(text: &str) -> bool {
    text.contains(&heading(WORDS))
}

/// Whether a text is a summary of what came before it.
pub(crate) fn is_summary(text: &str) -> bool {
    is_ours(text) || OF_OTHERS.iter().any(|phrase| text.trim_start().starts_with(phrase))
}

/// A section of an earlier summary of ours; empty if there is none.
pub(crate) fn carried(earlier: &str, index: usize) -> &str {
    let Some((_, after)) = earlier.split_once(&heading(index)) else { return "" };
    let next = if index + 1 < SECTIONS.len() { after.find(&heading(index + 1)) } else { after.find("\n</") };
    let body = after.get(..next.unwrap_or(after.len())).unwrap_or_default().trim_matches('\n');
    if body == NOTHING { "" } else { body }
}
