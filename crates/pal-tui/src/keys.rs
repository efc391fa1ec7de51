//! What comes in: keys first, whatever else there is. Two queues and one bell.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crossterm::event::Event as Input;

use crate::told::{Origin, Told};

/// What waits to be dealt with.
#[derive(Default)]
struct Queues {
    inputs: VecDeque<Input>,
    told: VecDeque<Told>,
}

/// Where keys and news wait.
#[derive(Clone, Default)]
pub(crate) struct Inbox {
    shared: Arc<(Mutex<Queues>, Condvar)>,
}

impl Inbox {
    /// Reads the terminal and what happens, each on a thread of its own, as long as there is something.
    pub(crate) fn listen(told: std::sync::mpsc::Receiver<Told>) -> Inbox {
        let inbox = Inbox::default();
        let terminal = inbox.clone();
        std::thread::spawn(move || {
            while let Ok(input) = crossterm::event::read() {
                terminal.put(|queues| queues.inputs.push_back(input));
            }
            // Whoever hung up wants no more of it.
            terminal.put(|queues| queues.told.push_back(Told::Left(None)));
        });
        let news = inbox.clone();
        std::thread::spawn(move || {
            for told in told {
                news.put(|queues| queues.told.push_back(told));
            }
            news.put(|queues| queues.told.push_back(Told::Left(None)));
        });
        inbox
    }

    fn put(&self, put: impl FnOnce(&mut Queues)) {
        let (queues, bell) = &*self.shared;
        put(&mut queues.lock().unwrap_or_else(PoisonError::into_inner));
        bell.notify_one();
    }

    /// Waits until something is there, or for so long.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        let (queues, bell) = &*self.shared;
        let guard = queues.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |queues: &mut Queues| queues.inputs.is_empty() && queues.told.is_empty();
        match at_most {
            Some(time) => drop(bell.wait_timeout_while(guard, time, is_empty)),
            None => drop(bell.wait_while(guard, is_empty)),
        }
    }

    /// The next thing that was typed.
    pub(crate) fn input(&self) -> Option<Input> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).inputs.pop_front()
    }

    /// The next piece of news.
    pub(crate) fn told(&self) -> Option<Told> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).told.pop_front()
    }
}

/// Takes an origin apart.
pub(crate) fn parts(origin: Origin) -> (Inbox, std::sync::mpsc::Sender<crate::told::Wish>) {
    (Inbox::listen(origin.told), origin.wishes)
}
