//! Notes of a session (§7.1–7.2): when they are due, what whoever writes them is told, and what must hold for them.

use pal_model::{BlockType, Body, EntryId};
use pal_view::{Estimator, Limits, View};

use crate::Budgets;

/// The sections that notes begin with.
pub const TEMPLATE: &str = include_str!("notes/template.md");

/// What the fork that writes them is told. `{path}`, `{notes}` and `{sections}` stand for what is filled in.
pub const DIRECTIVE: &str = include_str!("notes/directive.md");

/// What the agent is told that writes them itself in passing; the same stands for the same.
pub const PASSING: &str = include_str!("notes/passing.md");

/// Most tokens of one section, and of all together; what is over it is to be condensed.
const SECTION_MOST: u64 = 2_000;
const NOTES_MOST: u64 = 12_000;

/// A section with more tokens is shown to a fork only by its end, of about so many: whoever puts something behind it needs no
/// more, and what is said of notes in a directive is in no cache.
const SHOWN_WHOLE: u64 = 400;
const SHOWN_END: u64 = 200;

/// The conversation never grows by more than this without notes, however much is in sight: a compaction that takes them keeps
/// what they do not cover, and that only up to 40 000 tokens (§4.3).
const GROWTH_MOST: u64 = 25_000;

/// When notes are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotesCadence {
    /// So many tokens of conversation come before the first ones.
    pub first: u64,
    /// The conversation grows by at least so many tokens before they are written again …
    pub growth: u64,
    /// … and by one so-many-th of the context: a fork costs what is in sight, however little is new.
    pub share: u64,
    /// So many calls lie in between, unless the last answer made none.
    pub calls: usize,
    /// The conversation never grows by more than so many tokens before they are due again.
    pub growth_most: u64,
}

impl Default for NotesCadence {
    fn default() -> NotesCadence {
        NotesCadence { first: 10_000, growth: 5_000, share: 5, calls: 3, growth_most: GROWTH_MOST }
    }
}

/// How far notes were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noted {
    /// The newest entry that they cover.
    pub last: EntryId,
    /// How many tokens were in sight then.
    pub tokens: u64,
}

impl NotesCadence {
    /// The same on a window that may be smaller: what is kept besides notes is scaled to it, too.
    #[must_use]
    pub fn within(self, limits: &Limits) -> NotesCadence {
        let budgets = Budgets::new(limits);
        NotesCadence {
            first: budgets.of(self.first),
            growth: budgets.of(self.growth),
            growth_most: budgets.of(self.growth_most),
            ..self
        }
    }

    /// Whether notes are due. `begun` is how many tokens stood there before anything was said.
    pub fn is_due(&self, view: &View, noted: Option<&Noted>, begun: u64) -> bool {
        let Some(noted) = noted else { return view.size().tokens >= begun + self.first };
        self.has_grown(view, noted) && is_good_moment(view, noted.last, self.calls)
    }

    /// Whether the conversation has grown enough since then: by what is in sight, or, since clearing hides how much that was,
    /// by what was said.
    pub fn has_grown(&self, view: &View, since: &Noted) -> bool {
        self.is_enough(view.size().tokens, since.tokens)
            || view.tokens_said_after(since.last) >= self.growth_most
    }

    /// Whether it is enough that a conversation has so many tokens, where it had so many.
    fn is_enough(&self, tokens: u64, since: u64) -> bool {
        let least = self.growth.max(tokens.div_ceil(self.share.max(1))).min(self.growth_most);
        tokens.saturating_sub(since) >= least
    }
}

/// Whether enough was done since an entry, or the model has just come to rest.
fn is_good_moment(view: &View, since: EntryId, calls: usize) -> bool {
    let made = |content: &pal_model::Content| {
        content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse).count()
    };
    let (mut all, mut last) = (0, None);
    for entry in view.branch().iter().rev().take_while(|entry| entry.id != since) {
        if let Body::Assistant(assistant) = &entry.body {
            let made = made(&assistant.content);
            all += made;
            last.get_or_insert(made);
        }
    }
    all >= calls || last == Some(0)
}

