//! Everything that reaches a working agent from other threads.

use std::sync::mpsc::{Receiver, channel};

use pal_run::RunInput;

use crate::agent_handle::{AgentHandle, AgentSignal};

/// Signals that wait to be handled, and the handle that sends them.
pub(crate) struct AgentInbox {
    pub(crate) handle: AgentHandle,
    pub(crate) signals: Receiver<AgentSignal>,
    /// Results of calls that ended at once.
    pub(crate) ready: Vec<RunInput>,
}

impl AgentInbox {
    pub(crate) fn new() -> AgentInbox {
        let (sender, signals) = channel();
        AgentInbox { handle: AgentHandle::new(sender), signals, ready: Vec::new() }
    }

    /// Prepares for a new prompt: drops interrupts that came too late for the last one.
    pub(crate) fn begin_prompt(&mut self) {
        let waiting: Vec<AgentSignal> = self.signals.try_iter().collect();
        for signal in waiting {
            match signal {
                AgentSignal::Said(RunInput::Interrupt) if !self.handle.is_closed() => {}
                other => self.handle.send(other),
            }
        }
        self.handle.renew();
    }
}
