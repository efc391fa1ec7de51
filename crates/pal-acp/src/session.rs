//! A session as the connection sees it: what is wanted of it is passed on to its thread.

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
use pal_agent::Handle;
use pal_model::Content;
use pal_permissions::Mode;

use crate::host::failed;
use crate::opening::Opening;
use crate::questions::Questions;

/// What is wanted of a session.
pub(crate) enum Wish {
    /// It is to work on a prompt: the front of its turns.
    Prompt(Vec<ContentBlock>),
    /// It is to work on what another agent said.
    Heed,
    /// Another mode is to hold, which wants an agent that is opened anew.
    Mode(Mode, Responder<SetSessionModeResponse>),
    /// Another model is to be asked.
    Model(String, Responder<SetSessionConfigOptionResponse>),
    /// A client wants to go on with it, although it is open already.
    Again(Opening),
    /// It is to end.
    Leave(Option<Responder<CloseSessionResponse>>),
}

/// A session that is open.
pub(crate) struct Session {
    pub(crate) questions: Arc<Questions>,
    wishes: Sender<Wish>,
    turns: Mutex<VecDeque<Turn>>,
    /// Steers the agent; none while it is opened.
    handle: Mutex<Option<Handle>>,
    /// Somebody wants the turn to stop, and the agent may not have heard it: it began just then.
    wants_stop: AtomicBool,
    mode: Mutex<Mode>,
}

/// A prompt that is worked on or waits, with what was said while it was worked on.
pub(crate) struct Turn {
    is_cancelled: bool,
    waiting: Vec<Responder<PromptResponse>>,
}

impl Session {
    pub(crate) fn new(wishes: Sender<Wish>, questions: Arc<Questions>) -> Session {
        let (turns, handle) = (Mutex::default(), Mutex::default());
        let (wants_stop, mode) = (AtomicBool::new(false), Mutex::default());
        Session { questions, wishes, turns, handle, wants_stop, mode }
    }

    /// Passes a wish on; it comes back if the session has ended.
    pub(crate) fn wish(&self, wish: Wish) -> Result<(), Box<Wish>> {
        self.wishes.send(wish).map_err(|unsent| Box::new(unsent.0))
    }

    /// Somebody says something. While a prompt is worked on, it steers: the agent hears it with its next results, and both
    /// requests are answered when it has ended. `content` is none for what cannot be said meanwhile.
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
        match self.wish(Wish::Prompt(blocks)) {
            Ok(()) => turns.push_back(Turn { is_cancelled: false, waiting: vec![responder] }),
            Err(_) => return responder.respond_with_error(gone()),
        }
        Ok(())
    }

    /// Stops what is worked on, and whatever waits.
    pub(crate) fn cancel(&self) {
        let mut turns = self.turns();
        if turns.is_empty() {
            return;
        }
        turns.iter_mut().for_each(|turn| turn.is_cancelled = true);
        self.wants_stop.store(true, Ordering::SeqCst);
        self.questions.give_up();
        if let Some(handle) = &*self.handle() {
            handle.interrupt();
        }
    }

    /// Whether something is worked on.
    pub(crate) fn is_working(&self) -> bool {
        !self.turns().is_empty()
    }

    /// Steers the agent.
    pub(crate) fn handle(&self) -> MutexGuard<'_, Option<Handle>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mode that was chosen last.
    pub(crate) fn mode(&self) -> Mode {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another mode was chosen.
    pub(crate) fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Whether the turn that begins now was cancelled before.
    pub(crate) fn begin_turn(&self) -> bool {
        let turns = self.turns();
        let is_cancelled = turns.front().is_some_and(|turn| turn.is_cancelled);
        if !is_cancelled {
            self.wants_stop.store(false, Ordering::SeqCst);
            self.questions.renew();
        }
        is_cancelled
    }

    /// Whether the turn at hand is cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.turns().front().is_some_and(|turn| turn.is_cancelled)
    }

    /// Says once more that the turn is to stop, if the agent may have missed it.
    pub(crate) fn repeat_stop(&self) {
        if self.wants_stop.swap(false, Ordering::SeqCst)
            && let Some(handle) = &*self.handle()
        {
            handle.interrupt();
        }
    }

    /// Ends the turn at hand, unless something was said that nobody heard: that is asked under the lock, so that nothing
    /// is said in between.
    pub(crate) fn end_turn(&self, has_unheard: impl FnOnce() -> bool) -> Option<Option<Turn>> {
        let mut turns = self.turns();
        (!has_unheard()).then(|| turns.pop_front())
    }

    /// Ends whatever waits: the session is gone.
    pub(crate) fn end_all(&self) {
        for turn in std::mem::take(&mut *self.turns()) {
            turn.answer(Err(gone()));
        }
    }

    fn turns(&self) -> MutexGuard<'_, VecDeque<Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Answers everybody who waits for its end.
    pub(crate) fn answer(self, end: Result<StopReason, Error>) {
        let end = if self.is_cancelled { Ok(StopReason::Cancelled) } else { end };
        for responder in self.waiting {
            // A client that is gone wants to know nothing.
            let _ = responder.respond_with_result(end.clone().map(PromptResponse::new));
        }
    }
}

/// What is said of a session that has ended.
pub(crate) fn gone() -> Error {
    failed("this session has ended. What to do: load it again with session/load, or begin a new one")
}
