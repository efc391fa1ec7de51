//! When the policy that goes by price keeps the cache warm.

use std::time::Duration;

use pal_context::thrifty::{PINGS_MOST, Ping, Thrift};
use pal_context::{Policy, ping};
use pal_model::{
    Caching, Card, Cards, Draft, Entry, IdSource, Origin, RequestSent, ResponseGot, Source, Text, Timestamp,
    Usage,
};
use pal_view::CacheLifetime;
use smol_str::SmolStr;

use crate::common::Setting;

/// Pings are sent where they are worth it.
const ON: Thrift = Thrift { pings: true, ..Thrift::STANDARD };

const MINUTE: i64 = 60_000;

/// A session whose requests come after so many minutes each, one after the other.
struct Rested {
    ids: IdSource,
    entries: Vec<Entry>,
    now: i64,
    card: Card,
    lifetime: CacheLifetime,
    /// What each request costs.
    cost: f64,
}

impl Rested {
    fn new(lifetime: CacheLifetime) -> Rested {
        let card = Cards::shipped().find("claude-opus-4-6").card;
        let now = 1_800_000_000_000;
        Rested { ids: IdSource::seeded(4), entries: Vec::new(), now, card, lifetime, cost: 0.5 }
    }

    fn push(&mut self, draft: Draft) {
        let at = Timestamp::from_milliseconds(self.now);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(Entry::parse(Text::from(line)).unwrap());
    }

    fn asked(&mut self, source: Source, cost: f64) {
        let last = self.entries.last().map(|entry| entry.id);
        let request = RequestSent {
            lifetime: Some(SmolStr::new_static(self.lifetime.name())),
            ..RequestSent::plain(source.clone(), last, self.card.model.clone())
        };
        self.push(Draft::request(&request));
        let response = format!("m{}", self.entries.len()).as_str().into();
        if source.is_conversation() {
            let said = r#"[{"type":"text","text":"done"}]"#;
            self.push(Draft::assistant(Some(&response), Some(&self.card.model), said));
        }
        let usage = Usage { cache_read_input_tokens: 90_000, output_tokens: 10, ..Usage::default() };
        self.push(Draft::response(&ResponseGot {
            response,
            source,
            model: self.card.model.clone(),
            usage,
            stop_reason: None,
            cost: Some(cost),
            cache_break: None,
        }));
    }

