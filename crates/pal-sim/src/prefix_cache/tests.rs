//! Compares the cache with a slow reference implementation that compares prefixes block by block.

use std::borrow::Cow;

use pal_model::{ModelCard, ModelCatalog, Role, Timestamp};
use proptest::prelude::*;

use super::{CacheLookup, PrefixCache};
use crate::block_facts::{BlockFacts, BlockKind, BlockMemo};
use crate::cache_entries::EntryLifetime;
use crate::parsed_prompt::{LayerHashes, MessagesCacheTtl, ParsedPrompt, PromptBlock, PromptLayer};
use crate::token_counts::{ANSWER_TOKENS, MESSAGE_TOKENS, TOOLS_TOKENS};

/// A block of a generated request.
#[derive(Clone, Debug, PartialEq)]
struct TestBlock {
    layer: PromptLayer,
    kind: BlockKind,
    content: u8,
    message: usize,
}

impl TestBlock {
    fn raw(&self) -> String {
        let words = "some words of a long text ".repeat(10 + usize::from(self.content) * 7);
        let content = format!("{} {words}", self.content);
        match self.kind {
            BlockKind::Tool => format!(
                r#"{{"name":"t{}","description":"{content}","input_schema":{{"type":"object"}}}}"#,
                self.content
            ),
            BlockKind::ToolUse => {
                format!(r#"{{"type":"tool_use","id":"i","name":"n","input":{{"x":"{content}"}}}}"#)
            }
            BlockKind::ToolResult => {
                format!(r#"{{"type":"tool_result","tool_use_id":"i","content":"{content}"}}"#)
            }
            BlockKind::Thinking => {
                format!(r#"{{"type":"thinking","thinking":"{content}","signature":"c2ln"}}"#)
            }
            _ => format!(r#"{{"type":"text","text":"{content}"}}"#),
        }
    }

    fn role(&self) -> Role {
        if self.message.is_multiple_of(2) { Role::User } else { Role::Assistant }
    }
}

/// One generated request.
#[derive(Clone, Debug)]
struct TestRequest {
    items: Vec<TestBlock>,
    marks: Vec<(usize, MessagesCacheTtl)>,
    levels: LayerHashes,
    automatic: Option<MessagesCacheTtl>,
    first_byte: i64,
}

#[derive(Clone)]
struct ReferenceEntry {
    items: Vec<TestBlock>,
    levels: (u128, Option<u128>, Option<u128>),
    lifetime: MessagesCacheTtl,
    readable: i64,
    expires: i64,
}

#[derive(Default)]
struct ReferenceCache {
    entries: Vec<ReferenceEntry>,
}

impl ReferenceCache {
    /// Parameters that a prefix depends on.
    fn levels(step: &TestRequest, end: usize) -> (u128, Option<u128>, Option<u128>) {
        let reaches = |layer| step.items[..=end].iter().any(|item| item.layer >= layer);
        (
            step.levels.tools,
            reaches(PromptLayer::System).then_some(step.levels.system),
            reaches(PromptLayer::Messages).then_some(step.levels.messages),
        )
    }

    fn find(&self, step: &TestRequest, end: usize, now: i64) -> Option<usize> {
        self.entries.iter().position(|entry| {
            entry.items == step.items[..=end]
                && entry.levels == ReferenceCache::levels(step, end)
                && entry.readable <= now
                && entry.expires > now
        })
    }

    /// Positions between two blocks; a run counts once.
    fn distance(items: &[TestBlock], from: usize, to: usize) -> u64 {
        (to..from)
            .filter(|at| {
                let (before, after) = (&items[*at], &items[at + 1]);
                let is_run = before.kind == after.kind
                    && matches!(after.kind, BlockKind::ToolUse | BlockKind::ToolResult);
                !is_run
            })
            .count() as u64
    }

    /// Tokens read, written for five minutes, written for an hour, and uncached.
    fn serve(&mut self, step: &TestRequest, card: &ModelCard, now: i64) -> (u64, u64, u64, u64) {
        let mut memo = BlockMemo::default();
        let widths: Vec<u64> =
            step.items.iter().map(|item| facts(item, &mut memo).tokens(card.generation)).collect();
        let tokens_to = |end: usize| -> u64 {
            let items = &step.items[..=end];
            let blocks: u64 = widths[..=end].iter().sum();
            let mut messages: Vec<usize> = items
                .iter()
                .filter(|item| item.layer == PromptLayer::Messages)
                .map(|item| item.message)
                .collect();
            messages.dedup();
            let has_tools = items.iter().any(|item| item.kind == BlockKind::Tool);
            blocks + messages.len() as u64 * MESSAGE_TOKENS + if has_tools { TOOLS_TOKENS } else { 0 }
        };
        let mut marks = step.marks.clone();
        if let Some(lifetime) = step.automatic
            && let Some(last) = step.items.iter().rposition(|item| item.kind != BlockKind::Thinking)
            && !marks.iter().any(|(at, _)| *at == last)
        {
            marks.push((last, lifetime));
        }
        marks.sort_by_key(|(at, _)| *at);
        marks.retain(|(at, _)| tokens_to(*at) >= card.min_cacheable);
        let mut best: Option<usize> = None;
        for (mark, _) in &marks {
            for end in (0..=*mark).rev() {
                if ReferenceCache::distance(&step.items, *mark, end) >= card.look_back {
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
        let long = last(MessagesCacheTtl::OneHour).saturating_sub(read);
        let short = last(MessagesCacheTtl::FiveMinutes).saturating_sub(read + long);
        let all = step.items.len().checked_sub(1).map_or(0, tokens_to) + ANSWER_TOKENS;
        for (at, lifetime) in marks {
            if self.find(step, at, now).is_some() {
                continue;
            }
            let mine = (step.items[..=at].to_vec(), ReferenceCache::levels(step, at));
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
                None => self.entries.push(ReferenceEntry {
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

fn facts(item: &TestBlock, memo: &mut BlockMemo) -> BlockFacts {
    if item.kind == BlockKind::Tool { memo.tool(&item.raw()) } else { memo.block(&item.raw()) }
}

fn prompt(step: &TestRequest, memo: &mut BlockMemo) -> ParsedPrompt<'static> {
    let piece = |(at, item): (usize, &TestBlock)| PromptBlock {
        layer: item.layer,
        role: item.role(),
        message: item.message,
        index: 0,
        raw: Cow::Owned(item.raw()),
        facts: facts(item, memo),
        breakpoint: step.marks.iter().find(|(mark, _)| *mark == at).map(|(_, lifetime)| *lifetime),
        id: Cow::Borrowed(""),
        name: Cow::Borrowed(""),
        is_turn_scoped: false,
        is_rendered: true,
    };
    let pieces = step.items.iter().enumerate().map(piece).collect();
    ParsedPrompt { pieces, deferred: Vec::new(), levels: step.levels, automatic: step.automatic }
}

/// A change from one request to the next.
#[derive(Clone, Debug)]
enum HistoryChange {
    Append(Vec<(usize, u8)>),
    Edit(prop::sample::Index, u8),
    CutOff(prop::sample::Index),
    Level(usize, u8),
}

fn changes() -> impl Strategy<Value = HistoryChange> {
    prop_oneof![
        6 => prop::collection::vec((0..4usize, 0..3u8), 1..12).prop_map(HistoryChange::Append),
        1 => (any::<prop::sample::Index>(), 0..3u8).prop_map(|(at, content)| HistoryChange::Edit(at, content)),
        1 => any::<prop::sample::Index>().prop_map(HistoryChange::CutOff),
        1 => (0..3usize, 0..2u8).prop_map(|(level, value)| HistoryChange::Level(level, value)),
    ]
}

fn lifetimes() -> impl Strategy<Value = MessagesCacheTtl> {
    prop_oneof![Just(MessagesCacheTtl::FiveMinutes), Just(MessagesCacheTtl::OneHour)]
}

type RequestPlan =
    (HistoryChange, Vec<(prop::sample::Index, MessagesCacheTtl)>, Option<MessagesCacheTtl>, i64, i64);

fn plans() -> impl Strategy<Value = Vec<RequestPlan>> {
    let marks = prop::collection::vec((any::<prop::sample::Index>(), lifetimes()), 0..4);
    let gaps = prop::sample::select(vec![0, 500, 1_000, 120_000, 299_999, 300_000, 3_000_000, 3_600_000]);
    let waits = prop::sample::select(vec![0, 0, 700, 30_000, 400_000]);
    prop::collection::vec((changes(), marks, prop::option::of(lifetimes()), gaps, waits), 1..24)
}

fn start() -> Vec<TestBlock> {
    let item = |layer, kind, content| TestBlock { layer, kind, content, message: 0 };
    vec![
        item(PromptLayer::Tools, BlockKind::Tool, 0),
        item(PromptLayer::Tools, BlockKind::Tool, 1),
        item(PromptLayer::System, BlockKind::Text, 0),
        item(PromptLayer::Messages, BlockKind::Text, 0),
    ]
}

fn apply(items: &mut Vec<TestBlock>, levels: &mut LayerHashes, change: &HistoryChange) {
    match change {
        HistoryChange::Append(blocks) => {
            for (kind, content) in blocks {
                let kind =
                    [BlockKind::Text, BlockKind::ToolUse, BlockKind::ToolResult, BlockKind::Thinking][*kind];
                let last = items.last().map_or(0, |item| item.message);
                let message = last + usize::from(*content == 0);
                items.push(TestBlock { layer: PromptLayer::Messages, kind, content: *content, message });
            }
        }
        HistoryChange::Edit(at, content) => {
            let at = at.index(items.len());
            items[at].content = *content;
        }
        HistoryChange::CutOff(at) => items.truncate(4 + at.index(items.len())),
        HistoryChange::Level(0, value) => levels.tools = u128::from(*value),
        HistoryChange::Level(1, value) => levels.system = u128::from(*value),
        HistoryChange::Level(_, value) => levels.messages = u128::from(*value),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(64)))]

    #[test]
    fn cache_matches_the_reference_for_any_request_sequence(plans in plans()) {
        let card = ModelCard { min_cacheable: 300, look_back: 5, ..ModelCatalog::built_in().find("claude-opus-5-5").card };
        let (mut cache, mut plain, mut memo) = (PrefixCache::default(), ReferenceCache::default(), BlockMemo::default());
        let (mut items, mut levels, mut now) = (start(), LayerHashes::default(), 0);
        for (change, marks, automatic, gap, first_byte) in plans {
            apply(&mut items, &mut levels, &change);
            now += gap;
            let mut marks: Vec<(usize, MessagesCacheTtl)> =
                marks.iter().map(|(at, lifetime)| (at.index(items.len()), *lifetime)).collect();
            marks.retain(|(at, _)| items[*at].kind != BlockKind::Thinking);
            marks.sort_by_key(|(at, _)| *at);
            marks.dedup_by_key(|(at, _)| *at);
            // The validator refuses a one-hour breakpoint after a five-minute one.
            let short = marks.iter().position(|(_, lifetime)| *lifetime == MessagesCacheTtl::FiveMinutes);
            marks.iter_mut().skip(short.unwrap_or(9)).for_each(|(_, lifetime)| *lifetime = MessagesCacheTtl::FiveMinutes);
            let automatic = automatic.map(|lifetime| if short.is_some() { MessagesCacheTtl::FiveMinutes } else { lifetime });
            let step = TestRequest { items: items.clone(), marks, levels, automatic, first_byte };
            let expected = plain.serve(&step, &card, now);
            let rendered = prompt(&step, &mut memo).render(&card);
            let started = Timestamp::from_milliseconds(now);
            let served: CacheLookup = cache.look_up(started, &rendered, card.look_back);
            cache.write(started, Timestamp::from_milliseconds(now + first_byte), &served.writes);
            prop_assert_eq!((served.read, served.written_5m, served.written_1h, served.uncached), expected, "{:?}", step);
            prop_assert_eq!(served.read + served.written_5m + served.written_1h + served.uncached, rendered.tokens);
        }
    }
}

#[test]
fn entries_are_bounded_and_the_newest_stay() {
    let mut cache = PrefixCache::default();
    for number in 0..400_000u128 {
        let at = Timestamp::from_milliseconds(number as i64);
        cache.write(at, at, &[(number, MessagesCacheTtl::FiveMinutes)]);
    }
    assert!(cache.entries.len() <= super::ENTRIES_MAX);
    assert!(cache.entries.is_readable(400_000, 399_999));
}
