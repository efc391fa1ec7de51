//! What a person has the agent do with its session between two prompts.

use std::path::Path;

use pal_context::{FileRead, FileWanted, Question, Reply};
use pal_engine::{Asked, Compacted, EngineError, Errands, Outcome, Outgoing};
use pal_memory::Listed;
use pal_model::{BlockType, Body, Boundary, Content, EntryId, Origin, Text, Timestamp};
use pal_sources::Discovered;
use pal_store::Reader;
use pal_view::View;
use smol_str::SmolStr;

use crate::desk::Desk;
use crate::{Agent, AgentError};

/// What a compaction would come to.
#[derive(Debug)]
pub struct Preview {
    /// What the model sees now.
    pub before: View,
    /// The boundary that would be written.
    pub boundary: Box<Boundary>,
    /// Files that would not be put back into sight.
    pub not_read: Vec<String>,
}

impl Agent<'_> {
    /// What a compaction would come to now, with a summary that is drawn from the log: no model is asked, no hook is heard,
    /// nothing is written.
    pub fn preview_compaction(&mut self) -> Result<Preview, AgentError> {
        let before = self.session.view().clone();
        let world = self.desk.world(&before);
        let now = self.desk.clock.now();
        let mut looking = Looking { desk: &mut self.desk, not_read: Vec::new() };
        match self.session.preview(world, &self.engine, now, &mut looking)? {
            Compacted::Done { boundary, .. } => Ok(Preview { before, boundary, not_read: looking.not_read }),
            Compacted::Refused(why) | Compacted::Blocked(why) => {
                Err(AgentError::Other(format!("nothing would come of it: {why}")))
            }
        }
    }

    /// What a prompt of an MCP server says with these arguments, a JSON object. Whoever interrupts the agent stops the wait.
    pub fn prompt_of_server(
        &mut self,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> Result<Content, AgentError> {
        self.desk.handle.renew();
        let cancel = self.desk.handle.cancel();
        let blocks = self.desk.served.servers.get_prompt(server, name, arguments, &cancel);
        let blocks = blocks.map_err(AgentError::Other)?;
        if blocks.is_empty() {
            return Err(AgentError::Other(format!("the server {server} says nothing under {name}")));
        }
        let raw: Vec<&str> = blocks.iter().map(|block| block.raw().as_str()).collect();
        Ok(Content::parse(&Text::from(format!("[{}]", raw.join(",")))))
    }

    /// Compacts the conversation now; what the summary is to dwell on, if something. What comes of it is told as events; a
    /// refusal, in words, too.
    pub fn compact(&mut self, instructions: Option<String>) -> Result<(), AgentError> {
        self.desk.handle.renew();
        let now = self.desk.clock.now();
        self.desk.go_on(&mut self.session)?;
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
        self.desk.go_on(&mut self.session)?;
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

    /// The instruction files around the session.
    pub fn instructions(&self) -> &Discovered {
        &self.desk.around.instructions
    }

    /// What is remembered where the session keeps memories, those that matter most first; none if that cannot be read.
    pub fn memories(&self) -> Vec<Listed> {
        let place = self.desk.remembering.as_ref().map(|remembering| &remembering.place);
        let memory = place.and_then(|place| place.open_existing(self.desk.clock.now()).ok().flatten());
        memory.and_then(|mut memory| memory.list().ok()).unwrap_or_default()
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
        self.desk.go_on(&mut self.session)?;
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

/// Reads what a compaction would put back into sight, and does nothing else.
struct Looking<'a, 'b> {
    desk: &'a mut Desk<'b>,
    not_read: Vec<String>,
}

impl Errands for Looking<'_, '_> {
    fn send(&mut self, _outgoing: &Outgoing<'_>) -> Outcome {
        Outcome::Failed(String::from("a look ahead sends nothing"))
    }

    fn ask(&mut self, _question: &Question, _betas: &[SmolStr], _now: Timestamp) -> Asked {
        Asked { reply: Reply::Failed(String::from("a look ahead asks nobody")), answered: None }
    }

    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        let read = self.desk.read_again(wanted);
        if read.text.is_none() {
            self.not_read.push(wanted.path.clone());
        }
        read
    }

    fn notice(&mut self, _line: &str) {}
}
