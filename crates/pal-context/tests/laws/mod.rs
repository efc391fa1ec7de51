//! Laws of the layers that hold for any log. `PAL_CASES` sets a larger number of cases.

use std::collections::BTreeMap;

use pal_context::{
    ActionKind, ContextPolicy, LAYERS, LayerAction, WindowBudgets, extractive_fold, fold_decision,
};
use pal_model::{
    BlockType, Decision, DecisionKind, EntryBody, EntryDraft, EntryId, IdSource, LogEntry, ModelCard,
    ModelCatalog, SharedText, ToolUseId,
};
use pal_testkit::{RandomLogOptions, cases, random_log, session_sample};
use pal_view::{View, Visibility, VisibleEntry};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rustc_hash::FxHashSet;

use crate::common::{LayerFixture, OPTIONS};

const EVERYTHING: RandomLogOptions =
    RandomLogOptions { steps: 40, decisions: true, boundaries: true, rewinds: false, prefixes: true };

/// More consecutive actions than any layer needs.
const ACTS_MAX: usize = 60;

fn config(usual: u32) -> Config {
    Config { cases: cases(usual), failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}

/// Every layer enabled, with budgets small enough for random logs.
fn eager() -> ContextPolicy {
    ContextPolicy {
        snip: true,
        fold: true,
        spill_characters: 12,
        spill_characters_of_message: 40,
        spill_characters_of_user: 30,
        cold_keep: 1,
        pressure_keep: 1,
        snip_keep_messages: 2,
        cache_edit_from: 2,
        cache_edit_keep: 1,
        ..ContextPolicy::threshold()
    }
}

/// A card by its name: `plain` is one whose provider clears nothing, `editing` one whose cache can be edited.
fn card(model: &str) -> ModelCard {
    let own = "[models.plain]\nlike = \"claude-opus-4-6\"\ncontext_management = []\n\
               [models.editing]\nlike = \"claude-opus-5-5\"\ncache_edits = true\n";
    ModelCatalog::built_in().with_overrides(own).unwrap().find(model).card
}

fn setting(card: ModelCard, entries: Vec<LogEntry>, idle: u64, window: u64) -> LayerFixture {
    let mut setting = LayerFixture::from_entries(card, entries).with_window(window).later(idle);
    setting.policy = eager();
    setting
}

/// Runs every layer until it has nothing to do, and checks each step.
fn run(setting: &mut LayerFixture) -> Result<usize, TestCaseError> {
    let mut n_acts = 0;
    for layer in LAYERS {
        for round in 0.. {
            let act = layer.act(&setting.context());
            prop_assert!(!act.reason.is_empty(), "{} gives no reason", layer.name());
            let act = match act.kind {
                ActionKind::Fold(stretch) => {
                    let text = extractive_fold(&setting.view, stretch);
                    let budgets = WindowBudgets::new(&setting.limits);
                    match fold_decision(&setting.view, stretch, &text, budgets, &setting.place) {
                        Some(decision) => LayerAction::decide(vec![decision], "fold"),
                        None => break,
                    }
                }
                ActionKind::Decide(_) => act,
                _ => break,
            };
            prop_assert!(round < ACTS_MAX, "{} does not end: {act:?}", layer.name());
            step(setting, layer.name(), &act)?;
            n_acts += 1;
        }
    }
    Ok(n_acts)
}

/// Checks one action: it shrinks the view, splits no pair, changes no spill, and the request stays valid.
fn step(setting: &mut LayerFixture, layer: &str, act: &LayerAction) -> Result<(), TestCaseError> {
    let before = setting.view.clone();
    let settled = settled(&before);
    let ActionKind::Decide(proposals) = &act.kind else { return Ok(()) };
    prop_assert!(!proposals.is_empty(), "{layer} decides nothing");
    for proposal in proposals {
        prop_assert!(!proposal.decision.reason.is_empty(), "{layer}: {proposal:?}");
        if let DecisionKind::Spill { tool_use_id: Some(id), .. } = &proposal.decision.kind {
            // A compaction that is due changes the bytes of messages without an answer anyway (§3.1).
            let is_waiting = proposal.decision.reason.contains("tokens wait for an answer");
            let is_free = !settled.contains(id) || is_waiting;
            prop_assert!(is_free, "{id} is spilled after it was decided about");
        }
    }
    setting.apply_action(act);
    let after = &setting.view;
    prop_assert!(
        after.estimate() <= before.estimate() + 1e-6,
        "{layer} makes it larger: {} → {}\n{act:?}",
        before.estimate(),
        after.estimate()
    );
    for proposal in proposals {
        match &proposal.decision.kind {
            DecisionKind::Snip { .. } | DecisionKind::Fold { .. } => whole_pairs(&before, after)?,
            _ => {}
        }
    }
    prop_assert!(setting.checked().is_ok(), "{layer}: {}", setting.checked().unwrap_err());
    Ok(())
}

/// Results with a decision to spill or keep.
fn settled(view: &View) -> FxHashSet<ToolUseId> {
    view.result_ids().filter(|id| view.is_spill_decided(id)).cloned().collect()
}

/// A visible call keeps its result, or both go. Ids that are used twice do not count.
fn whole_pairs(before: &View, after: &View) -> Result<(), TestCaseError> {
    let all = halves(before, |_| true);
    let (before, after) = (halves(before, is_shown), halves(after, is_shown));
    for (id, count) in before.into_iter().filter(|(id, count)| *count == (1, 1) && !id.as_str().is_empty()) {
        if all.get(&id) == Some(&count) {
            let (calls, results) = after.get(&id).copied().unwrap_or_default();
            prop_assert_eq!(calls, results, "{} is split", id);
        }
    }
    Ok(())
}

fn is_shown(shown: &VisibleEntry<'_>) -> bool {
    shown.visibility == Visibility::Visible
}

/// Number of calls and results of each id in the selected entries. Summaries do not count.
fn halves(view: &View, counts: impl Fn(&VisibleEntry<'_>) -> bool) -> BTreeMap<ToolUseId, (usize, usize)> {
    let mut halves: BTreeMap<ToolUseId, (usize, usize)> = BTreeMap::new();
    for shown in view.visible_entries().filter(counts) {
        if matches!(shown.entry.body, EntryBody::Boundary(_)) {
            continue;
        }
        let is_models = matches!(shown.entry.body, EntryBody::Assistant(_));
        for block in shown.content().map_or(&[][..], |content| content.blocks()) {
            let Some(id) = block.tool_use_id().cloned() else { continue };
            match block.kind() {
                BlockType::ToolUse if is_models => halves.entry(id).or_default().0 += 1,
                BlockType::ToolResult if !is_models => halves.entry(id).or_default().1 += 1,
                _ => {}
            }
        }
    }
    halves
}

proptest! {
    #![proptest_config(config(800))]

    /// All layers, one after the other, on a cold and a warm cache, with and without bound thinking.
    #[test]
    fn the_pipeline_ends_and_every_step_is_valid(
        entries in random_log(EVERYTHING), idle in prop::sample::select(vec![0u64, 90]),
        model in prop::sample::select(vec!["claude-opus-5-5", "claude-opus-4-6", "plain", "editing"]),
        window in prop::sample::select(vec![300u64, 3_000, 200_000]),
    ) {
        let mut setting = setting(card(model), entries, idle, window);
        run(&mut setting)?;
        // A second pass finds nothing more to decide.
        let again = run(&mut setting)?;
        prop_assert!(again <= 1, "{} acts in a second pass", again);
    }

    /// Decisions do not depend on entries before the boundary in force.
    #[test]
    fn a_resumed_session_decides_the_same(entries in random_log(EVERYTHING), idle in prop::sample::select(vec![0u64, 90])) {
        let card = card("claude-opus-4-6");
        let whole = setting(card.clone(), entries, idle, 3_000);
        let Some(boundary) = whole.view.boundary().cloned() else { return Ok(()) };
        let tail = tail_of(whole.view.branch(), &boundary);
        let mut resumed = setting(card, tail, idle, 3_000);
        resumed.now = whole.now;
        for layer in LAYERS {
            let acts = [&whole, &resumed].map(|setting| format!("{:?}", layer.act(&setting.context())));
            prop_assert_eq!(&acts[0], &acts[1], "{}", layer.name());
        }
    }

    /// Undoing a fold brings every byte back.
    #[test]
    fn undoing_a_fold_restores_every_byte(entries in random_log(EVERYTHING), one in any::<prop::sample::Index>(), two in any::<prop::sample::Index>()) {
        let mut setting = setting(card("claude-opus-4-6"), entries, 0, 200_000);
        let shown: Vec<_> = setting.view.visible_entries().map(|shown| shown.entry.id).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let ends = [one.index(shown.len()), two.index(shown.len())];
        let (head, tail) = (shown[ends[0].min(ends[1])], shown[ends[0].max(ends[1])]);
        let before = setting.view.render(OPTIONS).body();
        let kind = DecisionKind::Fold { head, tail, text: "short".into() };
        setting.apply_action(&LayerAction::decide(vec![Decision { kind, reason: "law".into(), cost: Default::default() }], ""));
        undo_newest(&mut setting.view);
        prop_assert_eq!(before, setting.view.render(OPTIONS).body());
    }
}

fn undo_newest(view: &mut View) {
    let newest = view.branch().last().unwrap();
    let (target, at) = (newest.id, newest.at);
    let decision =
        Decision { kind: DecisionKind::Undo { target }, reason: String::new(), cost: Default::default() };
    let line =
        EntryDraft::decision(&decision).into_line(IdSource::seeded(77).next_id(at), Some(target), at, None);
    view.push(LogEntry::parse(SharedText::from(line)).unwrap());
}

/// Entries that resume reads: the prefix in force, everything from the preserved range on, the boundary and
/// the rest.
fn tail_of(branch: &[LogEntry], boundary: &LogEntry) -> Vec<LogEntry> {
    let EntryBody::Boundary(payload) = &boundary.body else { return branch.to_vec() };
    let position = |id| branch.iter().position(|entry| entry.id == id);
    let at = position(boundary.id).unwrap();
    let from =
        payload.preserved.as_ref().and_then(|kept| position(kept.head)).map_or(at, |head| head.min(at));
    let prefix =
        payload.snapshot.prefix.and_then(|prefix| position(prefix.id)).filter(|prefix| *prefix < from);
    prefix.map(|prefix| &branch[prefix]).into_iter().chain(&branch[from..]).cloned().collect()
}

/// Every recorded session, with the usual settings, request by request.
#[test]
fn recorded_sessions_stay_valid_under_all_layers() {
    let files = session_sample("layers");
    let (mut n_requests, mut n_acts) = (0, 0);
    let mut made: BTreeMap<String, usize> = BTreeMap::new();
    for file in &files {
        let entries = pal_testkit::recorded_entries(file);
        let recorded: FxHashSet<EntryId> = entries.iter().map(|entry| entry.id).collect();
        let model = entries.iter().find_map(|entry| match &entry.body {
            EntryBody::Request(request) => Some(request.model.clone()),
            _ => None,
        });
        let card = card(&model.unwrap_or_default());
        let mut setting = LayerFixture::from_entries(card, Vec::new()).with_window(60_000);
        setting.policy = ContextPolicy { snip: true, fold: true, ..ContextPolicy::threshold() };
        for entry in entries {
            if matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation()) {
                setting.now = entry.at;
                n_requests += 1;
                n_acts += run(&mut setting).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            }
            setting.append(&entry);
        }
        // Decisions of the recorded program do not count.
        for entry in setting.view.branch().iter().filter(|entry| !recorded.contains(&entry.id)) {
            *made.entry(entry.kind().0.to_string()).or_default() += 1;
        }
    }
    assert!(n_requests > 0);
    {
        println!("{} sessions: {n_requests} requests, {n_acts} acts, decisions: {made:?}", files.len());
        // The repository's own sessions are too short for every layer, and a sample may have nothing to snip.
        let kinds: &[&str] = match (pal_testkit::data_dir(), pal_testkit::has_all_recorded_sessions()) {
            (None, _) => &["fold"],
            (Some(_), false) => &["spill", "keep", "clear", "fold"],
            (Some(_), true) => &["spill", "keep", "snip", "clear", "fold"],
        };
        for kind in kinds.iter().copied() {
            assert!(made.contains_key(kind), "no {kind} was ever decided");
        }
    }
}
