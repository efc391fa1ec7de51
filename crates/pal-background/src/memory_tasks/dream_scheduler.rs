//! Dreams that a session starts when it comes to rest, one at a time.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pal_model::Timestamp;

use super::dream::{Dream, UsageSink};
use super::dream_gates::DreamGates;
use super::dream_report::DreamReport;
use super::dream_task::DreamTask;
use crate::background_config::{BackgroundConfig, DreamGateSettings};
use crate::timed_exchange::ExchangeListener;

/// Maximum wait for a stopped dream to undo its changes.
const PATIENCE: Duration = Duration::from_secs(2);

/// Scheduler of background dreams: at most one at a time.
pub struct DreamScheduler {
    dream: Dream,
    gates: DreamGates,
    books: UsageSink,
    running: Option<JoinHandle<DreamReport>>,
    /// The last dream.
    task: Arc<Mutex<Option<DreamTask>>>,
    has_told_of_holder: bool,
}

impl DreamScheduler {
    /// Creates the scheduler of a session.
    pub fn new(
        config: &BackgroundConfig,
        settings: DreamGateSettings,
        session: &str,
        listener: Arc<dyn ExchangeListener>,
    ) -> DreamScheduler {
        let dream = Dream::new(config);
        let project = pal_project::find_project(&config.search.directory);
        let gates = DreamGates::of_project(&config.home, &project, settings, Some(session.to_owned()));
        let books = (listener, session.to_owned());
        DreamScheduler { dream, gates, books, running: None, task: Arc::default(), has_told_of_holder: false }
    }

    /// The last dream.
    pub fn task(&self) -> Arc<Mutex<Option<DreamTask>>> {
        Arc::clone(&self.task)
    }

    /// Reports an ended dream and starts one that is due.
    pub fn rested(&mut self, now: Timestamp) -> Vec<String> {
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

    /// Stops the running dream; its changes are undone now or by the next run.
    pub fn end(&mut self) {
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
