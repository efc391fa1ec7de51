//! What reaches a working agent from other threads.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use pal_model::{Content, ToolUseId};
use pal_permissions::Mode;
use pal_process::Cancel;
use pal_session::{Input, Returned};

use crate::event::Exchanged;

/// Steers and interrupts an agent from any thread.
#[derive(Clone, Debug)]
pub struct Handle {
    signals: Sender<Signal>,
    cancel: Arc<Mutex<Cancel>>,
}

/// Something that happened outside of the agent's thread.
#[derive(Debug)]
pub(crate) enum Signal {
    /// A person says or wants something.
    Person(Input),
    /// The user wants another permission mode.
    Mode(Mode),
    /// A running call printed something.
    Printed(ToolUseId, String),
    /// A call returned, and these files were touched by it.
    Returned(Box<Returned>, Vec<std::path::PathBuf>),
    /// An agent that was sent has asked the provider something.
    Exchanged(Box<Exchanged>),
}

impl Handle {
    pub(crate) fn new(signals: Sender<Signal>) -> Handle {
        Handle { signals, cancel: Arc::new(Mutex::new(Cancel::new())) }
    }

    /// Says something to an agent that works; it hears it with the next results. Said to one that rests, it is the next
    /// thing that it works on.
    pub fn steer(&self, content: Content) {
        // An agent that is gone hears nothing.
        let _ = self.signals.send(Signal::Person(Input::Prompt(content)));
    }

    /// Stops the agent: the answer that is coming, the tools that run. What arrived is kept.
    pub fn interrupt(&self) {
        let _ = self.signals.send(Signal::Person(Input::Interrupt));
        self.cancel().cancel();
    }

    /// Chooses another permission mode, which holds from the next call that is judged. The fence around commands stays as it
    /// is: what goes into [`Mode::Bypass`] or out of it wants a session that is opened anew.
    pub fn set_mode(&self, mode: Mode) {
        let _ = self.signals.send(Signal::Mode(mode));
    }

    pub(crate) fn send(&self, signal: Signal) {
        let _ = self.signals.send(signal);
    }

    /// What whoever is at work now watches.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A new prompt: earlier wishes to stop do not concern it.
    pub(crate) fn renew(&self) {
        *self.cancel.lock().unwrap_or_else(PoisonError::into_inner) = Cancel::new();
    }
}
