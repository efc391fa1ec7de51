//! Diffs: headers and changed lines stay as long as they fit, context lines go first. Lock files and
//! generated files shrink to their header and a count.

use super::gap_marker::LineReport;
use super::line_selection::{LineRank, RankedLine};
use super::severity;

/// Changed lines per hunk that are preferred over later ones of other hunks.
const FIRST_CHANGES: usize = 12;

/// Lines outside of hunks, such as a message or a file table, that rank like headers.
const FIRST_OUTSIDE: usize = 30;

/// Ranks the lines of a text that is mostly diff; `None` if it is not, or if it is short and has nothing
/// generated.
pub(super) fn lines<'a>(texts: &[&'a str], is_long: bool) -> Option<Vec<RankedLine<'a>>> {
    // Quick rejection: most texts are no diffs.
    if !texts.iter().any(|text| hunk_counts(text).is_some()) {
        return None;
    }
    let mut reader = DiffReader::default();
    let mut lines: Vec<RankedLine<'a>> = texts.iter().map(|text| reader.read(text)).collect();
    let is_diff = reader.hunks > 0 && reader.in_hunks * 3 >= texts.len();
    if !is_diff || !(is_long || reader.has_generated) {
        return None;
    }
    rank_context(&mut lines, is_long);
    Some(lines)
}

/// Parser state.
#[derive(Default)]
struct DiffReader {
    /// Remaining lines of the old and the new file in the hunk.
    left: (u64, u64),
    changes_in_hunk: usize,
    is_generated: bool,
    has_generated: bool,
    hunks: usize,
    in_hunks: usize,
    outside: usize,
}

impl DiffReader {
    fn read<'a>(&mut self, text: &'a str) -> RankedLine<'a> {
        if self.left != (0, 0)
            && let Some(line) = self.in_hunk(text)
        {
            self.in_hunks += 1;
            return line;
        }
        self.left = (0, 0);
        if let Some(counts) = hunk_counts(text) {
            self.left = counts;
            self.changes_in_hunk = 0;
            self.hunks += 1;
            self.in_hunks += 1;
            return RankedLine::new(text, if self.is_generated { LineRank::NOISE } else { LineRank::HEAD });
        }
        if let Some(path) = file_of(text) {
            self.is_generated = is_generated(path);
            self.has_generated |= self.is_generated;
            return RankedLine::new(text, LineRank::HEAD);
        }
        const HEADERS: [&str; 11] = [
            "index ",
            "--- ",
            "new file",
            "deleted file",
            "old mode",
            "new mode",
            "similarity",
            "rename ",
            "copy ",
            "Binary files",
            "\\ No newline",
        ];
        if HEADERS.iter().any(|opening| text.starts_with(opening)) {
            let is_needless = text.starts_with("index ") || (self.is_generated && !text.starts_with("--- "));
            return RankedLine::new(text, if is_needless { LineRank::near(6) } else { LineRank::HEAD });
        }
        let report = severity::classify_line(text);
        self.outside += 1;
        let rank = match report {
            _ if self.outside <= FIRST_OUTSIDE => LineRank::HEAD,
            LineReport::Error => LineRank::ERROR,
            _ => LineRank::SUMMARY,
        };
        RankedLine { report, ..RankedLine::new(text, rank) }
    }

    /// Ranks a line of the open hunk; `None` if the hunk broke off.
    fn in_hunk<'a>(&mut self, text: &'a str) -> Option<RankedLine<'a>> {
        let report = match text.as_bytes().first() {
            Some(b'+') => LineReport::Added,
            Some(b'-') => LineReport::Removed,
            Some(b' ' | b'\\') | None => LineReport::Nothing,
            _ => return None,
        };
        let (old, new) = &mut self.left;
        match report {
            LineReport::Added => *new = new.checked_sub(1)?,
            LineReport::Removed => *old = old.checked_sub(1)?,
            _ if text.starts_with('\\') => {}
            _ => (*old, *new) = (old.checked_sub(1)?, new.checked_sub(1)?),
        }
        let rank = if self.is_generated {
            LineRank::NOISE
        } else if report == LineReport::Nothing {
            LineRank::PLAIN
        } else {
            self.changes_in_hunk += 1;
            if self.changes_in_hunk <= FIRST_CHANGES { LineRank::ERROR } else { LineRank::WARNING }
        };
        Some(RankedLine { report, ..RankedLine::new(text, rank) })
    }
}

/// Ranks context lines: nearest to a change first; in a short text all stay.
fn rank_context(lines: &mut [RankedLine<'_>], is_long: bool) {
    let is_change = |line: &RankedLine<'_>| matches!(line.report, LineReport::Added | LineReport::Removed);
    let mut distances = vec![usize::MAX; lines.len()];
    let mut distance = usize::MAX;
    for (line_idx, line) in lines.iter().enumerate() {
        distance = if is_change(line) { 0 } else { distance.saturating_add(1) };
        distances[line_idx] = distance;
    }
    distance = usize::MAX;
    for (line_idx, line) in lines.iter().enumerate().rev() {
        distance = if is_change(line) { 0 } else { distance.saturating_add(1) };
        distances[line_idx] = distances[line_idx].min(distance);
    }
    for (line, distance) in lines.iter_mut().zip(distances) {
        if line.rank == LineRank::PLAIN && is_long {
            line.rank = LineRank::near(distance);
        }
    }
}

/// Line counts of a hunk header: `@@ -1,7 +1,8 @@`.
fn hunk_counts(text: &str) -> Option<(u64, u64)> {
    let (old, rest) = text.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => range.parse::<u64>().ok().map(|_| 1),
    };
    Some((count(old)?, count(new)?))
}

/// File named by a header.
fn file_of(text: &str) -> Option<&str> {
    if let Some(names) = text.strip_prefix("diff ") {
        return names.rsplit_once(" b/").map(|(_, path)| path).or(names.rsplit(' ').next());
    }
    let path = text.strip_prefix("+++ ")?;
    let path = path.split('\t').next().unwrap_or(path);
    // The new side of a removed file is `/dev/null`; the line before it named the file.
    (path != "/dev/null").then(|| path.strip_prefix("b/").unwrap_or(path))
}

/// Returns true for lock files and other generated files.
fn is_generated(path: &str) -> bool {
    const NAMES: [&str; 15] = [
        "Cargo.lock",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "bun.lockb",
        "poetry.lock",
        "uv.lock",
        "Pipfile.lock",
        "go.sum",
        "Gemfile.lock",
        "composer.lock",
        "flake.lock",
        "pubspec.lock",
    ];
    const ENDS: [&str; 11] = [
        ".min.js",
        ".min.css",
        ".map",
        ".snap",
        ".pb.go",
        ".g.dart",
        ".freezed.dart",
        "_pb2.py",
        ".generated.ts",
        "_generated.go",
        "_generated.rs",
    ];
    const FOLDERS: [&str; 3] = ["node_modules/", "vendor/", "dist/"];
    let name = path.rsplit('/').next().unwrap_or(path);
    NAMES.contains(&name)
        || ENDS.iter().any(|end| name.ends_with(end))
        || FOLDERS.iter().any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")))
}
