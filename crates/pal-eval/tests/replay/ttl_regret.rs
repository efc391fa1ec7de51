//! Cost of choosing the TTL without knowing the pauses, against the TTL that is the cheapest in hindsight.

use pal_eval::replay::{RecordedSession, ReplayOptions, replay};
use pal_view::CacheTtl;

use crate::sessions::cost_aware;
use crate::synthetic_sessions::Made;

/// Maximum cost of a session with ten pauses, relative to the best fixed TTL.
const REGRET_MAX: f64 = 1.02;
/// The same without a pause: the price of a prefix that is kept for an hour and never needed.
const REGRET_MAX_WITHOUT_PAUSE: f64 = 1.03;
/// The same if long pauses begin late, so that what was learned misleads: the messages so far are written again once.
const REGRET_MAX_OF_CHANGE: f64 = 1.05;

/// Turns of eight requests, each after a pause of this number of minutes.
fn with_pauses(minutes: &[f64]) -> RecordedSession {
    let mut made = Made::new(30_000);
    made.person("Go on.");
    for _ in 0..8 {
        made.turn(400);
    }
    for pause in minutes {
        made.wait((60.0 * pause) as i64);
        made.person("Go on.");
        for _ in 0..8 {
            made.turn(400);
        }
    }
    made.recorded()
}

/// Cost of a session under the cost-aware policy, which chooses the TTL or is given one.
fn cost(recorded: &RecordedSession, cache_ttl: Option<CacheTtl>) -> f64 {
    let mut options = ReplayOptions { cache_ttl, ..cost_aware(None) };
    // No move but the TTL.
    options.layers.idle_compaction = false;
    options.layers.cold_clear = false;
    let report = replay(recorded, &options).unwrap();
    assert_eq!((report.rejected, report.compactions.len()), (0, 0));
    report.measured.cost_usd.unwrap()
}

#[test]
fn chosen_ttl_costs_little_more_than_the_best_fixed_one() {
    let mut worst: Vec<String> = Vec::new();
    for (name, pauses, max) in [
        ("no pause", vec![0.5; 10], REGRET_MAX_WITHOUT_PAUSE),
        ("just over five minutes", vec![5.2; 10], REGRET_MAX),
        ("ten minutes", vec![10.0; 10], REGRET_MAX),
        ("forty minutes", vec![40.0; 10], REGRET_MAX),
        ("over an hour", vec![70.0; 10], REGRET_MAX),
        ("short and long in turn", [1.0, 20.0].repeat(5), REGRET_MAX),
        ("quiet, then long", [vec![1.0; 5], vec![20.0; 5]].concat(), REGRET_MAX_OF_CHANGE),
        ("long, then quiet", [vec![20.0; 5], vec![1.0; 5]].concat(), REGRET_MAX),
    ] {
        let recorded = with_pauses(&pauses);
        let fixed = [CacheTtl::Minutes5, CacheTtl::Hour1, CacheTtl::Hour1ThenMinutes5];
        let fixed = fixed.map(|ttl| (cost(&recorded, Some(ttl)), ttl.name()));
        let (best, ttl) = fixed.into_iter().min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        let chosen = cost(&recorded, None);
        println!("{name}: ${chosen:.3}, {ttl} ${best:.3}: {:.3}", chosen / best);
        if chosen > max * best {
            worst.push(format!("{name}: {:.3} times {ttl}", chosen / best));
        }
    }
    assert!(worst.is_empty(), "{worst:?}");
}
