//! The marks that stand where something was left out. Owns their wording; no program prints lines like these.

/// Opens every mark.
const OPEN: &str = "[… ";
/// Closes every mark.
const CLOSE: &str = " …]";

/// About how many characters a mark of its own line takes.
pub(super) const USUAL_LENGTH: usize = 30;

/// What the lines of a gap say, where that is worth counting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Says {
    /// Nothing that is counted.
    Nothing,
    /// Something went wrong.
    Error,
    /// Something may be wrong.
    Warning,
    /// A diff adds this line.
    Added,
    /// A diff removes this line.
    Removed,
}

/// What was left out at one place.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    lines: u64,
    errors: u64,
    warnings: u64,
    added: u64,
    removed: u64,
}

impl Gap {
    /// Counts lines that say the same.
    pub(super) fn add(&mut self, lines: u64, says: Says) {
        self.lines += lines;
        match says {
            Says::Nothing => {}
            Says::Error => self.errors += lines,
            Says::Warning => self.warnings += lines,
            Says::Added => self.added += lines,
            Says::Removed => self.removed += lines,
        }
    }

    /// How many lines it stands for.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// The mark, without a line end.
    pub(super) fn mark(&self) -> String {
        let mut text = format!("{OPEN}{} left out", counted(self.lines, "line"));
        let kinds = [
            (self.errors, "error"),
            (self.warnings, "warning"),
            (self.added, "added line"),
            (self.removed, "removed line"),
        ];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        for (kind_idx, (count, name)) in kinds.enumerate() {
            text.push_str(if kind_idx == 0 { ", among them " } else { ", " });
            text.push_str(&counted(*count, name));
        }
        text.push_str(CLOSE);
        text
    }
}

/// The mark after a line that came again and again.
pub(super) fn repeated(times: u64) -> String {
    format!("{OPEN}the line above came {}{CLOSE}", counted(times, "more time"))
}

/// The mark inside a line or string that is cut.
pub(super) fn cut(characters: usize) -> String {
    format!("{OPEN}{characters} characters left out{CLOSE}")
}

/// A mark that says something else.
pub(super) fn note(words: &str) -> String {
    format!("{OPEN}{words}{CLOSE}")
}

/// Whether a text carries a mark, and so was condensed before.
pub(super) fn is_in(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), OPEN.as_bytes())
        .is_some_and(|at| memchr::memmem::find(&text.as_bytes()[at..], CLOSE.as_bytes()).is_some())
}

/// A number and its noun.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
