//! Text of notes in a replay: lines that a writer could have taken verbatim from the conversation.
//!
//! Each update adds the new lines of a range of the conversation to the sections of the template, at most as many as real note writers
//! add. A section over its limit loses its oldest lines.

use pal_context::NOTES_TEMPLATE;
use pal_extract::ConversationFacts;
use pal_model::{LogEntry, SharedText};
use pal_view::Estimator;
use serde_json::json;

/// Maximum tokens of a section and of all sections, as in the template; longer ones are condensed to three quarters.
const SECTION_MAX: u64 = 2_000;
const NOTES_MAX: u64 = 12_000;
/// Most lines that one update adds to a section, and most bytes of each.
const LINES_MAX: usize = 6;
const LINE_BYTES: usize = 320;
/// Most bytes of a message of the user: their words matter most.
const WORDS_BYTES: usize = 1_600;
/// Most bytes of how things stand.
const STATE_BYTES: usize = 1_200;

/// Notes.
#[derive(Clone, Debug)]
pub(super) struct ExtractiveNotes {
    sections: Vec<NoteSection>,
}

#[derive(Clone, Debug, PartialEq)]
struct NoteSection {
    heading: &'static str,
    about: &'static str,
    lines: Vec<String>,
}

impl Default for ExtractiveNotes {
    fn default() -> ExtractiveNotes {
        let mut sections = Vec::new();
        let mut lines = NOTES_TEMPLATE.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("# ") {
                let about = lines.next().unwrap_or_default();
                sections.push(NoteSection { heading: line, about, lines: Vec::new() });
            }
        }
        ExtractiveNotes { sections }
    }
}

