//! A summary in nine sections, drawn from what was seen; a later one carries the sections of an earlier one on.

use super::prose::{cut, first_line, fitted, shared};
use super::sections::{NOTHING, SECTIONS, WORDS, carried, heading, is_ours};
use super::seen::Seen;

/// Tags in which other agents and we ask for the summary.
const TAGS: [&str; 2] = ["summary", "state_snapshot"];

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

/// The answer to a directive for a summary, in the tags that it asks for.
pub(crate) fn answer(seen: &Seen, directive: &str, room: usize) -> String {
    let tag = TAGS.into_iter().find(|tag| directive.contains(&format!("<{tag}>")));
    let mut out = String::new();
    if directive.contains("<analysis>") {
        out.push_str(&format!(
            "<analysis>\n{} messages, {} calls of tools, {} files, {} errors; drawn from them word for word.\n</analysis>\n\n",
            seen.messages,
            seen.calls,
            seen.files.len(),
            seen.troubles.len()
        ));
    }
    let room = room.saturating_sub(out.len() + 64);
    let body = cut(&sections(seen, room), room);
    match tag {
        Some(tag) => out.push_str(&format!("<{tag}>\n{}\n</{tag}>", body.trim_end())),
        None => out.push_str(body.trim_end()),
    }
    out
}

/// The nine sections.
pub(crate) fn sections(seen: &Seen, room: usize) -> String {
    let earlier = seen.earlier.as_deref().unwrap_or_default();
    // Headings and notes of cuts take room, too.
    let room = room.saturating_sub(9 * 48) * 9 / 10;
    let mut out = String::new();
    let mut spare = 0;
    // The user's words are measured last, so that they get what the other sections leave.
    let shares: Vec<usize> = SECTIONS.iter().map(|(_, share)| room * share / 100).collect();
    let mut bodies: Vec<String> = Vec::new();
    for (index, share) in shares.iter().enumerate() {
        let body = if index == WORDS {
            String::new()
        } else {
            section(seen, index, carried(earlier, index), *share)
        };
        if index != WORDS {
            spare += share.saturating_sub(body.len());
        }
        bodies.push(body);
    }
    if let (Some(body), Some(share)) = (bodies.get_mut(WORDS), shares.get(WORDS)) {
        *body = words(seen, carried(earlier, WORDS), share + spare);
    }
    for (index, body) in bodies.iter().enumerate() {
        out.push_str(&heading(index));
        out.push('\n');
        out.push_str(if body.trim().is_empty() { NOTHING } else { body.trim_end() });
        out.push_str("\n\n");
    }
    out
}

fn section(seen: &Seen, index: usize, carried: &str, room: usize) -> String {
    let mut lines = match index {
        0 => intent(seen, room),
        1 => concepts(seen),
        2 => files(seen),
        3 => errors(seen),
        4 => commands(seen),
        6 => pending(seen),
        7 => current(seen, room),
        _ => next(seen, room),
    };
    // What is open and what is being done is true of now only.
    if (1..=4).contains(&index) {
        lines.extend(
            carried
                .lines()
                .filter(|line| line.starts_with("- ") && !line.starts_with("- … and "))
                .map(str::to_owned),
        );
    } else if index == 0 && !carried.is_empty() {
        lines.insert(0, cut(carried.trim_end(), room / 2));
    }
    fitted(&lines, room)
}

fn intent(seen: &Seen, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(earlier) = seen.earlier.as_deref().filter(|earlier| !is_ours(earlier)) {
        lines.push(format!("From an earlier summary: {}", cut(earlier, room / 2)));
    } else if let Some(first) = seen.words.first() {
        lines.push(format!("First asked: {}", cut(first, room / 2)));
    }
    if let Some(last) = seen.words.last().filter(|_| seen.words.len() > 1) {
        lines.push(format!("Last asked: {}", cut(last, room / 3)));
    }
    lines
}

