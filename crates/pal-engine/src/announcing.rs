//! Announcements (§6.5): told first, marked as told after that.

use pal_model::{Content, Decision, Draft, Entry, Origin, Timestamp, escape_into};

use crate::{EngineError, Session};

/// What the attachment of an announcement is called in the log.
const ANNOUNCEMENT: &str = "announcement";

/// A text for the model, and what counts as told once it is in the log.
#[derive(Clone, PartialEq, Debug)]
pub struct Announced {
    /// The text, in the program's own words.
    pub text: String,
    /// Words of others that belong to it, which are content and never speak for the system.
    pub descriptions: Option<String>,
    /// The decisions that mark it as told.
    pub decisions: Vec<Decision>,
}

impl Session {
    /// Appends words for the model; `what` says of which sort they are.
    pub fn attach(&mut self, what: &str, text: &str, now: Timestamp) -> Result<Entry, EngineError> {
        let mut content = String::with_capacity(text.len() + 2);
        escape_into(&mut content, text);
        self.append(Draft::attachment(what, &content), now)
    }

    /// Hands a file over to the model; `text` is what it reads of it.
    pub fn attach_file(
        &mut self,
        what: &str,
        file: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<Entry, EngineError> {
        let mut content = String::with_capacity(text.len() + 2);
        escape_into(&mut content, text);
        self.append(Draft::attachment_of_file(what, file, &content), now)
    }

    /// Tells the model what it can draw on now, and marks it as told. The text comes first in the log: if the program is
    /// killed in between, the model is told once more when the session goes on, and never left untold.
    ///
    /// What is to be told follows from `view().state().announced` and what there is.
    pub fn announce(&mut self, announced: &Announced, now: Timestamp) -> Result<Entry, EngineError> {
        if announced.text.trim().is_empty() {
            return Err(EngineError::NotPossible(String::from(
                "there is nothing to announce: the text is empty",
            )));
        }
        let told = self.attach(ANNOUNCEMENT, &announced.text, now)?;
        if let Some(descriptions) = &announced.descriptions {
            self.append(Draft::user(Origin::Agent, &Content::of_text(descriptions).raw()), now)?;
        }
        for decision in &announced.decisions {
            self.decide(decision, now)?;
        }
        Ok(told)
    }
}
