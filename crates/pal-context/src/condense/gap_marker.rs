//! Gap markers: their wording, which no program prints.

/// Start of every marker.
const OPEN: &str = "[… ";
/// End of every marker.
const CLOSE: &str = " …]";

/// Typical length of a marker on its own line.
pub(super) const USUAL_LENGTH: usize = 30;

/// Kind of a line, for the counts in a marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineReport {
    /// Not counted.
    Nothing,
    /// Reports an error.
    Error,
    /// Reports a warning.
    Warning,
    /// Added by a diff.
    Added,
    /// Removed by a diff.
    Removed,
}

/// Omitted lines at one position.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct OutputGap {
    lines: u64,
    errors: u64,
    warnings: u64,
    added: u64,
    removed: u64,
}

impl OutputGap {
    /// Adds lines of one kind.
    pub(super) fn add(&mut self, lines: u64, report: LineReport) {
        self.lines += lines;
        match report {
            LineReport::Nothing => {}
            LineReport::Error => self.errors += lines,
            LineReport::Warning => self.warnings += lines,
            LineReport::Added => self.added += lines,
            LineReport::Removed => self.removed += lines,
        }
    }

    /// Number of omitted lines.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Marker text without a line end.
    pub(super) fn render(&self) -> String {
        let mut text = format!("{OPEN}{} left out", format_count(self.lines, "line"));
        let kinds = [
            (self.errors, "error"),
            (self.warnings, "warning"),
            (self.added, "added line"),
            (self.removed, "removed line"),
        ];
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        for (kind_idx, (count, name)) in kinds.enumerate() {
            text.push_str(if kind_idx == 0 { ", among them " } else { ", " });
            text.push_str(&format_count(*count, name));
        }
        text.push_str(CLOSE);
        text
    }
}

/// Marker after a repeated line.
pub(super) fn repeated(times: u64) -> String {
    format!("{OPEN}the line above came {}{CLOSE}", format_count(times, "more time"))
}

/// Marker inside a truncated line or string.
pub(super) fn cut(characters: usize) -> String {
    format!("{OPEN}{characters} characters left out{CLOSE}")
}

/// Marker with other words.
pub(super) fn note(words: &str) -> String {
    format!("{OPEN}{words}{CLOSE}")
}

/// Returns true if a text contains a marker, and so was condensed before.
pub(super) fn is_in(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), OPEN.as_bytes())
        .is_some_and(|at| memchr::memmem::find(&text.as_bytes()[at..], CLOSE.as_bytes()).is_some())
}

/// A number and its noun.
pub(super) fn format_count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
