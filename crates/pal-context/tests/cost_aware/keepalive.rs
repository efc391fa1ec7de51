//! Cache keep-alive of the cost-aware policy.

use std::time::Duration;

use pal_context::cost_aware::{CostAwareSettings, KEEPALIVES_PER_PAUSE_MAX, KeepaliveVerdict};
use pal_context::{ContextPolicy, judge_keepalive};
use pal_model::{
    CacheMode, EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCard, ModelCatalog, RequestRecord,
    RequestSource, ResponseRecord, SharedText, Timestamp, Usage,
};
use pal_view::CacheTtl;
use smol_str::SmolStr;

use crate::common::LayerFixture;

/// Settings with keep-alive enabled.
const ON: CostAwareSettings = CostAwareSettings { cache_keepalive: true, ..CostAwareSettings::STANDARD };

const MINUTE: i64 = 60_000;

/// A session of requests at regular intervals.
pub(super) struct PausedSession {
    ids: IdSource,
    pub(super) entries: Vec<LogEntry>,
    pub(super) now: i64,
    pub(super) card: ModelCard,
    ttl: CacheTtl,
    /// Cost of each request.
    cost: f64,
    /// Cached tokens of each request.
    pub(super) tokens: u64,
}

impl PausedSession {
    pub(super) fn new(ttl: CacheTtl) -> PausedSession {
        let card = ModelCatalog::built_in().find("claude-opus-4-6").card;
        let now = 1_800_000_000_000;
        PausedSession {
            ids: IdSource::seeded(4),
            entries: Vec::new(),
            now,
            card,
            ttl,
            cost: 0.5,
            tokens: 90_000,
        }
    }

    pub(super) fn push(&mut self, draft: EntryDraft) {
        let at = Timestamp::from_milliseconds(self.now);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }

    fn asked(&mut self, source: RequestSource, cost: f64) {
        let last = self.entries.last().map(|entry| entry.id);
        let request = RequestRecord {
            cache_ttl: Some(SmolStr::new_static(self.ttl.name())),
            ..RequestRecord::new(source.clone(), last, self.card.model.clone())
        };
        self.push(EntryDraft::request(&request));
        let response = format!("m{}", self.entries.len()).as_str().into();
        if source.is_conversation() {
            let said = r#"[{"type":"text","text":"done"}]"#;
            self.push(EntryDraft::assistant(Some(&response), Some(&self.card.model), said));
        }
        let usage = Usage { cache_read_input_tokens: self.tokens, output_tokens: 10, ..Usage::default() };
        self.push(EntryDraft::response(&ResponseRecord {
            response,
            source,
            model: self.card.model.clone(),
            usage,
            stop_reason: None,
            cost: Some(cost),
            cache_break: None,
        }));
    }

