//! The index of a memory directory: one line for each memory, those that matter most first. Pure.

use pal_model::Timestamp;
use serde::Serialize;

use crate::memory::Listed;
use crate::topic::{Head, Kind, clip};
use crate::uses::Uses;

/// Characters of a line.
const LINE_CHARACTERS: usize = 150;
/// Characters of a name in a line.
const NAME_CHARACTERS: usize = 60;
/// Lines of the index that a model reads.
pub const CONTEXT_LINES: usize = 200;
/// Bytes of the index that a model reads.
pub const CONTEXT_BYTES: usize = 25_000;
/// Days after which a memory counts as much as one that is new and was used e times less often.
const FADING_DAYS: f64 = 30.0;

const DAY_MS: f64 = 86_400_000.0;

/// The index as a model reads it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct IndexText {
    /// The text; empty if there is nothing to be said.
    pub text: String,
    /// Memories that found no room, those that matter most first.
    pub left_out: Vec<String>,
    /// Lines that somebody wrote into the index by hand and that found no room.
    pub lines_left_out: usize,
}

/// A memory in the index.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub(crate) slug: String,
    name: String,
    description: String,
    is_feedback: bool,
    modified: Option<Timestamp>,
    rank: f64,
}

impl Entry {
    pub(crate) fn new(slug: &str, head: &Head, uses: Uses) -> Entry {
        Entry {
            slug: slug.to_owned(),
            name: head.name.clone(),
            description: head.description.clone(),
            is_feedback: head.kind == Kind::Feedback,
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
        // The name gives way before the link does: a line that is cut inside its link would dangle.
        let room = LINE_CHARACTERS.saturating_sub(target.chars().count() + "- [](.md): ".len());
        let link = format!("- [{}]({target}.md):", clip(&name, NAME_CHARACTERS.min(room)));
        let rest = LINE_CHARACTERS.saturating_sub(link.chars().count() + 1);
        format!("{link} {}", clip(&plain(&self.description), rest)).trim_end().to_owned()
    }
}

impl From<Listed> for Entry {
    fn from(listed: Listed) -> Entry {
        Entry::new(&listed.slug, &listed.head, listed.uses)
    }
}

/// How much a memory matters: when it was changed or used last, and how often it was used. What fades by e in so many days
/// and grows with every use has an order that does not depend on the time of asking.
pub(crate) fn rank(modified: Option<Timestamp>, uses: Uses) -> f64 {
    let touched = modified.max(uses.last).map_or(0, Timestamp::milliseconds);
    touched as f64 / DAY_MS / FADING_DAYS + (1.0 + uses.count as f64).ln()
}

/// Those that matter most first.
pub(crate) fn order(entries: &mut [Entry]) {
    entries.sort_by(|one, other| other.rank.total_cmp(&one.rank).then_with(|| one.slug.cmp(&other.slug)));
}

/// The index: what people wrote into it by hand, then a line for each memory.
pub(crate) fn page(before: &str, entries: &[Entry]) -> String {
    let lines = entries.iter().map(Entry::line);
    let mut page = String::new();
    for line in by_hand(before).into_iter().map(str::to_owned).chain(lines) {
        page.push_str(&line);
        page.push('\n');
    }
    page
}

/// The index within its limits. The memories that matter least go first, but never the newest correction of the user.
pub(crate) fn for_context(before: &str, entries: &[Entry]) -> IndexText {
    let by_hand = by_hand(before);
    let newest = entries.iter().filter(|entry| entry.is_feedback).max_by_key(|entry| entry.modified);
    let newest_bytes = newest.map_or(0, |entry| entry.line().len() + 1);
    let room = &mut Room { lines: CONTEXT_LINES, bytes: CONTEXT_BYTES };
    // Room for the newest correction, and for the line that tells of what was left out.
    room.lines -= 1 + usize::from(newest.is_some());
    room.bytes -= newest_bytes + LINE_CHARACTERS;
    let hand: Vec<&str> = by_hand.iter().copied().take_while(|line| room.takes(line)).collect();
    let mut kept = hand.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let mut left_out = Vec::new();
    let mut is_full = false;
    for entry in entries {
        let line = entry.line();
        let is_newest = newest.is_some_and(|newest| newest.slug == entry.slug);
        is_full = is_full || (!is_newest && !room.takes(&line));
        match is_newest || !is_full {
            true => kept.push(line),
            false => left_out.push(entry.slug.clone()),
        }
    }
    if !left_out.is_empty() {
        kept.push(format!("({} more are not listed here; they can be searched.)", left_out.len()));
    }
    let text = kept.iter().map(|line| format!("{line}\n")).collect();
    IndexText { text, left_out, lines_left_out: by_hand.len() - hand.len() }
}

struct Room {
    lines: usize,
    bytes: usize,
}

impl Room {
    /// Takes the room of a line, if there is any.
    fn takes(&mut self, line: &str) -> bool {
        let fits = self.lines > 0 && line.len() < self.bytes;
        if fits {
            self.lines -= 1;
            self.bytes -= line.len() + 1;
        }
        fits
    }
}

/// Lines of an index that name no memory's file: headings, and what somebody wrote down there without a file.
fn by_hand(page: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = page.lines().filter(|line| target(line).is_none()).collect();
    while lines.last().is_some_and(|line| line.trim().is_empty()) {
        lines.pop();
    }
    lines
}

/// The file that a line of an index is about.
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

