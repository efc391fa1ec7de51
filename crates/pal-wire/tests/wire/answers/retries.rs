//! Retried failures and their delays.

use std::time::Duration;

use pal_wire::{FailureKind, ProviderFailure, RetryPolicy};

const POLICY: RetryPolicy = RetryPolicy { max_retries: 6, ..RetryPolicy::STANDARD };

fn wait(kind: FailureKind, change: impl FnOnce(&mut ProviderFailure)) -> Option<u64> {
    let mut failure = ProviderFailure::new(kind, "m");
    change(&mut failure);
    POLICY.retry_delay(0, &failure, 0.0).map(|wait| wait.as_millis() as u64)
}

#[test]
fn transient_failures_are_retried_and_permanent_ones_are_not() {
    use FailureKind::*;
    for kind in [Conflict, RateLimited, Overloaded, Server, Timeout, Connection, Cut, Silent, Malformed] {
        assert_eq!(wait(kind, |_| ()), Some(500), "{kind:?}");
    }
    let length = TooLong(pal_model::ContextOverflow::UNKNOWN);
    for kind in [length, TooLarge, Invalid, Authentication, Billing, Permission, NotFound] {
        assert_eq!(wait(kind, |_| ()), None, "{kind:?}");
    }
}

#[test]
fn should_retry_header_overrides_the_kind() {
    assert_eq!(wait(FailureKind::Invalid, |failure| failure.should_retry = Some(true)), Some(500));
    assert_eq!(wait(FailureKind::Server, |failure| failure.should_retry = Some(false)), None);
}

#[test]
fn delays_double_up_to_the_maximum_with_a_quarter_of_jitter() {
    let failure = ProviderFailure::new(FailureKind::Overloaded, "m");
    let waits =
        |jitter: f64| (0..7).map(|done| POLICY.retry_delay(done, &failure, jitter)).collect::<Vec<_>>();
    let milliseconds = |list: [u64; 6]| list.map(|wait| Some(Duration::from_millis(wait)));
    assert_eq!(waits(0.0)[..6], milliseconds([500, 1000, 2000, 4000, 8000, 8000]));
    assert_eq!(waits(1.0)[..6], milliseconds([375, 750, 1500, 3000, 6000, 6000]));
    assert_eq!(waits(7.5), waits(1.0));
    assert_eq!(waits(0.0)[6], None, "the retries are used up");
    let patient = RetryPolicy { max_retries: u32::MAX, ..POLICY };
    assert_eq!(patient.retry_delay(u32::MAX - 1, &failure, 0.0), Some(Duration::from_secs(8)));
    assert_eq!(RetryPolicy::NEVER.retry_delay(0, &failure, 0.0), None);
    let standard = (0..3).map(|done| RetryPolicy::STANDARD.retry_delay(done, &failure, 0.0).is_some());
    assert!(standard.eq([true, true, false]));
}

#[test]
fn retry_after_is_kept_exactly_or_refused() {
    let asked = |seconds: u64| {
        move |failure: &mut ProviderFailure| failure.retry_after = Some(Duration::from_secs(seconds))
    };
    assert_eq!(wait(FailureKind::RateLimited, asked(0)), Some(0));
    assert_eq!(wait(FailureKind::RateLimited, asked(42)), Some(42_000));
    assert_eq!(wait(FailureKind::RateLimited, asked(300)), Some(300_000));
    assert_eq!(wait(FailureKind::RateLimited, asked(301)), None);
}
