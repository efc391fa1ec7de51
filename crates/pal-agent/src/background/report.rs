//! What came of a dream, for whoever had it done.

use std::time::Duration;

use pal_memory::{Cut, Difference};

use super::task::{DreamState, DreamTurn};
use super::tools::Book;

/// What came of a dream.
#[derive(Clone, Debug)]
pub struct DreamReport {
    /// How it ended.
    pub state: DreamState,
    /// Its last turns.
    pub turns: Vec<DreamTurn>,
    /// What it changed.
    pub differences: Vec<Difference>,
    /// Files of which less than half is left.
    pub cuts: Vec<Cut>,
    /// Calls that were out of its reach.
    pub refused: Vec<String>,
    /// What was put right before it began.
    pub notes: Vec<String>,
    /// The point of the history before it began, which undoes it.
    pub since: u64,
    /// Requests that were answered, their tokens, and their price in US dollars as far as it is known.
    pub requests: u64,
    /// Tokens of them.
    pub tokens: u64,
    /// Their price.
    pub cost: f64,
    /// How long it took.
    pub took: Duration,
}

impl DreamReport {
    pub(super) fn new() -> DreamReport {
        DreamReport {
            state: DreamState::Starting,
            turns: Vec::new(),
            differences: Vec::new(),
            cuts: Vec::new(),
            refused: Vec::new(),
            notes: Vec::new(),
            since: 0,
            requests: 0,
            tokens: 0,
            cost: 0.0,
            took: Duration::ZERO,
        }
    }

    /// Notes what was changed.
    pub(super) fn look(&mut self, book: &Book) -> Result<(), String> {
        let since = self.since;
        self.differences =
            book.with(|memory| memory.diff(since, memory.point())).map_err(|error| error.to_string())?;
        Ok(())
    }

    pub(super) fn log(&self) {
        for refused in &self.refused {
            tracing::warn!(refused, "out of reach for a dream");
        }
        tracing::info!(
            state = ?self.state,
            requests = self.requests,
            tokens = self.tokens,
            cost = self.cost,
            files = self.differences.len(),
            cuts = self.cuts.len(),
            took_ms = self.took.as_millis() as u64,
            "dreamt"
        );
    }

    /// What the user is to know of it, a line each.
    pub fn told(&self) -> Vec<String> {
        let mut told = self.notes.clone();
        match &self.state {
            DreamState::Failed(why) => told.push(format!("memories were not put in order: {why}")),
            DreamState::Completed if !self.differences.is_empty() => {
                let files: Vec<&str> = self.differences.iter().map(|changed| changed.file.as_str()).collect();
                told.push(format!(
                    "memories were put in order: {}; `pal memory undo {}` takes it back",
                    files.join(", "),
                    self.since
                ));
            }
            _ => {}
        }
        told.extend(self.cuts.iter().map(|cut| {
            format!(
                "a dream left {} of {} lines of {}; as it was: {}",
                cut.left,
                cut.lines,
                cut.file,
                cut.kept.display()
            )
        }));
        told
    }
}
