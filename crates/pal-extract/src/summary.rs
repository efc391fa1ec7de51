//! A summary in nine sections, drawn from the facts; a later one carries the sections of an earlier one on.
//!
//! Names nothing that the facts do not hold. Each section has a share of the room; what the others leave goes to the
//! user's words, of which the newest stand whole before older ones stand at all.

use crate::facts::{Command, Facts, File, Trouble};
use crate::prose::{cut, first_line, fitted, shared};
use crate::sections::{
    NOTHING, PENDING, SECTIONS, WORDS, defused, foreign_sections, heading, is_ours, section,
};

/// Words by which a decision is known.
const DECIDED: [&str; 10] = [
    "decided",
    "instead of",
    "because",
    "i'll use",
    "i will use",
    "going with",
    "root cause",
    "the reason",
    "rather than",
    "the problem was",
];
/// Words by which a plan is known.
const PLANNED: [&str; 8] =
    ["next,", "next step", "now i", "now let me", "let me", "i'll", "i will", "remaining"];

/// The nine sections, in about this many bytes: never more, unless the headings alone take more.
pub fn summary(facts: &Facts, room: usize) -> String {
    // Headings and notes of cuts take room, too.
    let room = room.saturating_sub(SECTIONS.len() * 48) * 9 / 10;
    let mut spare = 0;
    // The user's words are measured last, so that they get what the other sections leave.
    let mut bodies: Vec<String> = Vec::new();
    for (index, (_, share)) in SECTIONS.iter().enumerate() {
        let share = room * share / 100;
        let body = if index == WORDS { String::new() } else { body(facts, index, share) };
        spare += share.saturating_sub(body.len());
        bodies.push(body);
    }
    if let Some(body) = bodies.get_mut(WORDS) {
        // What another agent summarised gets what the words leave, and a part of the room in any case.
        let foreign = foreign(facts);
        let wanted: usize = foreign.iter().map(|(_, text)| text.len() + FRAME).sum();
        *body = words(facts, spare.saturating_sub(wanted.min(spare / 4)));
        let left = spare.saturating_sub(body.len());
        add_foreign(&mut bodies, &foreign, left);
    }
    let mut out = String::new();
    for (index, body) in bodies.iter().enumerate() {
        out.push_str(&heading(index));
        out.push('\n');
        out.push_str(if body.trim().is_empty() { NOTHING } else { body.trim_end() });
        out.push_str("\n\n");
    }
    out
}

/// What stands before a piece of another agent's summary.
const EARLIER: &str = "From an earlier summary:\n";
/// The bytes that a piece takes besides its own, with the note of a cut.
const FRAME: usize = EARLIER.len() + 40;

/// The earlier summaries that are not in our form, the newest first: each section with where it goes, or all as one.
fn foreign(facts: &Facts) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    for earlier in facts.earlier.iter().rev().filter(|earlier| !is_ours(earlier)) {
        let sections = foreign_sections(earlier);
        if sections.is_empty() {
            // Its headings are not ours.
            pieces.push((0, format!("\n{}", earlier.trim()).replace("\n## ", "\n### ").trim().to_owned()));
        }
        for (index, text) in sections {
            match index {
                // The words themselves are at hand.
                WORDS if facts.has_earlier_words => {}
                // A list of tasks replaces the one before it.
                PENDING if !facts.tasks.is_empty() => {}
                // What was being done then has been done since.
                7.. => pieces.push((4, text)),
                _ => pieces.push((index, text)),
            }
        }
    }
    pieces.into_iter().map(|(index, text)| (index, defused(&text))).collect()
}

/// Puts the pieces into their sections, in so much room.
fn add_foreign(bodies: &mut [String], pieces: &[(usize, String)], room: usize) {
    let fitting = pieces.get(..pieces.len().min(room / (FRAME * 2))).unwrap_or_default();
    let texts: Vec<&str> = fitting.iter().map(|(_, text)| text.as_str()).collect();
    let told = shared(&texts, room.saturating_sub(FRAME * texts.len()));
    for ((index, _), text) in fitting.iter().zip(told) {
        let Some(body) = bodies.get_mut(*index) else { continue };
        // What was said before stands before what was said since.
        if *index == WORDS {
            *body = format!("{text}\n{body}");
        } else {
            body.push_str(EARLIER);
            body.push_str(&text);
            body.push('\n');
        }
    }
}

