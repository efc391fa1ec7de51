//! Facts of a conversation: user words, files, commands, errors, open tasks. Values only; `fact_reader`
//! collects them.
//!
//! They are a function of the entries in their order and of nothing else: reading a conversation again from
//! disk gives the same facts.

use pal_model::EntryId;

use crate::excerpts::{lines_with, sentences};

/// Facts of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFacts {
    /// Texts of the user in order, including those that an earlier boundary carried.
    pub words: Vec<UserWords>,
    /// Number of older user messages that an earlier boundary left in the log only.
    pub omitted_words: u64,
    /// Beginnings of texts that programs inserted on the user's side.
    pub inserted_texts: Vec<String>,
    /// Earlier summaries, in order; there are two if a stretch between them was kept.
    pub earlier_summaries: Vec<String>,
    /// True if `words` covers the stretches of the earlier summaries, so that their own word lists are not
    /// needed.
    pub has_earlier_words: bool,
    /// Files, in the order of their first touch.
    pub files: Vec<TouchedFile>,
    /// Commands, in order.
    pub commands: Vec<CommandRun>,
    /// Failed tool calls, in order.
    pub failures: Vec<ToolFailure>,
    /// Texts of the model, one per message.
    pub model_texts: Vec<String>,
    /// The newest task list.
    pub tasks: Vec<TaskItem>,
    /// The newest call.
    pub last_call: Option<CallTarget>,
    /// Number of messages.
    pub message_count: usize,
    /// Number of tool calls.
    pub call_count: usize,
}

/// One text of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserWords {
    /// Entry that holds the text; `None` if it was read from a request.
    pub entry: Option<EntryId>,
    /// The text, trimmed.
    pub text: String,
}

/// A file that a tool read or wrote, as the result of the call confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedFile {
    /// Path as spelled in the call.
    pub path: String,
    /// Number of reads.
    pub reads: usize,
    /// Number of writes.
    pub writes: usize,
    /// Content of the last write, truncated.
    pub change: Option<String>,
    /// Number of the last call that touched it.
    pub last_call_number: usize,
}

/// A command that the model asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    /// Command line, truncated.
    pub line: String,
    /// Its end.
    pub state: CommandState,
}

/// State of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandState {
    /// It was started, and no error is known.
    Ran,
    /// Its output reports an error.
    Failed,
    /// It was refused, so it never ran.
    Refused,
}

/// A tool call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolFailure {
    /// The failed call.
    pub call: String,
    /// Error lines, truncated.
    pub lines: Vec<String>,
    /// The user's next message, truncated.
    pub user_reply: Option<String>,
    /// The model's next text or call.
    pub follow_up: Option<String>,
}

/// One item of a task list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskItem {
    /// Description of the task.
    pub text: String,
    /// Status, as spelled in the list.
    pub status: String,
}

impl TaskItem {
    /// Returns true unless the task is completed or cancelled.
    pub fn is_open(&self) -> bool {
        !matches!(self.status.as_str(), "completed" | "done" | "cancelled" | "canceled" | "deleted")
    }
}

/// A tool call and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTarget {
    /// Tool name.
    pub name: String,
    /// Path, command or pattern.
    pub target: String,
    /// Index of its command in the list of commands.
    pub(crate) command: Option<usize>,
}

impl ConversationFacts {
    /// Tasks that are still open.
    pub fn open_tasks(&self) -> impl Iterator<Item = &TaskItem> {
        self.tasks.iter().filter(|task| task.is_open())
    }

    /// Written files, most recently touched first.
    pub fn written_files(&self) -> Vec<&TouchedFile> {
        let mut files: Vec<&TouchedFile> = self.files.iter().filter(|file| file.writes > 0).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.last_call_number));
        files
    }

    /// Returns true if the facts contain a text: in words, calls, commands, tasks, errors or the model's
    /// texts.
    pub fn mentions(&self, text: &str) -> bool {
        let has = |held: &String| held.contains(text);
        let is_of = |trouble: &ToolFailure| {
            has(&trouble.call)
                || trouble.lines.iter().any(has)
                || trouble.user_reply.iter().any(has)
                || trouble.follow_up.iter().any(has)
        };
        self.files.iter().any(|file| has(&file.path))
            || self.words.iter().any(|words| has(&words.text))
            || self.earlier_summaries.iter().any(has)
            || self.commands.iter().any(|command| has(&command.line))
            || self.tasks.iter().any(|task| has(&task.text))
            || self.failures.iter().any(is_of)
            || self.model_texts.iter().any(has)
    }

    /// Sentences of the model that contain one of these lower-case words, newest first.
    pub fn sentences_with(&self, words: &[&str], most: usize) -> Vec<String> {
        let mut found = Vec::new();
        for said in self.model_texts.iter().rev() {
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
