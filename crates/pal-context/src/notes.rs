//! Session notes (§7.1–7.2): cadence, directives for the writer, and required sections.

use pal_model::{BlockType, EntryBody, EntryId};
use pal_view::{Estimator, View, WindowLimits};

use crate::WindowBudgets;

/// Initial sections of the notes.
pub const NOTES_TEMPLATE: &str = include_str!("notes/template.md");

/// Directive for the fork that writes notes, with the placeholders `{path}`, `{notes}` and `{sections}`.
pub const NOTES_DIRECTIVE: &str = include_str!("notes/directive.md");

/// Directive for the agent that writes notes itself during its work; same placeholders.
pub const INLINE_NOTES_DIRECTIVE: &str = include_str!("notes/passing.md");

/// Maximum tokens of one section, and of all together; longer ones are to be condensed.
const SECTION_MAX: u64 = 2_000;
const NOTES_MAX: u64 = 12_000;

/// Longer sections are shown to a fork only by their last tokens: appending needs no more, and notes in a
/// directive are not cached.
const SHOWN_WHOLE: u64 = 400;
const SHOWN_END: u64 = 200;

/// Maximum growth without notes: a compaction by notes keeps uncovered messages only up to 40,000 tokens
/// (§4.3).
const GROWTH_MAX: u64 = 25_000;

/// Schedule for writing notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotesCadence {
    /// Tokens of conversation before the first notes.
    pub first: u64,
    /// Minimum growth in tokens before they are rewritten.
    pub growth: u64,
    /// Minimum growth as 1/N of the context: a fork costs the whole context, however little is new.
    pub share: u64,
    /// Minimum number of tool calls in between, unless the last response made none.
    pub calls: usize,
    /// Maximum growth in tokens before they are due again.
    pub max_growth: u64,
}

impl Default for NotesCadence {
    fn default() -> NotesCadence {
        NotesCadence { first: 10_000, growth: 5_000, share: 5, calls: 3, max_growth: GROWTH_MAX }
    }
}

/// Coverage of the notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotesCoverage {
    /// Newest covered entry.
    pub last: EntryId,
    /// Context size at that time, in tokens.
    pub tokens: u64,
}

impl NotesCadence {
    /// Scales the schedule to the window, like the budgets of kept content.
    #[must_use]
    pub fn within(self, limits: &WindowLimits) -> NotesCadence {
        let budgets = WindowBudgets::new(limits);
        NotesCadence {
            first: budgets.scale(self.first),
            growth: budgets.scale(self.growth),
            max_growth: budgets.scale(self.max_growth),
            ..self
        }
    }

    /// Returns true if notes are due. `begun` is the context size before the first message.
    pub fn is_due(&self, view: &View, noted: Option<&NotesCoverage>, begun: u64) -> bool {
        let Some(noted) = noted else { return view.size().tokens >= begun + self.first };
        self.has_grown(view, noted) && is_good_moment(view, noted.last, self.calls)
    }

    /// Returns true if the conversation has grown enough: by the context size, or, since clearing hides
    /// growth, by the tokens of new messages.
    pub fn has_grown(&self, view: &View, since: &NotesCoverage) -> bool {
        self.is_enough(view.size().tokens, since.tokens) || view.tokens_after(since.last) >= self.max_growth
    }

    /// Compares the current size with the size at the last notes.
    fn is_enough(&self, tokens: u64, since: u64) -> bool {
        let least = self.growth.max(tokens.div_ceil(self.share.max(1))).min(self.max_growth);
        tokens.saturating_sub(since) >= least
    }
}

/// Returns true if enough calls were made since an entry, or the model has just finished.
fn is_good_moment(view: &View, since: EntryId, calls: usize) -> bool {
    let made = |content: &pal_model::Content| {
        content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse).count()
    };
    let (mut all, mut last) = (0, None);
    for entry in view.branch().iter().rev().take_while(|entry| entry.id != since) {
        if let EntryBody::Assistant(assistant) = &entry.body {
            let made = made(&assistant.content);
            all += made;
            last.get_or_insert(made);
        }
    }
    all >= calls || last == Some(0)
}

/// Fills in a notes directive.
pub fn notes_directive(directive: &str, path: &str, notes: &str, estimator: Estimator) -> String {
    directive
        .replace("{path}", path)
        .replace("{sections}", &condensing(notes, estimator))
        .replace("{notes}", shown(notes, estimator).trim_end())
}

