//! Costs and savings of keepalive requests.

use std::path::PathBuf;

use pal_context::cost_aware::CostAwareSettings;
use pal_eval::replay::{ReplayOptions, ReplayReport, ReplayTotals, RestartPoint, replay, replay_watched};
use pal_model::RequestSource;
use pal_testkit::{map_on_all_cores, session_files};
use pal_view::CacheTtl;

use crate::sessions::{cost_aware, recorded};
use crate::synthetic_sessions::Made;

fn with_pings(window: Option<u64>, pings: bool) -> ReplayOptions {
    let layers = pal_context::ContextPolicy::cost_aware(CostAwareSettings {
        cache_keepalive: pings,
        ..CostAwareSettings::STANDARD
    });
    // With the choice among TTLs, an hour takes over after the first pause.
    ReplayOptions { layers, cache_ttl: Some(CacheTtl::Minutes5), ..cost_aware(window) }
}

fn cost(measured: &ReplayTotals) -> f64 {
    measured.cost_usd.unwrap_or(0.0)
}

/// A session with a pause of this number of minutes before every twelfth request, after a long user message.
fn with_pauses(minutes: i64) -> pal_eval::replay::RecordedSession {
    let mut made = Made::new(12_000);
    made.person("Go on.");
    // Turns without a pause: the first long one does not yet decide the TTL.
    for _ in 0..8 {
        made.turn(20);
        made.person("Go on.");
    }
    for number in 0..144 {
        if number % 12 == 11 {
            made.wait(60 * minutes);
            made.person(&"These words matter. ".repeat(1_500));
        }
        made.turn(20);
    }
    made.recorded()
}

#[test]
fn pings_are_sent_where_pauses_are_a_little_longer_than_the_cache_lasts() {
    let recorded = with_pauses(7);
    let run = |pings: bool| replay(&recorded, &with_pings(None, pings)).unwrap();
    let (without, with) = (run(false), run(true));
    assert!(without.pings.is_none());
    let sent = with.pings.unwrap();
    assert!(sent.responses > 1 && cost(&sent) > 0.0, "{sent:?}");
    // They never cost more than their share of the session.
    assert!(cost(&sent) < 0.05 * cost(&without.measured), "{sent:?}\n{without:?}");
    assert_eq!((with.rejected, with.lost.len()), (0, 0));
    let of_conversation = |report: &ReplayReport| report.requests - report.compactions.len() as u64;
    assert_eq!(
        of_conversation(&with),
        of_conversation(&without) + sent.responses,
        "pings are requests like others"
    );
    // What they repeat they read, and nothing of it is written.
    assert!(sent.cache_hit_ratio >= 0.98 && sent.tokens.cache_write == 0, "{sent:?}");
    // The user never comes back in time here, and the policy chooses an hour.
    let chosen = ReplayOptions { cache_ttl: None, ..with_pings(None, true) };
    let late = replay(&with_pauses(50), &chosen).unwrap();
    assert!(late.pings.is_none(), "{:?}", late.pings);
}

#[test]
fn a_session_that_is_opened_again_knows_of_its_pings() {
    let recorded = with_pauses(7);
    let bodies = |restart: RestartPoint| {
        let (mut bodies, mut pings) = (Vec::new(), 0);
        let options = ReplayOptions { restart, ..with_pings(None, true) };
        replay_watched(&recorded, &options, &mut |step| {
            bodies.push(step.body.to_owned());
            pings = step.view.state().keepalive.sent;
        })
        .unwrap();
        (bodies, pings)
    };
    let through = bodies(RestartPoint::Never);
    assert!(through.1 > 1);
    assert!(bodies(RestartPoint::EveryTurn) == through);
    assert!(
        through.0.iter().all(|body| !body.contains("Nothing is to be done yet")),
        "no ping is ever shown"
    );
}

#[test]
fn pings_are_in_the_log_under_their_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("session");
    let report =
        replay(&with_pauses(7), &ReplayOptions { out: Some(out.clone()), ..with_pings(None, true) }).unwrap();
    let log = pal_store::LogReader::open(&out.join("log.jsonl")).unwrap().whole_branch().unwrap();
    let ledger = pal_context::CostLedger::from_entries(&log.entries, &pal_model::ModelCatalog::built_in());
    let (_, sums) =
        ledger.by_source.iter().find(|(source, _)| *source == RequestSource::keepalive()).unwrap();
    let sent = report.pings.unwrap();
    assert_eq!(sums.requests, sent.responses);
    assert!((sums.cost - cost(&sent)).abs() < 1e-9, "{sums:?}");
    // A ping that kept the cache warm is why no read fell behind it.
    let pinged = ledger.rows.iter().position(|row| row.source == RequestSource::keepalive()).unwrap();
    assert!(ledger.rows[pinged].drop.is_none() && ledger.rows[pinged + 1].drop.is_none());
}

/// Prints what pings cost and save on every recorded session of Claude.
#[test]
#[ignore = "prints figures of all sessions, which takes minutes"]
fn figures_of_pings() {
    let is_claude = |file: &PathBuf| file.components().any(|part| part.as_os_str() == "claude");
    let files: Vec<PathBuf> = session_files().into_iter().filter(is_claude).collect();
    let run = |pings: bool| {
        map_on_all_cores(&files, |file| replay(&recorded(file), &with_pings(Some(1_000_000), pings)).unwrap())
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
    let sum = |reports: &[ReplayReport]| reports.iter().map(|report| cost(&report.measured)).sum::<f64>();
    println!("without {:.2}, with {:.2}: {pings} pings for {spent:.2}", sum(&without), sum(&with));
}
