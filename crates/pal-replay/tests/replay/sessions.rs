//! Recorded sessions, read.

use std::path::Path;

use pal_import::{Measure, Options};
use pal_model::{Cards, Entry, Text};
use pal_replay::{Options as Replay, Policy, Recorded};
use pal_view::Estimator;

/// Estimates by the card of the model, as the program does when it imports.
struct ByCard(Cards);

impl Measure for ByCard {
    fn text(&self, model: &str, text: &str) -> f64 {
        Estimator::shipped(self.0.find(model).card.generation).text(text)
    }

    fn json(&self, model: &str, json: &str) -> f64 {
        Estimator::shipped(self.0.find(model).card.generation).json(json)
    }
}

/// A replay under the classic policy, at a window of its own or that of the recording's models.
pub(crate) fn classic(window: Option<u64>) -> Replay {
    let layers = pal_context::Policy::classic();
    Replay { window, policy: Policy::Classic, layers, auto_compact: true, ..Replay::plain() }
}

/// A replay under the policy that goes by price.
pub(crate) fn thrifty(window: Option<u64>) -> Replay {
    let layers = pal_context::Policy::thrifty(pal_context::thrifty::Thrift::STANDARD);
    Replay { policy: Policy::Thrifty, layers, ..classic(window) }
}

/// A recorded session.
pub(crate) fn recorded(file: &Path) -> Recorded {
    let source = std::fs::read(file).unwrap();
    let measure = ByCard(Cards::shipped());
    let imported = pal_import::import(&source, &Options { measure: &measure, strict: false }).unwrap();
    let log = Text::from(imported.log);
    let entries = log.lines().map(|line| Entry::parse(log.slice_of(line)).unwrap()).collect();
    Recorded::new(file.file_name().unwrap().to_string_lossy(), entries)
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
