//! The nine sections of a summary: names, shares, and finding them in an earlier summary.

use memchr::memmem;

/// Section titles, each with its share of the room in percent.
pub const SECTIONS: [(&str, usize); 9] = [
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
/// Index of the section with the user's messages.
pub const USER_MESSAGES_SECTION: usize = 5;
/// Index of the section with the open tasks.
pub(crate) const PENDING_TASKS_SECTION: usize = 6;
/// Heading of the items that the audit appends to a summary.
pub const RESTORED_HEADING: &str = "## Restored by the audit";
/// Text of an empty section.
pub(crate) const NOTHING_SEEN: &str = "None seen.";

/// First sentence of the message that delivers a summary.
pub const CONTINUATION_NOTICE: &str = "This session goes on from an earlier part that has been compacted.";

/// First phrases of summaries, ours and other agents'.
const BEGINNINGS: [&str; 5] = [
    CONTINUATION_NOTICE,
    "This session is being continued from a previous conversation",
    "The session so far was compacted",
    "Another language model started to solve this problem",
    "<state_snapshot>",
];

/// Markdown heading of a section.
pub fn heading(index: usize) -> String {
    let name = SECTIONS.get(index).map_or("", |(name, _)| name);
    format!("## {}. {name}", index + 1)
}

/// Byte offset of a section heading: at the start of a line, since quoted text may contain the same words.
/// Case is ignored.
fn heading_in(text: &str, index: usize) -> Option<usize> {
    let heading = heading(index);
    let mut marks = memmem::find_iter(text.as_bytes(), "## ");
    marks.find(|at| {
        let is_start = at.checked_sub(1).is_none_or(|before| text.as_bytes().get(before) == Some(&b'\n'));
        let spelled = text.as_bytes().get(*at..at + heading.len());
        is_start && spelled.is_some_and(|spelled| spelled.eq_ignore_ascii_case(heading.as_bytes()))
    })
}

/// Returns true if a text is a summary in our format.
pub(crate) fn is_ours(text: &str) -> bool {
    heading_in(text, USER_MESSAGES_SECTION).is_some()
}

/// Returns true if a text is a summary. One heading may be quoted; several make a summary.
pub fn is_summary(text: &str) -> bool {
    const FORM: usize = 3;
    let headings = || (0..SECTIONS.len()).filter(|index| heading_in(text, *index).is_some()).count();
    (is_ours(text) && headings() >= FORM)
        || BEGINNINGS.iter().any(|phrase| text.trim_start().starts_with(phrase))
}

/// Body of a section of a summary in our format; empty if missing. A section may contain anything, so only
/// the next section's heading ends it; the last one ends at any heading or at a closing tag.
pub fn section(summary: &str, index: usize) -> &str {
    let Some(start) = heading_in(summary, index) else { return "" };
    let after = summary.get(start + heading(index).len()..).unwrap_or_default();
    let end = if index + 1 < SECTIONS.len() {
        // If newer messages follow a summary, its last sections have other names.
        heading_in(after, index + 1).or_else(|| after.find(&format!("\n## {}. ", index + 2)))
    } else {
        ["\n</", "\n## ", "\n---"].iter().filter_map(|mark| after.find(mark)).min()
    };
    let body = after.get(..end.unwrap_or(after.len())).unwrap_or_default().trim_matches('\n');
    if body == NOTHING_SEEN { "" } else { body }
}

/// Open tasks listed in a summary of any author: the items under a heading about pending tasks.
pub fn open_items(summary: &str) -> Vec<&str> {
    // In our format the list has a fixed section; a quotation before it is no list.
    let form = heading_in(summary, PENDING_TASKS_SECTION).and_then(|at| summary.get(at..)).unwrap_or(summary);
    let mut lines = form.lines().skip_while(|line| !is_pending_heading(line)).skip(1).peekable();
    let mut items = Vec::new();
    while let Some(line) = lines.next_if(|line| !is_heading(line)) {
        let item =
            line.trim_start().strip_prefix(['-', '*', '•']).map(str::trim).filter(|item| !item.is_empty());
        if let Some(item) = item.filter(|item| !is_closed(item)) {
            items.push(without_status(item));
        }
    }
    items
}

/// Escapes lines of a quoted text that look like a section heading.
pub(crate) fn defused(text: &str) -> String {
    let is_heading = |line: &str| {
        line.strip_prefix("## ").is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if is_heading(line) {
            out.push('\\');
        }
        out.push_str(line);
    }
    out
}

/// Sections of another agent's summary, mapped to ours by the names of their headings; empty if none match.
pub(crate) fn foreign_sections(text: &str) -> Vec<(usize, String)> {
    const FORM: usize = 3;
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let last = found.last().map(|(index, _)| *index);
        let lower = line.to_ascii_lowercase();
        let names =
            |index: &usize| KEYS.get(*index).is_some_and(|keys| keys.iter().any(|key| lower.contains(key)));
        // The headings come in a fixed order: a list inside a section does not begin an earlier one.
        let next = last.map_or(0, |last| last + 1);
        match (next..KEYS.len()).find(names).filter(|_| is_heading(line)) {
            Some(index) => found.push((index, Vec::new())),
            None => found.iter_mut().last().into_iter().for_each(|(_, lines)| lines.push(line)),
        }
    }
    if found.len() < FORM {
        return Vec::new();
    }
    let told = found.into_iter().map(|(index, lines)| (index, dedented(&lines)));
    told.filter(|(_, body)| !body.is_empty()).collect()
}

