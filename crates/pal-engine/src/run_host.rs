//! Everything a run needs from outside of its session, one small trait per role.

use std::time::Duration;

use pal_model::{CacheBreak, Content, ContentBlock, LogEntry, Timestamp, Usage};
use pal_run::{CallRuling, RunInput, ToolCall};

use crate::session_host::SessionHost;
use crate::{EngineError, Session, SessionConfig};

/// Executes the tool calls of an answer.
pub trait ToolExecutor {
    /// Returns the calls among the blocks of an answer, in order.
    fn parse_calls(&mut self, blocks: &[ContentBlock]) -> Vec<ToolCall>;

    /// Starts a call; its result comes out of [`RunInbox::wait`].
    fn execute(&mut self, session: &mut Session, engine: &SessionConfig, call: ToolCall);

    /// Stops everything under way.
    fn cancel(&mut self);
}

/// Decides whether a call may run, by rules, hooks or by asking a person.
pub trait PermissionPrompt {
    /// Returns the ruling on one call.
    fn authorize(&mut self, session: &mut Session, call: &ToolCall) -> CallRuling;
}

/// Takes part in the turns of a run.
pub trait TurnHooks {
    /// Accepts a prompt, or returns why it is refused.
    fn check_prompt(&mut self, session: &mut Session, prompt: &Content) -> Result<(), String>;

    /// Appends what the model needs to know before the next request: changes around the session, context from hooks.
    fn before_request(&mut self, session: &mut Session, now: Timestamp) -> Result<(), EngineError>;

    /// Takes the compaction that the model asked for, with its instructions.
    fn take_compaction_request(&mut self) -> Option<Option<String>>;

    /// Applies settings that may change from request to request: the kill switches.
    fn apply_switches(&mut self, engine: &mut SessionConfig);

    /// Moves the session to another model after a request failed for good; false if the failure stands.
    fn fall_back(&mut self, _session: &mut Session, _engine: &mut SessionConfig) -> bool {
        false
    }

    /// Lets the agent stop, or returns why it must continue.
    fn check_stop(&mut self, session: &mut Session, last: &str, is_repeated: bool) -> Result<(), String>;
}

/// Delivers inputs from outside of the run's thread.
pub trait RunInbox {
    /// Waits for the next input: a call returns, a message arrives, the user interrupts.
    fn wait(&mut self) -> RunInput;

    /// Waits before the next request of a run without progress; an input that arrives first ends the wait.
    fn back_off(&mut self, wait: Duration) -> Option<RunInput>;

    /// Takes the next input that has arrived, without waiting.
    fn try_next(&mut self) -> Option<RunInput>;
}

/// Observes a run.
pub trait RunObserver {
    /// Reports something that happened.
    fn observe(&mut self, heard: RunEvent<'_>);
}

/// All roles that driving a run needs.
pub trait RunHost:
    SessionHost + ToolExecutor + PermissionPrompt + TurnHooks + RunInbox + RunObserver
{
}

impl<T: SessionHost + ToolExecutor + PermissionPrompt + TurnHooks + RunInbox + RunObserver> RunHost for T {}

/// Something that happened in a run, for display.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// A user message or tool result was appended.
    Message(&'a LogEntry),
    /// A response was appended, with its usage and price.
    Answer(&'a LogEntry, &'a Usage, Option<f64>),
    /// The answer shown so far is discarded.
    Void,
    /// Cache reads dropped.
    CacheBroke(&'a CacheBreak),
}
