//! A session: its log on disk and its view, always in step.

use std::path::{Path, PathBuf};

use pal_context::cache::Eligibility;
use pal_context::{Notes, Place, Policy};
use pal_model::{
    Block, BlockType, Body, Decision, DecisionKind, Draft, Entry, EntryId, IdSource, Origin, Timestamp,
    ToolUseId, escape_into, raw_list,
};
use pal_store::{AppendError, Branch, Log, OmittedHistory, Problem, Torn};
use pal_view::{Lens, Limits, Pushed, View};
use smol_str::SmolStr;

use crate::EngineError;
use crate::watching::Watched;

/// What the model is told of a call that never returned.
const INTERRUPTED: &str = "[This call did not return: the program was ended, or the answer that made it was cut. Whether it did \
    something, and what, is not known: look before you make it again.]";

/// What a session runs by.
#[derive(Clone, Debug)]
pub struct Engine {
    /// What the layers do.
    pub policy: Policy,
    /// The limits of the model.
    pub limits: Limits,
    /// How the session's files are named to the model.
    pub place: Place,
    /// Whether a person is there to answer questions.
    pub is_attended: bool,
    /// Ways to a summary that may be tried, none for all. Where the list is empty, a request that is too long is not
    /// made shorter either.
    pub ways: Option<Vec<pal_context::How>>,
    /// Most tokens that an answer may have.
    pub max_tokens: u64,
    /// What the provider's cache depends on.
    pub cache: CacheSettings,
    /// What is known of the world around the session.
    pub inputs: Inputs,
}

/// What the provider's cache depends on, besides the content.
#[derive(Clone, Debug, Default)]
pub struct CacheSettings {
    /// Whether marks may last for an hour.
    pub eligibility: Eligibility,
    /// How hard the model shall think; none for its own measure.
    pub effort: Option<SmolStr>,
    /// The beta headers that the model's card asks for.
    pub betas: Vec<SmolStr>,
    /// Requests carry no marks.
    pub marks_off: bool,
    /// Reads that fell are not looked into.
    pub watch_off: bool,
}

/// What whoever runs the session knows before any compaction. What is found out only when one is due comes through
/// [`crate::Errands::before_compaction`].
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Nothing is compacted, whatever happens.
    pub compaction_off: bool,
    /// A hook that forbids compaction for now, by name.
    pub blocked_by: Option<String>,
    /// Notes of the session.
    pub notes: Option<Notes>,
}

/// A session that is open for going on.
pub struct Session {
    pub(crate) log: Log,
    pub(crate) view: View,
    pub(crate) directory: PathBuf,
    /// The newest request of the conversation, for comparing the next one with.
    pub(crate) watched: Option<Watched>,
    problems: Vec<Problem>,
    left_out: Option<OmittedHistory>,
}

impl Session {
    /// Makes a new, empty session; `path` is that of its log, whose folder must exist.
    pub fn create(path: &Path, lens: Lens, ids: IdSource) -> Result<Session, EngineError> {
        let log = Log::create(path, ids)?;
        let (view, directory) = (View::new(lens), folder(path));
        Ok(Session { log, view, directory, watched: None, problems: Vec::new(), left_out: None })
    }

    /// Opens a session: reads what its view needs.
    pub fn open(path: &Path, lens: Lens, ids: IdSource) -> Result<Session, EngineError> {
        let opened = Log::open(path, ids)?;
        let Branch { entries, mut problems, left_out } = opened.branch;
        let totals = left_out.as_ref().map(|left_out| left_out.totals);
        let view = View::resumed(lens, entries, totals);
        let watched = Watched::of(view.branch(), &view.lens().card);
        problems.extend(opened.torn.map(Torn::into_problem));
        Ok(Session { log: opened.log, view, directory: folder(path), watched, problems, left_out })
    }

    /// Lets go of everything and resumes from the file.
    pub fn reopen(self, ids: IdSource) -> Result<Session, EngineError> {
        let (path, lens) = (self.log.path().to_owned(), self.view.lens().clone());
        // The lock goes with it.
        drop(self);
        Session::open(&path, lens, ids)
    }

    /// The same session for another model.
    pub fn look_through(&mut self, lens: Lens) {
        self.view = self.view.through(lens);
    }

    /// What the model would see.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// What the log no longer gives.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What no context window holds and the view therefore leaves out.
    pub fn left_out(&self) -> Option<&OmittedHistory> {
        self.left_out.as_ref()
    }

    /// The session's folder.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends an entry to the log and to the view.
    pub fn append(&mut self, draft: Draft, at: Timestamp) -> Result<Entry, EngineError> {
        let entry = self.log.append(draft, at).map_err(|error| self.rescued(error))?;
        match self.view.push(entry.clone()) {
            Pushed::Added => Ok(entry),
            Pushed::Repeated | Pushed::NeedsHistory => {
                Err(EngineError::NotPossible(format!("entry {} does not continue this session", entry.id)))
            }
        }
    }

    /// Appends a decision.
    pub fn decide(&mut self, decision: &Decision, at: Timestamp) -> Result<Entry, EngineError> {
        self.append(Draft::decision(decision), at)
    }

