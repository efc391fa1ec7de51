//! A session: its log on disk and its view, always in step.

use std::path::{Path, PathBuf};

use pal_model::{
    BlockType, ContentBlock, Decision, DecisionKind, EntryBody, EntryDraft, EntryId, IdSource, LogEntry,
    MessageOrigin, Timestamp, ToolUseId, blocks_to_json, escape_into,
};
use pal_store::{AppendError, Log, LogBranch, LogProblem, OmittedHistory, TornTail};
use pal_view::{Lens, PushOutcome, RenderOptions, View};

use crate::EngineError;
use crate::watched_request::WatchedRequest;

/// Tool result for a call that never returned. Text for the model.
const INTERRUPTED: &str = "[This call did not return: the program was ended, or the answer that made it was cut. Whether it did \
    something, and what, is not known: look before you make it again.]";

/// An open session: its log, locked for writing, and the view of it.
pub struct Session {
    pub(crate) log: Log,
    pub(crate) view: View,
    pub(crate) directory: PathBuf,
    /// The newest answered request; the next one is compared with it.
    pub(crate) watched: Option<WatchedRequest>,
    /// Number of blocks that this session shares with other forks of the response it branches from.
    pub(crate) shared_blocks: usize,
    /// Size of the largest context that the model accepted from this process; 0 if none was.
    pub(crate) accepted_tokens: u64,
    problems: Vec<LogProblem>,
    left_out: Option<OmittedHistory>,
}

impl Session {
    /// Creates an empty session. `path` is its log, whose directory must exist.
    pub fn create(path: &Path, lens: Lens, ids: IdSource) -> Result<Session, EngineError> {
        let log = Log::create(path, ids)?;
        let (view, directory) = (View::new(lens), folder(path));
        Ok(Session {
            log,
            view,
            directory,
            watched: None,
            shared_blocks: 0,
            accepted_tokens: 0,
            problems: Vec::new(),
            left_out: None,
        })
    }

    /// Opens an existing session, reading only the entries that its view needs.
    pub fn open(path: &Path, lens: Lens, ids: IdSource) -> Result<Session, EngineError> {
        let opened = Log::open(path, ids)?;
        let LogBranch { entries, mut problems, omitted: left_out } = opened.branch;
        let totals = left_out.as_ref().map(|left_out| left_out.totals);
        let view = View::from_resumed_branch(lens, entries, totals);
        let watched = WatchedRequest::of(view.branch(), &view.lens().card);
        problems.extend(opened.torn.map(TornTail::into_problem));
        Ok(Session {
            log: opened.log,
            view,
            directory: folder(path),
            watched,
            shared_blocks: 0,
            accepted_tokens: 0,
            problems,
            left_out,
        })
    }

    /// Releases the log and opens it again.
    pub fn reopen(self, ids: IdSource) -> Result<Session, EngineError> {
        let (path, lens) = (self.log.path().to_owned(), self.view.lens().clone());
        // Dropping the session releases the lock.
        drop(self);
        Session::open(&path, lens, ids)
    }

    /// Switches the view to another model.
    pub fn switch_model(&mut self, lens: Lens) {
        if lens.card.model != self.view.lens().card.model {
            self.accepted_tokens = 0;
        }
        self.view = self.view.with_lens(lens);
    }

    /// The view: everything the model would see now.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Damage found while reading the log.
    pub fn problems(&self) -> &[LogProblem] {
        &self.problems
    }

    /// History that is too large for any context window and was left out of the view.
    pub fn left_out(&self) -> Option<&OmittedHistory> {
        self.left_out.as_ref()
    }

    /// Directory of the session.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends an entry to the log and to the view.
    pub fn append(&mut self, draft: EntryDraft, at: Timestamp) -> Result<LogEntry, EngineError> {
        let entry = self.log.append(draft, at).map_err(|error| self.rescue_log(error))?;
        match self.view.push(entry.clone()) {
            PushOutcome::Added => Ok(entry),
            PushOutcome::Duplicate | PushOutcome::NeedsHistory => {
                Err(EngineError::NotPossible(format!("entry {} does not continue this session", entry.id)))
            }
        }
    }

    /// Appends a decision.
    pub fn decide(&mut self, decision: &Decision, at: Timestamp) -> Result<LogEntry, EngineError> {
        self.append(EntryDraft::decision(decision), at)
    }

    /// Answers the calls of the newest response that never returned because the program ended, and returns
    /// their number. Entries that were sent are never changed (§1.1).
    pub fn answer_interrupted_calls(&mut self, at: Timestamp) -> Result<usize, EngineError> {
        self.answer_open_calls(INTERRUPTED, true, at)
    }

