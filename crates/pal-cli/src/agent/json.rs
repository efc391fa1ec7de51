//! `--output-format json`: one object when all is over.

use std::process::ExitCode;

use pal_agent::{Ended, Event};

use super::{Lines, Show, exit_code};
use crate::aside;
use crate::failure::Failure;
use crate::table::harmless;

/// Keeps how the last prompt ended, and prints that.
pub(crate) struct Json<'a> {
    lines: Lines<'a>,
    ended: Option<Ended>,
}

impl<'a> Json<'a> {
    pub(crate) fn new(lines: Lines<'a>) -> Json<'a> {
        Json { lines, ended: None }
    }
}

impl Show for Json<'_> {
    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        match event {
            Event::Began(began) => self.lines.belong_to(began),
            Event::Ended(ended) => self.ended = Some(ended.clone()),
            Event::Warning(text) => {
                aside::tell(harmless(text));
                self.lines.warn(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure> {
        aside::tell(format_args!("line {number} of standard input: {why}"));
        Ok(())
    }

    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure> {
        match (failure, &self.ended) {
            (Some(failure), _) => {
                self.lines.failure(failure)?;
                Ok(failure.exit_code())
            }
            (None, Some(ended)) => {
                self.lines.result(ended)?;
                Ok(ExitCode::from(exit_code(&ended.end)))
            }
            (None, None) => Ok(ExitCode::SUCCESS),
        }
    }
}
