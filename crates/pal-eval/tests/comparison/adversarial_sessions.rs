//! Sessions made to mislead the cost-aware policy: pauses just over every TTL, bursts after silence, ends right after a compaction.
//! Each may cost at most 1.5 times what the best constant rule costs in hindsight.

use std::time::Duration;

use super::synthetic_comparison::{Made, measured};

/// Maximum cost, as a multiple of the best constant rule's.
const REGRET_MAX: f64 = 1.5;
/// Words in a usual result.
const WORDS: usize = 700;

fn minutes(minutes: f64) -> Duration {
    Duration::from_secs_f64(60.0 * minutes)
}

/// Turns of this many calls, each after a pause; every call reads another file.
fn turns(pauses: &[Duration], calls: usize, words: usize) -> Made {
    let mut made = Made::new();
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
fn check(name: &str, made: &Made) {
    let findings = measured(made, &[200_000, 1_000_000]);
    for table in &findings.tables {
        let constant = table.rows.iter().filter(|row| !row.is_ours || row.name == "none");
        let best = constant.min_by(|one, other| one.total_usd.total_cmp(&other.total_usd)).unwrap();
        let ours = table.row("cost-aware").unwrap();
        let ratio = ours.total_usd / best.total_usd;
        println!(
            "{name}, {}: ${:.2}, {} compactions; {} ${:.2}: {ratio:.2}",
            table.window, ours.total_usd, ours.compactions, best.name, best.total_usd
        );
        assert!(ratio <= REGRET_MAX, "{name} at {}: {ratio:.2} times {}", table.window, best.name);
    }
}

#[test]
fn pauses_just_over_every_ttl() {
    check("5.1 minutes, always", &turns(&[minutes(5.1); 12], 8, WORDS));
    check("61 minutes, always", &turns(&[minutes(61.0); 12], 8, WORDS));
    let alternating: Vec<Duration> =
        (0..12).map(|turn| minutes(if turn % 2 == 0 { 5.1 } else { 61.0 })).collect();
    check("5.1 and 61 minutes in turn", &turns(&alternating, 8, WORDS));
    // Each pause follows those that suggest another one.
    let deceiving: Vec<Duration> =
        [1.0, 1.0, 1.0, 1.0, 5.1, 5.1, 5.1, 61.0, 61.0, 1.0, 1.0, 5.1].map(minutes).to_vec();
    check("changing habits", &turns(&deceiving, 8, WORDS));
    check("5.1 minutes before every call", &turns(&[minutes(5.1); 60], 1, WORDS));
}

#[test]
fn bursts_after_silence() {
    check("a long silence, then a long burst", &turns(&[minutes(600.0)], 80, WORDS));
    check("large results after silence", &turns(&[minutes(59.0), minutes(180.0)], 12, 5_000));
    let mut made = turns(&[minutes(30.0); 3], 4, WORDS);
    for number in 0..90 {
        made.call("Read", &format!("/src/burst{number}.rs"), 1_500);
    }
    check("quiet turns, then one without end", &made);
}

#[test]
fn ends_right_after_a_compaction() {
    // The session ends at each of these lengths; wherever the policy compacts, one of them ends soon after.
    for calls in [20, 30, 40, 50, 60, 70] {
        check(&format!("{calls} calls of large results"), &turns(&[], calls, 1_800));
    }
    for calls in [10, 20, 30] {
        check(&format!("{calls} calls, a pause, and the end"), &turns(&[minutes(4.4)], calls, 2_500));
    }
}
