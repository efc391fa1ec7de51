//! Reminds the model of a todo list that it has not updated for a while (§6.5).

use pal_model::{BlockType, Content, EntryBody, LogEntry, SharedText};
use pal_run::ToolCall;
use pal_tools::{ToolInput, open_todos};

/// Responses without an update before a reminder, and between reminders.
const ANSWERS_MAX: usize = 12;

/// Attachment kind of a reminder.
pub(crate) const REMINDER: &str = "todo";

/// Reminder of the todo list.
#[derive(Default)]
pub(crate) struct TodoReminder {
    /// The list, while it has open items.
    list: Option<String>,
    /// Responses since the last update or reminder.
    answers: usize,
}

impl TodoReminder {
    /// Restores the state from the log.
    pub(crate) fn of(branch: &[LogEntry]) -> TodoReminder {
        let mut answers = 0;
        let mut quiet = None;
        for entry in branch.iter().rev() {
            match &entry.body {
                EntryBody::Assistant(assistant) => {
                    if let Some(input) = last_list(&assistant.content) {
                        let list = open_todos(&ToolInput(input));
                        return TodoReminder { list, answers: quiet.unwrap_or(answers) };
                    }
                    answers += 1;
                }
                EntryBody::Attachment(attachment) if attachment.what == REMINDER => {
                    quiet.get_or_insert(answers);
                }
                _ => {}
            }
        }
        TodoReminder::default()
    }

    /// Notes a call that updates the list.
    pub(crate) fn called(&mut self, call: &ToolCall) {
        if call.name == "Todo" {
            *self = TodoReminder { list: open_todos(&ToolInput(call.input.clone())), answers: 0 };
        }
    }

    /// Counts a response.
    pub(crate) fn answered(&mut self) {
        self.answers += 1;
    }

    /// Returns the reminder if it is due.
    pub(crate) fn due(&mut self) -> Option<String> {
        let list = self.list.as_ref().filter(|_| self.answers >= ANSWERS_MAX)?;
        let text = format!(
            "Your list of things to do has not changed for {} answers. If it is out of date, bring it up to date with Todo; if it \
             no longer helps, empty it. The user does not see this note, so do not answer it. The list:\n{list}",
            self.answers
        );
        self.answers = 0;
        Some(text)
    }
}

/// Input of the last call that sets the list.
fn last_list(content: &Content) -> Option<SharedText> {
    let blocks = content.blocks().iter().rev();
    let mut calls = blocks.filter(|block| block.kind() == BlockType::ToolUse);
    let call = calls.find(|block| block.string("name").is_some_and(|name| name == "Todo"))?;
    Some(SharedText::from(call.field("input")?))
}
