//! Narration of the demo in short lines.

use std::io::Write;

use pal_report::{TextStyle, wrap_lines};

use crate::failure::Failure;

/// Left margin.
const MARGIN: &str = "   ";
/// Columns of the label of a line.
const LABEL: usize = 10;

/// Prints the narration, unless it is quiet.
pub(super) struct Narrator<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) colors: TextStyle,
    pub(super) columns: usize,
    /// Print nothing.
    pub(super) is_quiet: bool,
}

impl Narrator<'_> {
    /// Prints the title of a chapter.
    pub(super) fn chapter(&mut self, number: usize, title: &str) -> Result<(), Failure> {
        self.line("")?;
        self.line(&self.colors.bold(&format!("{number}. {title}")))
    }

    /// Prints a paragraph.
    pub(super) fn paragraph(&mut self, text: &str) -> Result<(), Failure> {
        for line in wrap_lines(text, self.columns - MARGIN.len() - 1) {
            self.line(&format!("{MARGIN}{line}"))?;
        }
        Ok(())
    }

    /// Prints a message or a call: author, text, and a remark at the right.
    pub(super) fn message(&mut self, who: &str, what: &str, remark: &str) -> Result<(), Failure> {
        let room = self.columns - MARGIN.len() - LABEL - 1;
        let narrow = room.saturating_sub(if remark.is_empty() { 0 } else { remark.chars().count() + 2 });
        for (at, line) in wrap_lines(what, narrow.max(8)).iter().enumerate() {
            let (who, remark) = if at == 0 { (who, remark) } else { ("", "") };
            let gap = room.saturating_sub(line.chars().count() + remark.chars().count());
            let who = self.colors.cyan(&format!("{who:<LABEL$}"));
            let remark = self.colors.dim(remark);
            self.line(format!("{MARGIN}{who}{line}{}{remark}", " ".repeat(gap)).trim_end())?;
        }
        Ok(())
    }

    /// Prints a decision: a label, and its meaning.
    pub(super) fn decision(&mut self, word: &str, text: &str) -> Result<(), Failure> {
        for (at, line) in wrap_lines(text, self.columns - MARGIN.len() - LABEL - 1).iter().enumerate() {
            let word = if at == 0 { word } else { "" };
            let word = self.colors.yellow(&format!("{word:<LABEL$}"));
            self.line(&format!("{MARGIN}{word}{line}"))?;
        }
        Ok(())
    }

    /// Prints the result of a check.
    pub(super) fn check(&mut self, is_so: bool, text: &str) -> Result<(), Failure> {
        let mark = if is_so { self.colors.green("✓") } else { self.colors.paint("31", "✗") };
        for (at, line) in wrap_lines(text, self.columns - MARGIN.len() - 3).iter().enumerate() {
            let mark = if at == 0 { mark.as_str() } else { " " };
            self.line(&format!("{MARGIN}{mark} {line}"))?;
        }
        Ok(())
    }

    /// Prints a line and flushes it.
    pub(super) fn line(&mut self, line: &str) -> Result<(), Failure> {
        if self.is_quiet {
            return Ok(());
        }
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }
}
