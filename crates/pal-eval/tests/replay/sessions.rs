//! Reads the recorded sessions.

use std::path::Path;

use pal_eval::replay::{RecordedSession, ReplayOptions as Replay, ReplayPolicy};
use pal_model::ModelCatalog;
use pal_view::CardEstimator;

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
    let name = file.file_name().unwrap().to_string_lossy();
    RecordedSession::new(
        name,
        pal_testkit::read_entries(file, &CardEstimator { cards: &ModelCatalog::built_in() }).unwrap(),
    )
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