/// What whoever writes notes is told.
pub fn notes_directive(directive: &str, path: &str, notes: &str, estimator: Estimator) -> String {
    directive
        .replace("{path}", path)
        .replace("{sections}", &condensing(notes, estimator))
        .replace("{notes}", shown(notes, estimator).trim_end())
}

/// The notes as whoever writes them is shown them: long sections by their ends, unless they are to be condensed.
fn shown(notes: &str, estimator: Estimator) -> String {
    let tokens = |text: &str| estimator.total(estimator.text(text));
    let is_too_long = tokens(notes) > NOTES_MOST;
    let shown = |section: &str| {
        let taken = tokens(section);
        match is_too_long || taken <= SHOWN_WHOLE || taken > SECTION_MOST {
            true => section.to_owned(),
            false => by_its_end(section, &tokens),
        }
    };
    sections(notes).into_iter().map(shown).collect()
}

/// The head of a section and its last lines; all of it where only one would be left out.
fn by_its_end(section: &str, tokens: &dyn Fn(&str) -> u64) -> String {
    let lines: Vec<&str> = section.split_inclusive('\n').collect();
    let head = lines.iter().take_while(|line| line.starts_with('#') || line.starts_with('_')).count();
    let (mut from, mut left) = (lines.len(), SHOWN_END);
    while from > head {
        let taken = tokens(lines[from - 1]);
        // The last one is shown however long it is.
        if taken > left && left < SHOWN_END {
            break;
        }
        left = left.saturating_sub(taken);
        from -= 1;
    }
    match from - head {
        0 | 1 => section.to_owned(),
        n_hidden => {
            let (head, end) = (lines[..head].concat(), lines[from..].concat());
            format!("{head}[… {n_hidden} lines that stay as they are]\n{end}")
        }
    }
}

/// Which sections are too long.
fn condensing(notes: &str, estimator: Estimator) -> String {
    let tokens = |text: &str| estimator.total(estimator.text(text));
    let mut said = String::new();
    for section in sections(notes) {
        let (taken, heading) = (tokens(section), section.lines().next().unwrap_or_default());
        if taken > SECTION_MOST {
            let heading = heading.trim_start_matches('#').trim();
            said.push_str(&format!(
                "- The section `{heading}` has about {taken} tokens and may have {SECTION_MOST}: condense it, keeping what is newest and \
                 what could not be found out again.\n"
            ));
        }
    }
    let all = tokens(notes);
    if all > NOTES_MOST {
        said.push_str(&format!(
            "- All together they have about {all} tokens and may have {NOTES_MOST}: condense the longest sections first.\n"
        ));
    }
    said
}

/// Notes as they are to be kept: with every heading and every line in italics of the template, whatever the fork did to them.
pub fn mended_notes(notes: &str, template: &str) -> String {
    let mut out = notes.trim_end().to_owned();
    out.push('\n');
    for section in sections(template) {
        let mut lines = section.lines();
        let (Some(heading), about) = (lines.next(), lines.next().unwrap_or_default()) else { continue };
        match out.lines().position(|line| line.trim_end() == heading) {
            None => out.push_str(&format!("\n{heading}\n{about}\n")),
            Some(at) if out.lines().nth(at + 1).is_none_or(|line| line.trim_end() != about) => {
                let mut mended: Vec<&str> = out.lines().collect();
                mended.insert(at + 1, about);
                out = mended.join("\n") + "\n";
            }
            Some(_) => {}
        }
    }
    out
}

