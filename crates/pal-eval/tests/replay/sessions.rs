//! Recorded sessions, read.

use std::path::Path;

use pal_eval::replay::{RecordedSession, ReplayOptions as Replay, ReplayPolicy};
use pal_import::{ImportOptions, TokenEstimator};
use pal_model::{LogEntry, ModelCatalog, SharedText};
use pal_view::Estimator;

/// Estimates by the card of the model, as the program does when it imports.
struct ByCard(ModelCatalog);

impl TokenEstimator for ByCard {
    fn text(&self, model: &str, text: &str) -> f64 {
        Estimator::shipped(self.0.find(model).card.generation).text(text)
    }

    fn json(&self, model: &str, json: &str) -> f64 {
        Estimator::shipped(self.0.find(model).card.generation).json(json)
    }
}

/// A replay under the threshold policy, at a window of its own or that of the recording's models.
pub(crate) fn threshold(window: Option<u64>) -> Replay {
    let layers = pal_context::ContextPolicy::threshold();
    Replay { window, policy: ReplayPolicy::Threshold, layers, auto_compact: true, ..Replay::plain() }
}

/// A replay under the policy that goes by price.
pub(crate) fn cost_aware(window: Option<u64>) -> Replay {
    let layers = pal_context::ContextPolicy::cost_aware(pal_context::cost_aware::CostAwareSettings::STANDARD);
    Replay { policy: ReplayPolicy::CostAware, layers, ..threshold(window) }
}

/// A recorded session.
pub(crate) fn recorded(file: &Path) -> RecordedSession {
    let source = std::fs::read(file).unwrap();
    let name = file.file_name().unwrap().to_string_lossy();
    if let Some(entries) = pal_testkit::own_entries(&source) {
        return RecordedSession::new(name, entries);
    }
    let measure = ByCard(ModelCatalog::built_in());
    let imported = pal_import::import(&source, &ImportOptions { measure: &measure, strict: false }).unwrap();
    let log = SharedText::from(imported.log);
    let entries = log.lines().map(|line| LogEntry::parse(log.slice_of(line)).unwrap()).collect();
    RecordedSession::new(name, entries)
}

/// Does something with every file, on all cores; the results are in the order of the files.
pub(crate) fn on_all_cores<F: Sync, T: Send>(files: &[F], work: impl Fn(&F) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(file) = files.get(at) else { return done };
                done.push((at, work(file)));
            }
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, done)| done).collect()
}
