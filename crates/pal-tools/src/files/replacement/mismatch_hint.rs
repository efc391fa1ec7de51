//! Explanation why a piece is not found in a file, with the nearest lines.

use std::collections::HashSet;

/// Context lines around the nearest line.
const AROUND: usize = 2;

/// Maximum displayed lines and characters per line.
const LINES_MAX: usize = 12;
const LINE_CHARACTERS_MAX: usize = 200;

/// Maximum lines compared in search of a similar one.
const COMPARED_MAX: usize = 100_000;

/// Explains why a piece is not found.
pub(super) fn explain_mismatch(bytes: &[u8], old: &str) -> String {
    let file = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = file.lines().collect();
    let not_found = "`old_string` is not in the file.";
    if is_numbered(old) {
        return format!("{not_found} Leave out the line numbers that Read puts before each line.");
    }
    if old.contains('\u{fffd}') {
        return format!(
            "{not_found} It holds \u{fffd}, which stands for bytes that are no UTF-8; take a piece without it."
        );
    }
    if let Some((first, count)) = find_ignoring_whitespace(&lines, old) {
        let shown = numbered(&lines, first, count);
        return format!("{not_found} With other white space it is, at line {}:\n{shown}", first + 1);
    }
    match nearest(&lines, old) {
        Some(line) => {
            let first = line.saturating_sub(AROUND);
            let shown = numbered(&lines, first, line - first + AROUND + 1);
            format!("{not_found} The nearest lines are:\n{shown}")
        }
        None => format!("{not_found} Nothing in it looks like it. Read the file again."),
    }
}

/// Returns whether the piece was copied with line numbers.
fn is_numbered(old: &str) -> bool {
    let is_row = |line: &str| {
        line.split_once('\t').is_some_and(|(number, _)| {
            !number.trim().is_empty() && number.trim().bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    old.lines().all(is_row)
}

/// First line and line count of a match that differs only in whitespace.
fn find_ignoring_whitespace(lines: &[&str], old: &str) -> Option<(usize, usize)> {
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.lines().map(squeezed).collect();
    let first = wanted.iter().position(|line| !line.is_empty())?;
    let last = wanted.iter().rposition(|line| !line.is_empty())?;
    let wanted = &wanted[first..=last];
    let is_here = |window: &[&str]| {
        window.iter().zip(wanted).enumerate().all(|(at, (line, wanted))| {
            let line = squeezed(line);
            // A piece may start and end within a line.
            match (at == 0, at + 1 == window.len()) {
                (true, true) => line.contains(wanted.as_str()),
                (true, false) => line.ends_with(wanted.as_str()),
                (false, true) => line.starts_with(wanted.as_str()),
                (false, false) => line == *wanted,
            }
        })
    };
    let at = lines.windows(wanted.len()).position(is_here)?;
    Some((at, wanted.len()))
}

/// Line that shares most words with the wordiest line of the piece, if it shares at least half.
fn nearest(lines: &[&str], old: &str) -> Option<usize> {
    let words = |line: &str| -> HashSet<String> {
        let words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
    };
    let wanted = old.lines().map(words).max_by_key(HashSet::len).filter(|words| !words.is_empty())?;
    let shared = |line: &&str| words(line).intersection(&wanted).count();
    let scored = lines.iter().take(COMPARED_MAX).map(shared).enumerate();
    // Takes the first of several; `max_by_key` would take the last.
    let (line, score) = scored.reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    (score * 2 >= wanted.len()).then_some(line)
}

/// Formats lines with their numbers.
fn numbered(lines: &[&str], first: usize, count: usize) -> String {
    let shown = lines.iter().enumerate().skip(first).take(count.min(LINES_MAX));
    let rows = shown.map(|(at, line)| {
        format!("{}\t{}\n", at + 1, line.chars().take(LINE_CHARACTERS_MAX).collect::<String>())
    });
    rows.collect()
}
