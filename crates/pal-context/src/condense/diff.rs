//! Diffs: file and hunk headers and changed lines stay as long as they fit, lines of context go first. Lock files and
//! generated files shrink to their header and a count.

use super::alarm;
use super::assemble::{Line, Rank};
use super::mark::Says;

/// Changed lines of a hunk that go before those further down in other hunks.
const FIRST_CHANGES: usize = 12;

/// Lines outside of hunks, such as a message or a table of files, that count like headers.
const FIRST_OUTSIDE: usize = 30;

/// The lines of a text that is mostly diff, ranked; none if it is not, or if it is short and holds nothing generated.
pub(super) fn lines<'a>(texts: &[&'a str], is_long: bool) -> Option<Vec<Line<'a>>> {
    // Most texts are no diffs, and this tells quickly.
    if !texts.iter().any(|text| hunk_counts(text).is_some()) {
        return None;
    }
    let mut reader = Reader::default();
    let mut lines: Vec<Line<'a>> = texts.iter().map(|text| reader.read(text)).collect();
    let is_diff = reader.hunks > 0 && reader.in_hunks * 3 >= texts.len();
    if !is_diff || !(is_long || reader.has_generated) {
        return None;
    }
    rank_context(&mut lines, is_long);
    Some(lines)
}

/// Where in a diff we are.
#[derive(Default)]
struct Reader {
    /// Lines of the old and the new file that the hunk still has.
    left: (u64, u64),
    changes_in_hunk: usize,
    is_generated: bool,
    has_generated: bool,
    hunks: usize,
    in_hunks: usize,
    outside: usize,
}

impl Reader {
    fn read<'a>(&mut self, text: &'a str) -> Line<'a> {
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
            return Line::new(text, if self.is_generated { Rank::NOISE } else { Rank::HEAD });
        }
        if let Some(path) = file_of(text) {
            self.is_generated = is_generated(path);
            self.has_generated |= self.is_generated;
            return Line::new(text, Rank::HEAD);
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
            return Line::new(text, if is_needless { Rank::near(6) } else { Rank::HEAD });
        }
        let says = alarm::says(text);
        self.outside += 1;
        let rank = match says {
            _ if self.outside <= FIRST_OUTSIDE => Rank::HEAD,
            Says::Error => Rank::ERROR,
            _ => Rank::SUMMARY,
        };
        Line { says, ..Line::new(text, rank) }
    }

    /// A line of the open hunk; none if the hunk broke off.
    fn in_hunk<'a>(&mut self, text: &'a str) -> Option<Line<'a>> {
        let says = match text.as_bytes().first() {
            Some(b'+') => Says::Added,
            Some(b'-') => Says::Removed,
            Some(b' ' | b'\\') | None => Says::Nothing,
            _ => return None,
        };
        let (old, new) = &mut self.left;
        match says {
            Says::Added => *new = new.checked_sub(1)?,
            Says::Removed => *old = old.checked_sub(1)?,
            _ if text.starts_with('\\') => {}
            _ => (*old, *new) = (old.checked_sub(1)?, new.checked_sub(1)?),
        }
        let rank = if self.is_generated {
            Rank::NOISE
        } else if says == Says::Nothing {
            Rank::PLAIN
        } else {
            self.changes_in_hunk += 1;
            if self.changes_in_hunk <= FIRST_CHANGES { Rank::ERROR } else { Rank::WARNING }
        };
        Some(Line { says, ..Line::new(text, rank) })
    }
}

/// Context nearest to a change comes first; in a short text it all stays.
fn rank_context(lines: &mut [Line<'_>], is_long: bool) {
    let is_change = |line: &Line<'_>| matches!(line.says, Says::Added | Says::Removed);
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
        if line.rank == Rank::PLAIN && is_long {
            line.rank = Rank::near(distance);
        }
    }
}

/// How many lines of the old and of the new file a hunk has: `@@ -1,7 +1,8 @@`.
fn hunk_counts(text: &str) -> Option<(u64, u64)> {
    let (old, rest) = text.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => range.parse::<u64>().ok().map(|_| 1),
    };
    Some((count(old)?, count(new)?))
}

/// The file that a header opens or names.
fn file_of(text: &str) -> Option<&str> {
    if let Some(names) = text.strip_prefix("diff ") {
        return names.rsplit_once(" b/").map(|(_, path)| path).or(names.rsplit(' ').next());
    }
    let path = text.strip_prefix("+++ ")?;
    let path = path.split('\t').next().unwrap_or(path);
    // The new side of a removed file has no name; the line before it had.
    (path != "/dev/null").then(|| path.strip_prefix("b/").unwrap_or(path))
}

/// Files that nobody writes by hand.
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
