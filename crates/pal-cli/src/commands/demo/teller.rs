//! Telling a person what happens, in short lines, while it happens.

use std::io::Write;

use crate::colour::{Colours, wrapped};
use crate::failure::Failure;

/// The left margin.
const MARGIN: &str = "   ";
/// Columns that the first word of a line takes.
const LABEL: usize = 10;

/// Tells, or keeps quiet.
pub(super) struct Teller<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) colours: Colours,
    pub(super) columns: usize,
    /// Whether nothing is told.
    pub(super) is_quiet: bool,
}

impl Teller<'_> {
    /// A chapter begins.
    pub(super) fn chapter(&mut self, number: usize, title: &str) -> Result<(), Failure> {
        self.line("")?;
        self.line(&self.colours.bold(&format!("{number}. {title}")))
    }

    /// A short paragraph.
    pub(super) fn paragraph(&mut self, text: &str) -> Result<(), Failure> {
        for line in wrapped(text, self.columns - MARGIN.len() - 1) {
            self.line(&format!("{MARGIN}{line}"))?;
        }
        Ok(())
    }

    /// Something that was said or done: who, what, and a remark at the right.
    pub(super) fn said(&mut self, who: &str, what: &str, remark: &str) -> Result<(), Failure> {
        let room = self.columns - MARGIN.len() - LABEL - 1;
        let narrow = room.saturating_sub(if remark.is_empty() { 0 } else { remark.chars().count() + 2 });
        for (at, line) in wrapped(what, narrow.max(8)).iter().enumerate() {
            let (who, remark) = if at == 0 { (who, remark) } else { ("", "") };
            let gap = room.saturating_sub(line.chars().count() + remark.chars().count());
            let who = self.colours.cyan(&format!("{who:<LABEL$}"));
            let remark = self.colours.dim(remark);
            self.line(format!("{MARGIN}{who}{line}{}{remark}", " ".repeat(gap)).trim_end())?;
        }
        Ok(())
    }

    /// What was decided about what the model sees: a word for it, and what it means.
    pub(super) fn decided(&mut self, word: &str, text: &str) -> Result<(), Failure> {
        for (at, line) in wrapped(text, self.columns - MARGIN.len() - LABEL - 1).iter().enumerate() {
            let word = if at == 0 { word } else { "" };
            let word = self.colours.yellow(&format!("{word:<LABEL$}"));
            self.line(&format!("{MARGIN}{word}{line}"))?;
        }
        Ok(())
    }

    /// Something was held against what it should be.
    pub(super) fn proved(&mut self, is_so: bool, text: &str) -> Result<(), Failure> {
        let mark = if is_so { self.colours.green("✓") } else { self.colours.painted("31", "✗") };
        for (at, line) in wrapped(text, self.columns - MARGIN.len() - 3).iter().enumerate() {
            let mark = if at == 0 { mark.as_str() } else { " " };
            self.line(&format!("{MARGIN}{mark} {line}"))?;
        }
        Ok(())
    }

    /// A line as it is; it is seen at once.
    pub(super) fn line(&mut self, line: &str) -> Result<(), Failure> {
        if self.is_quiet {
            return Ok(());
        }
        writeln!(self.out, "{line}")?;
        Ok(self.out.flush()?)
    }
}
