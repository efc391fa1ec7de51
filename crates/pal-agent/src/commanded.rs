//! What a person has the agent do with its session between two prompts.

use std::path::Path;

use pal_engine::{Compacted, EngineError};
use pal_model::{BlockType, Body, EntryId, Origin};
use pal_store::Reader;
use pal_view::View;

use crate::{Agent, AgentError};

impl Agent<'_> {
    /// Compacts the conversation now; what the summary is to dwell on, if something. What comes of it is told as events; a
    /// refusal, in words, too.
    pub fn compact(&mut self, instructions: Option<String>) -> Result<(), AgentError> {
        self.desk.handle.renew();
        let now = self.desk.clock.now();
        let compacted = self.session.compact_by_hand(instructions, &self.engine, now, &mut self.desk)?;
        match compacted {
            Compacted::Done { .. } => Ok(()),
            Compacted::Refused(why) | Compacted::Blocked(why) => {
                Err(AgentError::Other(format!("nothing came of it: {why}")))
            }
        }
    }

    /// Takes the last compaction back.
    pub fn uncompact(&mut self) -> Result<(), AgentError> {
        let lens = self.session.view().lens().clone();
        let failed = |error: pal_store::OpenError| AgentError::Engine(EngineError::from(error));
        let branch = Reader::open(&self.desk.log).map_err(failed)?.whole_branch().map_err(failed)?;
        let whole = View::of(lens, branch.entries);
        self.session.uncompact(&self.engine, &whole, self.desk.clock.now())?;
        Ok(())
    }

    /// Pins a text: every compaction carries it word for word.
    pub fn pin(&mut self, text: &str) -> Result<(), AgentError> {
        self.session.pin(text, &self.engine, self.desk.clock.now())?;
        Ok(())
    }

    /// Takes a pin away, by its number from 1.
    pub fn unpin(&mut self, number: usize) -> Result<(), AgentError> {
        let pins = &self.session.view().state().pins;
        let pin = number.checked_sub(1).and_then(|at| pins.keys().nth(at).copied());
        let pin = pin.ok_or_else(|| AgentError::Other(format!("there is no pin {number}")))?;
        self.session.unpin(pin, self.desk.clock.now())?;
        Ok(())
    }

    /// What is pinned.
    pub fn pins(&self) -> Vec<String> {
        self.session.view().state().pins.values().cloned().collect()
    }

    /// Goes back to before a prompt, by its id: what comes next follows what stood before it. The words of that prompt.
    /// Files stay as they are, and what the agent knew of them is forgotten.
    pub fn rewind(&mut self, prompt: &str) -> Result<String, AgentError> {
        let unknown = || AgentError::Other(format!("there is no prompt {prompt} in this conversation"));
        let id: EntryId = prompt.parse().map_err(|_| unknown())?;
        let entry = self.session.view().branch().iter().find(|entry| entry.id == id).ok_or_else(unknown)?;
        let words = match &entry.body {
            Body::User(user) if user.origin == Origin::Person => {
                let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
                texts.filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n")
            }
            _ => return Err(unknown()),
        };
        let to = entry.parent.ok_or_else(unknown)?;
        self.session.rewind(to)?;
        let workspace = &self.desk.workspace;
        workspace.forget_seen();
        for (path, seen) in &self.session.view().state().seen_files {
            workspace.note_seen(Path::new(path), seen.clone());
        }
        Ok(words)
    }
}
