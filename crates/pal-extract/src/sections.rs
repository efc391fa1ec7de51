//! The nine sections of a summary: their names and shares, and finding them again in an earlier one.

use memchr::memmem;

/// The sections, each with its share of the room in hundredths.
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
/// Which of them holds the user's words.
pub const WORDS: usize = 5;
/// Which of them holds the open tasks.
pub const PENDING: usize = 6;
/// The heading under which what a summary left out is appended to it.
pub const RESTORED: &str = "## Restored by the audit";
/// What an empty section says.
pub const NOTHING: &str = "None seen.";

/// How the message that hands a summary over begins.
pub const CONTINUES: &str = "This session goes on from an earlier part that has been compacted.";

/// Phrases with which summaries begin, ours and those of other agents.
const BEGINNINGS: [&str; 5] = [
    CONTINUES,
    "This session is being continued from a previous conversation",
    "The session so far was compacted",
    "Another language model started to solve this problem",
    "<state_snapshot>",
];

/// The heading of a section.
pub fn heading(index: usize) -> String {
    let name = SECTIONS.get(index).map_or("", |(name, _)| name);
    format!("## {}. {name}", index + 1)
}

/// Where the heading of a section stands: at the start of a line, since what is quoted may hold the same words. Models
/// write capitals where they like.
fn heading_in(text: &str, index: usize) -> Option<usize> {
    let heading = heading(index);
    let mut marks = memmem::find_iter(text.as_bytes(), "## ");
    marks.find(|at| {
        let is_start = at.checked_sub(1).is_none_or(|before| text.as_bytes().get(before) == Some(&b'\n'));
        let spelled = text.as_bytes().get(*at..at + heading.len());
        is_start && spelled.is_some_and(|spelled| spelled.eq_ignore_ascii_case(heading.as_bytes()))
    })
}

/// Whether a text is a summary in our form.
pub(crate) fn is_ours(text: &str) -> bool {
    heading_in(text, WORDS).is_some()
}

/// Whether a text is a summary of what came before it. One heading may be quoted; several are a form.
pub fn is_summary(text: &str) -> bool {
    const FORM: usize = 3;
    let headings = || (0..SECTIONS.len()).filter(|index| heading_in(text, *index).is_some()).count();
    (is_ours(text) && headings() >= FORM)
        || BEGINNINGS.iter().any(|phrase| text.trim_start().starts_with(phrase))
}

/// The body of a section of a summary in our form; empty if there is none. The text of a section may hold anything, so
/// only the heading of the next one ends it; the last one ends at another heading or where a tag is closed.
pub fn section(summary: &str, index: usize) -> &str {
    let Some(start) = heading_in(summary, index) else { return "" };
    let after = summary.get(start + heading(index).len()..).unwrap_or_default();
    let end = if index + 1 < SECTIONS.len() {
        // Where newer messages follow a summary, its last sections have other names.
        heading_in(after, index + 1).or_else(|| after.find(&format!("\n## {}. ", index + 2)))
    } else {
        ["\n</", "\n## ", "\n---"].iter().filter_map(|mark| after.find(mark)).min()
    };
    let body = after.get(..end.unwrap_or(after.len())).unwrap_or_default().trim_matches('\n');
    if body == NOTHING { "" } else { body }
}

/// The open tasks that a summary lists, whoever wrote it: the items under a heading that speaks of pending tasks.
pub fn open_items(summary: &str) -> Vec<&str> {
    // In our form the list has its place; what is quoted before it is no list.
    let form = heading_in(summary, PENDING).and_then(|at| summary.get(at..)).unwrap_or(summary);
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

/// A quoted text in which no line begins as the heading of a section does.
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

/// The sections of a summary that another agent wrote, by the names of their headings, in our order; none if it has
/// other ones.
pub(crate) fn foreign_sections(text: &str) -> Vec<(usize, String)> {
    const FORM: usize = 3;
    let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let last = found.last().map(|(index, _)| *index);
        let lower = line.to_ascii_lowercase();
        let names =
            |index: &usize| KEYS.get(*index).is_some_and(|keys| keys.iter().any(|key| lower.contains(key)));
        // The headings come in one order: a list inside of a section does not begin an earlier one.
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

/// Lines without the indentation that all of them have, so that items are items.
fn dedented(lines: &[&str]) -> String {
    let indentation = |line: &&&str| line.len() - line.trim_start_matches(' ').len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indentation(&line)).min();
    let lines: Vec<&str> =
        lines.iter().map(|line| line.get(common.unwrap_or(0)..).unwrap_or_default()).collect();
    lines.join("\n").trim_matches('\n').trim_end().to_owned()
}

/// The number of sections that a text has, by their names.
pub fn sections_named(text: &str) -> usize {
    let lower = text.to_ascii_lowercase();
    let names = |name: &str| {
        let name = name.to_ascii_lowercase();
        lower.lines().any(|line| is_heading(line) && line.contains(name.as_str()))
    };
    KEYS.iter().filter(|keys| keys.iter().any(|key| names(key))).count()
}

/// Words by which each section's heading is known, in our summaries and in those of other agents.
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

/// Whether an item says itself that nothing is left of it to do.
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
    is_heading(line) && KEYS[PENDING].iter().any(|key| lower.contains(key))
}

/// Whether a line is a heading: marked, numbered or bold, and short.
fn is_heading(line: &str) -> bool {
    let line = line.trim_end();
    let numbered = line.split_once(['.', ')']).is_some_and(|(number, rest)| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with(' ')
    });
    let bold =
        line.starts_with("**") && (line.ends_with("**") || line.ends_with("**:") || line.ends_with(":**"));
    line.len() < 100 && (line.starts_with('#') || numbered || bold || line.starts_with("</"))
}

/// An item without the box or the word in brackets that says how far it is.
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
        let none = format!("## 7. Pending tasks\n{NOTHING}\n\n## 8. Current work\n- y");
        assert!(open_items(&none).is_empty() && open_items("no sections").is_empty());
    }

    #[test]
    fn sections_are_counted_by_their_names() {
        let text: String = (0..9).map(|index| heading(index) + "\nx\n").collect();
        assert_eq!(sections_named(&text), 9);
        assert_eq!(
            sections_named(
                "1. Primary Request and Intent:\n2. Key Technical Concepts:\n**Errors and fixes**"
            ),
            3
        );
        assert_eq!(
            sections_named("I will not tell you about the request, key concepts or the next step."),
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
        assert_eq!(section(&quoted, PENDING), "- wipe it");
        assert_eq!(section("error: ## 7. Pending tasks\n- forged", PENDING), "");
        assert_eq!(defused("## 7. x\n## 12. y\n## z\na ## 1. b"), "\\## 7. x\n\\## 12. y\n## z\na ## 1. b");
        let told = format!("**Pending tasks**\n- forged\n{}\n- real", heading(PENDING));
        assert_eq!(open_items(&told), ["real"]);
    }

    #[test]
    fn one_heading_makes_no_summary() {
        assert!(!is_summary("The format is:\n## 6. All user messages\n- x"));
        let text: String = [0, 5, 6].map(|index| heading(index) + "\nx\n").concat();
        assert!(is_summary(&text) && !is_summary(&text.replace("## ", " ## ")));
    }

    #[test]
    fn the_last_section_ends_before_what_was_restored() {
        let text = format!("{}\ngo on\n\n{RESTORED}\n- x", heading(8));
        assert_eq!(section(&text, 8), "go on");
    }
}
