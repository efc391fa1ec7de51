//! Combined outcome of all hooks of an event.

use std::io::Write;
use std::path::{Path, PathBuf};

use pal_model::text::first_chars;
use serde_json::Value;

use crate::event_name::HookEventName;
use crate::hook_answer::{HookAnswer, HookPermission};

/// Maximum characters of a context that the model gets whole.
const CONTEXT_CHARACTERS_MAX: usize = 10_000;
/// Characters shown of a longer context.
const CONTEXT_BEGINNING: usize = 2_000;
/// Maximum context files per event and session.
const FILES_MAX: u32 = 10_000;

/// Combined outcome of all hooks of an event.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HookOutcome {
    /// A hook blocks the event or makes the model continue. Before a tool call it is a denial; after one the
    /// model reads the reason next to the result.
    pub blocked: Option<HookBlock>,
    /// Decision on a tool call with its reason: deny beats ask, ask beats allow.
    pub permission: Option<(HookPermission, String)>,
    /// Replacement for the tool input: a JSON object.
    pub updated_input: Option<Value>,
    /// Replacement for the tool result.
    pub updated_output: Option<Value>,
    /// Context for the model; before a compaction, instructions for the summary.
    pub context: Vec<String>,
    /// Messages for the user.
    pub system_messages: Vec<String>,
    /// Reason to stop the session.
    pub stop: Option<String>,
    /// Title of the session.
    pub title: Option<String>,
    /// Hooks that failed, without further effect.
    pub failures: Vec<HookFailure>,
}

/// Block by a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookBlock {
    /// Reason of the block.
    pub reason: String,
    /// Command of the hook.
    pub hook: String,
}

/// Failure of a hook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HookFailure {
    /// Command of the hook.
    pub hook: String,
    /// Cause in one sentence.
    pub reason: String,
}

impl HookOutcome {
    /// Merges the answer of one more hook; hooks come in the order of the settings.
    pub(crate) fn merge(&mut self, hook: &str, answer: HookAnswer) {
        if let Some(reason) = answer.blocked
            && self.blocked.is_none()
        {
            self.blocked = Some(HookBlock { reason, hook: hook.to_owned() });
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
        self.failures.extend(failures.map(|what| HookFailure { hook: hook.to_owned(), reason: what }));
    }

    /// Moves long contexts to files and keeps their beginnings.
    pub(crate) fn spill_long_contexts(&mut self, event: HookEventName, folder: &Path) {
        for context in &mut self.context {
            if context.chars().count() <= CONTEXT_CHARACTERS_MAX {
                continue;
            }
            let beginning = first_chars(context, CONTEXT_BEGINNING);
            let told = match write_context(context, event, folder) {
                Ok(path) => format!("what a hook said is in {}", path.display()),
                Err(error) => {
                    let what = format!("what it said is too long and could not be kept: {error}");
                    self.failures.push(HookFailure { hook: event.name().to_owned(), reason: what });
                    "what a hook said is too long".to_owned()
                }
            };
            *context = format!("[{told}; it begins:]\n{beginning}");
        }
    }
}

/// Writes a long context to a new file, readable by the user only.
fn write_context(context: &str, event: HookEventName, folder: &Path) -> std::io::Result<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    let folder = folder.join("hooks");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    for number in 1..FILES_MAX {
        let path = folder.join(format!("{}-{number}.txt", event.name()));
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => return file.write_all(context.as_bytes()).map(|()| path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other("there are too many of them"))
}