impl NoteSection {
    /// All below the heading.
    fn body(&self) -> String {
        std::iter::once(self.about)
            .chain(self.lines.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Drops the oldest lines until at most this number of tokens is left.
    fn condense(&mut self, most: u64, estimator: Estimator) {
        while self.lines.len() > 1 && estimator.total(estimator.text(&self.body())) > most {
            self.lines.remove(0);
        }
    }
}

impl ExtractiveNotes {
    /// Content of the notes file.
    pub(super) fn text(&self) -> String {
        let section = |section: &NoteSection| format!("{}\n{}\n", section.heading, section.body());
        self.sections.iter().map(section).collect::<Vec<_>>().join("\n")
    }

    /// Notes updated with a range of messages, and the tool inputs that write them: short edits, or a full rewrite.
    pub(super) fn grown(
        &self,
        stretch: &[LogEntry],
        estimator: Estimator,
        writes_whole: bool,
    ) -> (ExtractiveNotes, Vec<SharedText>) {
        let facts = ConversationFacts::from_entries(stretch);
        let mut next = self.clone();
        for section in &mut next.sections {
            match section.heading {
                "# Title" if !section.lines.is_empty() => {}
                "# Current state" => section.lines = added(section.heading, &facts),
                heading => {
                    let new: Vec<String> = added(heading, &facts)
                        .into_iter()
                        .filter(|line| !section.lines.contains(line))
                        .collect();
                    section.lines.extend(new);
                }
            }
            if estimator.total(estimator.text(&section.body())) > SECTION_MAX {
                section.condense(SECTION_MAX * 3 / 4, estimator);
            }
        }
        while estimator.total(estimator.text(&next.text())) > NOTES_MAX {
            let longest = next.sections.iter_mut().max_by_key(|section| section.body().len());
            let Some(section) = longest.filter(|section| section.lines.len() > 1) else { break };
            let tokens = estimator.total(estimator.text(&section.body()));
            section.condense(tokens * 3 / 4, estimator);
        }
        let inputs = match writes_whole {
            true => {
                vec![SharedText::from(json!({"file_path": super::PATH, "content": next.text()}).to_string())]
            }
            false => self.edits(&next),
        };
        (next, inputs)
    }

    /// Edits from these notes to others: a section that only grew is extended after its last line, a changed one is replaced.
    fn edits(&self, next: &ExtractiveNotes) -> Vec<SharedText> {
        let changed = self.sections.iter().zip(&next.sections).filter(|(before, after)| before != after);
        let edit = |(before, after): (&NoteSection, &NoteSection)| {
            let (old, new) = match after.lines.strip_prefix(before.lines.as_slice()) {
                Some(more) => {
                    let last = before.lines.last().map_or(before.about, String::as_str);
                    (last.to_owned(), format!("{last}\n{}", more.join("\n")))
                }
                None => (before.body(), after.body()),
            };
            SharedText::from(
                json!({"file_path": super::PATH, "old_string": old, "new_string": new}).to_string(),
            )
        };
        changed.map(edit).collect()
    }
}

/// Additions of a range to a section.
fn added(heading: &str, facts: &ConversationFacts) -> Vec<String> {
    let sentences = |words: &[&str]| {
        facts.sentences_with(words, LINES_MAX / 2).into_iter().map(|found| format!("- {found}")).collect()
    };
    let lines: Vec<String> = match heading {
        "# Title" => facts.words.first().map(|words| shortened(&words.text, 80)).into_iter().collect(),
        "# Current state" => {
            let mut lines = pal_extract::current_lines(facts, STATE_BYTES);
            lines.extend(pal_extract::task_lines(facts));
            return lines.into_iter().map(|line| shortened(&line, STATE_BYTES)).collect();
        }
        "# Task specification" => {
            let own = |text: &str| match text.len() <= WORDS_BYTES {
                true => format!("- {text}"),
                false => format!("- {}", shortened(text, WORDS_BYTES)),
            };
            return facts.words.iter().map(|words| own(&words.text)).collect();
        }
        // Which files were changed is what cannot be found out again.
        "# Files and functions" => {
            return pal_extract::file_lines(facts).iter().map(|line| shortened(line, LINE_BYTES)).collect();
        }
        "# Workflow" => newest(pal_extract::command_lines(facts)),
        "# Errors and corrections" => newest(pal_extract::error_lines(facts)),
        "# Codebase documentation" => sentences(&["defined in", "lives in", "is called", "depends on"]),
        "# Learnings" => sentences(&["because", "turns out", "root cause", "the reason", "instead of"]),
        "# Key results" => sentences(&["passed", "passing", "result", "total", "now works", "fixed"]),
        _ => newest(facts.model_texts.iter().map(|said| format!("- {}", shortened(said, 160))).collect()),
    };
    lines.iter().map(|line| shortened(line, LINE_BYTES)).collect()
}

/// The newest of some lines, in order.
fn newest(lines: Vec<String>) -> Vec<String> {
    let from = lines.len().saturating_sub(LINES_MAX);
    lines.into_iter().skip(from).collect()
}

/// As many whole words of a text as fit, on one line: half a path would be another one.
fn shortened(text: &str, most: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if out.len() + word.len() >= most {
            out.push_str(" …");
            break;
        }
        out.push_str(if out.is_empty() { "" } else { " " });
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(payloads: &[String]) -> Vec<LogEntry> {
        let entry = |(at, payload): (usize, &String)| {
            let line = format!(
                r#"{{"v":1,"id":"01890000-0000-7000-8000-{at:012}","parent":null,"at":"2026-11-15T09:00:00.000Z",{payload}}}"#
            );
            LogEntry::parse(SharedText::from(line)).unwrap()
        };
        payloads.iter().enumerate().map(entry).collect()
    }

    fn words(words: &str) -> String {
        format!(r#""kind":"user","origin":"person","content":{}"#, json!(words))
    }

    #[test]
    fn edits_lead_from_notes_to_the_next_and_limits_hold() {
        let estimator = Estimator::classic();
        let mut written = ExtractiveNotes::default();
        assert_eq!(written.text().trim(), NOTES_TEMPLATE.trim());
        for round in 0..40 {
            let said = entries(&[words(&format!("Wish {round}: {}", "make it right. ".repeat(60)))]);
            let (next, edits) = written.grown(&said, estimator, false);
            let mut text = written.text();
            for edit in &edits {
                let edit: serde_json::Value = serde_json::from_str(edit).unwrap();
                let (old, new) = (edit["old_string"].as_str().unwrap(), edit["new_string"].as_str().unwrap());
                assert_eq!(text.matches(old).count(), 1, "{old}");
                text = text.replace(old, new);
            }
            assert_eq!(text, next.text(), "round {round}");
            written = next;
        }
        let tokens = |text: &str| estimator.total(estimator.text(text));
        assert!(tokens(&written.text()) <= NOTES_MAX);
        for section in &written.sections {
            assert!(tokens(&section.body()) <= SECTION_MAX, "{}", section.heading);
        }
        assert!(written.text().contains("Wish 39") && !written.text().contains("Wish 3:"), "the newest stay");
        let (_, whole) = written.grown(&[], estimator, true);
        assert!(whole.len() == 1 && whole[0].contains("Wish 39"));
    }
}
