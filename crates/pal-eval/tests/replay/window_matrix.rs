//! **Every recorded session survives every window.** At its own model's window and at 200,000, 60,000 and 30,000 tokens, under the
//! threshold policy: the provider refuses no request, no context exceeds the window, no user message is lost from the log, and after
//! every compaction all user messages are visible or referenced.
//!
//! Prints the savings of the layers and the findings of the audits, one line per session and one per window.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pal_eval::replay::{ReplayReport, replay};
use pal_model::ModelCatalog;
use pal_testkit::{map_on_all_cores, session_sample};

use crate::sessions::{recorded, threshold};

/// The windows; none is that of the recording's own models.
const WINDOWS: [Option<u64>; 4] = [None, Some(200_000), Some(60_000), Some(30_000)];

#[test]
fn recorded_sessions_live_through_every_window() {
    let start = Instant::now();
    let mut runs: Vec<(PathBuf, Option<u64>)> = Vec::new();
    for window in WINDOWS {
        runs.extend(
            session_sample(&format!("window {}", name(window))).into_iter().map(|file| (file, window)),
        );
    }
    // The longest first, so that no core waits for one at the end.
    runs.sort_by_key(|(file, window)| (std::cmp::Reverse(size(file)), window.map(std::cmp::Reverse)));
    let reports = map_on_all_cores(&runs, |(file, window)| {
        let report = replay(&recorded(file), &threshold(*window)).unwrap();
        (*window, report)
    });
    let mut broken = Vec::new();
    for window in WINDOWS {
        let of_window: Vec<&ReplayReport> =
            reports.iter().filter(|(of, _)| *of == window).map(|(_, report)| report).collect();
        tell(window, &of_window);
        broken.extend(of_window.iter().flat_map(|report| promises_broken(window, report)));
    }
    println!("{} replays in {} s", reports.len(), start.elapsed().as_secs());
    assert!(broken.is_empty(), "{} promises broken:\n{}", broken.len(), broken.join("\n"));
}

fn size(file: &Path) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

fn name(window: Option<u64>) -> String {
    window.map_or(String::from("own window"), |window| window.to_string())
}

/// Broken promises of a session.
fn promises_broken(window: Option<u64>, report: &ReplayReport) -> Vec<String> {
    let mut broken = Vec::new();
    if report.rejected > 0 {
        let first = report.rejections.first().map_or("", |rejection| &rejection.message);
        broken.push(format!("{} of {} requests refused: {first}", report.rejected, report.requests));
    }
    // A session may have asked several models.
    let own = report.models.keys().map(|model| ModelCatalog::built_in().find(model).card.window).max();
    let window_is = window.or(own).unwrap_or_default();
    if report.measured.peak_context_tokens > window_is {
        broken.push(format!("{} tokens at its peak", report.measured.peak_context_tokens));
    }
    if !report.lost.is_empty() {
        broken.push(format!("lost: {:?}", report.lost));
    }
    for (at, compaction) in report.compactions.iter().enumerate() {
        let audit = compaction.audit;
        if audit.user_messages_verbatim + audit.user_messages_by_pointer < audit.user_messages {
            broken.push(format!("compaction {} has lost words of the user: {audit:?}", at + 1));
        }
        if audit.invented > 0 && compaction.how == "extractive" {
            broken.push(format!("compaction {} made up {} paths", at + 1, audit.invented));
        }
    }
    broken.into_iter().map(|what| format!("{} at {}: {what}", report.file, name(window))).collect()
}

/// Prints what the layers freed and what the audits found.
fn tell(window: Option<u64>, reports: &[&ReplayReport]) {
    let mut layers = std::collections::BTreeMap::<&str, (u64, u64)>::new();
    let mut ways = std::collections::BTreeMap::<&str, u64>::new();
    let mut audit = pal_eval::replay::AuditTotals::default();
    for report in reports {
        for (layer, did) in &report.layers {
            let sum = layers.entry(layer).or_default();
            *sum = (sum.0 + did.times, sum.1 + did.tokens_freed);
        }
        for compaction in &report.compactions {
            *ways.entry(&compaction.how).or_default() += 1;
            audit.user_messages += compaction.audit.user_messages;
            audit.user_messages_verbatim += compaction.audit.user_messages_verbatim;
            audit.user_messages_by_pointer += compaction.audit.user_messages_by_pointer;
            audit.paths += compaction.audit.paths;
            audit.paths_kept += compaction.audit.paths_kept;
            audit.invented += compaction.audit.invented;
        }
        println!(
            "{:>10} {:<60} {:>4} requests, {:>2} refused, {:>2} compactions, peak {:>7}, {:>6} engine µs at most",
            name(window),
            report.file,
            report.requests,
            report.rejected,
            report.compactions.len(),
            report.measured.peak_context_tokens,
            report.engine_us.max,
        );
    }
    let layers: Vec<String> = layers
        .iter()
        .map(|(layer, (times, freed))| format!("{layer} {times} times, {freed} tokens freed"))
        .collect();
    println!("{}: {}; compactions {ways:?}; {audit:?}", name(window), layers.join("; "));
}