    fn entry(slug: &str, kind: Kind, day: u64, uses: u64) -> Entry {
        let modified = Some(Timestamp::default().after(Duration::from_secs(day * 86_400)));
        let head = Head {
            name: format!("About {slug}"),
            description: "what it says ".repeat(12),
            kind,
            modified,
            origin: Author::Person,
        };
        let mut entry = Entry::new(slug, &head, Uses { count: uses, last: None });
        entry.is_feedback = kind == Kind::Feedback;
        entry
    }

    #[test]
    fn what_is_over_goes_by_age_and_use_and_never_the_newest_correction() {
        let mut entries: Vec<Entry> =
            (0..300).map(|day| entry(&format!("m{day}"), Kind::Project, day + 10, 0)).collect();
        entries.push(entry("old-but-used", Kind::Project, 1, 500_000));
        entries.push(entry("correction", Kind::Feedback, 2, 0));
        entries.push(entry("older-correction", Kind::Feedback, 1, 0));
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
    fn lines_by_hand_stay_and_lines_that_dangle_go() {
        let entries = [entry("here", Kind::User, 1, 0)];
        let page =
            page("# Mine\n- [Gone](gone.md): x\nA fact without a file.\n\n- [Here](here.md) old\n", &entries);
        assert!(
            page.starts_with("# Mine\nA fact without a file.\n- [About here](here.md): what it says"),
            "{page}"
        );
        assert!(page.lines().all(|line| line.chars().count() <= LINE_CHARACTERS));
        assert_eq!(page.matches("(here.md)").count(), 1);
    }

    proptest! {
        #[test]
        fn every_line_is_short_and_leads_to_its_file(name in ".{0,200}", description in ".{0,300}", slug in "[a-z()\\[\\] -]{1,80}") {
            let head = Head { name, description, kind: Kind::User, modified: None, origin: Author::Person };
            let line = Entry::new(&slug, &head, Uses::default()).line();
            prop_assert!(line.chars().count() <= LINE_CHARACTERS.max(slug.chars().count() * 3 + 12), "{}", line);
            prop_assert_eq!(line.lines().count(), 1);
            prop_assert_eq!(target(&line), Some(format!("{slug}.md")));
        }

        #[test]
        fn the_limits_hold_whatever_was_written_by_hand(hand in "([ -~]{0,400}\n){0,300}", count in 0_u64..300) {
            let mut entries: Vec<Entry> = (0..count).map(|at| entry(&format!("m{at}"), Kind::Feedback, at, 0)).collect();
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
