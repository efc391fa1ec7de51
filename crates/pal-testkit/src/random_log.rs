//! Soups: arbitrary sequences of entries and decisions, as lines of a log. Orphans, duplicates, torn pairs, thinking
//! anywhere, media, empties, wrong order, unknown kinds, rewinds: whatever a log could ever hold.

use pal_model::{
    Boundary, Decision, DecisionCost, DecisionKind, EntryDraft, EntryId, EntryRef, IdSource, LogEntry,
    MediaKind, MessageOrigin, PreservedPlacement, PreservedRange, PromptPrefix, RequestRecord, RequestSource,
    ResponseRecord, SessionSnapshot, SharedText, Timestamp, Usage,
};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::raw_blocks::{SIGNED_SUMMARY, assistant_block, user_block};

/// Kinds of entries that a random log holds besides messages, requests and responses.
#[derive(Clone, Copy, Debug)]
pub struct RandomLogOptions {
    /// Most steps.
    pub steps: usize,
    /// Decisions that change what is shown, and undos.
    pub decisions: bool,
    /// Compaction boundaries.
    pub boundaries: bool,
    /// Entries that continue an earlier one than the last.
    pub rewinds: bool,
    /// Prefixes.
    pub prefixes: bool,
}

#[derive(Clone, Debug)]
enum Step {
    User(MessageOrigin, String),
    Assistant(Option<&'static str>, &'static str, String),
    Attachment(String),
    Request(&'static str),
    Response(&'static str, u64),
    Decision(Choice, Index, Index, String),
    Boundary(Option<(Index, Index, PreservedPlacement)>, String, &'static str),
    Prefix(String, String, String),
    Other(String),
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    Spill,
    SpillEntry,
    Snip,
    Clear,
    Fold,
    Strip,
    Undo,
    Pin,
    CacheEdit,
}

/// A list of entries in the order of their log.
pub fn random_log(kind: RandomLogOptions) -> impl Strategy<Value = Vec<LogEntry>> {
    let step = (step(kind), prop::option::weighted(0.04, any::<Index>()));
    prop::collection::vec(step, 0..kind.steps).prop_map(move |mut steps| {
        if !kind.rewinds {
            steps.iter_mut().for_each(|(_, rewind)| *rewind = None);
        }
        build(steps)
    })
}

fn content(block: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::collection::vec(block, 0..4).prop_map(|blocks| format!("[{}]", blocks.join(","))),
        2 => "[a-z ]{0,12}".prop_map(|text| format!("\"{text}\"")),
        1 => prop::sample::select(&["null", "7", "{}"][..]).prop_map(String::from),
    ]
}

fn step(kind: RandomLogOptions) -> BoxedStrategy<Step> {
    let origin = prop::sample::select(
        &[MessageOrigin::Person, MessageOrigin::Tool, MessageOrigin::Agent, MessageOrigin::Synthetic][..],
    );
    let response = prop::sample::select(&["msg_1", "msg_2", "msg_3", "msg_4"][..]);
    let model = prop::sample::select(&["claude-opus-5-5", "claude-opus-5-5-20260901", "claude-opus-4-6"][..]);
    let source = prop::sample::select(&["main", "main", "main", "compact", "agent:x"][..]);
    let others = [
        r#""kind":"virtual","content":"seen by the user""#,
        r#""kind":"internal","what":"progress","raw":{}"#,
        r#""kind":"hologram","beam":1"#,
        r#""kind":"clear","tool_use_ids":7"#,
    ];
    let choices = [
        Choice::Spill,
        Choice::SpillEntry,
        Choice::Snip,
        Choice::Clear,
        Choice::Fold,
        Choice::Strip,
        Choice::Undo,
        Choice::Pin,
        Choice::CacheEdit,
    ];
    let decision = (prop::sample::select(choices.to_vec()), any::<Index>(), any::<Index>(), "[a-z ]{0,10}");
    let kept = prop::option::of((
        any::<Index>(),
        any::<Index>(),
        prop::sample::select(&[PreservedPlacement::AfterSummary, PreservedPlacement::BeforeSummary][..]),
    ));
    let tools = prop::sample::select(
        &[
            r#"[]"#,
            r#"[{"name":"Read","description":"","input_schema":{"type":"object"}},{"name":"Read","input_schema":{"type":"object"}}]"#,
            r#"[{"name":"Read","input_schema":{"type":"object"}},{"name":"Bash","input_schema":{"type":"object"},"defer_loading":true},{"name":"mcp__server__tool","input_schema":{"type":"object"},"defer_loading":true}]"#,
            r#"[{"name":"Bash","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"},"defer_loading":true},{"name":"no schema"},7]"#,
        ][..],
    );
    let system = content(user_block());
    let said = prop_oneof![
        10 => (origin, content(user_block())).prop_map(|(origin, content)| Step::User(origin, content)),
        10 => (prop::option::weighted(0.8, response.clone()), model, content(assistant_block()))
            .prop_map(|(response, model, content)| Step::Assistant(response, model, content)),
        3 => content(user_block()).prop_map(Step::Attachment),
        4 => source.prop_map(Step::Request),
        3 => (response, 0..300_000u64).prop_map(|(id, tokens)| Step::Response(id, tokens)),
        1 => prop::sample::select(others.to_vec()).prop_map(|raw| Step::Other(raw.into())),
    ];
    let decision = decision.prop_map(|(choice, one, two, text)| Step::Decision(choice, one, two, text));
    let how = prop::sample::select(&["fork", "provider"][..]);
    let boundary = (kept, content(user_block()), how).prop_map(|(kept, summary, how)| {
        // A provider's own summary opens with its block.
        let summary = match summary.strip_prefix("[{").filter(|_| how == "provider") {
            Some(rest) => format!("[{SIGNED_SUMMARY},{{{rest}"),
            None => summary,
        };
        Step::Boundary(kept, summary, how)
    });
    let prefix = (tools, system, content(user_block()))
        .prop_map(|(tools, system, context)| Step::Prefix(tools.into(), system, context));
    let mut steps: Vec<(u32, BoxedStrategy<Step>)> = vec![(31, said.boxed())];
    if kind.decisions {
        steps.push((5, decision.boxed()));
    }
    if kind.boundaries {
        steps.push((1, boundary.boxed()));
    }
    if kind.prefixes {
        steps.push((1, prefix.boxed()));
    }
    prop::strategy::Union::new_weighted(steps).boxed()
}

/// The soup as it is being written.
struct Pot {
    ids: IdSource,
    entries: Vec<LogEntry>,
    prefix: Option<EntryId>,
    /// When the entry after the one being made will be dated.
    next_at: Timestamp,
}

fn build(steps: Vec<(Step, Option<Index>)>) -> Vec<LogEntry> {
    let mut pot =
        Pot { ids: IdSource::seeded(1), entries: Vec::new(), prefix: None, next_at: Timestamp::default() };
    for (at, (step, rewind)) in steps.into_iter().enumerate() {
        let time = Timestamp::from_milliseconds(1_800_000_000_000 + at as i64);
        let id = pot.ids.next_id(time);
        pot.next_at = Timestamp::from_milliseconds(time.milliseconds() + 1);
        let parent = match rewind {
            Some(to) if !pot.entries.is_empty() => Some(pot.entries[to.index(pot.entries.len())].id),
            _ => pot.entries.last().map(|entry| entry.id),
        };
        let line = match &step {
            Step::Other(raw) => {
                let parent = parent.map_or("null".into(), |parent| format!("\"{parent}\""));
                format!(r#"{{"v":1,"id":"{id}","parent":{parent},"at":"{time}",{raw}}}"#)
            }
            step => pot.draft(step, id).into_line(id, parent, time, None),
        };
        // Every line that a soup writes is an entry; one that is not shows as a missing step.
        pot.entries.extend(LogEntry::parse(SharedText::from(line)));
    }
    pot.entries
}

impl Pot {
    fn draft(&mut self, step: &Step, id: EntryId) -> EntryDraft {
        match step {
            Step::User(origin, content) => EntryDraft::user(*origin, content),
            Step::Assistant(response, model, content) => {
                let response = response.map(|id| id.into());
                EntryDraft::assistant(response.as_ref(), Some(model), content)
            }
            Step::Attachment(content) => EntryDraft::attachment("reminder", content),
            Step::Request(source) => EntryDraft::request(&RequestRecord::new(
                RequestSource::from_name(source),
                self.entries.last().map(|entry| entry.id),
                "claude-opus-5-5".into(),
            )),
            Step::Response(response, tokens) => EntryDraft::response(&ResponseRecord {
                response: (*response).into(),
                source: RequestSource::main(),
                model: "claude-opus-5-5".into(),
                usage: Usage { input_tokens: *tokens, output_tokens: 10, ..Usage::default() },
                stop_reason: None,
                cost: None,
                cache_break: None,
            }),
            Step::Decision(choice, one, two, text) => {
                EntryDraft::decision(&self.decision(*choice, one, two, text))
            }
            Step::Boundary(kept, summary, how) => {
                EntryDraft::boundary(&self.boundary(kept.as_ref(), summary, how))
            }
            Step::Prefix(tools, system, context) => {
                self.prefix = Some(id);
                let list = |raw: &str| SharedText::from(if raw.starts_with('[') { raw } else { "[]" });
                EntryDraft::prefix(&PromptPrefix {
                    tools: list(tools),
                    system: list(system),
                    context: pal_model::Content::parse(&SharedText::from(context.as_str())),
                    unseen_tokens: 100,
                    notes: Default::default(),
                })
            }
            Step::Other(raw) => EntryDraft::internal("other", raw),
        }
    }

    /// The id of some earlier entry; now and then one that no entry has, or that the next entry will have.
    fn some_entry(&self, index: &Index) -> EntryId {
        match (index.index(20), self.entries.len()) {
            (0, _) | (_, 0) => EntryId::from_bits(7),
            (1, _) => self.ids.clone().next_id(self.next_at),
            (_, count) => self.entries[index.index(count)].id,
        }
    }

    fn decision(&self, choice: Choice, one: &Index, two: &Index, text: &str) -> Decision {
        const CALLS: [&str; 5] = ["toolu_a", "toolu_b", "toolu_c", "call|e.1", "ünï"];
        let (call, other_call) = (*one.get(&CALLS), *two.get(&CALLS));
        let (entry, other) = (self.some_entry(one), self.some_entry(two));
        let text = String::from(text);
        let kind = match choice {
            Choice::Spill => DecisionKind::Spill {
                tool_use_id: Some(call.into()),
                entry: None,
                path: "a.txt".into(),
                text,
            },
            Choice::SpillEntry => {
                DecisionKind::Spill { tool_use_id: None, entry: Some(entry), path: "a.txt".into(), text }
            }
            Choice::Snip => DecisionKind::Snip { entries: vec![entry, other] },
            Choice::Clear => DecisionKind::Clear { tool_use_ids: vec![call.into(), other_call.into()], text },
            Choice::Fold => DecisionKind::Fold { head: entry, tail: other, text },
            Choice::Strip => {
                let media = [None, Some(MediaKind::Image), Some(MediaKind::Document)];
                DecisionKind::Strip { entry, media: *one.get(&media), text }
            }
            Choice::Undo => DecisionKind::Undo { target: entry },
            Choice::Pin => DecisionKind::Pin { text },
            Choice::CacheEdit => {
                DecisionKind::CacheEdit { tool_use_ids: vec![call.into(), other_call.into()] }
            }
        };
        let cost = DecisionCost { tokens_freed: 50, ..DecisionCost::default() };
        Decision { kind, reason: "soup".into(), cost }
    }

    fn boundary(
        &self,
        kept: Option<&(Index, Index, PreservedPlacement)>,
        summary: &str,
        how: &str,
    ) -> Boundary {
        let preserved = kept.map(|(one, two, placement)| {
            let ends = (self.some_entry(one), self.some_entry(two));
            let (head, tail) = (ends.0.min(ends.1), ends.0.max(ends.1));
            PreservedRange { head, tail, placement: *placement, offset: None }
        });
        let prefix = self.prefix.map(|id| EntryRef { id, offset: None });
        Boundary {
            trigger: "auto".into(),
            method: how.into(),
            summary: pal_model::Content::parse(&SharedText::from(summary)),
            preserved,
            snapshot: SessionSnapshot { prefix, ..SessionSnapshot::default() },
            ..Boundary::default()
        }
    }
}
