//! Answer to a notes directive: ten sections, written to the named file if a tool can, else returned as text.

use std::borrow::Cow;

use super::file_tools::{FileTool, path_in};
use super::session_titles::title;
use crate::{ModelOutput, OutputBlock};
use pal_extract::ConversationFacts;
use pal_extract::{fit_lines, truncate};

/// A notes section: the word that identifies its heading, the heading, and its fixed description.
struct NotesSection {
    key: &'static str,
    heading: &'static str,
    about: &'static str,
}

const SECTIONS: [NotesSection; 10] = [
    NotesSection { key: "title", heading: "Title", about: "A short name of the session" },
    NotesSection {
        key: "state",
        heading: "Current state",
        about: "What is being worked on now, what is open",
    },
    NotesSection { key: "task", heading: "Task specification", about: "What the user asked for" },
    NotesSection { key: "files", heading: "Files and functions", about: "Which files matter, and why" },
    NotesSection { key: "workflow", heading: "Workflow", about: "Commands that are run, in which order" },
    NotesSection {
        key: "error",
        heading: "Errors and corrections",
        about: "What went wrong and what followed",
    },
    NotesSection {
        key: "documentation",
        heading: "Codebase documentation",
        about: "How the parts work together",
    },
    NotesSection { key: "learning", heading: "Learnings", about: "What worked and what did not" },
    NotesSection {
        key: "result",
        heading: "Key results",
        about: "Answers and figures that the user asked for",
    },
    NotesSection { key: "worklog", heading: "Worklog", about: "What was done, step by step, briefly" },
];

/// Maximum bytes of a section.
const SECTION_MAX: usize = 4_000;

/// Answers a notes directive.
pub(crate) fn answer(
    facts: &ConversationFacts,
    directive: &str,
    tools: &[Cow<'_, str>],
    room: usize,
) -> ModelOutput {
    let each = (room / SECTIONS.len()).min(SECTION_MAX);
    let path = path_in(directive, |word| word.ends_with(".md"));
    let present = present(directive);
    if let (Some(path), Some(editor), false) = (path, FileTool::editor(tools), present.is_empty()) {
        let edits: Vec<OutputBlock> = present
            .iter()
            .filter_map(|part| {
                let new = format!("{}\n{}\n", part.about, content(facts, part.key, each).trim_end());
                (new.trim_end() != part.body.trim_end()).then(|| editor.call(path, part.body, &new))
            })
            .collect();
        if !edits.is_empty() {
            return ModelOutput { blocks: edits, stop: None };
        }
    }
    let mut notes = String::new();
    for section in &SECTIONS {
        let body = content(facts, section.key, each);
        notes.push_str(&format!("# {}\n_{}_\n\n{}\n\n", section.heading, section.about, body.trim_end()));
    }
    let notes = notes.trim_end().to_owned() + "\n";
    match (path, FileTool::writer(tools)) {
        (Some(path), Some(writer)) => ModelOutput { blocks: vec![writer.call(path, "", &notes)], stop: None },
        _ => ModelOutput { blocks: vec![OutputBlock::Text(notes)], stop: None },
    }
}

/// A section of the existing notes in the directive.
struct ExistingSection<'a> {
    key: &'static str,
    /// Fixed description.
    about: &'a str,
    /// Description and content, up to the next heading.
    body: &'a str,
}

/// Existing sections in a directive: a heading followed by a line in italics.
fn present(directive: &str) -> Vec<ExistingSection<'_>> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in directive.split_inclusive('\n') {
        if line.starts_with("# ") || line.starts_with("## ") || line.starts_with("</") {
            starts.push((at, line));
        }
        at += line.len();
    }
    let mut found = Vec::new();
    for (number, (start, line)) in starts.iter().enumerate() {
        let end = starts.get(number + 1).map_or(directive.len(), |(next, _)| *next);
        let lower = line.to_lowercase();
        let section = SECTIONS.iter().find(|section| lower.contains(section.key));
        let body = directive.get(start + line.len()..end).unwrap_or_default().trim();
        let about = body.lines().next().unwrap_or_default();
        let is_italic = about.len() > 2 && about.starts_with('_') && about.ends_with('_');
        if let Some(section) = section.filter(|_| is_italic && directive.matches(body).count() == 1) {
            found.push(ExistingSection { key: section.key, about, body });
        }
    }
    found
}

fn content(facts: &ConversationFacts, key: &str, room: usize) -> String {
    let lines = match key {
        "title" => vec![title(facts)],
        "state" => {
            let mut lines = pal_extract::current_lines(facts, room);
            lines.extend(pal_extract::task_lines(facts));
            lines
        }
        "task" => {
            facts.words.iter().rev().map(|words| format!("- {}", truncate(&words.text, room / 3))).collect()
        }
        "files" => pal_extract::file_lines(facts),
        "workflow" => pal_extract::command_lines(facts),
        "error" => pal_extract::error_lines(facts),
        "documentation" => {
            sentences(facts, &["defined in", "lives in", "is called", "depends on", "consists of"])
        }
        "learning" => sentences(facts, &["because", "turns out", "root cause", "the reason", "instead of"]),
        "result" => sentences(facts, &["passed", "passing", "result", "total", "now works", "fixed", "done"]),
        _ => facts
            .model_texts
            .iter()
            .rev()
            .map(|said| format!("- {}", pal_extract::first_line(said, 160)))
            .collect(),
    };
    fit_lines(&lines, room)
}

fn sentences(facts: &ConversationFacts, words: &[&str]) -> Vec<String> {
    facts.sentences_with(words, 12).into_iter().map(|sentence| format!("- {sentence}")).collect()
}
