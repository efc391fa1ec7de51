//! Interface between the terminal and the agent's thread: events, user actions, options and slash commands.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pal_events::{AgentControl, AgentEvent, PermissionQuestion, QuestionAnswer};
use pal_model::{Content, LogEntry};

use crate::alarm::NotificationProtocol;
use crate::theme::Theme;

/// Event for the terminal.
pub enum UiEvent {
    /// Event of the session.
    Event(AgentEvent),
    /// A session is open.
    SessionReady(Box<ActiveSession>),
    /// A call needs permission, or asks the user. The asker waits for the answer; a dropped sender means no.
    PermissionAsked(PermissionQuestion, mpsc::Sender<Consent>),
    /// Size of the context between two actions, in tokens.
    ContextMeasured(u64),
    /// Remaining life of the provider's cache between two actions; none if it is unknown.
    CacheMeasured(Option<CacheClock>),
    /// A keepalive request has extended the life of the cache.
    CacheKept,
    /// A prompt would go into an expired cache; its price in one line. The asker waits for the answer; a dropped
    /// sender means that the prompt is not sent.
    ColdTurnAsked(String, mpsc::Sender<ColdTurnAnswer>),
    /// A prompt would exceed the budget of the day; one line about it. The answers are those to a cold turn, but for
    /// compacting first.
    BudgetAsked(String, mpsc::Sender<ColdTurnAnswer>),
    /// Output of the shell command that the user runs.
    ShellPrinted(String),
    /// The shell command that the user ran has ended.
    ShellEnded {
        /// All of its output.
        text: String,
        /// True if it failed.
        is_error: bool,
    },
    /// Output of a command, with ANSI colors.
    CommandPrinted(String),
    /// A command failed, with the reason.
    Failed(String),
    /// Suggestion for the next prompt.
    PromptSuggested(String),
    /// Text to put into the prompt editor.
    FillPrompt(String),
    /// The current action is done; the next one can start.
    ActionDone,
    /// Another agent sent a message that waits to be run.
    MessageReceived,
    /// An interrupt from outside: stops the current work, or exits if there is none.
    Stop,
    /// A signal asks the program to exit.
    End,
    /// The program continues after a suspension; the terminal may be in any state.
    Resumed,
    /// No more events come; the reason, if the user did not ask for it.
    Closed(Option<String>),
}

/// An open session as the terminal needs it.
pub struct ActiveSession {
    /// Handle that steers and interrupts the agent.
    pub handle: Box<dyn AgentControl>,
    /// Path of the session's log.
    pub log: PathBuf,
    /// Size of the context, in tokens.
    pub tokens: u64,
    /// Context size that triggers compaction, in tokens; the window where compaction is off.
    pub compaction_tokens: u64,
    /// Context window of the model, in tokens.
    pub window: u64,
    /// Cost of the session, in US dollars.
    pub cost: f64,
    /// True if a simulator answered in the session: its cost is not spent.
    pub is_simulated: bool,
    /// Last messages of a resumed session.
    pub recent_entries: Vec<LogEntry>,
    /// Lists background tasks, one line each.
    pub background: Box<dyn Fn() -> Vec<String> + Send>,
}

/// Action of the user for the agent's thread.
#[derive(Clone, Debug)]
pub enum UserAction {
    /// Run a prompt.
    Prompt(Content),
    /// Run a slash command that needs the session.
    Command {
        /// Name without the slash.
        name: String,
        /// Text after the name.
        arguments: String,
    },
    /// Run a shell command of the user.
    RunShell(String),
    /// Run messages that were queued while the agent was idle.
    RunQueuedMessages,
    /// Exit the program.
    Leave,
}

/// Life of the provider's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheClock {
    /// Time at which it expires.
    pub expires: Instant,
    /// Whole life after a request.
    pub ttl: Duration,
}

/// Answer of the user to the price of a prompt into an expired cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColdTurnAnswer {
    /// Send it.
    Send,
    /// Compact the conversation, then send it.
    CompactFirst,
    /// Edit it.
    Edit,
}

/// Answer of the user to a permission question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Consent {
    /// Allow this call only.
    Once,
    /// Allow all calls that the rule covers, in this project.
    Project,
    /// Approve the plan of the call.
    Plan {
        /// Changed text of the plan; none to keep it.
        changed: Option<String>,
        /// Change files without asking from now on.
        accepts_edits: bool,
    },
    /// Answers to the questions of the call.
    Answers(Vec<QuestionAnswer>),
    /// Refuse, with a reason for the model.
    No(Option<String>),
}

