//! Report of a dream.

use std::time::Duration;

use pal_memory::{FileDiff, TruncatedFile};

use super::dream_task::{DreamState, DreamTurn};
use super::memory_editor::MemoryEditor;

/// Report of a dream.
#[derive(Clone, Debug)]
pub struct DreamReport {
    /// Final state.
    pub state: DreamState,
    /// Last turns.
    pub turns: Vec<DreamTurn>,
    /// Changes.
    pub differences: Vec<FileDiff>,
    /// Files that lost more than half of their content.
    pub cuts: Vec<TruncatedFile>,
    /// Calls outside of its access.
    pub refused: Vec<String>,
    /// Repairs made before it started.
    pub notes: Vec<String>,
    /// History point before it started, which undoes it.
    pub since: u64,
    /// Number of responses.
    pub requests: u64,
    /// Tokens used.
    pub tokens: u64,
    /// Price in US dollars, as far as known.
    pub cost: f64,
    /// Duration.
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

    /// Collects the changes.
    pub(super) fn look(&mut self, book: &MemoryEditor) -> Result<(), String> {
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

    /// Lines for the user.
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
