//! The books of background work: a small file of lines for each day (UTC), in `background` under the home.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::Timestamp;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Serialize, Deserialize)]
pub(super) struct Booked {
    pub(super) at: Timestamp,
    pub(super) source: String,
    pub(super) session: String,
    pub(super) process: u32,
    #[serde(flatten)]
    pub(super) happened: Happened,
}

/// What is booked.
#[derive(Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub(super) enum Happened {
    /// The provider was asked, and answered.
    Asked { counted: u64, prompt: u64, cached: u64, output: u64, cost_usd: Option<f64> },
    /// A run is over.
    Ended { wrote: Vec<String> },
}

/// All that was done in the background.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Background {
    /// All runs, the oldest first.
    pub runs: Vec<BackgroundRun>,
    /// Lines that could not be read: a kill or a full disk cut them off.
    pub unreadable: usize,
}

/// One run: what it took, and what it wrote.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct BackgroundRun {
    /// The day on which it began (UTC).
    pub day: String,
    /// When its first answer was given.
    pub begun: Timestamp,
    /// What it was: `notes`, `extract`, `dream` and the like.
    pub source: String,
    /// The session for which it was; empty if for none.
    pub session: String,
    /// How many runs these figures are of: one, unless they are sums.
    pub runs: u64,
    /// How often the provider was asked.
    pub requests: u64,
    /// Tokens that count for the day's limit: those from the cache a tenth.
    pub counted: u64,
    /// Tokens of all prompts, and how many of them were read from the cache.
    pub prompt: u64,
    /// Those read from the cache.
    pub cached: u64,
    /// Tokens that were written by the model.
    pub output: u64,
    /// Its price in US dollars, as far as prices are known.
    pub cost_usd: Option<f64>,
    /// What it wrote.
    pub wrote: Vec<String>,
    /// Whether it came to an end; else it is under way, or was killed.
    pub is_over: bool,
}

impl BackgroundRun {
    /// Adds what another one took and wrote.
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

/// Adds a line to the books of its day.
pub(super) fn book(home: &Path, booked: &Booked) -> io::Result<()> {
    let folder = home.join("background");
    pal_store::create_private_directory(&folder).map_err(|error| io::Error::other(error.to_string()))?;
    pal_store::append_private_line(&file(home, booked.at), &serde_json::to_string(booked)?)
}

/// How many tokens were taken on the day of this time.
pub(super) fn taken(home: &Path, now: Timestamp) -> io::Result<u64> {
    let text = match std::fs::read(file(home, now)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let counted = |booked: Booked| match booked.happened {
        Happened::Asked { counted, .. } => counted,
        Happened::Ended { .. } => 0,
    };
    Ok(lines(&text).flatten().map(counted).fold(0, u64::saturating_add))
}

/// All that was ever done in the background, as the books under a home have it.
pub fn background(home: &Path) -> io::Result<Background> {
    let mut all = Background::default();
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
                Happened::Asked { counted, prompt, cached, output, cost_usd } => {
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
                Happened::Ended { wrote } => {
                    all.runs[at].wrote = wrote;
                    all.runs[at].is_over = true;
                    open.remove(&key);
                }
            }
        }
    }
    Ok(all)
}

/// The books of all days, the oldest first.
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

/// The lines of a file; none for one that cannot be read.
fn lines(text: &[u8]) -> impl Iterator<Item = Option<Booked>> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).ok())
}

fn file(home: &Path, at: Timestamp) -> PathBuf {
    home.join("background").join(format!("{}.jsonl", day(at)))
}

/// The day of a time (UTC), as in `2026-11-15`.
fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|c| *c != 'T').collect()
}
