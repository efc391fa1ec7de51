//! The facts of a conversation: words, files, commands, errors, open items. Values only; [`Reading`] finds them.
//!
//! They are a function of what was read, in its order, and of nothing else: a conversation that is read again from
//! disk has the same facts.

use pal_model::{Entry, EntryId, Role};

use crate::heard::Heard;
use crate::prose::{lines_with, sentences};
use crate::reading::Reading;

/// What a conversation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The user's words, text by text, in order; those that an earlier boundary carried come with it.
    pub words: Vec<Words>,
    /// How many older messages of the user an earlier boundary left in the log only.
    pub pointed: u64,
    /// Texts that programs put on the user's side: only their beginnings.
    pub inserted: Vec<String>,
    /// Earlier summaries, in order; there are two where a stretch between them was kept.
    pub earlier: Vec<String>,
    /// Whether the words of their stretches stand in `words`, so that their own lists of them are not needed.
    pub has_earlier_words: bool,
    /// Files, in the order of their first touch.
    pub files: Vec<File>,
    /// Commands, in order.
    pub commands: Vec<Command>,
    /// What went wrong, in order.
    pub troubles: Vec<Trouble>,
    /// What the model said, message by message.
    pub said: Vec<String>,
    /// The newest list of tasks.
    pub tasks: Vec<Task>,
    /// The newest call.
    pub last_call: Option<Target>,
    /// How many messages, or entries that are messages, there are.
    pub messages: usize,
    /// How many calls were made.
    pub calls: usize,
}

/// Words of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// The entry that they stand in; none if they were read from a request.
    pub entry: Option<EntryId>,
    /// The words, white space at the ends aside.
    pub text: String,
}

/// A file that a tool was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path, as the call spelled it.
    pub path: String,
    /// How often it was read.
    pub reads: usize,
    /// How often it was written.
    pub writes: usize,
    /// What was last written into it, cut.
    pub change: Option<String>,
    /// The number of the call that touched it last.
    pub last: usize,
}

/// A command that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command, cut.
    pub line: String,
    /// Whether its output speaks of an error.
    pub failed: bool,
}

/// An error that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The call that ended so.
    pub call: String,
    /// The lines that say what went wrong, cut.
    pub lines: Vec<String>,
    /// What the user said to it, cut.
    pub heard: Option<String>,
    /// What the model said or did next.
    pub then: Option<String>,
}

/// One item of a list of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What is to be done.
    pub what: String,
    /// How far it is, in the word of the list.
    pub status: String,
}

impl Task {
    /// Whether something is left to do.
    pub fn is_open(&self) -> bool {
        !matches!(self.status.as_str(), "completed" | "done" | "cancelled" | "canceled" | "deleted")
    }
}

/// A call and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The tool.
    pub name: String,
    /// The path, the command or the pattern.
    pub target: String,
    /// Which of the commands it ran.
    pub(crate) command: Option<usize>,
}

impl Facts {
    /// The facts of entries of a log, in the order in which the view shows them. Here it is known who speaks.
    pub fn of_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Facts {
        let mut reading = Reading::default();
        entries.into_iter().for_each(|entry| reading.entry(entry));
        reading.finish()
    }

    /// The facts of messages of a request. Who speaks on the user's side is guessed from tags.
    pub fn of_messages<'a, B>(messages: impl IntoIterator<Item = (Role, B)>) -> Facts
    where
        B: IntoIterator<Item = Heard<'a>>,
    {
        let mut reading = Reading::default();
        messages.into_iter().for_each(|(role, blocks)| reading.message(role, blocks));
        reading.finish()
    }

    /// The tasks that are not done.
    pub fn open_tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.is_open())
    }

    /// The files that were written, the newest touch first.
    pub fn written(&self) -> Vec<&File> {
        let mut files: Vec<&File> = self.files.iter().filter(|file| file.writes > 0).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.last));
        files
    }

    /// Whether a text stands in what was said, called or asked, or went wrong, as far as the facts hold it.
    pub fn mention(&self, text: &str) -> bool {
        let has = |held: &String| held.contains(text);
        let is_of = |trouble: &Trouble| {
            has(&trouble.call)
                || trouble.lines.iter().any(has)
                || trouble.heard.iter().any(has)
                || trouble.then.iter().any(has)
        };
        self.files.iter().any(|file| has(&file.path))
            || self.words.iter().any(|words| has(&words.text))
            || self.earlier.iter().any(has)
            || self.commands.iter().any(|command| has(&command.line))
            || self.tasks.iter().any(|task| has(&task.what))
            || self.troubles.iter().any(is_of)
            || self.said.iter().any(has)
    }

    /// Sentences of the model that hold one of these words, given in lower case, newest first.
    pub fn sentences_with(&self, words: &[&str], most: usize) -> Vec<String> {
        let mut found = Vec::new();
        for said in self.said.iter().rev() {
            for line in lines_with(said, words) {
                for sentence in sentences(line) {
                    let lower = sentence.to_ascii_lowercase();
                    let holds = words.iter().any(|word| lower.contains(*word));
                    if holds && (12..400).contains(&sentence.len()) {
                        found.push(sentence.to_owned());
                    }
                }
            }
            if found.len() >= most {
                found.truncate(most);
                break;
            }
        }
        found
    }
}
