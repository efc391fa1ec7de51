//! A running dream, observed and stopped from other threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_process::CancelToken;
use serde::Serialize;

use crate::fork_runner::ForkTurn;

/// Number of turns kept.
const TURNS_MAX: usize = 30;

/// State of a dream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DreamState {
    /// It reads and has changed nothing yet.
    Starting,
    /// It has started to change memories.
    Updating,
    /// It ended successfully.
    Completed,
    /// It failed, with the reason.
    Failed(String),
    /// It was stopped.
    Killed,
}

impl DreamState {
    /// Returns whether it is running.
    pub fn is_running(&self) -> bool {
        matches!(self, DreamState::Starting | DreamState::Updating)
    }
}

/// One turn of a dream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DreamTurn {
    /// Text of the response.
    pub words: String,
    /// Its calls in short; failed ones say so.
    pub calls: Vec<String>,
}

/// Callback for each turn.
type DreamListener = Box<dyn FnMut(&DreamTurn) + Send>;

/// Handle of a dream.
#[derive(Clone)]
pub struct DreamTask {
    shared: Arc<Mutex<DreamTaskState>>,
    pub(super) cancel: CancelToken,
}

struct DreamTaskState {
    state: DreamState,
    begun: Instant,
    took: Option<Duration>,
    count: u64,
    turns: VecDeque<DreamTurn>,
    touched: Vec<String>,
    tell: Option<DreamListener>,
}

impl DreamTask {
    pub(super) fn new() -> DreamTask {
        let shared = DreamTaskState {
            state: DreamState::Starting,
            begun: Instant::now(),
            took: None,
            count: 0,
            turns: VecDeque::new(),
            touched: Vec::new(),
            tell: None,
        };
        DreamTask { shared: Arc::new(Mutex::new(shared)), cancel: CancelToken::new() }
    }

    /// Callback for each turn.
    pub fn on_turn(&self, tell: impl FnMut(&DreamTurn) + Send + 'static) {
        self.shared().tell = Some(Box::new(tell));
    }

    /// State.
    pub fn state(&self) -> DreamState {
        self.shared().state.clone()
    }

    /// Last turns.
    pub fn turns(&self) -> Vec<DreamTurn> {
        self.shared().turns.iter().cloned().collect()
    }

    /// Stops it; its changes are undone.
    pub fn kill(&self) {
        self.cancel.cancel();
    }

    /// Returns whether it was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Summary in one line.
    pub fn line(&self) -> String {
        let shared = self.shared();
        let state = match &shared.state {
            DreamState::Starting => String::from("starting"),
            DreamState::Updating => String::from("updating"),
            DreamState::Completed => String::from("completed"),
            DreamState::Failed(why) => format!("failed: {why}"),
            DreamState::Killed => String::from("killed"),
        };
        let seconds = shared.took.unwrap_or_else(|| shared.begun.elapsed()).as_secs();
        let files = match shared.touched.as_slice() {
            [] => String::from("no file touched"),
            files => files.join(", "),
        };
        format!("dream: {state}, {seconds} s, {} turns, {files}", shared.count)
    }

    /// Summary and last turns.
    pub fn page(&self) -> String {
        let mut page = self.line();
        for turn in self.turns() {
            let words = turn.words.lines().next().unwrap_or_default();
            page.push_str(&format!("\n  {}", if words.is_empty() { "…" } else { words }));
            turn.calls.iter().for_each(|call| page.push_str(&format!("\n    {call}")));
        }
        page
    }

    pub(super) fn told(&self, turn: ForkTurn, touched: Vec<String>) {
        let call = |(call, came_about): (String, bool)| match came_about {
            true => call,
            false => format!("{call} (not carried out)"),
        };
        let turn = DreamTurn { words: turn.text, calls: turn.calls.into_iter().map(call).collect() };
        let mut shared = self.shared();
        if !touched.is_empty() && shared.state == DreamState::Starting {
            shared.state = DreamState::Updating;
        }
        shared.touched = touched;
        shared.count += 1;
        if let Some(tell) = &mut shared.tell {
            tell(&turn);
        }
        shared.turns.push_back(turn);
        while shared.turns.len() > TURNS_MAX {
            shared.turns.pop_front();
        }
    }

    pub(super) fn ended(&self, state: DreamState) {
        let mut shared = self.shared();
        shared.took = Some(shared.begun.elapsed());
        shared.state = state;
    }

    fn shared(&self) -> MutexGuard<'_, DreamTaskState> {
        // The state is consistent even after a panic.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
