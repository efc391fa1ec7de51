//! Model of a replay: returns the recorded answer, or one derived from the request if none was recorded.

use std::sync::{Arc, Mutex, PoisonError};

use pal_sim::{ExtractiveModel, ModelOutput, ModelPrompt, SimulatedModel};

/// A model that returns queued answers. Clones share the queue.
#[derive(Clone, Default)]
pub(crate) struct RecordedAnswers {
    next: Arc<Mutex<Option<ModelOutput>>>,
}

impl RecordedAnswers {
    /// Answer to the next request.
    pub(crate) fn put_down(&self, answer: Option<ModelOutput>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

impl SimulatedModel for RecordedAnswers {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let put_down = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        put_down.unwrap_or_else(|| ExtractiveModel.answer(ask))
    }
}
