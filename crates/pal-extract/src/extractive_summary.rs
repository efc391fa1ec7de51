//! A summary in nine sections, made of the facts; it carries on the sections of earlier summaries.
//!
//! It names nothing that is not in the facts. Each section has a share of the room; unused room goes to the
//! user's words, of which the newest are kept whole first.

use crate::conversation_facts::{CommandRun, CommandState, ConversationFacts, ToolFailure, TouchedFile};
use crate::excerpts::{first_line, fit_lines, shared, truncate};
use crate::summary_sections::{
    NOTHING_SEEN, PENDING_TASKS_SECTION, SECTIONS, USER_MESSAGES_SECTION, defused, foreign_sections, heading,
    is_ours, section,
};

/// Words that mark a decision.
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
/// Words that mark a plan.
const PLANNED: [&str; 8] =
    ["next,", "next step", "now i", "now let me", "let me", "i'll", "i will", "remaining"];

/// Writes the nine sections in at most `room` bytes, unless the headings alone take more.
pub fn extractive_summary(facts: &ConversationFacts, room: usize) -> String {
    // Headings and truncation notes take room, too.
    let room = room.saturating_sub(SECTIONS.len() * 48) * 9 / 10;
    let mut spare = 0;
    // The user's words are fitted last, so that they get the unused room.
    let mut bodies: Vec<String> = Vec::new();
    for (index, (_, share)) in SECTIONS.iter().enumerate() {
        let share = room * share / 100;
        let body = if index == USER_MESSAGES_SECTION { String::new() } else { body(facts, index, share) };
        spare += share.saturating_sub(body.len());
        bodies.push(body);
    }
    if let Some(body) = bodies.get_mut(USER_MESSAGES_SECTION) {
        // Another agent's summary gets the room that the words leave, and a minimum in any case.
        let foreign = foreign(facts);
        let wanted: usize = foreign.iter().map(|(_, text)| text.len() + FRAME).sum();
        *body = user_words_section(facts, spare.saturating_sub(wanted.min(spare / 4)));
        let left = spare.saturating_sub(body.len());
        add_foreign(&mut bodies, &foreign, left);
    }
    let mut out = String::new();
    for (index, body) in bodies.iter().enumerate() {
        out.push_str(&heading(index));
        out.push('\n');
        out.push_str(if body.trim().is_empty() { NOTHING_SEEN } else { body.trim_end() });
        out.push_str("\n\n");
    }
    out
}

/// Introduction of a piece of another agent's summary.
const EARLIER: &str = "From an earlier summary:\n";
/// Overhead in bytes of such a piece, with the truncation note.
const FRAME: usize = EARLIER.len() + 40;

/// Earlier summaries in other formats, newest first: each section with its target section, or the whole as
/// one piece.
fn foreign(facts: &ConversationFacts) -> Vec<(usize, String)> {
    let mut pieces = Vec::new();
    for earlier in facts.earlier_summaries.iter().rev().filter(|earlier| !is_ours(earlier)) {
        let sections = foreign_sections(earlier);
        if sections.is_empty() {
            // Its headings are not ours.
            pieces.push((0, format!("\n{}", earlier.trim()).replace("\n## ", "\n### ").trim().to_owned()));
        }
        for (index, text) in sections {
            match index {
                // The words themselves are available.
                USER_MESSAGES_SECTION if facts.has_earlier_words => {}
                // A task list replaces the one before it.
                PENDING_TASKS_SECTION if !facts.tasks.is_empty() => {}
                // The work of that time is past work now.
                7.. => pieces.push((4, text)),
                _ => pieces.push((index, text)),
            }
        }
    }
    pieces.into_iter().map(|(index, text)| (index, defused(&text))).collect()
}

/// Puts the pieces into their sections, within `room` bytes.
fn add_foreign(bodies: &mut [String], pieces: &[(usize, String)], room: usize) {
    let fitting = pieces.get(..pieces.len().min(room / (FRAME * 2))).unwrap_or_default();
    let texts: Vec<&str> = fitting.iter().map(|(_, text)| text.as_str()).collect();
    let told = shared(&texts, room.saturating_sub(FRAME * texts.len()));
    for ((index, _), text) in fitting.iter().zip(told) {
        let Some(body) = bodies.get_mut(*index) else { continue };
        // Older messages come before newer ones.
        if *index == USER_MESSAGES_SECTION {
            *body = format!("{text}\n{body}");
        } else {
            body.push_str(EARLIER);
            body.push_str(&text);
            body.push('\n');
        }
    }
}

/// Writes a section other than the user's words.
fn body(facts: &ConversationFacts, index: usize, room: usize) -> String {
    let mut lines = match index {
        0 => intent(facts, room),
        1 => concepts(facts),
        2 => file_lines(facts),
        3 => error_lines(facts),
        4 => command_lines(facts).into_iter().chain(inserted_lines(facts)).collect(),
        PENDING_TASKS_SECTION => task_lines(facts),
        7 => current_lines(facts, room),
        _ => next(facts, room),
    };
    // Newest first, as everywhere.
    let earlier = || facts.earlier_summaries.iter().rev().map(|earlier| section(earlier, index));
    let is_item = |line: &&str| line.starts_with("- ") && !line.starts_with("- … and ");
    let items = |section: &str| section.lines().filter(is_item).map(str::to_owned).collect::<Vec<_>>();
    match index {
        0 => {
            // The first request stays in force.
            let asked = earlier().rfind(|asked| !asked.is_empty());
            asked.into_iter().for_each(|asked| lines.insert(0, truncate(asked.trim_end(), room / 2)));
        }
        1..=4 => earlier().for_each(|section| lines.extend(items(section))),
        // A task list replaces the one before it; without a new one the old one is still open.
        PENDING_TASKS_SECTION if facts.tasks.is_empty() => {
            earlier().take(1).for_each(|section| lines.extend(items(section)))
        }
        // Current work is not carried on.
        _ => {}
    }
    // Quoted text must not begin a section when this summary is parsed.
    let lines: Vec<String> = lines.iter().map(|line| defused(line)).collect();
    fit_lines(&lines, room)
}