    /// So many requests after so many minutes each.
    fn requests(mut self, count: usize, minutes: i64) -> Rested {
        for _ in 0..count {
            self.now += minutes * MINUTE;
            self.push(Draft::user(Origin::Person, r#""go on""#));
            self.asked(Source::main(), self.cost);
        }
        self
    }

    /// A ping when it is due.
    fn pinged(mut self, cost: f64) -> Rested {
        self.now += 270_000;
        self.asked(Source::ping(), cost);
        self
    }

    /// What is thought of a ping when so many seconds have passed.
    fn judged_after(&self, seconds: u64, thrift: Thrift) -> Ping {
        let mut setting = Setting::from_entries(self.card.clone(), self.entries.clone());
        setting.policy = Policy::thrifty(thrift);
        setting.now = Timestamp::from_milliseconds(self.now).after(Duration::from_secs(seconds));
        ping(&setting.situation())
    }

    fn judged(&self) -> Ping {
        self.judged_after(275, ON)
    }
}

/// A session that has often paused a little longer than its cache lasts.
fn usual() -> Rested {
    Rested::new(CacheLifetime::Hour1ThenMinutes5).requests(60, 1).requests(20, 7)
}

#[track_caller]
fn check(rested: &Rested, words: &str) {
    let ping = rested.judged();
    assert!(!ping.is_worth_it && ping.reason.contains(words), "{ping:?}");
}

#[test]
fn a_ping_is_worth_it_where_pauses_are_a_little_longer_than_the_cache_lasts() {
    for minutes in 6..=9 {
        let rested = Rested::new(CacheLifetime::Minutes5).requests(60, 1).requests(20, minutes);
        let ping = rested.judged();
        assert!(ping.is_worth_it && ping.price > 0.0 && ping.saves > ping.price, "{minutes}: {ping:?}");
        assert!(ping.reason.contains(": worth a ping"), "{}", ping.reason);
    }
    assert!(usual().judged().is_worth_it);
}

#[test]
fn where_pauses_are_always_short_or_always_long_it_is_not() {
    check(&Rested::new(CacheLifetime::Minutes5).requests(400, 1), "not worth");
    check(&Rested::new(CacheLifetime::Minutes5).requests(200, 1).requests(60, 90), "not worth");
}

#[test]
fn a_pause_has_two_pings_at_most() {
    let mut rested = usual();
    for sent in 0..PINGS_MOST {
        assert!(rested.judged().is_worth_it, "after {sent}");
        rested = rested.pinged(0.05);
    }
    check(&rested, "2 pings in one pause");
    // With the next request another pause begins.
    assert!(rested.requests(1, 1).judged().is_worth_it);
}

#[test]
fn pings_cost_at_most_a_share_of_the_session() {
    let mut rested = Rested::new(CacheLifetime::Minutes5).requests(60, 1).requests(20, 7);
    rested = rested.pinged(3.9).requests(1, 1);
    check(&rested, "more than 5 % of the session");
    let cheap = Rested { cost: 0.0, ..Rested::new(CacheLifetime::Minutes5) };
    check(&cheap.requests(60, 1).requests(20, 7), "more than 5 % of the session");
}

#[test]
fn only_marks_of_five_minutes_are_kept_alive_and_only_shortly_before_they_end() {
    check(&Rested::new(CacheLifetime::Hour1).requests(60, 1).requests(20, 7), "no messages are kept");
    let mut automatic = usual();
    automatic.card = Card { caching: Caching::Automatic, ..automatic.card };
    check(&automatic, "no messages are kept");
    let mut another = usual();
    another.card = Card { model: SmolStr::new_static("claude-opus-5"), ..another.card };
    check(&another, "no messages are kept");
    let judged = |seconds| usual().judged_after(seconds, ON);
    assert!(judged(200).reason.contains("stays warm") && judged(301).reason.contains("lost already"));
    // A ping counts as what keeps the cache warm, not as a request.
    let pinged = usual().pinged(0.05);
    assert!(pinged.judged_after(200, ON).reason.contains("stays warm"));
    assert!(pinged.judged().reason.starts_with("after 9 minutes"), "{}", pinged.judged().reason);
    let off = usual().judged_after(275, Thrift { pings: false, ..Thrift::STANDARD });
    assert!(!off.is_worth_it && off.reason.contains("switched off"));
}

#[test]
fn what_a_ping_kept_warm_is_not_cold() {
    let is_cold = |rested: &Rested, seconds| {
        let mut setting = Setting::from_entries(rested.card.clone(), rested.entries.clone());
        setting.policy.thrift = Some(ON);
        setting.policy.cold_after = Duration::from_secs(300);
        setting.now = Timestamp::from_milliseconds(rested.now).after(Duration::from_secs(seconds));
        setting.situation().is_cold()
    };
    let rested = usual();
    let pauses = |rested: &Rested| {
        let setting = Setting::from_entries(rested.card.clone(), rested.entries.clone());
        setting.view.state().rhythm.pauses
    };
    let before = pauses(&rested);
    assert!(!is_cold(&rested, 299) && is_cold(&rested, 301));
    let pinged = rested.pinged(0.05);
    assert!(!is_cold(&pinged, 299) && is_cold(&pinged, 301));
    assert_eq!(pauses(&pinged), before, "no request of the conversation");
    assert_eq!(pauses(&pinged.requests(1, 2))[1], before[1] + 1, "the whole pause counts");
}
