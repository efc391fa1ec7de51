//! The calls of one answer: which are next, which are under way, which are still to come.
//!
//! Calls are carried out in the order in which the model made them. Neighbours that only look go together; anything else
//! goes alone, because what it does may matter to whatever follows.

use std::collections::VecDeque;

use pal_model::ToolUseId;

use crate::Call;

/// The calls of an answer on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    waiting: VecDeque<Call>,
    /// Judged or carried out right now.
    open: Vec<Call>,
}

impl Calls {
    pub(crate) fn new(calls: Vec<Call>) -> Calls {
        Calls { waiting: calls.into(), open: Vec::new() }
    }

    /// The next calls that may go together, once nothing is under way.
    pub(crate) fn next_batch(&mut self) -> Vec<Call> {
        if !self.open.is_empty() {
            return Vec::new();
        }
        let alone = |call: &Call| !call.only_looks;
        let together = self.waiting.iter().take_while(|call| !alone(call)).count().max(1);
        let batch: Vec<Call> = self.waiting.drain(..together.min(self.waiting.len())).collect();
        self.open.extend(batch.iter().cloned());
        batch
    }

    /// The call that is under way under this id.
    pub(crate) fn open(&mut self, id: &ToolUseId) -> Option<&mut Call> {
        self.open.iter_mut().find(|call| call.id == *id)
    }

    /// A call has ended; whether it was under way.
    pub(crate) fn close(&mut self, id: &ToolUseId) -> bool {
        let before = self.open.len();
        self.open.retain(|call| call.id != *id);
        self.open.len() < before
    }

    pub(crate) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    /// Gives up what has not begun.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<Call> {
        self.waiting.drain(..).collect()
    }
}