    /// Calls of the newest answer that never returned, because the program that carried them out was ended, are answered
    /// now: what is sent once stays as it was sent (§1.1).
    pub fn settle(&mut self, at: Timestamp) -> Result<usize, EngineError> {
        self.answer_open_calls(INTERRUPTED, true, at)
    }

    /// Goes back to the answer that made a call, and says the same for all of its calls: what a fork of the conversation
    /// begins with, alike for all forks.
    pub fn branch_at(&mut self, call: &ToolUseId, said: &str, at: Timestamp) -> Result<(), EngineError> {
        let branch = self.view.branch();
        let made = |entry: &Entry| match &entry.body {
            Body::Assistant(assistant) => {
                assistant.content.blocks().iter().any(|block| block.tool_use_id() == Some(call))
            }
            _ => false,
        };
        let Some(position) = branch.iter().rposition(made) else {
            return Err(EngineError::NotPossible(format!(
                "no answer in sight made the call {}",
                call.as_str()
            )));
        };
        // What the answer took belongs to it.
        let is_usage = |entry: &&Entry| matches!(entry.body, Body::Response(_));
        let end = branch.get(position + 1).filter(is_usage).unwrap_or(&branch[position]).id;
        self.read_back_from(end)?;
        self.answer_open_calls(said, false, at).map(|_| ())
    }

    fn answer_open_calls(&mut self, said: &str, is_error: bool, at: Timestamp) -> Result<usize, EngineError> {
        let newest = self.view.branch().iter().rev().find_map(|entry| match &entry.body {
            Body::Assistant(assistant) => Some(assistant.response.clone()),
            _ => None,
        });
        let Some(newest) = newest else { return Ok(0) };
        let is_newest = |entry: &&Entry| match &entry.body {
            Body::Assistant(assistant) => assistant.response == newest,
            _ => false,
        };
        let mut open: Vec<ToolUseId> = Vec::new();
        for entry in self.view.branch().iter().filter(is_newest) {
            let Body::Assistant(assistant) = &entry.body else { continue };
            let calls = assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse);
            open.extend(calls.filter_map(|block| block.tool_use_id().cloned()));
        }
        open.retain(|call| self.view.result(call).is_none());
        for call in &open {
            let result = result(call, &[Block::text(said)], is_error);
            self.append(Draft::user(Origin::Synthetic, &result), at)?;
        }
        Ok(open.len())
    }

    /// Waits until everything is on the disk. A log that is no longer where it was is an error: what it holds would be
    /// lost with this process.
    pub fn sync(&mut self) -> Result<(), EngineError> {
        if let Some(change) = self.log.find_change()? {
            let path = self.log.path().to_owned();
            return Err(self.rescued(AppendError::Changed { path, change, lines: String::new() }));
        }
        Ok(self.log.sync()?)
    }

    /// Whether everything that was appended is known to be on the disk.
    pub fn is_synced(&self) -> bool {
        self.log.is_synced()
    }

    /// Saves the session beside its log if that is no longer the file that was opened.
    fn rescued(&mut self, error: AppendError) -> EngineError {
        let AppendError::Changed { path, change, lines } = error else { return error.into() };
        match self.log.rescue(self.view.branch(), &lines) {
            Ok(saved) => {
                tracing::error!(%change, log = %path.display(), saved = %saved.display(), "the log was changed");
                EngineError::LogChanged { path, change, saved }
            }
            Err(error) => EngineError::LogLost { path, change, error },
        }
    }

    /// Goes back to an entry: the next one that is appended follows it, on a branch of its own. Nothing is lost; until
    /// something is appended, the file knows nothing of it.
    pub fn rewind(&mut self, to: EntryId) -> Result<(), EngineError> {
        self.read_back_from(to)?;
        self.watched = Watched::of(self.view.branch(), &self.view.lens().card);
        Ok(())
    }

    /// Reads again what the view needs, back from the newest entry.
    pub(crate) fn read_back_from(&mut self, newest: EntryId) -> Result<(), EngineError> {
        let branch = self.log.rewind(newest)?;
        let totals = branch.left_out.map(|left_out| left_out.totals);
        self.view = View::resumed(self.view.lens().clone(), branch.entries, totals);
        self.problems.extend(branch.problems);
        Ok(())
    }

    /// Appends what was tried and did not come about.
    pub(crate) fn failed(&mut self, what: &str, message: &str, at: Timestamp) -> Result<(), EngineError> {
        let kind = DecisionKind::Failure { what: what.into(), message: message.to_owned() };
        let decision = Decision { kind, reason: message.to_owned(), cost: Default::default() };
        self.decide(&decision, at).map(|_| ())
    }
}

/// The block of a result, in a list.
pub(crate) fn result(call: &ToolUseId, content: &[Block], is_error: bool) -> String {
    let mut json = String::from(r#"[{"type":"tool_result","tool_use_id":"#);
    escape_into(&mut json, call.as_str());
    json.push_str(r#","content":"#);
    json.push_str(&raw_list(content));
    if is_error {
        json.push_str(r#","is_error":true"#);
    }
    json.push_str("}]");
    json
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}
