//! Exit codes of the program. docs/commands.md lists them for users.

use pal_events::{PromptEnd, PromptResult};

/// The command or the last prompt succeeded.
pub(crate) const SUCCESS: u8 = 0;
/// An error, or a check that found a problem.
pub(crate) const ERROR: u8 = 1;
/// Wrong arguments.
pub(crate) const USAGE: u8 = 2;
/// A limit of turns, cost or progress ended the last prompt.
pub(crate) const LIMIT_REACHED: u8 = 3;
/// With `--strict`: a call was denied, so part of the last prompt's task may be undone.
pub(crate) const DENIED: u8 = 4;
/// A command could not enter the sandbox: the code of a shell that cannot run a command.
pub(crate) const NOT_SANDBOXED: u8 = 126;
/// A signal interrupted the program: the code of a shell after SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Exit code of the program by the end of its last prompt. With `is_strict` a denied call is not success.
pub(crate) fn prompt_exit_code(ended: &PromptResult, is_strict: bool) -> u8 {
    match &ended.end {
        PromptEnd::Done if is_strict && !ended.denials.is_empty() => DENIED,
        PromptEnd::Done => SUCCESS,
        PromptEnd::Refused(_) | PromptEnd::Failed(_) => ERROR,
        PromptEnd::Limit(_) => LIMIT_REACHED,
        PromptEnd::Interrupted => INTERRUPTED,
    }
}