/// The sections, each with its heading.
pub(crate) fn sections(text: &str) -> Vec<&str> {
    let mut starts: Vec<usize> = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("# ") || line.starts_with("## ") {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    starts.windows(2).map(|pair| &text[pair[0]..pair[1]]).filter(|section| !section.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_ten_sections_with_a_line_about_each() {
        let sections = sections(TEMPLATE);
        assert_eq!(sections.len(), 10);
        for section in sections {
            let mut lines = section.lines();
            assert!(lines.next().unwrap().starts_with("# "));
            let about = lines.next().unwrap();
            assert!(about.starts_with('_') && about.ends_with('_'), "{about}");
        }
    }

    #[test]
    fn what_a_fork_took_away_comes_back_and_what_it_wrote_stays() {
        let worklog = "# Worklog\n_Step by step, one short line each: what was done._\n";
        let written = TEMPLATE
            .replace(worklog, "")
            .replace("_What proved good, what did not, what to avoid._\n", "Tests first.\n");
        let mended = mended_notes(&written, TEMPLATE);
        assert!(mended.ends_with(worklog), "{mended}");
        assert!(
            mended.contains("# Learnings\n_What proved good, what did not, what to avoid._\nTests first.\n"),
            "{mended}"
        );
        assert_eq!(mended_notes(&mended, TEMPLATE), mended, "mended once is mended");
        assert_eq!(mended_notes(TEMPLATE, TEMPLATE), TEMPLATE);
        assert_eq!(sections(&mended_notes("", TEMPLATE)).len(), 11, "all ten, behind an empty line");
    }

    #[test]
    fn they_are_due_the_later_the_more_is_in_sight_but_never_too_late() {
        let cadence = NotesCadence::default();
        for (since, least) in [(10_000, 5_000), (20_000, 5_000), (40_000, 10_000), (80_000, 20_000)] {
            assert!(!cadence.is_enough(since + least - 1, since), "{since}");
            assert!(cadence.is_enough(since + least, since), "{since}");
        }
        assert!(!cadence.is_enough(824_999, 800_000) && cadence.is_enough(825_000, 800_000));
        assert!(!cadence.is_enough(1_000, 50_000), "shorter than it was");
        let often = NotesCadence { growth: 1_000, share: 1_000, ..cadence };
        assert!(often.is_enough(51_000, 50_000) && !often.is_enough(50_999, 50_000));
    }

    #[test]
    fn the_directive_says_what_is_too_long() {
        let estimator = Estimator::classic();
        let long =
            TEMPLATE.replace("# Worklog\n", &format!("# Worklog\n{}", "did something else\n".repeat(900)));
        let said = notes_directive(DIRECTIVE, "/s/notes.md", &long, estimator);
        assert!(
            said.contains("The section `Worklog` has about") && !said.contains("The section `Title`"),
            "{said}"
        );
        assert!(said.contains("session notes in /s/notes.md") && !said.contains("{"), "{said}");
        assert!(!notes_directive(DIRECTIVE, "/s/notes.md", TEMPLATE, estimator).contains("condense"));
        let said = notes_directive(PASSING, "/s/notes.md", TEMPLATE, estimator);
        assert!(said.contains("are kept in /s/notes.md, and") && said.contains("# Worklog"), "{said}");
        assert!(!said.contains("{") && !said.contains("condense"), "{said}");
    }

    #[test]
    fn long_sections_are_shown_by_their_ends_unless_they_are_to_be_condensed() {
        let estimator = Estimator::classic();
        let grown = |lines: usize| {
            let lines: String = (0..lines).map(|line| format!("- step {line} was taken\n")).collect();
            let about = "_Step by step, one short line each: what was done._\n";
            TEMPLATE.replace(about, &format!("{about}{lines}"))
        };
        let shown = |lines: usize| notes_directive("{notes}", "/s/notes.md", &grown(lines), estimator);
        assert_eq!(shown(20).trim_end(), grown(20).trim_end());
        let long = shown(100);
        assert!(long.contains("- step 99 was taken") && !long.contains("- step 3 was taken"), "{long}");
        let hidden = (0..100).filter(|line| !long.contains(&format!("- step {line} was"))).count();
        assert!(hidden > 50 && long.contains(&format!("[… {hidden} lines that stay as they are]")), "{long}");
        assert!(long.contains("# Worklog\n_Step by step") && long.contains("# Title"), "{long}");
        assert_eq!(shown(1_000).trim_end(), grown(1_000).trim_end(), "whoever condenses it needs all of it");
    }
}
