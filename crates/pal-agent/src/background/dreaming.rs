//! Dreams that a session begins by itself when it has come to rest, one at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pal_model::Timestamp;

use super::dream::{Books, Dream};
use super::gates::{GateSettings, Gates};
use super::report::DreamReport;
use super::task::DreamTask;
use crate::handle::Handle;
use crate::options::Options;

/// How long whoever leaves waits for what was stopped to be taken back.
const PATIENCE: Duration = Duration::from_secs(2);

/// Dreams of a session: at most one at a time, in the background.
pub(crate) struct Dreaming {
    dream: Dream,
    gates: Gates,
    books: Books,
    running: Option<JoinHandle<DreamReport>>,
    /// The last one, for whoever looks.
    task: Arc<Mutex<Option<DreamTask>>>,
    has_told_of_holder: bool,
}

impl Dreaming {
    pub(crate) fn new(options: &Options, settings: GateSettings, session: &str, books: Handle) -> Dreaming {
        let dream = Dream::of(options);
        let project = pal_sources::project_of(&options.sources.search.directory);
        let gates = Gates::of_project(&options.home, &project, settings, Some(session.to_owned()));
        let books = (books, session.to_owned());
        Dreaming { dream, gates, books, running: None, task: Arc::default(), has_told_of_holder: false }
    }

    /// The last dream, for whoever looks.
    pub(crate) fn task(&self) -> Arc<Mutex<Option<DreamTask>>> {
        Arc::clone(&self.task)
    }

    /// The conversation has come to rest: what has ended is told, and what is due begins.
    pub(crate) fn rested(&mut self, now: Timestamp) -> Vec<String> {
        let mut told = Vec::new();
        if self.running.as_ref().is_some_and(JoinHandle::is_finished)
            && let Some(Ok(report)) = self.running.take().map(JoinHandle::join)
        {
            told = report.told();
        }
        if self.running.is_some() || !self.gates.memory.is_dir() {
            return told;
        }
        match self.gates.closed(now) {
            None => self.begin(),
            Some(gate) if gate.why.contains("which is long") && !self.has_told_of_holder => {
                self.has_told_of_holder = true;
                told.push(gate.why);
            }
            Some(_) => {}
        }
        told
    }

    fn begin(&mut self) {
        let (dream, task, books) = (self.dream.clone(), self.dream.task(), self.books.clone());
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
        let work = move || dream.run_for(&task, books);
        match std::thread::Builder::new().name("pal-dream".into()).spawn(work) {
            Ok(running) => self.running = Some(running),
            Err(error) => tracing::warn!(%error, "memories are not put in order"),
        }
    }

    /// Stops what is under way. What it changed is taken back, now or by whoever comes next.
    pub(crate) fn end(&mut self) {
        let Some(running) = self.running.take() else { return };
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.kill();
        }
        let until = Instant::now() + PATIENCE;
        while !running.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
