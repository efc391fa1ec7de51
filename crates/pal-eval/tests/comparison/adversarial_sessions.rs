//! Sessions made to mislead the cost-aware policy: pauses just over every TTL, bursts after silence, ends right after a compaction.
//! Each may cost at most 1.5 times what the best constant rule costs in hindsight, with a TTL of 5 minutes or of 1 hour.

use std::time::Duration;

use pal_view::CacheTtl;

use super::synthetic_comparison::{Made, measured};

/// Maximum cost, as a multiple of the best constant rule's.
const REGRET_MAX: f64 = 1.5;
/// Words in a usual result.
const WORDS: usize = 700;

fn minutes(minutes: f64) -> Duration {
    Duration::from_secs_f64(60.0 * minutes)
}

/// Turns of this many calls, each after a pause; every call reads another file.
fn turns(ttl: CacheTtl, pauses: &[Duration], calls: usize, words: usize) -> Made {
    let mut made = Made::with_ttl(ttl);
    let mut file = 0;
    let mut turn = |made: &mut Made| {
        for _ in 0..calls {
            file += 1;
            made.call("Read", &format!("/src/file{file}.rs"), words);
        }
    };
    turn(&mut made);
    for pause in pauses {
        made.person_after(*pause);
        turn(&mut made);
    }
    made
}

/// Checks a session at both windows.
fn check(name: &str, made: impl Fn(CacheTtl) -> Made) {
    let windows = [200_000, 1_000_000];
    let by_ttl = [CacheTtl::Minutes5, CacheTtl::Hour1].map(|ttl| (ttl, measured(&made(ttl), &windows)));
    for (at, window) in windows.iter().enumerate() {
        let constant = by_ttl.iter().flat_map(|(ttl, findings)| {
            let rows = findings.tables[at].rows.iter().filter(|row| !row.is_ours || row.name == "none");
            rows.map(|row| (row.total_usd, row.name, ttl.name()))
        });
        let (best, rule, ttl) = constant.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap();
        let ours = by_ttl[0].1.tables[at].row("cost-aware").unwrap();
        let ratio = ours.total_usd / best;
        println!(
            "{name}, {window}: ${:.2}, {} compactions; {rule} {ttl} ${best:.2}: {ratio:.2}",
            ours.total_usd, ours.compactions
        );
        assert!(ratio <= REGRET_MAX, "{name} at {window}: {ratio:.2} times {rule} {ttl}");
    }
}

#[test]
fn pauses_just_over_every_ttl() {
    check("5.1 minutes, always", |ttl| turns(ttl, &[minutes(5.1); 12], 8, WORDS));
    check("61 minutes, always", |ttl| turns(ttl, &[minutes(61.0); 12], 8, WORDS));
    let alternating: Vec<Duration> =
        (0..12).map(|turn| minutes(if turn % 2 == 0 { 5.1 } else { 61.0 })).collect();
    check("5.1 and 61 minutes in turn", |ttl| turns(ttl, &alternating, 8, WORDS));
    // Each pause follows those that suggest another one.
    let deceiving: Vec<Duration> =
        [1.0, 1.0, 1.0, 1.0, 5.1, 5.1, 5.1, 61.0, 61.0, 1.0, 1.0, 5.1].map(minutes).to_vec();
    check("changing habits", |ttl| turns(ttl, &deceiving, 8, WORDS));
    check("5.1 minutes before every call", |ttl| turns(ttl, &[minutes(5.1); 60], 1, WORDS));
}

#[test]
fn bursts_after_silence() {
    check("a long silence, then a long burst", |ttl| turns(ttl, &[minutes(600.0)], 80, WORDS));
    check("large results after silence", |ttl| turns(ttl, &[minutes(59.0), minutes(180.0)], 12, 5_000));
    check("quiet turns, then one without end", |ttl| {
        let mut made = turns(ttl, &[minutes(30.0); 3], 4, WORDS);
        for number in 0..90 {
            made.call("Read", &format!("/src/burst{number}.rs"), 1_500);
        }
        made
    });
}

#[test]
fn ends_right_after_a_compaction() {
    // The session ends at each of these lengths; wherever the policy compacts, one of them ends soon after.
    for calls in (20..=70).step_by(5) {
        check(&format!("{calls} calls of large results"), |ttl| turns(ttl, &[], calls, 1_800));
    }
    for calls in [10, 20, 30] {
        check(&format!("{calls} calls, a pause, and the end"), |ttl| {
            turns(ttl, &[minutes(4.4)], calls, 2_500)
        });
    }
}
