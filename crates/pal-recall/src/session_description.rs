//! Description of a session, collected while its log is indexed.

use pal_model::text::{first_chars, one_line};
use pal_model::{BlockType, DecisionKind, EntryBody, LogEntry, MessageOrigin};
use serde::{Deserialize, Serialize};

/// Maximum characters of a title.
const TITLE_MAX: usize = 200;

/// Title, first prompt and directory of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionDescription {
    /// Title, if one was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Start of the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// Directory that the session belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl SessionDescription {
    /// Title, or else the start of the first prompt.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref().or(self.prompt.as_deref())
    }

    /// Updates the description from an entry; returns whether it changed.
    pub(crate) fn update_from_entry(&mut self, entry: &LogEntry) -> bool {
        let before = self.clone();
        match &entry.body {
            EntryBody::Session(session) => {
                // A fork continues the session in another directory.
                self.directory = session.cwd.clone().or(self.directory.take());
                let title = session.title.as_deref().filter(|title| !title.trim().is_empty());
                self.title = title.map(one_line_title).or(self.title.take());
            }
            EntryBody::User(user) if user.origin == MessageOrigin::Person && self.prompt.is_none() => {
                let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
                let mut texts = texts.filter_map(|block| block.string("text"));
                let text = texts.find(|text| !text.trim().is_empty());
                // Text in tags comes from a program.
                let text = text.filter(|text| !text.trim_start().starts_with('<'));
                self.prompt = text.map(|text| one_line_title(&text));
            }
            EntryBody::Decision(decision) => {
                if let DecisionKind::Title { title } = &decision.kind
                    && !title.trim().is_empty()
                {
                    self.title = Some(one_line_title(title));
                }
            }
            _ => {}
        }
        *self != before
    }
}

/// One line, truncated to [`TITLE_MAX`].
fn one_line_title(text: &str) -> String {
    first_chars(&one_line(text), TITLE_MAX).to_owned()
}
