//! Test data: recorded sessions, and the number of cases of property tests.
//!
//! `testdata/sessions` holds sessions that `pal` recorded against the simulator, so the tests run anywhere. With `PAL_TEST_DATA`
//! set to a folder with sessions of other agents, the same tests run on those instead, and tests that are ignored without it can
//! run (`.ci/recorded`).

use std::path::{Path, PathBuf};

use pal_import::{ImportOptions, import};
use pal_model::{LogEntry, SharedText, TokenEstimator};

/// Environment variable that names a folder of recorded data outside the repository.
const DATA_VARIABLE: &str = "PAL_TEST_DATA";

/// Environment variable that makes every test take all recorded sessions.
const ALL_VARIABLE: &str = "PAL_ALL_SESSIONS";

/// One in this many sessions of other agents is in the sample of a test.
const SAMPLE_STEP: usize = 6;

/// Folder of recorded data outside the repository, if `PAL_TEST_DATA` names one.
///
/// # Panics
///
/// If the variable names something that is not a folder: tests that asked for data must not pass without it.
pub fn data_dir() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(DATA_VARIABLE)?);
    // Tests run in the folder of their crate; a relative path is meant from the root.
    let folder = if folder.is_absolute() { folder } else { root().join(folder) };
    assert!(
        folder.join("sessions").is_dir(),
        "{DATA_VARIABLE} is {}, which has no folder `sessions`",
        folder.display()
    );
    folder.canonicalize().ok()
}

/// Recorded sessions in the order of their names: those of `PAL_TEST_DATA`, or else the repository's own.
///
/// # Panics
///
/// If there is none.
pub fn session_files() -> Vec<PathBuf> {
    let folder = data_dir().unwrap_or_else(|| root().join("testdata")).join("sessions");
    let mut found = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no session in {}", folder.display());
    found
}

/// True if tests take all sessions of other agents: `PAL_TEST_DATA` and `PAL_ALL_SESSIONS` are set.
pub fn has_all_recorded_sessions() -> bool {
    data_dir().is_some() && std::env::var_os(ALL_VARIABLE).is_some()
}

/// Sample of the recorded sessions for a test that takes seconds per session: one in six, large and small ones,
/// others for each test, so that all sessions are used by some test. All of them if `PAL_ALL_SESSIONS` is set, and
/// all of the repository's own. Prints how many there are.
///
/// # Panics
///
/// If there is no recorded session.
pub fn session_sample(test: &str) -> Vec<PathBuf> {
    let all = session_files();
    if data_dir().is_none() || has_all_recorded_sessions() {
        return all;
    }
    let count = all.len();
    let mut by_size = all;
    by_size.sort_by_key(|file| std::cmp::Reverse(file.metadata().map_or(0, |metadata| metadata.len())));
    let first =
        test.bytes().fold(0usize, |sum, byte| (sum * 31 + usize::from(byte)) % 1_000_003) % SAMPLE_STEP;
    let mut sample: Vec<PathBuf> = by_size.into_iter().skip(first).step_by(SAMPLE_STEP).collect();
    sample.sort();
    println!("{test}: {} of {count} recorded sessions", sample.len());
    sample
}

/// Calls `work` with every item, on all cores. The results are in the order of the items.
///
/// # Panics
///
/// If `work` panics.
pub fn map_on_all_cores<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let worker = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let Some(item) = items.get(at) else { return done };
                done.push((at, work(item)));
            }
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, done)| done).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Estimator for imports whose sizes do not matter: three bytes per token.
#[derive(Clone, Copy, Debug)]
pub struct ByteThirds;

impl TokenEstimator for ByteThirds {
    fn text(&self, _model: &str, text: &str) -> f64 {
        text.len() as f64 / 3.0
    }

    fn json(&self, _model: &str, json: &str) -> f64 {
        json.len() as f64 / 3.0
    }
}

/// Entries of a recorded session: a log of `pal` as it is, the session of another agent imported with [`ByteThirds`].
///
/// # Panics
///
/// If the file cannot be read or imported.
pub fn recorded_entries(file: &Path) -> Vec<LogEntry> {
    read_entries(file, &ByteThirds).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Entries of a recorded session, imported with an estimator of the caller.
///
/// # Errors
///
/// If the file cannot be read, imported or parsed.
pub fn read_entries(
    file: &Path,
    estimator: &dyn TokenEstimator,
) -> Result<Vec<LogEntry>, Box<dyn std::error::Error>> {
    let source = std::fs::read(file)?;
    if let Some(entries) = own_entries(&source) {
        return Ok(entries);
    }
    let log = SharedText::from(import(&source, &ImportOptions { measure: estimator, strict: false })?.log);
    Ok(log.lines().map(|line| LogEntry::parse(log.slice_of(line))).collect::<Result<_, _>>()?)
}

/// Entries of a log that `pal` wrote; none for the session of another agent.
fn own_entries(source: &[u8]) -> Option<Vec<LogEntry>> {
    let text = SharedText::from(std::str::from_utf8(source).ok()?.to_owned());
    text.starts_with("{\"v\":").then_some(())?;
    text.lines().map(|line| LogEntry::parse(text.slice_of(line)).ok()).collect()
}

/// Number of cases that a property test runs: the usual number, or that of `PAL_CASES`.
pub fn cases(usual: u32) -> u32 {
    std::env::var("PAL_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
