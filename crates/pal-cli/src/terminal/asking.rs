//! Asking the person at the terminal before a call.

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use pal_agent::{Answer, Asked, Asking, Event};
use pal_tui::{Consent, Told};

/// Asks through the terminal; what is allowed for good is kept in the project's own file under our home.
pub(super) fn asking(told: Sender<Told>, kept: Option<PathBuf>) -> Asking {
    let turn = Mutex::new(());
    Arc::new(move |asked: &Asked| {
        // Agents that were sent ask the same person: one after the other.
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, answered) = channel();
        if told.send(Told::Ask(asked.clone(), answer)).is_err() {
            return Answer::No(None);
        }
        match answered.recv() {
            Ok(Consent::Once) => Answer::Once,
            Ok(Consent::Project) => {
                let notice = pal_settings::allow_and_tell(kept.as_deref(), &asked.rule);
                // Whoever showed the question is there.
                let _ = told.send(Told::Event(Event::Notice(notice)));
                Answer::Session
            }
            Ok(Consent::No(words)) => Answer::No(words),
            // Nobody is there any more.
            Err(_) => Answer::No(None),
        }
    })
}
