//! The cache against a second reading of its rules, slow and plain: prefixes are compared block by block, and every
//! entry is a list.

use std::borrow::Cow;

use pal_model::{Card, Cards, Role, Timestamp};
use proptest::prelude::*;

use super::{PrefixCache, Served};
use crate::entries::Lives;
use crate::facts::{Facts, Kind, Memo};
use crate::prompt::{Layer, Levels, Lifetime, Piece, Prompt};
use crate::tokens::{ANSWER_TOKENS, MESSAGE_TOKENS, TOOLS_TOKENS};

/// A block of a made-up request.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    layer: Layer,
    kind: Kind,
    content: u8,
    message: usize,
}

impl Item {
    fn raw(&self) -> String {
        let words = "some words of a long text ".repeat(10 + usize::from(self.content) * 7);
        let content = format!("{} {words}", self.content);
        match self.kind {
            Kind::Tool => format!(
                r#"{{"name":"t{}","description":"{content}","input_schema":{{"type":"object"}}}}"#,
                self.content
            ),
            Kind::ToolUse => {
                format!(r#"{{"type":"tool_use","id":"i","name":"n","input":{{"x":"{content}"}}}}"#)
            }
            Kind::ToolResult => {
                format!(r#"{{"type":"tool_result","tool_use_id":"i","content":"{content}"}}"#)
            }
            Kind::Thinking => format!(r#"{{"type":"thinking","thinking":"{content}","signature":"c2ln"}}"#),
            _ => format!(r#"{{"type":"text","text":"{content}"}}"#),
        }
    }

    fn role(&self) -> Role {
        if self.message.is_multiple_of(2) { Role::User } else { Role::Assistant }
    }
}

/// One request.
#[derive(Clone, Debug)]
struct Step {
    items: Vec<Item>,
    marks: Vec<(usize, Lifetime)>,
    levels: Levels,
    automatic: Option<Lifetime>,
    first_byte: i64,
}

#[derive(Clone)]
struct PlainEntry {
    items: Vec<Item>,
    levels: (u128, Option<u128>, Option<u128>),
    lifetime: Lifetime,
    readable: i64,
    expires: i64,
}

#[derive(Default)]
struct Plain {
    entries: Vec<PlainEntry>,
}

impl Plain {
    /// The parameters that a prefix depends on.
    fn levels(step: &Step, end: usize) -> (u128, Option<u128>, Option<u128>) {
        let reaches = |layer| step.items[..=end].iter().any(|item| item.layer >= layer);
        (
            step.levels.tools,
            reaches(Layer::System).then_some(step.levels.system),
            reaches(Layer::Messages).then_some(step.levels.messages),
        )
    }

    fn find(&self, step: &Step, end: usize, now: i64) -> Option<usize> {
        self.entries.iter().position(|entry| {
            entry.items == step.items[..=end]
                && entry.levels == Plain::levels(step, end)
                && entry.readable <= now
                && entry.expires > now
        })
    }

    /// Positions between two blocks: steps from one to the one before, but those inside a run.
    fn distance(items: &[Item], from: usize, to: usize) -> u64 {
        (to..from)
            .filter(|at| {
                let (before, after) = (&items[*at], &items[at + 1]);
                let is_run =
                    before.kind == after.kind && matches!(after.kind, Kind::ToolUse | Kind::ToolResult);
                !is_run
            })
            .count() as u64
    }

    /// Tokens read, written for five minutes and for an hour, and neither.
    fn serve(&mut self, step: &Step, card: &Card, now: i64) -> (u64, u64, u64, u64) {
        let mut memo = Memo::default();
        let widths: Vec<u64> =
            step.items.iter().map(|item| facts(item, &mut memo).tokens(card.generation)).collect();
        let tokens_to = |end: usize| -> u64 {
            let items = &step.items[..=end];
            let blocks: u64 = widths[..=end].iter().sum();
            let mut messages: Vec<usize> =
                items.iter().filter(|item| item.layer == Layer::Messages).map(|item| item.message).collect();
            messages.dedup();
            let has_tools = items.iter().any(|item| item.kind == Kind::Tool);
            blocks + messages.len() as u64 * MESSAGE_TOKENS + if has_tools { TOOLS_TOKENS } else { 0 }
        };
        let mut marks = step.marks.clone();
        if let Some(lifetime) = step.automatic
            && let Some(last) = step.items.iter().rposition(|item| item.kind != Kind::Thinking)
            && !marks.iter().any(|(at, _)| *at == last)
        {
            marks.push((last, lifetime));
        }
        marks.sort_by_key(|(at, _)| *at);
        marks.retain(|(at, _)| tokens_to(*at) >= card.min_cacheable);
        let mut best: Option<usize> = None;
        for (mark, _) in &marks {
            for end in (0..=*mark).rev() {
                if Plain::distance(&step.items, *mark, end) >= card.look_back {
                    break;
                }
                if let Some(found) = self.find(step, end, now) {
                    let entry = &mut self.entries[found];
                    entry.expires = entry.expires.max(now + entry.lifetime.milliseconds());
                    best = best.max(Some(end));
                    break;
                }
            }
        }
        let read = best.map_or(0, tokens_to);
        let last = |wanted| {
            marks.iter().rev().find(|(_, lifetime)| *lifetime == wanted).map_or(0, |(at, _)| tokens_to(*at))
        };
        let long = last(Lifetime::OneHour).saturating_sub(read);
        let short = last(Lifetime::FiveMinutes).saturating_sub(read + long);
        let all = step.items.len().checked_sub(1).map_or(0, tokens_to) + ANSWER_TOKENS;
        for (at, lifetime) in marks {
            if self.find(step, at, now).is_some() {
                continue;
            }
            let mine = (step.items[..=at].to_vec(), Plain::levels(step, at));
            let waiting = self
                .entries
                .iter_mut()
                .find(|entry| (&entry.items, &entry.levels) == (&mine.0, &mine.1) && entry.expires > now);
            let (readable, expires) = (now + step.first_byte, now + lifetime.milliseconds());
            match waiting {
                Some(entry) => {
                    entry.lifetime = entry.lifetime.max(lifetime);
                    entry.readable = entry.readable.min(readable);
                    entry.expires = entry.expires.max(expires);
                }
                None => self.entries.push(PlainEntry {
                    items: mine.0,
                    levels: mine.1,
                    lifetime,
                    readable,
                    expires,
                }),
            }
        }
        (read, short, long, all - read - short - long)
    }
}

fn facts(item: &Item, memo: &mut Memo) -> Facts {
    if item.kind == Kind::Tool { memo.tool(&item.raw()) } else { memo.block(&item.raw()) }
}

fn prompt(step: &Step, memo: &mut Memo) -> Prompt<'static> {
    let piece = |(at, item): (usize, &Item)| Piece {
        layer: item.layer,
        role: item.role(),
        message: item.message,
        index: 0,
        raw: Cow::Owned(item.raw()),
        facts: facts(item, memo),
        mark: step.marks.iter().find(|(mark, _)| *mark == at).map(|(_, lifetime)| *lifetime),
        id: Cow::Borrowed(""),
        name: Cow::Borrowed(""),
        is_turn_scoped: false,
        is_rendered: true,
    };
    let pieces = step.items.iter().enumerate().map(piece).collect();
    Prompt { pieces, deferred: Vec::new(), levels: step.levels, automatic: step.automatic }
}

/// A change from one request to the next.
#[derive(Clone, Debug)]
enum Change {
    Append(Vec<(usize, u8)>),
    Edit(prop::sample::Index, u8),
    CutOff(prop::sample::Index),
    Level(usize, u8),
}

fn changes() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => prop::collection::vec((0..4usize, 0..3u8), 1..12).prop_map(Change::Append),
        1 => (any::<prop::sample::Index>(), 0..3u8).prop_map(|(at, content)| Change::Edit(at, content)),
        1 => any::<prop::sample::Index>().prop_map(Change::CutOff),
        1 => (0..3usize, 0..2u8).prop_map(|(level, value)| Change::Level(level, value)),
    ]
}

fn lifetimes() -> impl Strategy<Value = Lifetime> {
    prop_oneof![Just(Lifetime::FiveMinutes), Just(Lifetime::OneHour)]
}

type Plan = (Change, Vec<(prop::sample::Index, Lifetime)>, Option<Lifetime>, i64, i64);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let marks = prop::collection::vec((any::<prop::sample::Index>(), lifetimes()), 0..4);
    let gaps = prop::sample::select(vec![0, 500, 1_000, 120_000, 299_999, 300_000, 3_000_000, 3_600_000]);
    let waits = prop::sample::select(vec![0, 0, 700, 30_000, 400_000]);
    prop::collection::vec((changes(), marks, prop::option::of(lifetimes()), gaps, waits), 1..24)
}

