//! Index of a memory directory: one line per memory, most important first. Pure.

use pal_model::Timestamp;
use serde::Serialize;

use crate::memory_file::{MemoryHeader, MemoryKind, truncate_trimmed};
use crate::memory_summary::MemorySummary;
use crate::memory_uses::MemoryUses;

/// Maximum characters of a line.
const LINE_CHARACTERS: usize = 150;
/// Maximum characters of a name in a line.
const NAME_CHARACTERS: usize = 60;
/// Maximum lines of the index in the context.
pub const CONTEXT_LINES: usize = 200;
/// Maximum bytes of the index in the context.
pub const CONTEXT_BYTES: usize = 25_000;
/// Days in which the importance of a memory falls by a factor of e.
const DECAY_DAYS: f64 = 30.0;

const DAY_MS: f64 = 86_400_000.0;

/// Index text for the context.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryIndexText {
    /// Text; empty without memories.
    pub text: String,
    /// Slugs that did not fit, most important first.
    pub left_out: Vec<String>,
    /// Number of hand-written lines that did not fit.
    pub lines_left_out: usize,
}

/// A memory in the index.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct IndexEntry {
    pub(crate) slug: String,
    name: String,
    description: String,
    is_feedback: bool,
    modified: Option<Timestamp>,
    rank: f64,
}

impl IndexEntry {
    pub(crate) fn new(slug: &str, head: &MemoryHeader, uses: MemoryUses) -> IndexEntry {
        IndexEntry {
            slug: slug.to_owned(),
            name: head.name.clone(),
            description: head.description.clone(),
            is_feedback: head.kind == MemoryKind::Feedback,
            modified: head.modified,
            rank: rank(head.modified, uses),
        }
    }

