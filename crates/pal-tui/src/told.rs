//! What the terminal is told, and what it wants.

use std::path::PathBuf;
use std::sync::mpsc;

use pal_agent::{Asked, Event, Handle};
use pal_model::{Content, Entry};

/// What the terminal hears from whoever works.
pub enum Told {
    /// Something happened in the session.
    Event(Event),
    /// A session is open: what the terminal needs to know of it.
    Ready(Box<Facts>),
    /// A person is asked whether a call may be carried out. Whoever asks waits for the answer; an answer that never
    /// comes is a no.
    Ask(Asked, mpsc::Sender<Consent>),
    /// A command printed this, with its colours.
    Printed(String),
    /// A command did not do what it was asked for.
    Failed(String),
    /// What shall stand in the prompt.
    Fill(String),
    /// Whatever was wished for is done: the next wish can come.
    Rests,
    /// Another agent said something, which is to be heeded.
    Called,
    /// Somebody outside wants the work to stop, and the program to end if there is none.
    Stop,
    /// The system wants the program to end.
    End,
    /// The program goes on after it was stopped: the terminal may be in any state.
    Continued,
    /// Nothing more comes; why, if that is not what the user wanted.
    Left(Option<String>),
}

/// What the terminal needs to know of a session.
pub struct Facts {
    /// Steers and interrupts it.
    pub handle: Handle,
    /// Its log.
    pub log: PathBuf,
    /// Tokens of its context.
    pub tokens: u64,
    /// How many tokens lead to a compaction, or fill the window where that is off.
    pub goal: u64,
    /// What it cost up to now, in US dollars.
    pub cost: f64,
    /// The last messages of a session that goes on.
    pub earlier: Vec<Entry>,
    /// What runs in the background, a line each.
    pub background: Box<dyn Fn() -> Vec<String> + Send>,
}

/// What the user wants from whoever works.
#[derive(Clone, Debug)]
pub enum Wish {
    /// A prompt is to be worked on.
    Prompt(Content),
    /// A command that needs the session is to be carried out.
    Command {
        /// Its name, without the slash.
        name: String,
        /// What stands behind it.
        arguments: String,
    },
    /// What was said while nobody listened is to be heard now.
    Heed,
    /// The program is to end.
    Leave,
}

/// What a person answers to the question whether a call may be carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Consent {
    /// This once.
    Once,
    /// Everything that the rule covers, in this project, from now on.
    Project,
    /// No, and what the model is to know of it.
    No(Option<String>),
}

/// What comes of a command.
pub enum Outcome {
    /// It printed this, with its colours.
    Print(String),
    /// It needs the session, and is carried out when that has nothing else to do.
    Session,
    /// It is a prompt.
    Prompt(String),
    /// One of these is to be chosen.
    Pick {
        /// What is chosen.
        title: String,
        /// The choices, best first.
        choices: Vec<Choice>,
    },
    /// It failed, and why.
    Failed(String),
    /// There is no such command.
    Unknown,
}

/// Something to choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Its name.
    pub label: String,
    /// What is said of it in quieter words.
    pub detail: String,
    /// The command that choosing it gives: its name and what stands behind it.
    pub command: (String, String),
}

/// A command that can be typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandInfo {
    /// Its name, without the slash.
    pub name: String,
    /// What may stand behind it.
    pub arguments: String,
    /// What it does, in a few words.
    pub about: String,
}

/// Who answers commands that begin with a slash.
pub trait Commands {
    /// The commands that there are, in the order in which they are listed.
    fn list(&self) -> Vec<CommandInfo>;

    /// Carries one out, or says who does. The log is that of the session at hand, as soon as one is open.
    fn run(&mut self, name: &str, arguments: &str, log: Option<&std::path::Path>) -> Outcome;
}

/// The command that keeps a memory.
pub(crate) const REMEMBER: &str = "remember";

/// What is to be remembered, if a line means that: one line behind a `#` and a space. A text of several lines is a prompt that
/// begins with a heading.
pub(crate) fn to_remember(typed: &str) -> Option<&str> {
    let text = typed.trim().strip_prefix('#')?;
    (text.starts_with(' ') && !text.contains('\n')).then(|| text.trim())
}

/// Where the terminal hears from and speaks to.
pub struct Origin {
    /// What happens.
    pub told: mpsc::Receiver<Told>,
    /// What is wanted.
    pub wishes: mpsc::Sender<Wish>,
}

/// What the terminal begins with.
pub struct Start {
    /// Whether colours are written.
    pub is_coloured: bool,
    /// Where the session works: files are completed from there.
    pub directory: PathBuf,
    /// Where earlier prompts are kept; none for nowhere.
    pub history: Option<PathBuf>,
    /// A prompt to begin with.
    pub prompt: Option<String>,
    /// A command to begin with, without the slash.
    pub command: Option<String>,
    /// Who answers commands.
    pub commands: Box<dyn Commands>,
    /// Stops the program until the shell lets it go on; returns when it does.
    pub suspend: fn(),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_behind_a_hash_and_a_space_is_to_be_remembered() {
        assert_eq!(to_remember("# we release on Fridays "), Some("we release on Fridays"));
        for prompt in ["#12 is broken", "## Heading", "# Heading\n\nand a text", "no", "#"] {
            assert_eq!(to_remember(prompt), None, "{prompt}");
        }
    }
}
