//! Collectors that are down, refuse or hang: the session does not wait, and the user is told once.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use pal_telemetry::{Telemetry, TelemetryTargetError};
use pal_testkit::{Collector, Manner};

use crate::sample_events::{events, export, target};

#[test]
fn a_collector_that_is_away_costs_nothing_and_is_told_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let begun = Instant::now();
    let told = export(&address, false).unwrap();
    assert!(told.contains("nothing listens there"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn a_silent_collector_keeps_the_end_back_for_two_seconds_at_most() {
    let collector = Collector::start(Manner::Silent);
    let mut telemetry = Telemetry::start(target(collector.address(), false)).unwrap();
    let begun = Instant::now();
    for event in events().iter().cycle().take(50_000) {
        telemetry.event(event);
    }
    let recorded = begun.elapsed();
    assert!(recorded < Duration::from_secs(5), "recording waited for the collector: {recorded:?}");
    let begun = Instant::now();
    let told = telemetry.finish().unwrap();
    assert!(told.contains("did not answer in time"), "{told}");
    assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
}

#[test]
fn a_refusal_is_told_by_its_status_and_without_the_key() {
    let collector = Collector::start(Manner::Refuses);
    let told = export(collector.address(), false).unwrap();
    assert!(told.contains("403") && told.contains("telemetry.endpoint") && !told.contains("abc"), "{told}");
}

#[test]
fn addresses_that_make_no_sense_are_refused_at_once() {
    let refused = |endpoint: &str| Telemetry::start(target(endpoint, false)).err();
    assert_eq!(refused("nowhere"), Some(TelemetryTargetError::Address));
    assert_eq!(refused("http://example.org"), Some(TelemetryTargetError::PlainHttp));
}
