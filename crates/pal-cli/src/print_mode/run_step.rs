//! Steps of a run, and how far it has come.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pal_model::Content;

/// The next thing to do in a run.
pub(super) enum RunStep {
    /// Work on a prompt; numbers count from 1.
    Prompt { number: u64, content: Content },
    /// Report an unreadable input line.
    BadLine { number: u64, why: String },
    /// Continue with another model; none for that of the settings.
    SetModel(Option<String>),
    /// End the run.
    End,
}

/// Progress of a run through its prompts, shared with the threads that read input and signals.
#[derive(Default)]
pub(super) struct PromptProgress {
    is_working: AtomicBool,
    /// Last prompt that was read before an interrupt: it and all before it are given up.
    given_up: AtomicU64,
}

impl PromptProgress {
    pub(super) fn set_working(&self, is_working: bool) {
        self.is_working.store(is_working, Ordering::SeqCst);
    }

    pub(super) fn is_working(&self) -> bool {
        self.is_working.load(Ordering::SeqCst)
    }

    /// Gives up all prompts up to this one.
    pub(super) fn give_up(&self, number: u64) {
        self.given_up.store(number, Ordering::SeqCst);
    }

    pub(super) fn is_given_up(&self, number: u64) -> bool {
        number <= self.given_up.load(Ordering::SeqCst)
    }

    /// Gives up all prompts, those to come included.
    pub(super) fn give_up_all(&self) {
        self.give_up(u64::MAX);
    }
}
