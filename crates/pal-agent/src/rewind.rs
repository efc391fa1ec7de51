//! Rewinding a session to before a prompt: the conversation, the files that tools changed since, or both.

use std::path::{Path, PathBuf};

use pal_engine::{EngineError, Session};
use pal_events::AgentEvent;
use pal_model::{BlockType, EntryBody, EntryDraft, EntryId, LogEntry, MessageOrigin, Timestamp};
use smol_str::SmolStr;

use crate::agent_runtime::AgentRuntime;
use crate::rewind_mark::{RewindMark, RewindScope};
use crate::session_open::PERMISSIONS;
use crate::todo_reminder::TodoReminder;
use crate::{Agent, AgentError};

/// Result of a rewind or of its undo.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RewindReport {
    /// Text of the prompt, if the conversation was rewound.
    pub prompt: Option<String>,
    /// Restored files.
    pub restored: Vec<PathBuf>,
    /// Files that were left as they are, a sentence each.
    pub problems: Vec<String>,
}

impl Agent<'_> {
    /// Rewinds to before a prompt, given by the id of its entry. The agent forgets what it learned since.
    pub fn rewind(&mut self, prompt: &str, scope: RewindScope) -> Result<RewindReport, AgentError> {
        let unknown = || AgentError::Other(format!("there is no prompt {prompt} in this conversation"));
        let id: EntryId = prompt.parse().map_err(|_| unknown())?;
        self.runtime.background.end_pause(&mut self.session, &mut self.runtime.events)?;
        let branch = self.session.view().branch();
        let entry = branch.iter().find(|entry| entry.id == id).ok_or_else(unknown)?;
        let (words, since) = (prompt_text(entry).ok_or_else(unknown)?, entry.at);
        let (to, head) = entry.parent.zip(branch.last().map(|entry| entry.id)).ok_or_else(unknown)?;
        let at = self.runtime.clock.now();
        self.last_rewind = Some(RewindMark { head, at, scope });
        let mut report = RewindReport::default();
        if scope != RewindScope::Conversation {
            self.restore_files(since, &mut report);
        }
        if scope != RewindScope::Files {
            self.move_head(to)?;
            report.prompt = Some(words);
        }
        Ok(report)
    }

    /// Undoes the last rewind, which must be the last thing that happened.
    pub fn undo_rewind(&mut self) -> Result<RewindReport, AgentError> {
        let RewindMark { head, at, scope } = self.last_rewind.take().ok_or_else(|| {
            AgentError::Other(String::from(
                "there is no rewind to undo: it can be undone until the next prompt",
            ))
        })?;
        let mut report = RewindReport::default();
        if scope != RewindScope::Conversation {
            self.restore_files(at, &mut report);
        }
        if scope != RewindScope::Files {
            self.move_head(head)?;
        }
        Ok(report)
    }

    /// Restores the files that tools changed at or after a time.
    fn restore_files(&mut self, since: Timestamp, report: &mut RewindReport) {
        let checkpoints = &self.runtime.tools.checkpoints;
        let plan = checkpoints.plan(since);
        let obstacle = |path: &Path, why: &str| format!("{} was left as it is: {why}", path.display());
        report
            .problems
            .extend(plan.iter().filter_map(|file| Some(obstacle(&file.path, file.obstacle.as_deref()?))));
        let (restored, failures) = checkpoints.restore(&plan);
        report.restored = restored;
        report.problems.extend(failures);
    }

    /// Continues from an entry. The move is recorded, so that it holds after a restart.
    fn move_head(&mut self, to: EntryId) -> Result<(), EngineError> {
        let mode_before = self.session.view().state().mode.clone();
        self.session.rewind(to)?;
        self.session.append(EntryDraft::internal("rewind", "{}"), self.runtime.clock.now())?;
        self.runtime.follow_rewind(&self.session, mode_before.as_deref());
        Ok(())
    }
}

impl AgentRuntime<'_> {
    /// Continues with what the log says at the new end of the conversation, as a resumed session does: seen files, working
    /// directory, todo list, instruction files and permission mode.
    fn follow_rewind(&mut self, session: &Session, mode_before: Option<&str>) {
        let state = session.view().state();
        let workspace = &self.tools.workspace;
        workspace.forget_seen();
        for (path, seen) in &state.seen_files {
            workspace.record_seen(Path::new(path), seen.clone());
        }
        let directory = state.directory.as_ref().map(PathBuf::from).filter(|directory| directory.is_dir());
        workspace
            .change_directory(&directory.unwrap_or_else(|| self.project.sources.search.directory.clone()));
        self.pending.todo_reminder = TodoReminder::of(session.view().branch());
        let noted = session.view().prefix().map_or(&[][..], |prefix| &prefix.notes.sources);
        let changes = self.project.restart_instructions(noted);
        self.pending.attach("instructions", changes);
        // A mode that the user chose stays; one that a tool set is that of the new end.
        if state.mode.as_deref() != mode_before {
            self.permissions.set_mode(state.mode.as_deref().unwrap_or_default());
            self.events.send(AgentEvent::Mode(SmolStr::new_static(self.permissions.mode.name())));
        }
        let mode = self.permissions.mode;
        self.permissions.announced_mode = mode;
        self.project.prompt.choose_mode(mode);
        // A mode that a tool set is known from its result.
        if state.mode.as_deref() != Some(mode.name()) {
            self.pending.attach(PERMISSIONS, self.project.prompt.unsaid(session));
        }
    }
}

/// Text of a prompt of the user; none for any other entry.
fn prompt_text(entry: &LogEntry) -> Option<String> {
    let EntryBody::User(user) = &entry.body else { return None };
    if user.origin != MessageOrigin::Person {
        return None;
    }
    let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
    Some(texts.filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n"))
}