fn start() -> Vec<Item> {
    let item = |layer, kind, content| Item { layer, kind, content, message: 0 };
    vec![
        item(Layer::Tools, Kind::Tool, 0),
        item(Layer::Tools, Kind::Tool, 1),
        item(Layer::System, Kind::Text, 0),
        item(Layer::Messages, Kind::Text, 0),
    ]
}

fn apply(items: &mut Vec<Item>, levels: &mut Levels, change: &Change) {
    match change {
        Change::Append(blocks) => {
            for (kind, content) in blocks {
                let kind = [Kind::Text, Kind::ToolUse, Kind::ToolResult, Kind::Thinking][*kind];
                let last = items.last().map_or(0, |item| item.message);
                let message = last + usize::from(*content == 0);
                items.push(Item { layer: Layer::Messages, kind, content: *content, message });
            }
        }
        Change::Edit(at, content) => {
            let at = at.index(items.len());
            items[at].content = *content;
        }
        Change::CutOff(at) => items.truncate(4 + at.index(items.len())),
        Change::Level(0, value) => levels.tools = u128::from(*value),
        Change::Level(1, value) => levels.system = u128::from(*value),
        Change::Level(_, value) => levels.messages = u128::from(*value),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(64)))]

    #[test]
    fn any_sequence_of_requests_is_served_as_the_rules_say(plans in plans()) {
        let card = Card { min_cacheable: 300, look_back: 5, ..Cards::shipped().find("claude-opus-5-5").card };
        let (mut cache, mut plain, mut memo) = (PrefixCache::default(), Plain::default(), Memo::default());
        let (mut items, mut levels, mut now) = (start(), Levels::default(), 0);
        for (change, marks, automatic, gap, first_byte) in plans {
            apply(&mut items, &mut levels, &change);
            now += gap;
            let mut marks: Vec<(usize, Lifetime)> =
                marks.iter().map(|(at, lifetime)| (at.index(items.len()), *lifetime)).collect();
            marks.retain(|(at, _)| items[*at].kind != Kind::Thinking);
            marks.sort_by_key(|(at, _)| *at);
            marks.dedup_by_key(|(at, _)| *at);
            // The validator lets no hour follow five minutes.
            let short = marks.iter().position(|(_, lifetime)| *lifetime == Lifetime::FiveMinutes);
            marks.iter_mut().skip(short.unwrap_or(9)).for_each(|(_, lifetime)| *lifetime = Lifetime::FiveMinutes);
            let automatic = automatic.map(|lifetime| if short.is_some() { Lifetime::FiveMinutes } else { lifetime });
            let step = Step { items: items.clone(), marks, levels, automatic, first_byte };
            let expected = plain.serve(&step, &card, now);
            let rendered = prompt(&step, &mut memo).render(&card);
            let started = Timestamp::from_milliseconds(now);
            let served: Served = cache.serve(started, &rendered, card.look_back);
            cache.write(started, Timestamp::from_milliseconds(now + first_byte), &served.writes);
            prop_assert_eq!((served.read, served.written_5m, served.written_1h, served.uncached), expected, "{:?}", step);
            prop_assert_eq!(served.read + served.written_5m + served.written_1h + served.uncached, rendered.tokens);
        }
    }
}

#[test]
fn memory_is_bounded_and_the_youngest_stay() {
    let mut cache = PrefixCache::default();
    for number in 0..400_000u128 {
        let at = Timestamp::from_milliseconds(number as i64);
        cache.write(at, at, &[(number, Lifetime::FiveMinutes)]);
    }
    assert!(cache.entries.len() <= super::MOST_ENTRIES);
    assert!(cache.entries.is_readable(400_000, 399_999));
}
