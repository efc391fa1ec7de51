//! Output formats of `pal -p`: their common interface.

use std::process::ExitCode;

use pal_events::{AgentEvent, PromptEnd};
use pal_model::UsageTotals;

use crate::failure::Failure;

/// An output format of `pal -p`.
pub(super) trait Show {
    /// Shows an event.
    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure>;

    /// Reports a malformed line of standard input; the session continues.
    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure>;

    /// Shows the usage of background work since the last result.
    fn background(&mut self, spent: &UsageTotals) -> Result<(), Failure>;

    /// Sets the names of the slash commands, before the session starts.
    fn set_commands(&mut self, _names: Vec<String>) {}

    /// Follows the conventions of a program that drives this one through an Agent SDK.
    fn set_driven(&mut self) {}

    /// Ends the output after success or a failure. Returns the exit code.
    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure>;
}

/// Error of a prompt that did not succeed, in one sentence.
pub(super) fn error_of(end: &PromptEnd) -> Option<&str> {
    match end {
        PromptEnd::Done => None,
        PromptEnd::Refused(why) | PromptEnd::Limit(why) | PromptEnd::Failed(why) => Some(why),
        PromptEnd::Interrupted => Some("interrupted"),
    }
}
