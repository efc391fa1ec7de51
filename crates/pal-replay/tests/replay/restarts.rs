//! **What is sent does not depend on restarts.** Every request of every recorded session is the same, byte for byte,
//! whether the session runs through, runs a second time, or is closed and opened again between its turns.

use std::hash::{DefaultHasher, Hash, Hasher};

use pal_model::Usage;
use pal_replay::{Options, Recorded, Restart, replay_watched};
use pal_testkit::session_files;

use crate::sessions::{on_all_cores, recorded};

/// Sessions that are closed after every turn; the others after one turn in twenty, unless `PAL_REPLAY_ALL` is set.
const CLOSED_EVERY_TURN: usize = 3;

/// All requests: a hash of the body, its length, and what came back. The bodies of a session are too many to keep.
fn requests(recorded: &Recorded, restart: Restart) -> Vec<(u64, usize, Option<Usage>)> {
    let mut requests = Vec::new();
    let options = Options { restart, ..Options::plain() };
    let report = replay_watched(recorded, &options, &mut |step| {
        let mut hasher = DefaultHasher::new();
        step.body.hash(&mut hasher);
        requests.push((hasher.finish(), step.body.len(), step.simulated.cloned()));
    })
    .unwrap();
    assert_eq!(report.requests as usize, requests.len());
    requests
}

/// The first request that differs, if one does.
fn first_difference<T: PartialEq>(one: &[T], other: &[T]) -> Option<String> {
    if one.len() != other.len() {
        return Some(format!("{} requests and {}", one.len(), other.len()));
    }
    let at = one.iter().zip(other).position(|(one, other)| one != other)?;
    Some(format!("request {} differs", at + 1))
}

#[test]
fn every_request_is_the_same_bytes_whether_or_not_the_session_was_restarted() {
    let wants_all = std::env::var_os("PAL_REPLAY_ALL").is_some();
    let files: Vec<_> = session_files().into_iter().enumerate().collect();
    let differences = on_all_cores(&files, |(at, file)| {
        let recorded = recorded(file);
        let restart =
            if wants_all || *at < CLOSED_EVERY_TURN { Restart::EveryTurn } else { Restart::OneIn(20) };
        let through = requests(&recorded, Restart::Never);
        let again = (wants_all || *at < CLOSED_EVERY_TURN).then(|| requests(&recorded, Restart::Never));
        let twice = again.and_then(|again| first_difference(&through, &again));
        let restarted = first_difference(&through, &requests(&recorded, restart));
        let found = twice.map(|what| format!("run twice: {what}"));
        (through.len(), found.or(restarted).map(|what| format!("{}: {what}", recorded.name())))
    });
    let requests: usize = differences.iter().map(|(requests, _)| requests).sum();
    println!("{} sessions, {requests} requests", differences.len());
    let differences: Vec<_> = differences.into_iter().filter_map(|(_, found)| found).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}
