//! An open session as the connection sees it: a handle that forwards commands to the session's thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CloseSessionResponse, ContentBlock, PromptResponse, SetSessionConfigOptionResponse,
    SetSessionModeResponse, StopReason,
};
use pal_agent::AgentHandle;
use pal_model::Content;
use pal_permissions::PermissionMode;

use crate::agent_host::internal_error;
use crate::open_responder::OpenResponder;
use crate::permission_requests::PermissionRequests;

/// Command to a session's thread.
pub(crate) enum SessionCommand {
    /// Run the prompt of the first turn.
    Prompt(Vec<ContentBlock>),
    /// Run messages of other agents.
    RunQueuedMessages,
    /// Change to a mode that needs a restart of the agent.
    Mode(PermissionMode, Responder<SetSessionModeResponse>),
    /// Change the model.
    Model(String, Responder<SetSessionConfigOptionResponse>),
    /// Answer a client that opens the session although it is already open.
    Reopen(OpenResponder),
    /// End the session.
    Close(Option<Responder<CloseSessionResponse>>),
}

/// Handle of an open session.
pub(crate) struct AcpSession {
    pub(crate) questions: Arc<PermissionRequests>,
    commands: Sender<SessionCommand>,
    turns: Mutex<VecDeque<PromptTurn>>,
    /// Handle of the agent; `None` while it starts.
    handle: Mutex<Option<AgentHandle>>,
    /// A stop was requested that the agent may have missed because its turn was just starting.
    wants_stop: AtomicBool,
    mode: Mutex<PermissionMode>,
}

/// A running or queued prompt with the requests that steered it.
pub(crate) struct PromptTurn {
    is_cancelled: bool,
    waiting: Vec<Responder<PromptResponse>>,
}

impl AcpSession {
    pub(crate) fn new(commands: Sender<SessionCommand>, questions: Arc<PermissionRequests>) -> AcpSession {
        let (turns, handle) = (Mutex::default(), Mutex::default());
        let (wants_stop, mode) = (AtomicBool::new(false), Mutex::default());
        AcpSession { questions, commands, turns, handle, wants_stop, mode }
    }

    /// Sends a command; returns it if the session has ended.
    pub(crate) fn send_command(&self, command: SessionCommand) -> Result<(), Box<SessionCommand>> {
        if let Some(handle) = &*self.handle() {
            handle.end_idle_work();
        }
        self.commands.send(command).map_err(|unsent| Box::new(unsent.0))
    }

    /// Handles a prompt. While another prompt runs, it steers that one: the agent gets it with its next tool results, and both
    /// requests are answered at the end. `content` is `None` for prompts that cannot steer.
    pub(crate) fn prompt(
        &self,
        blocks: Vec<ContentBlock>,
        content: Option<Content>,
        responder: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        let mut turns = self.turns();
        let open = turns.back_mut().filter(|turn| !turn.is_cancelled);
        if let (Some(turn), Some(content), Some(handle)) = (open, content, &*self.handle()) {
            handle.steer(content);
            turn.waiting.push(responder);
            return Ok(());
        }
        match self.send_command(SessionCommand::Prompt(blocks)) {
            Ok(()) => turns.push_back(PromptTurn { is_cancelled: false, waiting: vec![responder] }),
            Err(_) => return responder.respond_with_error(session_ended()),
        }
        Ok(())
    }

    /// Cancels the running prompt and all queued ones.
    pub(crate) fn cancel(&self) {
        let mut turns = self.turns();
        if turns.is_empty() {
            return;
        }
        turns.iter_mut().for_each(|turn| turn.is_cancelled = true);
        self.wants_stop.store(true, Ordering::SeqCst);
        self.questions.cancel_pending();
        if let Some(handle) = &*self.handle() {
            handle.interrupt();
        }
    }

    /// Returns `true` while a prompt runs.
    pub(crate) fn is_working(&self) -> bool {
        !self.turns().is_empty()
    }

    /// Locks the agent's handle.
    pub(crate) fn handle(&self) -> MutexGuard<'_, Option<AgentHandle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Mode that was selected last.
    pub(crate) fn mode(&self) -> PermissionMode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Begins the next turn; returns `true` if it was already cancelled.
    pub(crate) fn begin_turn(&self) -> bool {
        let turns = self.turns();
        let is_cancelled = turns.front().is_some_and(|turn| turn.is_cancelled);
        if !is_cancelled {
            self.wants_stop.store(false, Ordering::SeqCst);
            self.questions.allow_requests();
        }
        is_cancelled
    }

    /// Returns `true` if the current turn is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.turns().front().is_some_and(|turn| turn.is_cancelled)
    }

    /// Interrupts the agent again if it may have missed the first request.
    pub(crate) fn repeat_stop(&self) {
        if self.wants_stop.swap(false, Ordering::SeqCst)
            && let Some(handle) = &*self.handle()
        {
            handle.interrupt();
        }
    }

    /// Ends the current turn unless messages are queued. The check runs under the lock, so that no message arrives in between.
    pub(crate) fn end_turn(&self, has_queued: impl FnOnce() -> bool) -> Option<Option<PromptTurn>> {
        let mut turns = self.turns();
        (!has_queued()).then(|| turns.pop_front())
    }

    /// Answers all remaining turns with an error.
    pub(crate) fn end_all(&self) {
        for turn in std::mem::take(&mut *self.turns()) {
            turn.answer(Err(session_ended()));
        }
    }

    fn turns(&self) -> MutexGuard<'_, VecDeque<PromptTurn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PromptTurn {
    /// Answers all requests of the turn.
    pub(crate) fn answer(self, end: Result<StopReason, Error>) {
        let end = if self.is_cancelled { Ok(StopReason::Cancelled) } else { end };
        for responder in self.waiting {
            // The client may be gone.
            let _ = responder.respond_with_result(end.clone().map(PromptResponse::new));
        }
    }
}

/// Error for a session that has ended.
pub(crate) fn session_ended() -> Error {
    internal_error("this session has ended; load it again with session/load or start a new one")
}
