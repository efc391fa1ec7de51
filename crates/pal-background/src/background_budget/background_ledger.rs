//! Ledger of background work: one JSONL file per UTC day, in `background/` under the home.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of the ledger.
#[derive(Serialize, Deserialize)]
pub(super) struct LedgerEntry {
    pub(super) at: Timestamp,
    pub(super) source: String,
    pub(super) session: String,
    pub(super) process: u32,
    #[serde(flatten)]
    pub(super) happened: LedgerEvent,
}

/// Event of a line.
#[derive(Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum LedgerEvent {
    /// A response of the provider.
    Asked { counted: u64, prompt: u64, cached: u64, output: u64, cost_usd: Option<f64> },
    /// The end of a run.
    Ended { wrote: Vec<String> },
}

/// All recorded background work.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct BackgroundLedger {
    /// All runs, oldest first.
    pub runs: Vec<BackgroundRun>,
    /// Number of unreadable lines, truncated by a kill or a full disk.
    pub unreadable: usize,
}

/// Usage and results of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct BackgroundRun {
    /// Day of its start (UTC).
    pub day: String,
    /// Time of its first response.
    pub begun: Timestamp,
    /// Source: `notes`, `extract`, `dream` and others.
    pub source: String,
    /// Session it worked for; empty for none.
    pub session: String,
    /// Number of runs summed up here.
    pub runs: u64,
    /// Number of requests.
    pub requests: u64,
    /// Tokens counted against the daily budget: cache reads count one tenth.
    pub counted: u64,
    /// Prompt tokens.
    pub prompt: u64,
    /// Prompt tokens read from the cache.
    pub cached: u64,
    /// Output tokens.
    pub output: u64,
    /// Price in US dollars, as far as known.
    pub cost_usd: Option<f64>,
    /// Files that it wrote.
    pub wrote: Vec<String>,
    /// Whether it ended; otherwise it is running or was killed.
    pub is_over: bool,
}

impl BackgroundRun {
    /// Adds the usage and files of another run.
    pub fn absorb(&mut self, other: &BackgroundRun) {
        self.runs += other.runs;
        self.requests += other.requests;
        self.counted = self.counted.saturating_add(other.counted);
        self.prompt = self.prompt.saturating_add(other.prompt);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(before), Some(cost)) => Some(before + cost),
            (before, cost) => before.or(cost),
        };
        for file in &other.wrote {
            if !self.wrote.contains(file) {
                self.wrote.push(file.clone());
            }
        }
    }
}

/// Appends a line to the file of its day.
pub(super) fn book(home: &Path, booked: &LedgerEntry) -> io::Result<()> {
    let folder = home.join("background");
    pal_store::create_private_directory(&folder).map_err(|error| io::Error::other(error.to_string()))?;
    pal_store::append_private_line(&file(home, booked.at), &serde_json::to_string(booked)?)
}

/// Budget tokens used on the day of `now`.
pub(super) fn taken(home: &Path, now: Timestamp) -> io::Result<u64> {
    let text = match std::fs::read(file(home, now)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let counted = |booked: LedgerEntry| match booked.happened {
        LedgerEvent::Asked { counted, .. } => counted,
        LedgerEvent::Ended { .. } => 0,
    };
    Ok(lines(&text).flatten().map(counted).fold(0, u64::saturating_add))
}

/// Reads the whole ledger under a home.
pub fn read_background_ledger(home: &Path) -> io::Result<BackgroundLedger> {
    let mut all = BackgroundLedger::default();
    // A process has one run of a source at a time.
    let mut open: BTreeMap<(String, String, u32), usize> = BTreeMap::new();
    for file in files(home)? {
        let text = std::fs::read(&file)?;
        for line in lines(&text) {
            let Some(booked) = line else {
                all.unreadable += 1;
                continue;
            };
            let key = (booked.source.clone(), booked.session.clone(), booked.process);
            let at = *open.entry(key.clone()).or_insert_with(|| {
                all.runs.push(BackgroundRun {
                    day: day(booked.at),
                    begun: booked.at,
                    runs: 1,
                    source: booked.source,
                    session: booked.session,
                    ..BackgroundRun::default()
                });
                all.runs.len() - 1
            });
            match booked.happened {
                LedgerEvent::Asked { counted, prompt, cached, output, cost_usd } => {
                    let (requests, runs) = (1, 0);
                    let asked = BackgroundRun {
                        runs,
                        requests,
                        counted,
                        prompt,
                        cached,
                        output,
                        cost_usd,
                        ..Default::default()
                    };
                    all.runs[at].absorb(&asked);
                }
                LedgerEvent::Ended { wrote } => {
                    all.runs[at].wrote = wrote;
                    all.runs[at].is_over = true;
                    open.remove(&key);
                }
            }
        }
    }
    Ok(all)
}

/// Ledger files, oldest first.
fn files(home: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(home.join("background")) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_file() && path.extension().is_some_and(|ending| ending == "jsonl") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Entries of a file; none for unreadable lines.
fn lines(text: &[u8]) -> impl Iterator<Item = Option<LedgerEntry>> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).ok())
}

fn file(home: &Path, at: Timestamp) -> PathBuf {
    home.join("background").join(format!("{}.jsonl", day(at)))
}

/// Day of a time (UTC), as in `2026-11-15`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|c| *c != 'T').collect()
}