fn concepts(seen: &Seen) -> Vec<String> {
    seen.sentences_with(&DECIDED, 16).into_iter().map(|sentence| format!("- {sentence}")).collect()
}

pub(crate) fn files(seen: &Seen) -> Vec<String> {
    let mut files: Vec<_> = seen.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse((file.writes > 0, file.last)));
    let line = |file: &&super::seen::File| {
        let mut line = format!("- {}", file.path);
        let mut touches = Vec::new();
        if file.writes > 0 {
            touches.push(format!("written {}×", file.writes));
        }
        if file.reads > 0 {
            touches.push(format!("read {}×", file.reads));
        }
        line.push_str(&format!(" ({})", touches.join(", ")));
        if let Some(change) = &file.change {
            line.push_str(&format!(
                "; last change: `{}`",
                change.split_whitespace().collect::<Vec<_>>().join(" ")
            ));
        }
        line
    };
    files.iter().map(line).collect()
}

pub(crate) fn errors(seen: &Seen) -> Vec<String> {
    let line = |trouble: &super::seen::Trouble| {
        let then = trouble.then.as_ref().map_or(String::new(), |then| format!(" → {then}"));
        format!("- {}: {}{then}", trouble.call, trouble.lines)
    };
    seen.troubles.iter().rev().map(line).collect()
}

pub(crate) fn commands(seen: &Seen) -> Vec<String> {
    let line = |command: &super::seen::Command| {
        let end = if command.failed { " (with errors)" } else { "" };
        format!("- ran `{}`{end}", command.line.lines().next().unwrap_or_default())
    };
    seen.commands.iter().rev().take(40).map(line).collect()
}

fn words(seen: &Seen, carried: &str, room: usize) -> String {
    let mut out = String::new();
    let carried = carried.trim_end();
    if !carried.is_empty() {
        out.push_str(&cut(carried, room / 2));
        out.push('\n');
    }
    let inserted: Vec<String> = seen.inserted.iter().map(|text| format!("- (inserted) {text}")).collect();
    let inserted = fitted(&inserted, room / 8);
    // Each has a bullet, a few words and perhaps the note of a cut; the newest come first where not all can.
    const EACH: usize = 40;
    let left = room.saturating_sub(out.len() + inserted.len());
    let skipped = seen.words.len().saturating_sub(left / (EACH * 2));
    if skipped > 0 {
        out.push_str(&format!("- … and {skipped} earlier ones that do not fit here\n"));
    }
    let kept = seen.words.get(skipped..).unwrap_or_default();
    for words in shared(kept, left.saturating_sub(EACH * kept.len())) {
        out.push_str("- ");
        out.push_str(&words);
        out.push('\n');
    }
    out.push_str(&inserted);
    out
}

pub(crate) fn pending(seen: &Seen) -> Vec<String> {
    seen.open_tasks().map(|task| format!("- [{}] {}", task.status, task.what)).collect()
}

pub(crate) fn current(seen: &Seen, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(said) = seen.said.last() {
        lines.push(format!("Last said: {}", cut(said, room * 2 / 3)));
    }
    if let Some(call) = &seen.last_call {
        lines.push(
            format!("Last call: {} {}", call.name, first_line(&call.target, 200)).trim_end().to_owned(),
        );
    }
    lines
}

fn next(seen: &Seen, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(task) =
        seen.open_tasks().find(|task| task.status == "in_progress").or(seen.open_tasks().next())
    {
        lines.push(format!("Go on with: \"{}\"", cut(&task.what, room / 3)));
    }
    if let Some(plan) = seen.sentences_with(&PLANNED, 1).first() {
        lines.push(format!("The plan, quoted: \"{}\"", cut(plan, room / 3)));
    }
    if let Some(last) = seen.words.last() {
        lines.push(format!("The user's last words, quoted: \"{}\"", cut(last, room / 3)));
    }
    lines
}
