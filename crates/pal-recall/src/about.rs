//! What a session is called, gathered while its log is indexed.

use pal_model::{BlockType, Body, DecisionKind, Entry, Origin};
use serde::{Deserialize, Serialize};

/// Characters of a title.
const TITLE_MAX: usize = 200;

/// What is known of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// Its title, if it was given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// How its first prompt begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    /// The directory that it began in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl About {
    /// Its title, else how its first prompt begins.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref().or(self.prompt.as_deref())
    }

    /// Takes in what an entry says of the session; whether it said anything.
    pub(crate) fn hear(&mut self, entry: &Entry) -> bool {
        let before = self.clone();
        match &entry.body {
            Body::Session(session) if self.directory.is_none() => {
                self.directory.clone_from(&session.cwd);
                let title = session.title.as_deref().filter(|title| !title.trim().is_empty());
                self.title = title.map(shortened).or(self.title.take());
            }
            Body::User(user) if user.origin == Origin::Person && self.prompt.is_none() => {
                let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
                let mut texts = texts.filter_map(|block| block.string("text"));
                let text = texts.find(|text| !text.trim().is_empty());
                // One in tags was written by a program.
                let text = text.filter(|text| !text.trim_start().starts_with('<'));
                self.prompt = text.map(|text| shortened(&text));
            }
            Body::Decision(decision) => {
                if let DecisionKind::Title { title } = &decision.kind
                    && !title.trim().is_empty()
                {
                    self.title = Some(shortened(title));
                }
            }
            _ => {}
        }
        *self != before
    }
}

/// One line of bounded length.
fn shortened(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TITLE_MAX).collect()
}
