//! **Requests are a pure function of the conversation.** Every request of every recorded session, summary requests included, has the
//! same bytes whether the session runs through, runs a second time, or is killed and resumed from its log before any of its requests.
//!
//! Three things depend on this. The prompt cache: one byte of difference early in a request, and everything after it is paid for again.
//! Undo and resume: a killed session continues exactly like one that was not, because the log has every decision and the view invents
//! none. And every other test here: a replay that differed from run to run would measure chance.
//!
//! So clocks, random numbers, the order of hash maps, state that exists in memory only, and anything that a resumed session reads
//! differently from a live one show up here, as the number of the first request that differs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use pal_eval::replay::{RecordedSession, ReplayOptions, RestartPoint, replay_watched};
use pal_model::Usage;
use pal_testkit::{map_on_all_cores, session_files, session_sample};

use crate::sessions::{cost_aware, recorded, threshold};

/// Sessions that are killed before every request: at the small window each is compacted many times. The others are
/// killed before one request in twenty, unless `PAL_REPLAY_ALL` is set.
const KILLED_BEFORE_EVERY_REQUEST: [&str; 5] = [
    "019f1f6f-311c-7543-b0f9-f126da3c5434.jsonl",
    "Verified__sphinx-doc__sphinx-8120.traj.json",
    "fdd24234-3c2a-4958-91ed-59c63b12ba1e.jsonl",
    "compacted.jsonl",
    "resumed.jsonl",
];

/// One request: a hash of its body, its length, and what came back. The bodies of a session are too many to keep.
type Sent = (u64, usize, Option<Usage>);

/// All requests of a session, and how many compactions it had.
fn requests(
    recorded: &RecordedSession,
    options: &ReplayOptions,
    restart: RestartPoint,
) -> (Vec<Sent>, usize) {
    let mut requests = Vec::new();
    let options = ReplayOptions { restart, ..options.clone() };
    let report = replay_watched(recorded, &options, &mut |step| {
        let mut hasher = DefaultHasher::new();
        step.body.hash(&mut hasher);
        requests.push((hasher.finish(), step.body.len(), step.simulated.cloned()));
    })
    .unwrap();
    assert_eq!(report.requests as usize, requests.len());
    (requests, report.compactions.len())
}

/// The first request that differs, if one does.
fn first_difference(one: &[Sent], other: &[Sent]) -> Option<String> {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    match at {
        Some(at) => Some(format!("request {} differs", at + 1)),
        None if one.len() != other.len() => Some(format!("{} requests and {}", one.len(), other.len())),
        None => None,
    }
}

/// Results of one session: requests, compactions, and differences.
struct Compared {
    requests: usize,
    compactions: usize,
    differences: Vec<String>,
}

fn compare(file: &Path, options: &ReplayOptions, wants_all: bool) -> Compared {
    let recorded = recorded(file);
    let is_chosen = is_chosen(file);
    let restart = if wants_all || is_chosen { RestartPoint::EveryTurn } else { RestartPoint::OneIn(20) };
    let (through, compactions) = requests(&recorded, options, RestartPoint::Never);
    let mut differences = Vec::new();
    let mut compare = |what: &str, restart: RestartPoint| {
        let (again, _) = requests(&recorded, options, restart);
        if let Some(difference) = first_difference(&through, &again) {
            differences.push(format!("{}, {what}: {difference}", recorded.name()));
        }
    };
    if wants_all || is_chosen {
        compare("run twice", RestartPoint::Never);
    }
    compare("killed and resumed", restart);
    Compared { requests: through.len(), compactions, differences }
}

fn is_chosen(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    KILLED_BEFORE_EVERY_REQUEST.contains(&&*name)
}

/// Every session under the same options: how often they were compacted, those that are killed most at least.
fn check(label: &str, options: &ReplayOptions, compactions_least: usize) {
    let wants_all = std::env::var_os("PAL_REPLAY_ALL").is_some();
    let mut files = session_sample(&format!("determinism {label}"));
    let chosen = session_files().into_iter().filter(|file| is_chosen(file));
    files.extend(chosen);
    files.sort();
    files.dedup();
    let compared = map_on_all_cores(&files, |file| compare(file, options, wants_all));
    let requests: usize = compared.iter().map(|one| one.requests).sum();
    let compactions: usize = compared.iter().map(|one| one.compactions).sum();
    println!("{label}: {} sessions, {requests} requests, {compactions} compactions", compared.len());
    let chosen = files.iter().zip(&compared).filter(|(file, _)| is_chosen(file));
    let chosen: Vec<usize> = chosen.map(|(_, compared)| compared.compactions).collect();
    // The repository's own sessions are compacted less.
    let is_long = pal_testkit::data_dir().is_some();
    assert_eq!(chosen.len(), if is_long { 3 } else { 2 }, "a session is gone");
    assert!(
        !is_long || chosen.iter().all(|count| *count >= compactions_least),
        "{chosen:?} compactions test too little"
    );
    let differences: Vec<_> = compared.into_iter().flat_map(|one| one.differences).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn recorded_sessions_send_the_same_bytes_after_a_kill_without_a_policy() {
    check("none", &ReplayOptions::plain(), 0);
}

#[test]
fn recorded_sessions_send_the_same_bytes_after_a_kill_at_30_000_tokens() {
    check("threshold at 30 000", &threshold(Some(30_000)), 3);
}

#[test]
fn recorded_sessions_send_the_same_bytes_after_a_kill_at_200_000_tokens() {
    check("threshold at 200 000", &threshold(Some(200_000)), 0);
}

#[test]
fn recorded_sessions_send_the_same_bytes_after_a_kill_by_cost() {
    check("cost-aware at 200 000", &cost_aware(Some(200_000)), 1);
}