/// Result of a slash command.
pub enum SlashOutcome {
    /// Output with ANSI colors.
    Print(String),
    /// Short lines in the notice style.
    Notes(Vec<String>),
    /// Change the look or the keys of the terminal from now on.
    Restyle {
        /// New theme.
        theme: Option<Theme>,
        /// Edit the prompt with vi keys.
        has_vi_keys: Option<bool>,
        /// Text to print.
        text: String,
    },
    /// Exit the program.
    Leave,
    /// The command needs the session and runs when that is idle.
    NeedsSession,
    /// A prompt for the agent.
    Prompt(String),
    /// Let the user choose one of several.
    Pick {
        /// Heading of the picker.
        title: String,
        /// Choices, best first.
        choices: Vec<PickerChoice>,
        /// Text with ANSI colors to print first; may be empty.
        preface: String,
    },
    /// The command failed, with the reason.
    Failed(String),
    /// No command has this name.
    Unknown,
}

/// A choice of a picker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PickerChoice {
    /// First line.
    pub label: String,
    /// Second line, dimmed; may be empty.
    pub detail: String,
    /// Command to run when it is chosen: name and arguments.
    pub command: (String, String),
}

/// A slash command as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandInfo {
    /// Name without the slash.
    pub name: String,
    /// Argument hint; empty if it takes none.
    pub arguments: String,
    /// Description in one line.
    pub about: String,
}

/// Runs slash commands.
pub trait CommandHandler {
    /// Lists the commands in display order.
    fn list(&self) -> Vec<CommandInfo>;

    /// Runs a command or hands it on. `log` is the log of the current session, once one is open.
    fn run(&mut self, name: &str, arguments: &str, log: Option<&std::path::Path>) -> SlashOutcome;
}

/// Name of the command that stores a memory.
pub(crate) const REMEMBER: &str = "remember";

/// Parses `# text`, which stores a memory. A text of several lines is a prompt that begins with a heading.
pub(crate) fn parse_memory(typed: &str) -> Option<&str> {
    let text = typed.trim().strip_prefix('#')?;
    (text.starts_with(' ') && !text.contains('\n')).then(|| text.trim())
}

/// Channels between the terminal and the agent's thread.
pub struct UiChannels {
    /// Events for the terminal.
    pub events: mpsc::Receiver<UiEvent>,
    /// Actions of the user.
    pub actions: mpsc::Sender<UserAction>,
}

/// Parses `!command`, which runs a shell command.
pub(crate) fn parse_shell(typed: &str) -> Option<&str> {
    typed.trim().strip_prefix('!').map(str::trim).filter(|command| !command.is_empty())
}

/// Lets the user edit a text in their editor; the error says why it cannot.
pub type TextEditorFn = Box<dyn Fn(&str) -> Result<String, String>>;

/// Runs the command of the status line on a JSON object; returns what it prints.
pub type StatusCommandFn = std::sync::Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Options of the terminal.
pub struct TerminalOptions {
    /// Enables colors.
    pub is_colored: bool,
    /// Colors.
    pub theme: Theme,
    /// Keys of vi in the prompt editor.
    pub has_vi_keys: bool,
    /// External editor.
    pub edit_text: TextEditorFn,
    /// Wakes the thread that waits for keys, so that another program can read them.
    pub wake_reader: fn(),
    /// Command of the status line.
    pub status_command: Option<StatusCommandFn>,
    /// Working directory of the session, used to complete file names.
    pub directory: PathBuf,
    /// File of earlier prompts; `None` keeps no history.
    pub history: Option<PathBuf>,
    /// Initial prompt.
    pub prompt: Option<String>,
    /// Initial command, without the slash.
    pub command: Option<String>,
    /// Handler of slash commands.
    pub commands: Box<dyn CommandHandler>,
    /// Notifications that the terminal emulator shows.
    pub notifications: NotificationProtocol,
    /// Suspends the process; returns when the shell continues it.
    pub suspend: fn(),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_after_an_exclamation_mark_is_a_shell_command() {
        assert_eq!(parse_shell(" !  git status "), Some("git status"));
        for other in ["!", "wow!", "git status"] {
            assert_eq!(parse_shell(other), None, "{other}");
        }
    }

    #[test]
    fn one_line_after_a_hash_and_a_space_is_a_memory() {
        assert_eq!(parse_memory("# we release on Fridays "), Some("we release on Fridays"));
        for prompt in ["#12 is broken", "## Heading", "# Heading\n\nand a text", "no", "#"] {
            assert_eq!(parse_memory(prompt), None, "{prompt}");
        }
    }
}