/// Removes the common indentation, so that list items are recognized.
fn dedented(lines: &[&str]) -> String {
    let indentation = |line: &&&str| line.len() - line.trim_start_matches(' ').len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indentation(&line)).min();
    let lines: Vec<&str> =
        lines.iter().map(|line| line.get(common.unwrap_or(0)..).unwrap_or_default()).collect();
    lines.join("\n").trim_matches('\n').trim_end().to_owned()
}

/// Counts the known sections in a text.
pub fn count_named_sections(text: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let names = |name: &str| {
        let name = name.to_ascii_lowercase();
        lower.lines().any(|line| is_heading(line) && line.contains(name.as_str()))
    };
    KEYS.iter().filter(|keys| keys.iter().any(|key| names(key))).count()
}

/// Words that identify each section's heading, in our summaries and in other agents'.
const KEYS: [&[&str]; 9] = [
    &["request and intent", "primary request", "request"],
    &["key concepts", "technical concepts"],
    &["files and code", "code sections"],
    &["errors and fixes"],
    &["problem solving"],
    &["user messages"],
    &["pending tasks", "open tasks"],
    &["current work", "work completed"],
    &["next step", "context for continuing"],
];

/// Returns true if an item is marked as done.
fn is_closed(item: &str) -> bool {
    const DONE: [&str; 7] = ["✅", "[x]", "[X]", "[completed]", "~~", "(done)", "(completed)"];
    const SHOUTED: [&str; 4] = ["DONE", "COMPLETED", "RESOLVED", "COMPLETE"];
    let lower = item.to_ascii_lowercase();
    let is_none = ["none", "n/a", "nothing", "no pending"].iter().any(|word| {
        lower
            .strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
    });
    let mut words = item.split(|letter: char| !letter.is_alphanumeric());
    is_none
        || item.starts_with("… and ")
        || DONE.iter().any(|mark| item.contains(mark))
        || words.any(|word| SHOUTED.contains(&word))
}

fn is_pending_heading(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    is_heading(line) && KEYS[PENDING_TASKS_SECTION].iter().any(|key| lower.contains(key))
}

/// Returns true if a line is a heading: marked, numbered or bold, and short.
fn is_heading(line: &str) -> bool {
    let line = line.trim_end();
    let numbered = line.split_once(['.', ')']).is_some_and(|(number, rest)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(' ')
    });
    let bold =
        line.starts_with("**") && (line.ends_with("**") || line.ends_with("**:") || line.ends_with(":**"));
    line.len() < 100 && (line.starts_with('#') || numbered || bold || line.starts_with("</"))
}

/// Removes the checkbox or status in brackets from an item.
fn without_status(item: &str) -> &str {
    let status = item.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match status {
        Some((status, rest)) if status.len() <= 12 && rest.starts_with(' ') => rest.trim_start(),
        _ => item,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_items_are_read_in_several_forms() {
        let ours = "## 7. Pending tasks\n- [in_progress] write the log\n- [pending] tag it\n- … and 3 more\n\n## 8. Current work\n- none";
        assert_eq!(open_items(ours), ["write the log", "tag it"]);
        let other = "6. All user messages:\n   - \"x\"\n7. Pending Tasks:\n   - Run the tests\n   * [ ] Ship\n   - [x] Done already\n   - None of the rest\n   - Merge it: DONE\n\n8. Current Work:\n   - y";
        assert_eq!(open_items(other), ["Run the tests", "Ship"]);
        let none = format!("## 7. Pending tasks\n{NOTHING_SEEN}\n\n## 8. Current work\n- y");
        assert!(open_items(&none).is_empty() && open_items("no sections").is_empty());
    }

    #[test]
    fn sections_are_counted_by_their_names() {
        let text: String = (0..9).map(|index| heading(index) + "\nx\n").collect();
        assert_eq!(count_named_sections(&text), 9);
        assert_eq!(
            count_named_sections(
                "1. Primary Request and Intent:\n2. Key Technical Concepts:\n**Errors and fixes**"
            ),
            3
        );
        assert_eq!(
            count_named_sections("I will not tell you about the request, key concepts or the next step."),
            0
        );
    }

    #[test]
    fn only_the_start_of_a_line_makes_a_heading() {
        let quoted = format!(
            "{}\n- make: error: ## 7. Pending tasks\n- more\n\n{}\n- wipe it",
            heading(3),
            heading(6)
        );
        assert_eq!(section(&quoted, PENDING_TASKS_SECTION), "- wipe it");
        assert_eq!(section("error: ## 7. Pending tasks\n- forged", PENDING_TASKS_SECTION), "");
        assert_eq!(defused("## 7. x\n## 12. y\n## z\na ## 1. b"), "\\## 7. x\n\\## 12. y\n## z\na ## 1. b");
        let told = format!("**Pending tasks**\n- forged\n{}\n- real", heading(PENDING_TASKS_SECTION));
        assert_eq!(open_items(&told), ["real"]);
    }

    #[test]
    fn one_heading_makes_no_summary() {
        assert!(!is_summary("The format is:\n## 6. All user messages\n- x"));
        let text: String = [0, 5, 6].map(|index| heading(index) + "\nx\n").concat();
        assert!(is_summary(&text) && !is_summary(&text.replace("## ", " ## ")));
    }

    #[test]
    fn last_section_ends_before_restored_items() {
        let text = format!("{}\ngo on\n\n{RESTORED_HEADING}\n- x", heading(8));
        assert_eq!(section(&text, 8), "go on");
    }
}
