//! `xtask fit`: what recorded sessions say about what is to come, for the policy that goes by price.
//!
//! Prints each figure of `crates/pal-context/src/policy_figures.rs` as the data has it, and how reliable forecasts made with
//! the figures in force are. Nothing is written: a person puts the figures in place and says so.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use pal_context::cost_aware::{
    FileActivity, FitStatistics, FittedFigures, ForecastReliability, ResultAge, observe_reuse,
    pause_reliability, recorded_activity, reuse_probability, turn_reliability,
};
use pal_model::{ActivityStats, EntryBody, LogEntry, ModelCatalog, SharedText, ToolKind};
use pal_view::CardEstimator;

/// Runs the task with the arguments behind its name.
pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let data: PathBuf = match arguments {
        [] => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        [flag, folder] if flag == "--data" => folder.into(),
        other => return Err(format!("fit: unknown arguments {other:?}").into()),
    };
    let mut sessions = Vec::new();
    for file in files(&data.join("sessions"))? {
        sessions.push(read(&file)?);
    }
    println!("{} sessions", sessions.len());
    let rhythms: Vec<Vec<ActivityStats>> =
        sessions.iter().map(|entries| recorded_activity(entries)).collect();
    let mut statistics = FitStatistics::default();
    sessions.iter().for_each(|entries| statistics.add(&FitStatistics::of_session(entries)));
    println!("in force: {:#?}", FittedFigures::SHIPPED);
    println!("fitted to these sessions: {:#?}", statistics.figures(&FittedFigures::UNINFORMED));
    of_requests(&rhythms);
    of_pauses(&rhythms);
    of_needs(&sessions);
    of_compactions(&sessions);
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<LogEntry>, Box<dyn Error>> {
    let cards = ModelCatalog::built_in();
    let measure = CardEstimator { cards: &cards };
    let options = pal_import::ImportOptions { measure: &measure, strict: false };
    let imported = pal_import::import(&std::fs::read(file)?, &options)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let log = SharedText::from(imported.log);
    let entries: Result<Vec<LogEntry>, _> =
        log.lines().map(|line| LogEntry::parse(log.slice_of(line))).collect();
    Ok(entries?)
}

fn of_requests(sessions: &[Vec<ActivityStats>]) {
    println!("\nrequests to come, by how many there were");
    for so_far in [1, 10, 25, 50, 100, 150, 200, 300] {
        let left: Vec<f64> = sessions
            .iter()
            .map(|session| session.len() - 1)
            .filter(|length| *length >= so_far)
            .map(|length| (length - so_far) as f64)
            .collect();
        println!("  after {so_far:>3}: {:6.1} ({} sessions)", mean(&left), left.len());
    }
    let grown: Vec<&ActivityStats> = sessions.iter().filter_map(|session| session.last()).collect();
    let tokens: u64 = grown.iter().map(|rhythm| rhythm.grown_tokens).sum();
    let times: u64 = grown.iter().map(|rhythm| rhythm.grown_times).sum();
    println!("growth of a context from answer to answer: {:.0} tokens", tokens as f64 / times.max(1) as f64);
    println!("\nhow likely another 10, 25, 50, 100, 200 requests were, and how many sessions had them");
    let befores: Vec<(&[ActivityStats], FittedFigures)> =
        sessions.iter().map(|session| (&session[..session.len() - 1], FittedFigures::SHIPPED)).collect();
    print_bins(&turn_reliability(&befores, &[10, 25, 50, 100, 200]));
}

fn of_pauses(sessions: &[Vec<ActivityStats>]) {
    let mut pauses = [0u64; 4];
    for rhythm in sessions.iter().filter_map(|session| session.last()) {
        for (sum, count) in pauses.iter_mut().zip(rhythm.pauses) {
            *sum += count;
        }
    }
    let all = pauses.iter().sum::<u64>().max(1) as f64;
    println!("\npauses up to 5 min, 15 min, 1 h, longer: {:.4?}", pauses.map(|count| count as f64 / all));
    let sessions: Vec<(&[ActivityStats], FittedFigures)> =
        sessions.iter().map(|session| (session.as_slice(), FittedFigures::SHIPPED)).collect();
    println!("how likely a pause over 5 minutes was, and how many there were");
    print_bins(&pause_reliability(&sessions, 0, 6));
    println!("how likely a pause over an hour was, and how many there were");
    print_bins(&pause_reliability(&sessions, 2, 4));
}

fn of_needs(sessions: &[Vec<LogEntry>]) {
    // By bytes: what is long costs more to carry and more to read again.
    let mut sums: BTreeMap<String, [(usize, usize); 4]> = BTreeMap::new();
    let mut kinds: BTreeMap<String, (ToolKind, FileActivity)> = BTreeMap::new();
    for need in sessions.iter().flat_map(|entries| observe_reuse(entries)) {
        let name = format!("{:?}, {:?}", need.kind, need.since);
        kinds.insert(name.clone(), (need.kind, need.since));
        let (all, needed) = &mut sums.entry(name).or_default()[need.age as usize];
        *all += need.bytes;
        *needed += if need.is_needed { need.bytes } else { 0 };
    }
    println!(
        "\nshare of the bytes of results that was needed again (in force), with < 5, < 15, < 40, more newer results"
    );
    for (name, row) in sums {
        let cells: Vec<String> = ResultAge::ALL
            .into_iter()
            .map(|age| {
                let (all, needed) = row[age as usize];
                let share = needed as f64 / all.max(1) as f64;
                let (kind, since) = kinds[&name];
                format!(
                    "{share:.3} ({:.3}) of {:5} KB",
                    reuse_probability(&FittedFigures::SHIPPED, kind, age, since),
                    all / 1_000
                )
            })
            .collect();
        println!("  {name:<18} {}", cells.join("   "));
    }
}

fn of_compactions(sessions: &[Vec<LogEntry>]) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for entries in sessions {
        for entry in entries {
            if let EntryBody::Boundary(boundary) = &entry.body
                && let (Some(from), Some(to)) = (boundary.tokens_before, boundary.tokens_after)
            {
                before.push(from as f64);
                after.push(to as f64);
            }
        }
    }
    println!(
        "\nrecorded compactions: {}, from {:.0} to {:.0} tokens",
        before.len(),
        mean(&before),
        mean(&after)
    );
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn print_bins(bins: &[ForecastReliability]) {
    for bin in bins {
        println!("  predicted {:.4}  actual {:.4}  ({} cases)", bin.predicted, bin.actual, bin.cases);
    }
}