/// The notes as shown to their writer: long sections by their ends, unless they are to be condensed.
fn shown(notes: &str, estimator: Estimator) -> String {
    let tokens = |text: &str| estimator.total(estimator.text(text));
    let is_too_long = tokens(notes) > NOTES_MAX;
    let shown = |section: &str| {
        let taken = tokens(section);
        match is_too_long || taken <= SHOWN_WHOLE || taken > SECTION_MAX {
            true => section.to_owned(),
            false => by_its_end(section, &tokens),
        }
    };
    sections(notes).into_iter().map(shown).collect()
}

/// Head and last lines of a section; the whole section if only one line would be omitted.
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

/// Instructions to condense the sections that are too long.
fn condensing(notes: &str, estimator: Estimator) -> String {
    let tokens = |text: &str| estimator.total(estimator.text(text));
    let mut said = String::new();
    for section in sections(notes) {
        let (taken, heading) = (tokens(section), section.lines().next().unwrap_or_default());
        if taken > SECTION_MAX {
            let heading = heading.trim_start_matches('#').trim();
            said.push_str(&format!(
                "- The section `{heading}` has about {taken} tokens and may have {SECTION_MAX}: condense it, keeping what is newest and \
                 what could not be found out again.\n"
            ));
        }
    }
    let all = tokens(notes);
    if all > NOTES_MAX {
        said.push_str(&format!(
            "- All together they have about {all} tokens and may have {NOTES_MAX}: condense the longest sections first.\n"
        ));
    }
    said
}

/// Restores every heading and description of the template that the writer removed.
pub fn restore_template_sections(notes: &str, template: &str) -> String {
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

/// Splits into sections, each with its heading.
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
        let sections = sections(NOTES_TEMPLATE);
        assert_eq!(sections.len(), 10);
        for section in sections {
            let mut lines = section.lines();
            assert!(lines.next().unwrap().starts_with("# "));
            let about = lines.next().unwrap();
            assert!(about.starts_with('_') && about.ends_with('_'), "{about}");
        }
    }

    #[test]
    fn removed_template_sections_are_restored() {
        let worklog = "# Worklog\n_Step by step, one short line each: what was done._\n";
        let written = NOTES_TEMPLATE
            .replace(worklog, "")
            .replace("_What proved good, what did not, what to avoid._\n", "Tests first.\n");
        let mended = restore_template_sections(&written, NOTES_TEMPLATE);
        assert!(mended.ends_with(worklog), "{mended}");
        assert!(
            mended.contains("# Learnings\n_What proved good, what did not, what to avoid._\nTests first.\n"),
            "{mended}"
        );
        assert_eq!(restore_template_sections(&mended, NOTES_TEMPLATE), mended, "mended once is mended");
        assert_eq!(restore_template_sections(NOTES_TEMPLATE, NOTES_TEMPLATE), NOTES_TEMPLATE);
        assert_eq!(
            sections(&restore_template_sections("", NOTES_TEMPLATE)).len(),
            11,
            "all ten, behind an empty line"
        );
    }

    #[test]
    fn notes_cadence_scales_with_the_context_up_to_a_maximum() {
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
    fn directive_names_sections_that_are_too_long() {
        let estimator = Estimator::classic();
        let long = NOTES_TEMPLATE
            .replace("# Worklog\n", &format!("# Worklog\n{}", "did something else\n".repeat(900)));
        let said = notes_directive(NOTES_DIRECTIVE, "/s/notes.md", &long, estimator);
        assert!(
            said.contains("The section `Worklog` has about") && !said.contains("The section `Title`"),
            "{said}"
        );
        assert!(said.contains("session notes in /s/notes.md") && !said.contains("{"), "{said}");
        assert!(
            !notes_directive(NOTES_DIRECTIVE, "/s/notes.md", NOTES_TEMPLATE, estimator).contains("condense")
        );
        let said = notes_directive(INLINE_NOTES_DIRECTIVE, "/s/notes.md", NOTES_TEMPLATE, estimator);
        assert!(said.contains("are kept in /s/notes.md, and") && said.contains("# Worklog"), "{said}");
        assert!(!said.contains("{") && !said.contains("condense"), "{said}");
    }

    #[test]
    fn long_sections_are_shown_by_their_ends() {
        let estimator = Estimator::classic();
        let grown = |lines: usize| {
            let lines: String = (0..lines).map(|line| format!("- step {line} was taken\n")).collect();
            let about = "_Step by step, one short line each: what was done._\n";
            NOTES_TEMPLATE.replace(about, &format!("{about}{lines}"))
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
