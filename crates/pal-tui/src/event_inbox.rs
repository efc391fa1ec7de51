//! Queues of terminal input and events behind one condition variable.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crossterm::event::Event as Input;

use crate::ui_events::{UiChannels, UiEvent};

#[derive(Default)]
struct EventQueues {
    inputs: VecDeque<Input>,
    events: VecDeque<UiEvent>,
    reader: ReaderState,
    /// A frame is to be drawn although nothing happened.
    is_redraw_due: bool,
}

/// State of the thread that reads terminal input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ReaderState {
    #[default]
    Reading,
    /// It stops reading with the next input.
    Stopping,
    /// Another program may read the terminal.
    Parked,
}

/// Maximum time for the reader to stop.
const PARKING_TIME: Duration = Duration::from_secs(1);

/// Inbox of terminal input and events.
#[derive(Clone, Default)]
pub(crate) struct EventInbox {
    shared: Arc<(Mutex<EventQueues>, Condvar)>,
}

impl EventInbox {
    /// Reads terminal input and events, each on its own thread, until they end.
    pub(crate) fn listen(events: std::sync::mpsc::Receiver<UiEvent>) -> EventInbox {
        let inbox = EventInbox::default();
        let terminal = inbox.clone();
        std::thread::spawn(move || {
            while let Ok(input) = crossterm::event::read() {
                terminal.put(|queues| queues.inputs.push_back(input));
                terminal.park_if_asked();
            }
            // The terminal was closed.
            terminal.put(|queues| queues.events.push_back(UiEvent::Closed(None)));
        });
        let sender = inbox.clone();
        std::thread::spawn(move || {
            for event in events {
                sender.put(|queues| queues.events.push_back(event));
            }
            sender.put(|queues| queues.events.push_back(UiEvent::Closed(None)));
        });
        inbox
    }

    /// Asks for a new frame.
    pub(crate) fn redraw(&self) {
        self.put(|queues| queues.is_redraw_due = true);
    }

    /// Returns `true` if a new frame was asked for.
    pub(crate) fn take_redraw(&self) -> bool {
        let mut queues = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut queues.is_redraw_due)
    }

    /// Stops reading terminal input until [`EventInbox::resume_reading`]; `wake` makes the reader return once.
    pub(crate) fn stop_reading(&self, wake: fn()) {
        self.put(|queues| queues.reader = ReaderState::Stopping);
        wake();
        let (queues, bell) = &*self.shared;
        let guard = queues.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stopping = |queues: &mut EventQueues| queues.reader == ReaderState::Stopping;
        drop(bell.wait_timeout_while(guard, PARKING_TIME, is_stopping));
    }

    /// Reads terminal input again.
    pub(crate) fn resume_reading(&self) {
        let (queues, bell) = &*self.shared;
        queues.lock().unwrap_or_else(PoisonError::into_inner).reader = ReaderState::Reading;
        bell.notify_all();
    }

    /// Waits on the reader's thread while another program reads the terminal.
    fn park_if_asked(&self) {
        let (queues, bell) = &*self.shared;
        let mut guard = queues.lock().unwrap_or_else(PoisonError::into_inner);
        if guard.reader == ReaderState::Stopping {
            guard.reader = ReaderState::Parked;
            bell.notify_all();
            drop(bell.wait_while(guard, |queues| queues.reader == ReaderState::Parked));
        }
    }

    fn put(&self, put: impl FnOnce(&mut EventQueues)) {
        let (queues, bell) = &*self.shared;
        put(&mut queues.lock().unwrap_or_else(PoisonError::into_inner));
        bell.notify_all();
    }

    /// Waits until the inbox is not empty, or for at most `at_most`.
    pub(crate) fn wait(&self, at_most: Option<Duration>) {
        let (queues, bell) = &*self.shared;
        let guard = queues.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |queues: &mut EventQueues| {
            queues.inputs.is_empty() && queues.events.is_empty() && !queues.is_redraw_due
        };
        match at_most {
            Some(time) => drop(bell.wait_timeout_while(guard, time, is_empty)),
            None => drop(bell.wait_while(guard, is_empty)),
        }
    }

    /// Takes the next terminal input.
    pub(crate) fn next_input(&self) -> Option<Input> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).inputs.pop_front()
    }

    /// Takes the next event.
    pub(crate) fn next_event(&self) -> Option<UiEvent> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).events.pop_front()
    }
}

/// Splits the channels into an inbox and the sender of actions.
pub(crate) fn connect(
    channels: UiChannels,
) -> (EventInbox, std::sync::mpsc::Sender<crate::ui_events::UserAction>) {
    (EventInbox::listen(channels.events), channels.actions)
}
