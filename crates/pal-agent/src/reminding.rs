//! Reminds the model of a list of things to do that it has not touched for a while (§6.5).

use pal_model::{BlockType, Body, Content, Entry, Text};
use pal_session::Call;
use pal_tools::{Input, open_todos};

/// How many answers a list with something left to do may go untouched, and a reminder unrepeated.
const ANSWERS_MOST: usize = 12;

/// The sort of attachment that a reminder is.
pub(crate) const REMINDER: &str = "todo";

/// What there is to remind of.
#[derive(Default)]
pub(crate) struct Reminding {
    /// The list, while something on it is left to do.
    list: Option<String>,
    /// Answers since the list was touched, or the model was reminded.
    answers: usize,
}

impl Reminding {
    /// As a session left it.
    pub(crate) fn of(branch: &[Entry]) -> Reminding {
        let mut answers = 0;
        let mut quiet = None;
        for entry in branch.iter().rev() {
            match &entry.body {
                Body::Assistant(assistant) => {
                    if let Some(input) = last_list(&assistant.content) {
                        let list = open_todos(&Input(input));
                        return Reminding { list, answers: quiet.unwrap_or(answers) };
                    }
                    answers += 1;
                }
                Body::Attachment(attachment) if attachment.what == REMINDER => {
                    quiet.get_or_insert(answers);
                }
                _ => {}
            }
        }
        Reminding::default()
    }

    /// A call is carried out.
    pub(crate) fn called(&mut self, call: &Call) {
        if call.name == "Todo" {
            *self = Reminding { list: open_todos(&Input(call.input.clone())), answers: 0 };
        }
    }

    /// The model has answered.
    pub(crate) fn answered(&mut self) {
        self.answers += 1;
    }

    /// The reminder, if it is time for one.
    pub(crate) fn due(&mut self) -> Option<String> {
        let list = self.list.as_ref().filter(|_| self.answers >= ANSWERS_MOST)?;
        let text = format!(
            "Your list of things to do has not changed for {} answers. If it is out of date, bring it up to date with Todo; if it \
             no longer helps, empty it. Nobody else sees this note, so do not answer it. The list:\n{list}",
            self.answers
        );
        self.answers = 0;
        Some(text)
    }
}

/// The input of the last call that sets the list.
fn last_list(content: &Content) -> Option<Text> {
    let blocks = content.blocks().iter().rev();
    let mut calls = blocks.filter(|block| block.kind() == BlockType::ToolUse);
    let call = calls.find(|block| block.string("name").is_some_and(|name| name == "Todo"))?;
    Some(Text::from(call.field("input")?))
}
