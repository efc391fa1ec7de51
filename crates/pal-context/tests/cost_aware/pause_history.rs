//! Earlier pauses: laws of the expectation that they give.

use pal_context::PauseHistory;
use pal_context::cost_aware::{CostAwareSettings, FittedFigures, SessionForecast};
use pal_model::{ActivityStats, Timestamp};
use pal_testkit::cases;
use proptest::prelude::*;
use proptest::test_runner::Config;

const SHIPPED: [f64; 4] = FittedFigures::SHIPPED.turn_pauses;

fn counts() -> impl Strategy<Value = [f64; 4]> {
    [0_u32..400, 0..400, 0..400, 0..400].prop_map(|counts| counts.map(|count| f64::from(count) / 2.0))
}

fn histories() -> impl Strategy<Value = PauseHistory> {
    (counts(), counts(), counts()).prop_map(|(elsewhere, project, this_hour)| PauseHistory {
        elsewhere,
        project,
        this_hour,
    })
}

fn group(history: &mut PauseHistory, group: usize) -> &mut [f64; 4] {
    match group {
        0 => &mut history.elsewhere,
        1 => &mut history.project,
        _ => &mut history.this_hour,
    }
}

proptest! {
    #![proptest_config(Config { cases: cases(512), failure_persistence: None, ..Config::default() })]

    #[test]
    fn expected_shares_are_a_distribution(history in histories()) {
        let expected = history.expected_shares(SHIPPED);
        prop_assert!((expected.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{expected:?}");
        for (share, shipped) in expected.into_iter().zip(SHIPPED) {
            // No class becomes impossible, however long the history.
            prop_assert!(share >= 0.1 * shipped - 1e-12 && share < 1.0, "{expected:?}");
        }
    }

    #[test]
    fn one_more_pause_makes_its_class_likelier_and_no_other(
        history in histories(), of in 0_usize..3, class in 0_usize..4,
    ) {
        let before = history.expected_shares(SHIPPED);
        let mut more = history;
        group(&mut more, of)[class] += 1.0;
        let after = more.expected_shares(SHIPPED);
        prop_assert!(after[class] > before[class], "{before:?} {after:?}");
        for other in (0..4).filter(|other| *other != class) {
            prop_assert!(after[other] <= before[other] + 1e-12, "{before:?} {after:?}");
        }
    }

    #[test]
    fn more_of_the_same_history_comes_nearer_to_its_shares(
        observed in counts(), of in 0_usize..3, factor in 1.1_f64..20.0,
    ) {
        let pauses: f64 = observed.iter().sum();
        prop_assume!(pauses > 0.0);
        let distance = |times: f64| {
            let mut history = PauseHistory::EMPTY;
            *group(&mut history, of) = observed.map(|count| count * times);
            let expected = history.expected_shares(SHIPPED);
            let apart = |class: usize| (expected[class] - observed[class] / pauses).abs();
            (0..4).map(apart).sum::<f64>()
        };
        let none: f64 = (0..4).map(|class| (SHIPPED[class] - observed[class] / pauses).abs()).sum();
        prop_assert!(distance(factor) <= distance(1.0) && distance(1.0) <= none);
        if none > 1e-6 {
            prop_assert!(distance(factor) < distance(1.0) && distance(1.0) < none);
        }
    }
}

#[test]
fn without_history_the_shipped_figures_hold() {
    assert_eq!(PauseHistory::EMPTY.expected_shares(SHIPPED), SHIPPED);
    assert_eq!(PauseHistory::EMPTY.origin(), None);
    let settings = CostAwareSettings::STANDARD;
    assert_eq!(settings.with_pause_history(&PauseHistory::EMPTY), settings);
}

#[test]
fn a_little_history_changes_little_and_a_session_outweighs_any() {
    let three = PauseHistory { this_hour: [0.0, 3.0, 0.0, 0.0], ..PauseHistory::EMPTY };
    let expected = three.expected_shares(SHIPPED);
    assert!(expected[1] - SHIPPED[1] < 0.11, "{expected:?}");
    let years = PauseHistory { elsewhere: [0.0; 4], project: [0.0, 200.0, 0.0, 0.0], ..three };
    let settings = CostAwareSettings::STANDARD.with_pause_history(&years);
    assert!(settings.figures.turn_pauses[1] > 0.8);
    // Four messages without a pause.
    let mut activity = ActivityStats::default();
    for number in 0..5 {
        activity.record_user_message();
        activity.record_request(Timestamp::from_milliseconds(number * 60_000));
    }
    let forecast = SessionForecast::from_activity(&activity, &settings.figures);
    assert!(forecast.turn_pauses[0] > 0.66, "{forecast:?}");
}

#[test]
fn history_has_its_origin_in_words() {
    let of = |elsewhere: f64, project: f64, this_hour: f64| {
        let counts = |count: f64| [count, 0.0, 0.0, 0.0];
        PauseHistory { elsewhere: counts(elsewhere), project: counts(project), this_hour: counts(this_hour) }
            .origin()
    };
    assert_eq!(of(0.0, 20.0, 3.0).as_deref(), Some("23 pauses in this project"));
    assert_eq!(of(40.0, 0.0, 1.0).as_deref(), Some("1 pause in this project, 40 in others"));
    assert_eq!(of(1.0, 0.0, 0.0).as_deref(), Some("1 pause in other projects"));
    assert_eq!(of(0.25, 0.0, 0.25), None);
}