/// A section that is not the user's words.
fn body(facts: &Facts, index: usize, room: usize) -> String {
    let mut lines = match index {
        0 => intent(facts, room),
        1 => concepts(facts),
        2 => file_lines(facts),
        3 => error_lines(facts),
        4 => command_lines(facts).into_iter().chain(inserted_lines(facts)).collect(),
        PENDING => task_lines(facts),
        7 => current_lines(facts, room),
        _ => next(facts, room),
    };
    // The newest first, as everywhere.
    let earlier = || facts.earlier.iter().rev().map(|earlier| section(earlier, index));
    let is_item = |line: &&str| line.starts_with("- ") && !line.starts_with("- … and ");
    let items = |section: &str| section.lines().filter(is_item).map(str::to_owned).collect::<Vec<_>>();
    match index {
        0 => {
            // What was asked first is asked still.
            let asked = earlier().rfind(|asked| !asked.is_empty());
            asked.into_iter().for_each(|asked| lines.insert(0, cut(asked.trim_end(), room / 2)));
        }
        1..=4 => earlier().for_each(|section| lines.extend(items(section))),
        // A list of tasks replaces the one before it; without a new one the old one is still open.
        PENDING if facts.tasks.is_empty() => {
            earlier().take(1).for_each(|section| lines.extend(items(section)))
        }
        // What is being done is true of now only.
        _ => {}
    }
    // What is quoted must not begin a section when this summary is read.
    let lines: Vec<String> = lines.iter().map(|line| defused(line)).collect();
    fitted(&lines, room)
}

fn intent(facts: &Facts, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(first) = facts.words.first().filter(|_| facts.earlier.is_empty()) {
        lines.push(format!("First asked: {}", cut(&first.text, room / 2)));
    }
    if let Some(last) = facts.words.last().filter(|_| facts.words.len() > 1 || !facts.earlier.is_empty()) {
        lines.push(format!("Last asked: {}", cut(&last.text, room / 3)));
    }
    lines
}

fn concepts(facts: &Facts) -> Vec<String> {
    facts.sentences_with(&DECIDED, 16).into_iter().map(|sentence| format!("- {sentence}")).collect()
}

/// What was done, in short lines: files, errors, commands, open tasks and what was said last. What people said is
/// not in it: whoever needs it has their words.
pub fn short(facts: &Facts, room: usize) -> String {
    let mut out = format!("{} messages, {} calls of tools.\n", facts.messages, facts.calls);
    let room = room.saturating_sub(out.len());
    let parts = [
        (file_lines(facts), 35),
        (error_lines(facts), 20),
        (command_lines(facts), 20),
        (task_lines(facts), 10),
        (current_lines(facts, room * 15 / 100), 15),
    ];
    for (lines, share) in parts {
        let fitted = fitted(&lines, room * share / 100);
        if !fitted.trim().is_empty() {
            out.push_str(fitted.trim_end());
            out.push('\n');
        }
    }
    out
}

/// The files, those that were written first, the newest touch first.
pub fn file_lines(facts: &Facts) -> Vec<String> {
    let mut files: Vec<&File> = facts.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse((file.writes > 0, file.last)));
    let line = |file: &&File| {
        let mut touches = Vec::new();
        if file.writes > 0 {
            touches.push(format!("written {}×", file.writes));
        }
        if file.reads > 0 {
            touches.push(format!("read {}×", file.reads));
        }
        let mut line = format!("- {} ({})", file.path, touches.join(", "));
        if let Some(change) = &file.change {
            let change = change.split_whitespace().collect::<Vec<_>>().join(" ");
            line.push_str(&format!("; last change: `{change}`"));
        }
        line
    };
    files.iter().map(line).collect()
}

/// What went wrong, the newest first, with what the user said to it and what followed.
pub fn error_lines(facts: &Facts) -> Vec<String> {
    facts.troubles.iter().rev().map(|trouble| format!("- {}", error_line(trouble))).collect()
}