fn intent(facts: &ConversationFacts, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(first) = facts.words.first().filter(|_| facts.earlier_summaries.is_empty()) {
        lines.push(format!("First asked: {}", truncate(&first.text, room / 2)));
    }
    if let Some(last) =
        facts.words.last().filter(|_| facts.words.len() > 1 || !facts.earlier_summaries.is_empty())
    {
        lines.push(format!("Last asked: {}", truncate(&last.text, room / 3)));
    }
    lines
}

fn concepts(facts: &ConversationFacts) -> Vec<String> {
    facts.sentences_with(&DECIDED, 16).into_iter().map(|sentence| format!("- {sentence}")).collect()
}

/// Short summary of the work: files, errors, commands, open tasks and the last texts. The user's words are
/// not included; callers add them verbatim.
pub fn short_summary(facts: &ConversationFacts, room: usize) -> String {
    let mut out = format!("{} messages, {} calls of tools.\n", facts.message_count, facts.call_count);
    let room = room.saturating_sub(out.len());
    let parts = [
        (file_lines(facts), 35),
        (error_lines(facts), 20),
        (command_lines(facts), 20),
        (task_lines(facts), 10),
        (current_lines(facts, room * 15 / 100), 15),
    ];
    for (lines, share) in parts {
        let fitted = fit_lines(&lines, room * share / 100);
        if !fitted.trim().is_empty() {
            out.push_str(fitted.trim_end());
            out.push('\n');
        }
    }
    out
}

/// Lines about files: written ones first, then by most recent touch.
pub fn file_lines(facts: &ConversationFacts) -> Vec<String> {
    let mut files: Vec<&TouchedFile> = facts.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse((file.writes > 0, file.last_call_number)));
    let line = |file: &&TouchedFile| {
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

/// Lines about failures, newest first.
pub fn error_lines(facts: &ConversationFacts) -> Vec<String> {
    facts.failures.iter().rev().map(|trouble| format!("- {}", error_line(trouble))).collect()
}

/// One failure: the call, its error, the user's reply and the follow-up.
pub fn error_line(trouble: &ToolFailure) -> String {
    let heard = trouble.user_reply.as_ref().map_or(String::new(), |heard| {
        format!("; the user: \"{}\"", heard.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    let then = trouble.follow_up.as_ref().map_or(String::new(), |then| format!(" → {then}"));
    format!("{}: {}{heard}{then}", trouble.call, trouble.lines.join(" / "))
}

/// Lines about commands, newest first.
pub fn command_lines(facts: &ConversationFacts) -> Vec<String> {
    let line = |command: &CommandRun| {
        let line = command.line.lines().next().unwrap_or_default();
        match command.state {
            CommandState::Ran => format!("- ran `{line}`"),
            CommandState::Failed => format!("- ran `{line}` (with errors)"),
            CommandState::Refused => format!("- refused, so not run: `{line}`"),
        }
    };
    facts.commands.iter().rev().take(40).map(line).collect()
}

/// Lines about texts that programs inserted, newest first.
fn inserted_lines(facts: &ConversationFacts) -> impl Iterator<Item = String> {
    let line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    facts
        .inserted_texts
        .iter()
        .rev()
        .take(8)
        .map(move |text| format!("- inserted by a program: {}", line(text)))
}

/// Lines about open tasks.
pub fn task_lines(facts: &ConversationFacts) -> Vec<String> {
    facts.open_tasks().map(|task| format!("- [{}] {}", task.status, task.text)).collect()
}

/// Lines about the current work: the last texts and calls.
pub fn current_lines(facts: &ConversationFacts, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(said) = facts.model_texts.last() {
        lines.push(format!("Last said: {}", truncate(said, room * 2 / 3)));
    }
    if let Some(call) = &facts.last_call {
        let target = first_line(&call.target, 200);
        lines.push(format!("Last call: {} {target}", call.name).trim_end().to_owned());
    }
    lines
}

fn next(facts: &ConversationFacts, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let task = facts.open_tasks().find(|task| task.status == "in_progress").or(facts.open_tasks().next());
    if let Some(task) = task {
        lines.push(format!("Go on with: \"{}\"", truncate(&task.text, room / 3)));
    }
    if let Some(plan) = facts.sentences_with(&PLANNED, 1).first() {
        lines.push(format!("The plan, quoted: \"{}\"", truncate(plan, room / 3)));
    }
    if let Some(last) = facts.words.last() {
        lines.push(format!("The user's last words, quoted: \"{}\"", truncate(&last.text, room / 3)));
    }
    lines
}

/// Writes the user's words: the newest whole in at least half of the room, the beginnings of older ones in
/// the rest.
fn user_words_section(facts: &ConversationFacts, room: usize) -> String {
    // Each has a bullet, a few words and possibly a truncation note.
    const EACH: usize = 40;
    let mut out = String::new();
    let listed = facts.earlier_summaries.iter().map(|earlier| section(earlier, USER_MESSAGES_SECTION));
    let listed: Vec<&str> = listed.filter(|list| !list.is_empty() && !facts.has_earlier_words).collect();
    for list in &listed {
        out.push_str(&truncate(list.trim_end(), room / (listed.len() + 1)));
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
    let not_here = skipped as u64 + facts.omitted_words;
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