    fn line(&self) -> String {
        let plain = |text: &str| {
            let spaced = |c: char| if c.is_control() { ' ' } else { c };
            text.chars().map(spaced).collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let name = plain(&self.name).replace('[', "(").replace(']', ")");
        let target = self.slug.replace(' ', "%20").replace(')', "%29");
        // Shorten the name before the link, so that the link stays valid.
        let room = LINE_CHARACTERS.saturating_sub(target.chars().count() + "- [](.md): ".len());
        let link = format!("- [{}]({target}.md):", truncate_trimmed(&name, NAME_CHARACTERS.min(room).max(1)));
        let rest = LINE_CHARACTERS.saturating_sub(link.chars().count() + 1);
        format!("{link} {}", truncate_trimmed(&plain(&self.description), rest)).trim_end().to_owned()
    }
}

impl From<MemorySummary> for IndexEntry {
    fn from(listed: MemorySummary) -> IndexEntry {
        IndexEntry::new(&listed.slug, &listed.head, listed.uses)
    }
}

/// Importance from the last change or use and the number of uses. It decays exponentially, so the order does
/// not depend on the current time.
pub(crate) fn rank(modified: Option<Timestamp>, uses: MemoryUses) -> f64 {
    let touched = modified.max(uses.last).map_or(0, Timestamp::milliseconds);
    touched as f64 / DAY_MS / DECAY_DAYS + (1.0 + uses.count as f64).ln()
}

/// Sorts the most important first.
pub(crate) fn order(entries: &mut [IndexEntry]) {
    entries.sort_by(|one, other| other.rank.total_cmp(&one.rank).then_with(|| one.slug.cmp(&other.slug)));
}

/// Builds the index file: hand-written lines, then one line per memory.
pub(crate) fn page(before: &str, entries: &[IndexEntry]) -> String {
    let lines = entries.iter().map(IndexEntry::line);
    let mut page = String::new();
    for line in hand_written_lines(before).into_iter().map(str::to_owned).chain(lines) {
        page.push_str(&line);
        page.push('\n');
    }
    page
}

/// Builds the index text within its limits. Drops the least important memories first, but never the newest
/// feedback.
pub(crate) fn for_context(before: &str, entries: &[IndexEntry]) -> MemoryIndexText {
    let by_hand = hand_written_lines(before);
    let newest = entries.iter().filter(|entry| entry.is_feedback).max_by_key(|entry| entry.modified);
    let newest_bytes = newest.map_or(0, |entry| entry.line().len() + 1);
    let room = &mut IndexBudget { lines: CONTEXT_LINES, bytes: CONTEXT_BYTES };
    // Reserve room for the newest feedback and for the line about omitted memories.
    room.lines -= 1 + usize::from(newest.is_some());
    room.bytes -= newest_bytes + LINE_CHARACTERS;
    let hand: Vec<&str> = by_hand.iter().copied().take_while(|line| room.try_take(line)).collect();
    let mut kept = hand.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let mut left_out = Vec::new();
    let mut is_full = false;
    for entry in entries {
        let line = entry.line();
        let is_newest = newest.is_some_and(|newest| newest.slug == entry.slug);
        is_full = is_full || (!is_newest && !room.try_take(&line));
        match is_newest || !is_full {
            true => kept.push(line),
            false => left_out.push(entry.slug.clone()),
        }
    }
    if !left_out.is_empty() {
        kept.push(format!("({} more are not listed here; they can be searched.)", left_out.len()));
    }
    let text = kept.iter().map(|line| format!("{line}\n")).collect();
    MemoryIndexText { text, left_out, lines_left_out: by_hand.len() - hand.len() }
}

struct IndexBudget {
    lines: usize,
    bytes: usize,
}

impl IndexBudget {
    /// Takes the room of a line, if it fits.
    fn try_take(&mut self, line: &str) -> bool {
        let fits = self.lines > 0 && line.len() < self.bytes;
        if fits {
            self.lines -= 1;
            self.bytes -= line.len() + 1;
        }
        fits
    }
}

/// Lines that do not link to a memory: headings and hand-written notes.
fn hand_written_lines(page: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = page.lines().filter(|line| target(line).is_none()).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// File that an index line links to.
pub(crate) fn target(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix(['-', '*'])?.trim_start().strip_prefix('[')?;
    let (_, rest) = rest.split_once("](")?;
    let (target, _) = rest.split_once(')')?;
    let is_file = target.ends_with(".md") && !target.contains(['/', ':']);
    is_file.then(|| target.replace("%20", " ").replace("%29", ")"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::author::Author;

    fn entry(slug: &str, kind: MemoryKind, day: u64, uses: u64) -> IndexEntry {
        let modified = Some(Timestamp::default().after(Duration::from_secs(day * 86_400)));
        let head = MemoryHeader {
            name: format!("About {slug}"),
            description: "what it says ".repeat(12),
            kind,
            modified,
            origin: Author::Person,
        };
        let mut entry = IndexEntry::new(slug, &head, MemoryUses { count: uses, last: None });
        entry.is_feedback = kind == MemoryKind::Feedback;
        entry
    }

    #[test]
    fn overflow_drops_least_important_but_keeps_newest_feedback() {
        let mut entries: Vec<IndexEntry> =
            (0..300).map(|day| entry(&format!("m{day}"), MemoryKind::Project, day + 10, 0)).collect();
        entries.push(entry("old-but-used", MemoryKind::Project, 1, 500_000));
        entries.push(entry("correction", MemoryKind::Feedback, 2, 0));
        entries.push(entry("older-correction", MemoryKind::Feedback, 1, 0));
        order(&mut entries);
        let index = for_context("# Notes\n\nby hand\n", &entries);
        assert!(index.text.lines().count() <= CONTEXT_LINES && index.text.len() <= CONTEXT_BYTES);
        assert!(
            index.text.starts_with("# Notes\n\nby hand\n- [About old-but-used]"),
            "{}",
            &index.text[..80]
        );
        assert!(index.text.contains("(correction.md)"));
        assert!(!index.text.contains("(older-correction.md)"));
        assert!(
            index.left_out.contains(&String::from("m0")) && !index.left_out.contains(&String::from("m299"))
        );
        assert!(index.text.ends_with("more are not listed here; they can be searched.)\n"));
        assert_eq!(index.lines_left_out, 0);
    }

    #[test]
    fn hand_written_lines_stay_and_dangling_lines_go() {
        let entries = [entry("here", MemoryKind::User, 1, 0)];
        let page =
            page("# Mine\n- [Gone](gone.md): x\nA fact without a file.\n\n- [Here](here.md) old\n", &entries);
        assert!(
            page.starts_with("# Mine\nA fact without a file.\n- [About here](here.md): what it says"),
            "{page}"
        );
        assert!(page.lines().all(|line| line.chars().count() <= LINE_CHARACTERS));
        assert_eq!(page.matches("(here.md)").count(), 1);
    }

    #[test]
    fn a_link_that_fills_the_line_leaves_the_description_out() {
        for length in 60..90 {
            let slug = ")".repeat(length / 3) + &"a".repeat(length % 3);
            let name = "n".repeat(100);
            let head = MemoryHeader {
                name,
                description: String::from("about it"),
                kind: MemoryKind::User,
                modified: None,
                origin: Author::Person,
            };
            let line = IndexEntry::new(&slug, &head, MemoryUses::default()).line();
            assert!(line.chars().count() <= LINE_CHARACTERS, "{length}: {line}");
        }
    }

    proptest! {
        #[test]
        fn every_line_is_short_and_links_to_its_file(name in ".{0,200}", description in ".{0,300}", slug in "[a-z()\\[\\] -]{1,80}") {
            let head = MemoryHeader { name, description, kind: MemoryKind::User, modified: None, origin: Author::Person };
            let line = IndexEntry::new(&slug, &head, MemoryUses::default()).line();
            prop_assert!(line.chars().count() <= LINE_CHARACTERS.max(slug.chars().count() * 3 + 12), "{}", line);
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert_eq!(target(&line), Some(format!("{slug}.md")));
        }

        #[test]
        fn limits_hold_with_any_hand_written_lines(hand in "([ -~]{0,400}\n){0,300}", count in 0_u64..300) {
            let mut entries: Vec<IndexEntry> = (0..count).map(|at| entry(&format!("m{at}"), MemoryKind::Feedback, at, 0)).collect();
            order(&mut entries);
            let index = for_context(&hand, &entries);
            prop_assert!(index.text.len() <= CONTEXT_BYTES && index.text.lines().count() <= CONTEXT_LINES);
            if count > 0 {
                let newest = format!("(m{}.md)", count - 1);
                prop_assert!(index.text.contains(&newest));
            }
        }
    }
}