/// One error: the call, what it said, what the user said to it and what followed.
pub fn error_line(trouble: &Trouble) -> String {
    let heard = trouble.heard.as_ref().map_or(String::new(), |heard| {
        format!("; the user: \"{}\"", heard.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let then = trouble.then.as_ref().map_or(String::new(), |then| format!(" → {then}"));
    format!("{}: {}{heard}{then}", trouble.call, trouble.lines.join(" / "))
}

/// The commands, the newest first.
pub fn command_lines(facts: &Facts) -> Vec<String> {
    let line = |command: &Command| {
        let end = if command.failed { " (with errors)" } else { "" };
        format!("- ran `{}`{end}", command.line.lines().next().unwrap_or_default())
    };
    facts.commands.iter().rev().take(40).map(line).collect()
}

/// What programs put into the conversation, the newest first, a line each: nobody said it.
fn inserted_lines(facts: &Facts) -> impl Iterator<Item = String> {
    let line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    facts.inserted.iter().rev().take(8).map(move |text| format!("- inserted by a program: {}", line(text)))
}

/// The open tasks.
pub fn task_lines(facts: &Facts) -> Vec<String> {
    facts.open_tasks().map(|task| format!("- [{}] {}", task.status, task.what)).collect()
}

/// What was said and done last.
pub fn current_lines(facts: &Facts, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(said) = facts.said.last() {
        lines.push(format!("Last said: {}", cut(said, room * 2 / 3)));
    }
    if let Some(call) = &facts.last_call {
        let target = first_line(&call.target, 200);
        lines.push(format!("Last call: {} {target}", call.name).trim_end().to_owned());
    }
    lines
}

fn next(facts: &Facts, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let task = facts.open_tasks().find(|task| task.status == "in_progress").or(facts.open_tasks().next());
    if let Some(task) = task {
        lines.push(format!("Go on with: \"{}\"", cut(&task.what, room / 3)));
    }
    if let Some(plan) = facts.sentences_with(&PLANNED, 1).first() {
        lines.push(format!("The plan, quoted: \"{}\"", cut(plan, room / 3)));
    }
    if let Some(last) = facts.words.last() {
        lines.push(format!("The user's last words, quoted: \"{}\"", cut(&last.text, room / 3)));
    }
    lines
}

/// The user's words: the newest whole in half of the room or more, the beginnings of older ones in the rest.
fn words(facts: &Facts, room: usize) -> String {
    // Each has a bullet, a few words and perhaps the note of a cut.
    const EACH: usize = 40;
    let mut out = String::new();
    let listed = facts.earlier.iter().map(|earlier| section(earlier, WORDS));
    let listed: Vec<&str> = listed.filter(|list| !list.is_empty() && !facts.has_earlier_words).collect();
    for list in &listed {
        out.push_str(&cut(list.trim_end(), room / (listed.len() + 1)));
        out.push('\n');
    }
    let mut left = room.saturating_sub(out.len());
    let all: usize = facts.words.iter().map(|words| words.text.len() + EACH).sum();
    let whole_room = if all <= left { left } else { left / 2 };
    let mut whole_from = facts.words.len();
    let mut used = 0;
    for (index, words) in facts.words.iter().enumerate().rev() {
        let size = words.text.len() + EACH;
        if used + size > whole_room {
            break;
        }
        used += size;
        whole_from = index;
    }
    left = left.saturating_sub(used);
    let skipped = whole_from.saturating_sub(left / (EACH * 2));
    let not_here = skipped as u64 + facts.pointed;
    if not_here > 0 {
        out.push_str(&format!("- … and {not_here} earlier ones that do not fit here\n"));
    }
    let cuts = facts.words.get(skipped..whole_from).unwrap_or_default();
    let cuts: Vec<&str> = cuts.iter().map(|words| words.text.as_str()).collect();
    let whole = facts.words.get(whole_from..).unwrap_or_default();
    let whole = whole.iter().map(|words| words.text.clone());
    for text in shared(&cuts, left.saturating_sub(EACH * cuts.len())).into_iter().chain(whole) {
        out.push_str("- ");
        out.push_str(&text);
        out.push('\n');
    }
    out
}