    /// Rewinds to the response that made `call` and gives all of its calls the same result `said`. All forks of
    /// a conversation start this way, so they share one prefix.
    pub fn branch_at(&mut self, call: &ToolUseId, said: &str, at: Timestamp) -> Result<(), EngineError> {
        let branch = self.view.branch();
        let made = |entry: &LogEntry| match &entry.body {
            EntryBody::Assistant(assistant) => {
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
        // The usage entry belongs to the response.
        let is_usage = |entry: &&LogEntry| matches!(entry.body, EntryBody::Response(_));
        let end = branch.get(position + 1).filter(is_usage).unwrap_or(&branch[position]).id;
        self.read_back_from(end)?;
        self.answer_open_calls(said, false, at)?;
        // Other forks of the response send the same up to here.
        let options = RenderOptions { max_tokens: 1, stream: true, spell_out_unseen: true };
        self.shared_blocks = self.view.render(options).block_count();
        Ok(())
    }

    fn answer_open_calls(&mut self, said: &str, is_error: bool, at: Timestamp) -> Result<usize, EngineError> {
        let newest = self.view.branch().iter().rev().find_map(|entry| match &entry.body {
            EntryBody::Assistant(assistant) => Some(assistant.response.clone()),
            _ => None,
        });
        let Some(newest) = newest else { return Ok(0) };
        let is_newest = |entry: &&LogEntry| match &entry.body {
            EntryBody::Assistant(assistant) => assistant.response == newest,
            _ => false,
        };
        let mut open: Vec<ToolUseId> = Vec::new();
        for entry in self.view.branch().iter().filter(is_newest) {
            let EntryBody::Assistant(assistant) = &entry.body else { continue };
            let calls = assistant.content.blocks().iter().filter(|block| block.kind() == BlockType::ToolUse);
            open.extend(calls.filter_map(|block| block.tool_use_id().cloned()));
        }
        open.retain(|call| self.view.result(call).is_none());
        for call in &open {
            let result = tool_result_json(call, &[ContentBlock::text(said)], is_error);
            self.append(EntryDraft::user(MessageOrigin::Synthetic, &result), at)?;
        }
        Ok(open.len())
    }

    /// Waits until everything is on disk. A log that was moved or deleted is an error: its content would be
    /// lost with this process.
    pub fn sync(&mut self) -> Result<(), EngineError> {
        if let Some(change) = self.log.find_change()? {
            let path = self.log.path().to_owned();
            return Err(self.rescue_log(AppendError::Changed { path, change, lines: String::new() }));
        }
        Ok(self.log.sync()?)
    }

    /// Returns whether everything appended is known to be on disk.
    pub fn is_synced(&self) -> bool {
        self.log.is_synced()
    }

    /// Saves the session next to its log if the log is no longer the file that was opened.
    fn rescue_log(&mut self, error: AppendError) -> EngineError {
        let AppendError::Changed { path, change, lines } = error else { return error.into() };
        match self.log.rescue(self.view.branch(), &lines) {
            Ok(saved) => {
                tracing::error!(%change, log = %path.display(), saved = %saved.display(), "the log was changed");
                EngineError::LogChanged { path, change, saved }
            }
            Err(error) => EngineError::LogLost { path, change, error },
        }
    }

    /// Rewinds to an entry: the next one appended follows it on a new branch. The file is unchanged until then.
    pub fn rewind(&mut self, to: EntryId) -> Result<(), EngineError> {
        self.read_back_from(to)?;
        self.watched = WatchedRequest::of(self.view.branch(), &self.view.lens().card);
        Ok(())
    }

    /// Rebuilds the view by reading back from `newest`.
    pub(crate) fn read_back_from(&mut self, newest: EntryId) -> Result<(), EngineError> {
        let branch = self.log.rewind(newest)?;
        let totals = branch.omitted.map(|left_out| left_out.totals);
        self.view = View::from_resumed_branch(self.view.lens().clone(), branch.entries, totals);
        self.problems.extend(branch.problems);
        Ok(())
    }

    /// Appends a failure decision.
    pub(crate) fn append_failure(
        &mut self,
        what: &str,
        message: &str,
        at: Timestamp,
    ) -> Result<(), EngineError> {
        let kind = DecisionKind::Failure { what: what.into(), message: message.to_owned() };
        let decision = Decision { kind, reason: message.to_owned(), cost: Default::default() };
        self.decide(&decision, at).map(|_| ())
    }
}

/// Renders a tool result as a list of one content block.
pub(crate) fn tool_result_json(call: &ToolUseId, content: &[ContentBlock], is_error: bool) -> String {
    let mut json = String::from(r#"[{"type":"tool_result","tool_use_id":"#);
    escape_into(&mut json, call.as_str());
    json.push_str(r#","content":"#);
    json.push_str(&blocks_to_json(content));
    if is_error {
        json.push_str(r#","is_error":true"#);
    }
    json.push_str("}]");
    json
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}
