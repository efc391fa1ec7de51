//! Which failures are tried again, and after how long.

use std::time::Duration;

use pal_wire::{Failure, FailureKind, RetryPolicy};

const POLICY: RetryPolicy = RetryPolicy { retries: 6, ..RetryPolicy::STANDARD };

fn wait(kind: FailureKind, change: impl FnOnce(&mut Failure)) -> Option<u64> {
    let mut failure = Failure::new(kind, "m");
    change(&mut failure);
    POLICY.wait(0, &failure, 0.0).map(|wait| wait.as_millis() as u64)
}

#[test]
fn what_may_pass_is_tried_again_and_what_will_not_is_not() {
    use FailureKind::*;
    for kind in [Conflict, RateLimited, Overloaded, Server, Timeout, Connection, Cut, Silent, Malformed] {
        assert_eq!(wait(kind, |_| ()), Some(500), "{kind:?}");
    }
    let length = TooLong { have: None, limit: None };
    for kind in [length, TooLarge, Invalid, Authentication, Billing, Permission, NotFound] {
        assert_eq!(wait(kind, |_| ()), None, "{kind:?}");
    }
}

#[test]
fn the_provider_knows_better_whether() {
    assert_eq!(wait(FailureKind::Invalid, |failure| failure.should_retry = Some(true)), Some(500));
    assert_eq!(wait(FailureKind::Server, |failure| failure.should_retry = Some(false)), None);
}

#[test]
fn waits_double_up_to_the_cap_and_jitter_takes_a_quarter_at_most() {
    let failure = Failure::new(FailureKind::Overloaded, "m");
    let waits = |jitter: f64| (0..7).map(|done| POLICY.wait(done, &failure, jitter)).collect::<Vec<_>>();
    let milliseconds = |list: [u64; 6]| list.map(|wait| Some(Duration::from_millis(wait)));
    assert_eq!(waits(0.0)[..6], milliseconds([500, 1000, 2000, 4000, 8000, 8000]));
    assert_eq!(waits(1.0)[..6], milliseconds([375, 750, 1500, 3000, 6000, 6000]));
    assert_eq!(waits(7.5), waits(1.0));
    assert_eq!(waits(0.0)[6], None, "the retries are used up");
    let patient = RetryPolicy { retries: u32::MAX, ..POLICY };
    assert_eq!(patient.wait(u32::MAX - 1, &failure, 0.0), Some(Duration::from_secs(8)));
    assert_eq!(RetryPolicy::NEVER.wait(0, &failure, 0.0), None);
    let standard = (0..3).map(|done| RetryPolicy::STANDARD.wait(done, &failure, 0.0).is_some());
    assert!(standard.eq([true, true, false]));
}

#[test]
fn a_wait_that_the_provider_asks_for_is_kept_exactly_or_not_made() {
    let asked =
        |seconds: u64| move |failure: &mut Failure| failure.retry_after = Some(Duration::from_secs(seconds));
    assert_eq!(wait(FailureKind::RateLimited, asked(0)), Some(0));
    assert_eq!(wait(FailureKind::RateLimited, asked(42)), Some(42_000));
    assert_eq!(wait(FailureKind::RateLimited, asked(300)), Some(300_000));
    assert_eq!(wait(FailureKind::RateLimited, asked(301)), None);
}
