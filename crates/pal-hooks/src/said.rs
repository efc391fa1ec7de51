//! What all hooks of an event said together.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::answer::Answer;
use crate::event::EventName;

/// Characters of a context that are put before the model as they are.
const CONTEXT_CHARACTERS_MAX: usize = 10_000;
/// Characters that are shown of a longer one.
const CONTEXT_BEGINNING: usize = 2_000;
/// Files of long contexts that a session may have of one event.
const FILES_MOST: u32 = 10_000;

/// What all hooks of an event said together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Said {
    /// A hook does not want it to happen, or wants the model to go on. Before a call it counts as a refusal; after a
    /// call the model reads the reason beside the result.
    pub blocked: Option<Blocked>,
    /// What hooks say to a call, and why: a refusal counts more than a question, a question more than an assent.
    pub permission: Option<(Permission, String)>,
    /// What the tool shall be called with instead: a JSON object.
    pub updated_input: Option<Value>,
    /// What the model shall read as the result of the tool instead.
    pub updated_output: Option<Value>,
    /// What the model shall know; before a compaction, what the summary shall heed.
    pub context: Vec<String>,
    /// What the user shall read.
    pub system_messages: Vec<String>,
    /// The session shall stop here, and why.
    pub stop: Option<String>,
    /// The session's title.
    pub title: Option<String>,
    /// Hooks that failed. Nothing else follows from it.
    pub failures: Vec<Failure>,
}

/// A hook that blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// Why.
    pub reason: String,
    /// Which hook, by its command.
    pub hook: String,
}

/// What a hook says to a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Permission {
    /// It may go ahead without asking.
    Allow,
    /// A person shall be asked.
    Ask,
    /// It shall not happen.
    Deny,
}

/// A hook that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Which hook, by its command.
    pub hook: String,
    /// What went wrong, in one sentence.
    pub what: String,
}

impl Said {
    /// Takes what one more hook said; hooks come in the order of the settings, whichever was faster.
    pub(crate) fn take(&mut self, hook: &str, answer: Answer) {
        if let Some(reason) = answer.blocked
            && self.blocked.is_none()
        {
            self.blocked = Some(Blocked { reason, hook: hook.to_owned() });
        }
        if let Some((permission, reason)) = answer.permission
            && self.permission.as_ref().is_none_or(|(held, _)| permission > *held)
        {
            self.permission = Some((permission, reason));
        }
        self.updated_input = answer.updated_input.or(self.updated_input.take());
        self.updated_output = answer.updated_output.or(self.updated_output.take());
        self.context.extend(answer.context);
        self.system_messages.extend(answer.system_message);
        self.stop = self.stop.take().or(answer.stop);
        self.title = answer.title.or(self.title.take());
        let failures = answer.failures.into_iter();
        self.failures.extend(failures.map(|what| Failure { hook: hook.to_owned(), what }));
    }

    /// Puts contexts that are too long into files and their beginnings in their places.
    pub(crate) fn shorten(&mut self, event: EventName, folder: &Path) {
        for context in &mut self.context {
            if context.chars().count() <= CONTEXT_CHARACTERS_MAX {
                continue;
            }
            let beginning = beginning(context, CONTEXT_BEGINNING);
            let told = match keep(context, event, folder) {
                Ok(path) => format!("what a hook said is in {}", path.display()),
                Err(error) => {
                    let what = format!("what it said is too long and could not be kept: {error}");
                    self.failures.push(Failure { hook: event.name().to_owned(), what });
                    "what a hook said is too long".to_owned()
                }
            };
            *context = format!("[{told}; it begins:]\n{beginning}");
        }
    }
}

fn beginning(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// Writes a long context to a file of its own, for nobody else to read.
fn keep(context: &str, event: EventName, folder: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let folder = folder.join("hooks");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    for number in 1..FILES_MOST {
        let path = folder.join(format!("{}-{number}.txt", event.name()));
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => return file.write_all(context.as_bytes()).map(|()| path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there are too many of them"))
}
