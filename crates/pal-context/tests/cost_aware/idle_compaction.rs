//! Idle compaction: when it is due, what it is worth, and what forbids it.

use std::time::Duration;

use pal_context::cost_aware::{CostAwareSettings, IdleCompactionVerdict};
use pal_context::{ContextPolicy, judge_idle_compaction};
use pal_model::{CacheMode, ModelCard, Timestamp};
use pal_view::{CacheTtl, WindowLimits, WindowSettings};

use super::keepalive::PausedSession;
use crate::common::LayerFixture;

fn paused(ttl: CacheTtl, tokens: u64) -> PausedSession {
    let mut session = PausedSession::new(ttl);
    session.tokens = tokens;
    session
}

/// The session as a layer sees it, `seconds` seconds after its last entry.
fn fixture(session: &PausedSession, seconds: u64) -> LayerFixture {
    let mut setting = LayerFixture::from_entries(session.card.clone(), session.entries.clone());
    setting.policy = ContextPolicy::cost_aware(CostAwareSettings::STANDARD);
    setting.now = Timestamp::from_milliseconds(session.now).after(Duration::from_secs(seconds));
    setting
}

fn judged_after(session: &PausedSession, seconds: u64) -> IdleCompactionVerdict {
    judge_idle_compaction(&fixture(session, seconds).context())
}

#[track_caller]
fn check_refused(verdict: &IdleCompactionVerdict, words: &str) {
    assert!(!verdict.is_worth_it && verdict.reason.contains(words), "{verdict:?}");
}

#[test]
fn a_large_context_is_compacted_before_the_cache_expires() {
    let session = paused(CacheTtl::Minutes5, 150_000).requests(60, 1);
    let verdict = judged_after(&session, 275);
    assert!(verdict.is_worth_it && verdict.saves > verdict.price, "{verdict:?}");
    assert!(verdict.reason.starts_with("the cache expires in 25 seconds;"), "{}", verdict.reason);
    // 150,000 read at $0.50 per million, and 5,000 written at $25.
    assert!((verdict.price - 0.20).abs() < 0.002, "{verdict:?}");
    let larger = judged_after(&paused(CacheTtl::Minutes5, 160_000).requests(60, 1), 275);
    assert!(larger.saves > verdict.saves, "{larger:?}");
}

#[test]
fn a_small_context_is_left_alone() {
    for tokens in [2_000, 15_000, 20_000] {
        check_refused(&judged_after(&paused(CacheTtl::Minutes5, tokens).requests(60, 1), 275), "too few");
    }
    check_refused(&judged_after(&paused(CacheTtl::Minutes5, 25_000).requests(60, 1), 275), "not worth");
}

#[test]
fn it_is_due_shortly_before_the_ttl_of_the_messages() {
    let due_after = |ttl: CacheTtl| {
        let session = paused(ttl, 150_000).requests(60, 1);
        let verdict = judged_after(&session, 10);
        check_refused(&verdict, "still warm");
        (verdict.due.unwrap().milliseconds() - session.now) / 1_000
    };
    assert_eq!(due_after(CacheTtl::Minutes5), 270);
    assert_eq!(due_after(CacheTtl::Hour1ThenMinutes5), 270);
    assert_eq!(due_after(CacheTtl::Hour1), 3_480);
    let session = paused(CacheTtl::Minutes5, 150_000).requests(60, 1);
    check_refused(&judged_after(&session, 301), "already expired");
    // A keep-alive postpones it.
    let pinged = session.pinged(0.05);
    check_refused(&judged_after(&pinged, 200), "still warm");
    assert!(judged_after(&pinged, 275).is_worth_it);
}

#[test]
fn after_an_hour_it_pays_if_the_user_comes_back() {
    let session = paused(CacheTtl::Hour1, 150_000).requests(60, 1).requests(20, 90);
    let verdict = judged_after(&session, 3_500);
    assert!(verdict.is_worth_it, "{verdict:?}");
    // A session that has never paused so long is likely over.
    let steady = judged_after(&paused(CacheTtl::Hour1, 150_000).requests(400, 1), 3_500);
    check_refused(&steady, "not worth");
    assert!(steady.saves < verdict.saves);
}

#[test]
fn settings_hooks_and_providers_can_forbid_it() {
    let session = paused(CacheTtl::Minutes5, 150_000).requests(60, 1);
    let judge = |change: fn(&mut LayerFixture)| {
        let mut setting = fixture(&session, 275);
        change(&mut setting);
        judge_idle_compaction(&setting.context())
    };
    check_refused(&judge(|setting| setting.policy.idle_compaction = false), "switched off");
    check_refused(&judge(|setting| setting.policy.reactive_only = true), "automatic compaction");
    check_refused(&judge(|setting| setting.blocked_by = Some("guard")), "the hook `guard` forbids");
    let manual = |setting: &mut LayerFixture| {
        let settings = WindowSettings { auto_compact: false, ..WindowSettings::STANDARD };
        setting.limits = WindowLimits::new(&setting.view.lens().card, &settings);
    };
    check_refused(&judge(manual), "automatic compaction");
    let mut automatic = paused(CacheTtl::Minutes5, 150_000).requests(60, 1);
    automatic.card = ModelCard { caching: CacheMode::Automatic, ..automatic.card };
    check_refused(&judged_after(&automatic, 275), "no messages of the conversation are cached");
}

#[test]
fn thresholds_alone_do_not_compact_in_pauses() {
    let session = paused(CacheTtl::Minutes5, 150_000).requests(60, 1);
    let mut setting = fixture(&session, 275);
    setting.policy = ContextPolicy::threshold();
    check_refused(&judge_idle_compaction(&setting.context()), "switched off");
    // The setting switches it on for them, too.
    setting.policy.idle_compaction = true;
    assert!(judge_idle_compaction(&setting.context()).is_worth_it);
}
