//! The model of a replay: it says what it was handed, and where that is nothing, what it finds in the request.

use std::sync::{Arc, Mutex, PoisonError};

use pal_sim::{Answer, Ask, Extractive, Model};

/// A model that says what was put down for it. Clones share what is put down.
#[derive(Clone, Default)]
pub(crate) struct Recital {
    next: Arc<Mutex<Option<Answer>>>,
}

impl Recital {
    /// What is said to the next request.
    pub(crate) fn put_down(&self, answer: Option<Answer>) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = answer;
    }
}

impl Model for Recital {
    fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let put_down = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        put_down.unwrap_or_else(|| Extractive.answer(ask))
    }
}
