//! `--output-format json`: one object at the end.

use std::process::ExitCode;

use pal_events::{AgentEvent, PromptResult};
use pal_model::UsageTotals;
use pal_report::sanitize;

use super::json_lines::JsonLines;
use super::output_format::Show;
use crate::exit_codes::prompt_exit_code;
use crate::failure::Failure;
use crate::notices::print_notice;

/// Prints the result of the last prompt, with the usage of the whole run.
pub(crate) struct JsonOutput<'a> {
    lines: JsonLines<'a>,
    ended: Option<PromptResult>,
    spent: UsageTotals,
    /// A denied call is not success.
    is_strict: bool,
}

impl<'a> JsonOutput<'a> {
    pub(crate) fn new(lines: JsonLines<'a>, is_strict: bool) -> JsonOutput<'a> {
        JsonOutput { lines, ended: None, spent: UsageTotals::default(), is_strict }
    }
}

impl Show for JsonOutput<'_> {
    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        match event {
            AgentEvent::SessionStarted(began) => self.lines.set_session(began),
            AgentEvent::ExchangeEnded(report) => self.lines.count(report),
            AgentEvent::Ended(ended) => {
                self.spent.add_totals(&ended.spent);
                self.ended = Some(ended.clone());
            }
            AgentEvent::Warning(text) => {
                print_notice(sanitize(text));
                self.lines.warn(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn background(&mut self, spent: &UsageTotals) -> Result<(), Failure> {
        self.spent.add_totals(spent);
        Ok(())
    }

    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure> {
        print_notice(format_args!("line {number} of standard input: {why}"));
        Ok(())
    }

    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure> {
        match (failure, &self.ended) {
            (Some(failure), _) => {
                self.lines.failure(failure)?;
                Ok(failure.exit_code())
            }
            (None, Some(ended)) => {
                self.lines.result(&PromptResult { spent: self.spent, ..ended.clone() })?;
                Ok(ExitCode::from(prompt_exit_code(ended, self.is_strict)))
            }
            (None, None) => Ok(ExitCode::SUCCESS),
        }
    }
}
