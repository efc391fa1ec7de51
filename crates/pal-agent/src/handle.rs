//! What reaches a working agent from other threads.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use pal_model::{Content, ToolUseId};
use pal_permissions::Mode;
use pal_process::Cancel;
use pal_session::{Input, Returned};

use crate::event::Exchanged;

/// Who is told that a message came.
type Bell = Arc<dyn Fn() + Send + Sync>;

/// Steers and interrupts an agent from any thread.
#[derive(Clone)]
pub struct Handle {
    signals: Sender<Signal>,
    cancel: Arc<Mutex<Cancel>>,
    bell: Arc<Mutex<Option<Bell>>>,
    /// Whether nothing more is to be begun.
    is_closed: Arc<AtomicBool>,
    /// The permission mode that a person chose and that does not hold yet.
    mode: Arc<Mutex<Option<Mode>>>,
    /// Memories that a person has kept and the model does not know of yet, by their files.
    remembered: Arc<Mutex<Vec<PathBuf>>>,
}

/// Something that happened outside of the agent's thread.
#[derive(Debug)]
pub(crate) enum Signal {
    /// A person or another agent says or wants something.
    Said(Input),
    /// A running call printed something.
    Printed(ToolUseId, String),
    /// A call returned, and these files were touched by it.
    Returned(Box<Returned>, Vec<std::path::PathBuf>),
    /// An agent that was sent has asked the provider something.
    Exchanged(Box<Exchanged>),
    /// An agent that was sent is gone.
    AgentLeft,
    /// An agent that was sent does something.
    Doing {
        /// The agent.
        agent: String,
        /// What it does, in a few words.
        doing: String,
    },
}

impl Handle {
    pub(crate) fn new(signals: Sender<Signal>) -> Handle {
        let cancel = Arc::new(Mutex::new(Cancel::new()));
        Handle {
            signals,
            cancel,
            bell: Arc::default(),
            is_closed: Arc::default(),
            mode: Arc::default(),
            remembered: Arc::default(),
        }
    }

    /// Says something to an agent that works; it hears it with the next results. Said to one that rests, it is the next
    /// thing that it works on.
    pub fn steer(&self, content: Content) {
        // An agent that is gone hears nothing.
        let _ = self.signals.send(Signal::Said(Input::Prompt(content)));
    }

    /// Hands over what another agent says: heard as what steers it is, but not as words of the user.
    pub fn message(&self, content: Content) {
        let _ = self.signals.send(Signal::Said(Input::Message(content)));
        let bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(bell) = bell {
            bell();
        }
    }

    /// Whom to tell that a message came, so that an agent that rests is made to heed it ([`crate::Agent::heed`]).
    pub fn on_message(&self, bell: impl Fn() + Send + Sync + 'static) {
        *self.bell.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(bell));
    }

    /// Stops the agent: the answer that is coming, the tools that run. What arrived is kept.
    pub fn interrupt(&self) {
        let _ = self.signals.send(Signal::Said(Input::Interrupt));
        self.cancel().cancel();
    }

    /// Chooses the permission mode. It holds for the next call that is judged, and so does its sandbox; the model is told
    /// with the next request.
    pub fn choose_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
    }

    /// A person has kept a memory, in this file: the model is told with the next request.
    pub fn remember(&self, file: PathBuf) {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }

    /// The memories that were kept since this was asked last.
    pub(crate) fn take_remembered(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *self.remembered.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The mode that was chosen since this was asked last.
    pub(crate) fn take_mode(&self) -> Option<Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn send(&self, signal: Signal) {
        let _ = self.signals.send(signal);
    }

    /// What whoever is at work now watches.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops the agent for good: what is said from now on is not worked on.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.interrupt();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// A new prompt: earlier wishes to stop do not concern it, unless they are for good.
    pub(crate) fn renew(&self) {
        if self.is_closed() {
            return;
        }
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = Cancel::new();
    }
}
