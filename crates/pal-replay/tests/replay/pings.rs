//! Requests that only keep the cache warm: what they cost and save.

use std::path::PathBuf;

use pal_context::thrifty::Thrift;
use pal_replay::{Measured, Options, Report, replay};
use pal_testkit::session_files;

use crate::sessions::{on_all_cores, recorded, thrifty};

fn with_pings(window: Option<u64>, pings: bool) -> Options {
    let layers = pal_context::Policy::thrifty(Thrift { pings, ..Thrift::STANDARD });
    Options { layers, ..thrifty(window) }
}

fn cost(measured: &Measured) -> f64 {
    measured.cost_usd.unwrap_or(0.0)
}

/// Prints what pings cost and save on every recorded session of Claude.
#[test]
#[ignore = "prints figures of all sessions, which takes minutes"]
fn figures_of_pings() {
    let is_claude = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "claude");
    let files: Vec<PathBuf> = session_files().into_iter().filter(is_claude).collect();
    let run = |pings: bool| {
        on_all_cores(&files, |file| replay(&recorded(file), &with_pings(Some(1_000_000), pings)).unwrap())
    };
    let (without, with) = (run(false), run(true));
    let (mut pings, mut spent) = (0, 0.0);
    for (without, with) in without.iter().zip(&with) {
        let Some(sent) = &with.pings else { continue };
        pings += sent.responses;
        spent += cost(sent);
        println!(
            "{:.12} {:4} requests: {:7.3} without, {:7.3} with {} pings for {:.3}, {:.3} read from the cache",
            with.file,
            without.requests,
            cost(&without.measured),
            cost(&with.measured),
            sent.responses,
            cost(sent),
            sent.cache_hit_ratio,
        );
    }
    let sum = |reports: &[Report]| reports.iter().map(|report| cost(&report.measured)).sum::<f64>();
    println!("without {:.2}, with {:.2}: {pings} pings for {spent:.2}", sum(&without), sum(&with));
}
