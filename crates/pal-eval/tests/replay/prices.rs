//! Costs of policies on every recorded Claude session, with the simulator as the provider: cost-aware against threshold, and against no
//! compression.
//!
//! A recording does not show what the agent would have read again because content had left its view, so that cost is not included here;
//! the cost-aware policy does charge itself for it. `PAL_PRICES=1` prints a line for every session.

use std::path::{Path, PathBuf};

use pal_eval::replay::{RecordedSession, ReplayOptions, ReplayReport, replay};
use pal_testkit::{has_all_recorded_sessions, map_on_all_cores, session_sample};

use crate::sessions::{cost_aware, recorded, threshold};

struct Cost {
    name: String,
    none: f64,
    threshold: f64,
    cost_aware: f64,
    line: String,
}

fn cost(report: &ReplayReport) -> f64 {
    report.measured.cost_usd.unwrap_or(0.0)
}

fn costs(file: &Path, window: Option<u64>) -> Cost {
    let recorded: RecordedSession = recorded(file);
    let run = |options: &ReplayOptions| replay(&recorded, options).unwrap();
    // Acts only where nothing fits any more; not as recorded, with compactions that are not billed.
    let none = run(&ReplayOptions { layers: pal_context::ContextPolicy::none(), ..threshold(window) });
    let (threshold, cost_aware) = (run(&threshold(window)), run(&cost_aware(window)));
    assert_eq!((cost_aware.rejected, cost_aware.lost.len()), (0, 0), "{}", recorded.name());
    let layers = |report: &ReplayReport| {
        let times =
            |name: &str| report.layers.get(name).map_or((0, 0), |layer| (layer.times, layer.tokens_freed));
        format!("{:?} comp {}", times("microcompact"), report.compactions.len())
    };
    let after: Vec<_> =
        cost_aware.compactions.iter().map(|one| (one.before, one.after.unwrap_or(0))).collect();
    let line = format!(
        "{:.12} {:4} calls: none {:6.2} threshold {:6.2} cost_aware {:6.2} ({:.2} of none, {:.2} of threshold) | {} | {} | hits {:.3} {:.3} {:.3} | {after:?}",
        recorded.name(),
        none.requests,
        cost(&none),
        cost(&threshold),
        cost(&cost_aware),
        cost(&cost_aware) / cost(&none),
        cost(&cost_aware) / cost(&threshold),
        layers(&threshold),
        layers(&cost_aware),
        none.measured.cache_hit_ratio,
        threshold.measured.cache_hit_ratio,
        cost_aware.measured.cache_hit_ratio,
    );
    Cost {
        name: recorded.name().to_owned(),
        none: cost(&none),
        threshold: cost(&threshold),
        cost_aware: cost(&cost_aware),
        line,
    }
}

/// Maximum cost of a session relative to no policy. The goal is 1.02, which is not reached
/// (docs/policy.md says where and why): this holds what is reached, so that it does not get worse unnoticed.
const COST_RATIO_MAX: f64 = 1.08;

/// Compares the cost-aware policy with the threshold policy over all sessions (a sum that a sample does not have), and with no policy session by session.
fn check(window: u64, max_of_threshold: f64, max_of_none: f64) {
    let is_claude = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "claude");
    let files: Vec<PathBuf> =
        session_sample(&format!("prices {window}")).into_iter().filter(is_claude).collect();
    if files.is_empty() {
        return;
    }
    let costs = map_on_all_cores(&files, |file| costs(file, Some(window)));
    if std::env::var_os("PAL_PRICES").is_some() {
        costs.iter().for_each(|cost| println!("{}", cost.line));
    }
    let sum = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>();
    let (none, threshold, cost_aware) =
        (sum(|cost| cost.none), sum(|cost| cost.threshold), sum(|cost| cost.cost_aware));
    println!(
        "{window}: none {none:.2}, threshold {threshold:.2}, cost_aware {cost_aware:.2}: {:.3} of threshold",
        cost_aware / threshold
    );
    if has_all_recorded_sessions() {
        assert!(cost_aware <= max_of_threshold * threshold, "{:.3} of threshold", cost_aware / threshold);
    }
    for cost in &costs {
        assert!(
            cost.cost_aware <= max_of_none * cost.none,
            "{}: {:.3} of none",
            cost.name,
            cost.cost_aware / cost.none
        );
    }
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_cost_less_by_cost_at_200_000_tokens() {
    check(200_000, 0.82, COST_RATIO_MAX);
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_cost_less_by_cost_at_1_000_000_tokens() {
    // The goal is 0.60, which is missed by a little (docs/policy.md).
    check(1_000_000, 0.62, COST_RATIO_MAX);
}
