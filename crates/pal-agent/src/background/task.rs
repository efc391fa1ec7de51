//! A dream as others see it while it goes on: a task in the background.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pal_process::Cancel;
use serde::Serialize;

use crate::aside::Turn;

/// So many of its last turns are kept.
const TURNS_MOST: usize = 30;

/// How a dream stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DreamState {
    /// It looks around.
    Starting,
    /// It has begun to change memories.
    Updating,
    /// It is done.
    Completed,
    /// It came to nothing, and why.
    Failed(String),
    /// Somebody stopped it.
    Killed,
}

impl DreamState {
    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        matches!(self, DreamState::Starting | DreamState::Updating)
    }
}

/// One turn of a dream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DreamTurn {
    /// What it said.
    pub words: String,
    /// What it did, in a few words each; what was refused or failed says so.
    pub calls: Vec<String>,
}

/// Who is told of each turn.
type Telling = Box<dyn FnMut(&DreamTurn) + Send>;

/// A dream: looked at and stopped from any thread.
#[derive(Clone)]
pub struct DreamTask {
    shared: Arc<Mutex<Shared>>,
    pub(super) cancel: Cancel,
}

struct Shared {
    state: DreamState,
    begun: Instant,
    took: Option<Duration>,
    count: u64,
    turns: VecDeque<DreamTurn>,
    touched: Vec<String>,
    tell: Option<Telling>,
}

impl DreamTask {
    pub(super) fn new() -> DreamTask {
        let shared = Shared {
            state: DreamState::Starting,
            begun: Instant::now(),
            took: None,
            count: 0,
            turns: VecDeque::new(),
            touched: Vec::new(),
            tell: None,
        };
        DreamTask { shared: Arc::new(Mutex::new(shared)), cancel: Cancel::new() }
    }

    /// Who is told of each turn.
    pub fn on_turn(&self, tell: impl FnMut(&DreamTurn) + Send + 'static) {
        self.shared().tell = Some(Box::new(tell));
    }

    /// How it stands.
    pub fn state(&self) -> DreamState {
        self.shared().state.clone()
    }

    /// Its last turns.
    pub fn turns(&self) -> Vec<DreamTurn> {
        self.shared().turns.iter().cloned().collect()
    }

    /// Stops it. What it changed is taken back.
    pub fn kill(&self) {
        self.cancel.cancel();
    }

    /// Whether somebody wants it to stop.
    pub fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// All of it in one line.
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

    /// The line, and its last turns.
    pub fn page(&self) -> String {
        let mut page = self.line();
        for turn in self.turns() {
            let words = turn.words.lines().next().unwrap_or_default();
            page.push_str(&format!("\n  {}", if words.is_empty() { "…" } else { words }));
            turn.calls.iter().for_each(|call| page.push_str(&format!("\n    {call}")));
        }
        page
    }

    pub(super) fn told(&self, turn: Turn, touched: Vec<String>) {
        let call = |(call, came_about): (String, bool)| match came_about {
            true => call,
            false => format!("{call} (not carried out)"),
        };
        let turn = DreamTurn { words: turn.words, calls: turn.calls.into_iter().map(call).collect() };
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
        while shared.turns.len() > TURNS_MOST {
            shared.turns.pop_front();
        }
    }

    pub(super) fn ended(&self, state: DreamState) {
        let mut shared = self.shared();
        shared.took = Some(shared.begun.elapsed());
        shared.state = state;
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        // What is in it is set at once or not at all.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
