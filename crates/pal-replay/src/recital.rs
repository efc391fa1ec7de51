//! The model of a replay: it says what it was handed.

use std::sync::{Arc, Mutex, PoisonError};

use pal_sim::{Answer, Ask, Model};

/// A model that says what was put down for it. Clones share what is put down.
#[derive(Clone, Default)]
pub(crate) struct Recital {
    next: Arc<Mutex<Option<Answer>>>,
}

impl Recital {
    /// What is said to the next request.
    pub(crate) fn put_down(&self, answer: Answer) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }
}

impl Model for Recital {
    fn answer(&mut self, _ask: &Ask<'_>) -> Answer {
        self.next.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}