    /// Adds `count` requests, `minutes` minutes apart.
    pub(super) fn requests(mut self, count: usize, minutes: i64) -> PausedSession {
        for _ in 0..count {
            self.now += minutes * MINUTE;
            self.push(EntryDraft::user(MessageOrigin::Person, r#""go on""#));
            self.asked(RequestSource::main(), self.cost);
        }
        self
    }

    /// Adds a keep-alive request when it is due.
    pub(super) fn pinged(mut self, cost: f64) -> PausedSession {
        self.now += 270_000;
        self.asked(RequestSource::keepalive(), cost);
        self
    }

    /// Verdict on a keep-alive after `seconds` seconds.
    fn judged_after(&self, seconds: u64, settings: CostAwareSettings) -> KeepaliveVerdict {
        let mut setting = LayerFixture::from_entries(self.card.clone(), self.entries.clone());
        setting.policy = ContextPolicy::cost_aware(settings);
        setting.now = Timestamp::from_milliseconds(self.now).after(Duration::from_secs(seconds));
        judge_keepalive(&setting.context())
    }

    fn judged(&self) -> KeepaliveVerdict {
        self.judged_after(275, ON)
    }
}

/// A session whose pauses are often a little longer than the TTL.
fn usual() -> PausedSession {
    PausedSession::new(CacheTtl::Hour1ThenMinutes5).requests(60, 1).requests(20, 7)
}

#[track_caller]
fn check(rested: &PausedSession, words: &str) {
    let ping = rested.judged();
    assert!(!ping.is_worth_it && ping.reason.contains(words), "{ping:?}");
}

#[test]
fn keepalive_pays_if_pauses_slightly_exceed_the_ttl() {
    for minutes in 6..=9 {
        let rested = PausedSession::new(CacheTtl::Minutes5).requests(60, 1).requests(20, minutes);
        let ping = rested.judged();
        assert!(ping.is_worth_it && ping.price > 0.0 && ping.saves > ping.price, "{minutes}: {ping:?}");
        assert!(ping.reason.contains(": worth a keep-alive request"), "{}", ping.reason);
    }
    assert!(usual().judged().is_worth_it);
}

#[test]
fn keepalive_does_not_pay_for_short_or_long_pauses() {
    check(&PausedSession::new(CacheTtl::Minutes5).requests(400, 1), "not worth");
    check(&PausedSession::new(CacheTtl::Minutes5).requests(200, 1).requests(60, 90), "not worth");
}

#[test]
fn at_most_two_keepalives_per_pause() {
    let mut rested = usual();
    for sent in 0..KEEPALIVES_PER_PAUSE_MAX {
        assert!(rested.judged().is_worth_it, "after {sent}");
        rested = rested.pinged(0.05);
    }
    check(&rested, "at most 2 keep-alive requests");
    // The next request begins another pause.
    assert!(rested.requests(1, 1).judged().is_worth_it);
}

#[test]
fn keepalives_cost_at_most_a_share_of_the_session() {
    let mut rested = PausedSession::new(CacheTtl::Minutes5).requests(60, 1).requests(20, 7);
    rested = rested.pinged(3.9).requests(1, 1);
    check(&rested, "exceed 5% of the session's cost");
    let cheap = PausedSession { cost: 0.0, ..PausedSession::new(CacheTtl::Minutes5) };
    check(&cheap.requests(60, 1).requests(20, 7), "exceed 5% of the session's cost");
}

#[test]
fn keepalive_needs_five_minute_ttl_and_leaves_just_before_expiry() {
    check(&PausedSession::new(CacheTtl::Hour1).requests(60, 1).requests(20, 7), "no messages are cached");
    let mut automatic = usual();
    automatic.card = ModelCard { caching: CacheMode::Automatic, ..automatic.card };
    check(&automatic, "no messages are cached");
    let mut another = usual();
    let other = SmolStr::new_static("claude-opus-5");
    another.card = ModelCard { model: other.clone(), name: other, ..another.card };
    check(&another, "no messages are cached");
    let judged = |seconds| usual().judged_after(seconds, ON);
    assert!(judged(200).reason.contains("still warm") && judged(301).reason.contains("already expired"));
    // A keep-alive refreshes the cache but is no request of the conversation.
    let pinged = usual().pinged(0.05);
    assert!(pinged.judged_after(200, ON).reason.contains("still warm"));
    assert!(pinged.judged().reason.starts_with("after 9 minutes"), "{}", pinged.judged().reason);
    let off = usual()
        .judged_after(275, CostAwareSettings { cache_keepalive: false, ..CostAwareSettings::STANDARD });
    assert!(!off.is_worth_it && off.reason.contains("switched off"));
}

#[test]
fn keepalive_keeps_the_cache_warm() {
    let is_cold = |rested: &PausedSession, seconds| {
        let mut setting = LayerFixture::from_entries(rested.card.clone(), rested.entries.clone());
        setting.policy.cost_aware = Some(ON);
        setting.policy.cold_after = Duration::from_secs(300);
        setting.now = Timestamp::from_milliseconds(rested.now).after(Duration::from_secs(seconds));
        setting.context().is_cold()
    };
    let rested = usual();
    let pauses = |rested: &PausedSession| {
        let setting = LayerFixture::from_entries(rested.card.clone(), rested.entries.clone());
        setting.view.state().activity.pauses
    };
    let before = pauses(&rested);
    assert!(!is_cold(&rested, 299) && is_cold(&rested, 301));
    let pinged = rested.pinged(0.05);
    assert!(!is_cold(&pinged, 299) && is_cold(&pinged, 301));
    assert_eq!(pauses(&pinged), before, "no request of the conversation");
    assert_eq!(pauses(&pinged.requests(1, 2))[1], before[1] + 1, "the whole pause counts");
}
