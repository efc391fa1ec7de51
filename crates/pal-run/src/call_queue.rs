//! Queue of the tool calls of one answer.
//!
//! Calls run in the order in which the model made them. Adjacent read-only calls run in parallel; any other
//! call runs alone, because later calls may depend on it.

use std::collections::VecDeque;

use pal_model::ToolUseId;

use crate::ToolCall;

/// Waiting and running calls of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallQueue {
    waiting: VecDeque<ToolCall>,
    /// Calls being authorised or executed.
    open: Vec<ToolCall>,
}

impl CallQueue {
    pub(crate) fn new(calls: Vec<ToolCall>) -> CallQueue {
        CallQueue { waiting: calls.into(), open: Vec::new() }
    }

    /// Takes the next calls that may run in parallel, once no call is open.
    pub(crate) fn next_batch(&mut self) -> Vec<ToolCall> {
        if !self.open.is_empty() {
            return Vec::new();
        }
        let alone = |call: &ToolCall| !call.is_read_only;
        let together = self.waiting.iter().take_while(|call| !alone(call)).count().max(1);
        let batch: Vec<ToolCall> = self.waiting.drain(..together.min(self.waiting.len())).collect();
        self.open.extend(batch.iter().cloned());
        batch
    }

    /// Finds an open call by id.
    pub(crate) fn open(&mut self, id: &ToolUseId) -> Option<&mut ToolCall> {
        self.open.iter_mut().find(|call| call.id == *id)
    }

    /// Ends a call; returns whether it was open.
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

    /// Removes all calls that have not started.
    pub(crate) fn give_up_waiting(&mut self) -> Vec<ToolCall> {
        self.waiting.drain(..).collect()
    }
}
