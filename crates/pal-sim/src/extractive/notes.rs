//! Notes of a session: ten sections, written into the file that the directive names if a tool can, said otherwise.

use std::borrow::Cow;

use super::labels::title;
use super::prose::{cut, fitted};
use super::seen::Seen;
use super::summary;
use super::tools::{FileTool, path_in};
use crate::{Answer, Said};

/// A section: the word by which its heading is known, the heading, and the description that stays.
struct Section {
    key: &'static str,
    heading: &'static str,
    about: &'static str,
}

const SECTIONS: [Section; 10] = [
    Section { key: "title", heading: "Title", about: "A short name of the session" },
    Section { key: "state", heading: "Current state", about: "What is being worked on now, what is open" },
    Section { key: "task", heading: "Task specification", about: "What the user asked for" },
    Section { key: "files", heading: "Files and functions", about: "Which files matter, and why" },
    Section { key: "workflow", heading: "Workflow", about: "Commands that are run, in which order" },
    Section { key: "error", heading: "Errors and corrections", about: "What went wrong and what followed" },
    Section { key: "documentation", heading: "Codebase documentation", about: "How the parts work together" },
    Section { key: "learning", heading: "Learnings", about: "What worked and what did not" },
    Section { key: "result", heading: "Key results", about: "Answers and figures that the user asked for" },
    Section { key: "worklog", heading: "Worklog", about: "What was done, step by step, briefly" },
];

/// The most bytes of a section.
const SECTION_MOST: usize = 4_000;

/// The answer to a directive for notes.
pub(crate) fn answer(seen: &Seen, directive: &str, tools: &[Cow<'_, str>], room: usize) -> Answer {
    let each = (room / SECTIONS.len()).min(SECTION_MOST);
    let path = path_in(directive, |word| word.ends_with(".md"));
    let present = present(directive);
    if let (Some(path), Some(editor), false) = (path, FileTool::editor(tools), present.is_empty()) {
        let edits: Vec<Said> = present
            .iter()
            .filter_map(|part| {
                let new = format!("{}\n{}\n", part.about, content(seen, part.key, each).trim_end());
                (new.trim_end() != part.body.trim_end()).then(|| editor.call(path, part.body, &new))
            })
            .collect();
        if !edits.is_empty() {
            return Answer { blocks: edits, stop: None };
        }
    }
    let mut notes = String::new();
    for section in &SECTIONS {
        let body = content(seen, section.key, each);
        notes.push_str(&format!("# {}\n_{}_\n\n{}\n\n", section.heading, section.about, body.trim_end()));
    }
    let notes = notes.trim_end().to_owned() + "\n";
    match (path, FileTool::writer(tools)) {
        (Some(path), Some(writer)) => Answer { blocks: vec![writer.call(path, "", &notes)], stop: None },
        _ => Answer { blocks: vec![Said::Text(notes)], stop: None },
    }
}

/// A section of the notes as the directive shows them.
struct Present<'a> {
    key: &'static str,
    /// The description, which stays.
    about: &'a str,
    /// The description and what follows it, up to the next heading.
    body: &'a str,
}

/// The sections that a directive shows: a heading, then a line in italics.
fn present(directive: &str) -> Vec<Present<'_>> {
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
            found.push(Present { key: section.key, about, body });
        }
    }
    found
}

fn content(seen: &Seen, key: &str, room: usize) -> String {
    let quoted = |texts: &[String]| -> Vec<String> {
        texts.iter().rev().map(|text| format!("- {}", cut(text, room / 3))).collect()
    };
    let lines = match key {
        "title" => vec![title(seen)],
        "state" => {
            let mut lines = summary::current(seen, room);
            lines.extend(summary::pending(seen));
            lines
        }
        "task" => quoted(&seen.words),
        "files" => summary::files(seen),
        "workflow" => summary::commands(seen),
        "error" => summary::errors(seen),
        "documentation" => {
            sentences(seen, &["defined in", "lives in", "is called", "depends on", "consists of"])
        }
        "learning" => sentences(seen, &["because", "turns out", "root cause", "the reason", "instead of"]),
        "result" => sentences(seen, &["passed", "passing", "result", "total", "now works", "fixed", "done"]),
        _ => {
            seen.said.iter().rev().map(|said| format!("- {}", super::prose::first_line(said, 160))).collect()
        }
    };
    fitted(&lines, room)
}

fn sentences(seen: &Seen, words: &[&str]) -> Vec<String> {
    seen.sentences_with(words, 12).into_iter().map(|sentence| format!("- {sentence}")).collect()
}
