//! Laws of compaction: for any log and any response, the outcome is smaller, valid, keeps the promised
//! messages, and loses no user message and no pin. On random logs and on recorded sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pal_context::{
    ActionKind, Compaction, CompactionRange, CompactionRequest, CompactionStep, CompactionTrigger,
    ContextPolicy, RestorationBudget, RestoreSources, RestoredFile, SummaryReply,
};
use pal_model::{
    BlockType, Boundary, Content, ContentBlock, Decision, DecisionKind, EntryBody, EntryDraft, EntryId,
    IdSource, LogEntry, MessageOrigin, ModelCatalog, RequestRecord, RequestSource, ResponseId, SharedText,
    ToolUseId,
};
use pal_testkit::{RandomLogOptions, cases, map_on_all_cores, random_log, script, session_sample};
use pal_view::{View, VisibleEntry};
use pal_wire::{BetaSet, RequestRules, check_request};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed};

use crate::common::{LayerFixture, OPTIONS, spelled_out};

/// More summary requests than any compaction makes.
const QUESTIONS_MAX: usize = 6;

/// Model's response to a summary request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ScriptedReply {
    /// A short summary.
    Short,
    /// An unusable response.
    Useless,
    /// Longer than the conversation.
    Endless,
    /// The request is too long.
    TooLong,
}

const VOICES: [ScriptedReply; 4] =
    [ScriptedReply::Short, ScriptedReply::Useless, ScriptedReply::Endless, ScriptedReply::TooLong];

impl ScriptedReply {
    fn reply(self) -> SummaryReply {
        let said = |text: String| SummaryReply::Response(vec![ContentBlock::text(&text)]);
        match self {
            ScriptedReply::Short => said("<summary>\n8. Current work\nIt goes on.\n</summary>".into()),
            ScriptedReply::Useless => said("Certainly!".into()),
            ScriptedReply::Endless => said(format!("<summary>\n{}</summary>", "and so on ".repeat(40_000))),
            ScriptedReply::TooLong => SummaryReply::TooLong(pal_model::ContextOverflow::UNKNOWN),
        }
    }
}

fn order(reach: CompactionRange, trigger: CompactionTrigger) -> CompactionRequest {
    CompactionRequest {
        reason: None,
        trigger,
        range: reach,
        source: RequestSource::main(),
        instructions: None,
        hook_instructions: None,
        notes: None,
        methods: None,
        is_attended: true,
        sources: RestoreSources::default(),
        params: Default::default(),
    }
}

/// Runs a compaction: returns the boundary, or the reason for failure.
fn carried_through(
    setting: &LayerFixture,
    order: CompactionRequest,
    voice: ScriptedReply,
) -> Result<Box<Boundary>, String> {
    compact_with(setting, order, &|| voice.reply())
}

/// Runs a compaction in which every summary request gets `reply`.
fn compact_with(
    setting: &LayerFixture,
    order: CompactionRequest,
    reply: &dyn Fn() -> SummaryReply,
) -> Result<Box<Boundary>, String> {
    let context = setting.context();
    let mut compaction =
        Compaction::new(&setting.view, order, &setting.limits, &setting.policy, context.paths);
    let mut n_asked = 0;
    loop {
        match compaction.next(&setting.view) {
            CompactionStep::Ask(question) => {
                n_asked += 1;
                assert!(n_asked <= QUESTIONS_MAX, "asked again and again");
                assert!(question.method.uses_model());
                compaction.receive_reply(&setting.view, reply());
            }
            CompactionStep::ReadFiles(wanted) => {
                let read = |path| RestoredFile { path, text: Some("fn main() {}\n".repeat(40)), seen: None };
                compaction.receive_files(wanted.into_iter().map(|wanted| read(wanted.path)).collect());
            }
            CompactionStep::Done(done) => return Ok(Box::new(done.boundary)),
            CompactionStep::Failed { message, counts_as_failure } => {
                assert!(!message.is_empty());
                assert!(!counts_as_failure || n_asked > 0, "no request was made: {message}");
                return Err(message);
            }
        }
    }
}

/// A summary request's reply with this summary.
fn summary(text: &str) -> SummaryReply {
    SummaryReply::Response(vec![ContentBlock::text(&format!("<summary>\n{text}\n</summary>"))])
}

fn push(view: &mut View, draft: EntryDraft) {
    let at = view.branch().last().map_or_else(Default::default, |entry| entry.at);
    let id = IdSource::seeded(2_000_000 + view.branch().len() as u64).next_id(at);
    let line = draft.into_line(id, view.newest_id(), at, None);
    view.push(LogEntry::parse(SharedText::from(line)).unwrap());
}

fn is_said(shown: &VisibleEntry<'_>) -> bool {
    !matches!(shown.entry.body, EntryBody::Boundary(_))
}

/// Visible entries that are no summaries, in order, each once.
fn said(view: &View) -> Vec<EntryId> {
    let mut ids: Vec<EntryId> = view.visible_entries().filter(is_said).map(|shown| shown.entry.id).collect();
    ids.dedup();
    ids
}

/// Groups of entries that belong together: calls, results and records of a response; ids that are used twice
/// do not count.
fn belonging(view: &View) -> Vec<Vec<EntryId>> {
    let mut calls: BTreeMap<ToolUseId, (Vec<EntryId>, Vec<EntryId>)> = BTreeMap::new();
    let mut responses: BTreeMap<ResponseId, Vec<EntryId>> = BTreeMap::new();
    for shown in view.visible_entries().filter(is_said) {
        let is_models = match &shown.entry.body {
            EntryBody::Assistant(assistant) => {
                if let Some(response) = &assistant.response {
                    responses.entry(response.clone()).or_default().push(shown.entry.id);
                }
                true
            }
            _ => false,
        };
        for block in shown.content().map_or(&[][..], |content| content.blocks()) {
            let Some(id) = block.tool_use_id() else { continue };
            match block.kind() {
                BlockType::ToolUse if is_models => {
                    calls.entry(id.clone()).or_default().0.push(shown.entry.id);
                }
                BlockType::ToolResult if !is_models => {
                    calls.entry(id.clone()).or_default().1.push(shown.entry.id);
                }
                _ => {}
            }
        }
    }
    let pairs = calls
        .into_iter()
        .filter(|(id, (calls, results))| !id.as_str().is_empty() && calls.len() == 1 && results.len() == 1);
    let pairs = pairs.map(|(_, (calls, results))| [calls, results].concat());
    // A result that stands before its call answers nothing.
    let pairs = pairs.filter(|pair| pair[0] <= pair[1] || !view_has_before(view, pair[1], pair[0]));
    pairs.chain(responses.into_values()).collect()
}

fn view_has_before(view: &View, one: EntryId, other: EntryId) -> bool {
    let place = |id| view.branch().iter().position(|entry| entry.id == id);
    place(one) < place(other)
}

fn texts(content: &Content) -> Vec<String> {
    content.blocks().iter().filter_map(|block| block.string("text").map(|text| text.into_owned())).collect()
}

/// Texts of people by entry.
fn words_of_people(branch: &[LogEntry]) -> Vec<Vec<String>> {
    let said = branch.iter().filter_map(|entry| match &entry.body {
        EntryBody::User(user) if user.origin == MessageOrigin::Person => Some(texts(&user.content)),
        _ => None,
    });
    said.filter(|said| said.iter().any(|text| !text.trim().is_empty())).collect()
}

/// Number of texts that are not visible.
fn out_of_sight(words: &[Vec<String>], view: &View) -> usize {
    let mut sight: Vec<String> =
        view.visible_entries().filter_map(|shown| shown.content()).flat_map(texts).collect();
    if let Some(EntryBody::Boundary(boundary)) = view.boundary().map(|entry| &entry.body) {
        sight.extend(texts(&boundary.lead));
    }
    let stands = |text: &String| sight.iter().any(|sight| sight.contains(text.trim()));
    words.iter().filter(|said| !said.iter().all(stands)).count()
}

/// Checks all laws of a finished compaction and applies it.
fn check(
    setting: &mut LayerFixture,
    order: &CompactionRequest,
    boundary: &Boundary,
) -> Result<(), TestCaseError> {
    let before = setting.view.clone();
    let size = before.size().tokens;
    push(&mut setting.view, EntryDraft::boundary(boundary));
    let after = &setting.view;

    // The context is smaller, by the boundary's own figures, too.
    let threshold = setting.limits.auto_compact.unwrap();
    let tokens = after.size().tokens;
    prop_assert_eq!(Some(tokens), boundary.tokens_after);
    // After a refusal everything that makes the request shorter is a step forward.
    let is_reactive = order.trigger == CompactionTrigger::Reactive;
    prop_assert!(is_reactive || tokens < threshold, "{} tokens, threshold {}", tokens, threshold);
    // By hand it is what the user asked for.
    let is_manual = order.trigger == CompactionTrigger::Manual;
    prop_assert!(is_manual || tokens < size, "{} tokens of {}", tokens, size);
    // The provider accepts it.
    let rules = RequestRules { betas: BetaSet::public(), ..RequestRules::from(&after.lens().card) };
    let body = after.render(OPTIONS).body();
    let checked = check_request(body.as_bytes(), &rules).map_err(|error| error.message);
    prop_assert!(checked.is_ok(), "{:?}\n{}", checked, &body[..body.floor_char_boundary(4_000)]);
    // Entries that belong together are kept together.
    let kept = said(after);
    for group in belonging(&before) {
        let n_kept = group.iter().filter(|id| kept.contains(id)).count();
        prop_assert!(n_kept == 0 || n_kept == group.len(), "{n_kept} of {:?} kept", group);
    }
    // It keeps the requested range.
    let shown = said(&before);
    let place = |id| shown.iter().position(|other| *other == id);
    match order.range {
        CompactionRange::Whole => prop_assert!(shown.ends_with(&kept), "the newest are kept, or nothing"),
        CompactionRange::UpTo(id) => {
            prop_assert!(shown.ends_with(&kept) && kept.contains(&id), "{:?}", kept.len());
        }
        CompactionRange::From(id) => {
            let same = shown.iter().zip(&kept).take_while(|(shown, kept)| shown == kept).count();
            prop_assert!(
                same == kept.len(),
                "{} kept, {same} of them as they stood, of {}",
                kept.len(),
                shown.len()
            );
            prop_assert!(!kept.contains(&id));
            prop_assert!(place(id).unwrap() >= kept.len());
            same_prefix(&before, after)?;
        }
    }
    // Pins are in it, and no user message is dropped without a pointer.
    let summary = texts(&boundary.summary).join("\n");
    for pin in before.state().pins.values() {
        prop_assert!(summary.contains(pin.trim()), "pin {pin:?} is not in\n{summary}");
    }
    let audit = boundary.audit.as_ref().unwrap();
    let found = audit.user_messages_verbatim + audit.user_messages_repaired;
    prop_assert_eq!(found + audit.user_messages_by_pointer, audit.user_messages, "{:?}", audit);
    prop_assert!(
        audit.paths_kept + audit.paths_repaired <= audit.paths
            && audit.todos_kept + audit.todos_repaired <= audit.todos
    );
    Ok(())
}

/// The prefix before the summary is unchanged byte for byte, up to the turn of the cut: within one turn
/// reminders precede a person's text, so part of a turn may have another order.
fn same_prefix(before: &View, after: &View) -> Result<(), TestCaseError> {
    let Some(EntryBody::Boundary(boundary)) = after.boundary().map(|entry| &entry.body) else {
        return Ok(());
    };
    // A summary quotes its sources, and content must not speak for the system.
    let summary =
        pal_model::escape_tags_in_json(boundary.summary.blocks().last().unwrap().raw()).into_owned();
    let pieces = |view: &View| -> Vec<String> {
        view.render(OPTIONS).pieces().map(|(opens, block, _)| format!("{opens:?} {block}")).collect()
    };
    let (before, after) = (pieces(before), pieces(after));
    let end = after.iter().position(|piece| piece.ends_with(summary.as_str()));
    let end = end.ok_or_else(|| TestCaseError::fail("the summary is not in the request"))?;
    let end = after[..end].iter().rposition(|piece| piece.starts_with("Some(Assistant)")).unwrap_or(0);
    prop_assert!(end <= before.len());
    for (before, after) in before.iter().zip(&after[..end]) {
        prop_assert_eq!(before, after);
    }
    Ok(())
}

/// A long beginning, then a random log, so that a summary pays and the cut lies in the random part.
fn long_before(entries: Vec<LogEntry>) -> Vec<LogEntry> {
    let log = spelled_out(
        "user: Look at all of it.\nmodel m9: call long Edit {}\nresult long: ~60000~\nmodel m8: Done.\nsent\nusage m8 30000 9\n\
         user: And then?",
    );
    script(&log).unwrap().into_iter().chain(entries).collect()
}

fn setting(model: &str, entries: Vec<LogEntry>, window: u64) -> LayerFixture {
    let mut setting =
        LayerFixture::from_entries(ModelCatalog::built_in().find(model).card, entries).with_window(window);
    setting.policy = ContextPolicy::threshold();
    setting
}

const PLAIN: RandomLogOptions =
    RandomLogOptions { steps: 30, decisions: true, boundaries: false, rewinds: false, prefixes: true };
const COMPACTED: RandomLogOptions = RandomLogOptions { boundaries: true, ..PLAIN };

fn model() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["claude-opus-4-6", "claude-opus-5-5"][..])
}

fn voice() -> impl Strategy<Value = ScriptedReply> {
    prop::sample::select(&VOICES[..])
}

/// The default cases are deterministic; `PAL_CASES` tries others.
fn config(usual: u32) -> Config {
    let rng_seed = if cases(usual) == usual { RngSeed::Fixed(1) } else { RngSeed::Random };
    Config {
        cases: cases(usual),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        rng_seed,
        ..Config::default()
    }
}

/// A visible message.
fn some_message(view: &View, index: &Index) -> Option<EntryId> {
    let said = said(view);
    (!said.is_empty()).then(|| said[index.index(said.len())])
}

proptest! {
    #![proptest_config(config(160))]

    #[test]
    fn compaction_of_everything_keeps_the_laws(
        entries in random_log(COMPACTED), model in model(), voice in voice(),
        trigger in prop::sample::select(&[CompactionTrigger::Auto, CompactionTrigger::Manual, CompactionTrigger::Reactive][..]),
        window in prop::sample::select(&[30_000u64, 60_000, 200_000][..]),
    ) {
        let mut setting = setting(model, long_before(entries), window);
        let order = order(CompactionRange::Whole, trigger);
        if let Ok(boundary) = carried_through(&setting, order.clone(), voice) {
            check(&mut setting, &order, &boundary)?;
        }
    }

    #[test]
    fn compaction_of_a_range_keeps_the_laws(
        entries in random_log(RandomLogOptions { decisions: false, ..COMPACTED }), model in model(), voice in voice(),
        index in any::<Index>(), is_from in any::<bool>(),
    ) {
        let mut setting = setting(model, long_before(entries), 200_000);
        // Unsent messages may still be reordered; sent ones may not.
        let request = RequestRecord::new(RequestSource::main(), setting.view.newest_id(), model.into());
        push(&mut setting.view, EntryDraft::request(&request));
        let Some(id) = some_message(&setting.view, &index) else { return Ok(()) };
        let order = order(if is_from { CompactionRange::From(id) } else { CompactionRange::UpTo(id) }, CompactionTrigger::Manual);
        if let Ok(boundary) = carried_through(&setting, order.clone(), voice) {
            check(&mut setting, &order, &boundary)?;
        }
    }

    /// Messages behind the last response stay, whole or with a preview, whatever their size is.
    #[test]
    fn messages_without_an_answer_are_kept(
        sizes in prop::collection::vec(1usize..60_000, 1..6), is_chinese in any::<bool>(), prompt in 0usize..40_000, voice in voice(),
        window in prop::sample::select(&[30_000u64, 60_000, 200_000][..]),
    ) {
        let line = if is_chinese { "没有人见过的一行" } else { "a line that nobody has seen " };
        let mut log = spelled_out("user: Look.\nmodel m9: call long Edit {}\nresult long: ~60000~\nsent\nmodel m8: Done.\nusage m8 30000 9\n");
        log += "user: And this?\nsent\n";
        for (number, size) in sizes.iter().enumerate() {
            log += &format!("model m1: call c{number} Read\nresult c{number}: {}\n", line.repeat(size.div_ceil(28)));
        }
        log += &format!("user: {}", line.repeat(prompt.div_ceil(28)));
        let mut setting = setting("claude-opus-4-6", script(&log).unwrap(), window);
        let waiting = said(&setting.view).split_off(said(&setting.view).len() - 1 - sizes.len());
        let act = pal_context::LAYERS[0].act(&pal_context::LayerContext { size: u64::MAX, ..setting.context() });
        setting.apply_action(&act);
        let order = order(CompactionRange::Whole, CompactionTrigger::Auto);
        if let Ok(boundary) = carried_through(&setting, order.clone(), voice) {
            check(&mut setting, &order, &boundary)?;
            let kept = said(&setting.view);
            prop_assert!(waiting.iter().all(|id| kept.contains(id)), "{} kept of {}", kept.len(), waiting.len());
        }
    }

    /// Several compactions in a row: every user message is visible or pointed to.
    #[test]
    fn repeated_compactions_lose_no_user_message(
        logs in prop::collection::vec(random_log(RandomLogOptions { steps: 12, ..PLAIN }), 2..4), voice in voice(), pin in "[a-z]{3,9}",
        window in prop::sample::select(&[30_000u64, 200_000][..]),
    ) {
        let mut setting = setting("claude-opus-4-6", long_before(Vec::new()), window);
        let kind = DecisionKind::Pin { text: format!("Never forget {pin}!") };
        push(&mut setting.view, EntryDraft::decision(&Decision { kind, reason: "law".into(), cost: Default::default() }));
        for (number, entries) in logs.into_iter().enumerate() {
            for entry in entries {
                // Random logs repeat their ids.
                push(&mut setting.view, EntryDraft::copy_of(&entry).with_id(unlike(entry.id, number)));
            }
            push(&mut setting.view, EntryDraft::user(MessageOrigin::Person, &format!("\"Step {number}: {}\"", "go on ".repeat(900))));
            let order = order(CompactionRange::Whole, CompactionTrigger::Auto);
            let Ok(boundary) = carried_through(&setting, order.clone(), voice) else { continue };
            let words = words_of_people(setting.view.branch());
            check(&mut setting, &order, &boundary)?;
            let missing = out_of_sight(&words, &setting.view) as u64;
            let audit = boundary.audit.as_ref().unwrap();
            prop_assert!(missing <= audit.user_messages_by_pointer, "{missing} missing, {audit:?}");
            let pin = format!("Never forget {pin}!");
            prop_assert!(texts(&boundary.summary).concat().contains(&pin));
        }
    }

    /// A range that the user chose to keep is never dropped to make it fit.
    #[test]
    fn ranges_that_do_not_fit_are_refused(entries in random_log(PLAIN), is_from in any::<bool>(), index in any::<Index>()) {
        let setting = setting("claude-opus-4-6", long_before(entries), 3_000);
        let Some(id) = some_message(&setting.view, &index) else { return Ok(()) };
        let order = order(if is_from { CompactionRange::From(id) } else { CompactionRange::UpTo(id) }, CompactionTrigger::Manual);
        if let Ok(boundary) = carried_through(&setting, order.clone(), ScriptedReply::Useless) {
            let mut setting = setting;
            check(&mut setting, &order, &boundary)?;
        }
    }
}

fn unlike(id: EntryId, number: usize) -> EntryId {
    IdSource::seeded(
        7_000 + number as u64 * 1_000 + (id.to_string().bytes().map(u64::from).sum::<u64>() % 997),
    )
    .next_id(pal_model::Timestamp::from_milliseconds(1_900_000_000_000))
}

/// A hook that forbids compaction delays it; at the blocking limit the turn ends with an error that names the
/// hook.
#[test]
fn hook_delays_compaction_until_the_blocking_limit() {
    let mut blocked = setting("claude-opus-4-6", long_before(Vec::new()), 200_000);
    blocked.blocked_by = Some("guard");
    let limits = blocked.limits;
    let act = |size: u64, blocked_by: Option<&'static str>| {
        let context = pal_context::LayerContext { size, blocked_by, ..blocked.context() };
        crate::common::layer_named("auto-compact").act(&context)
    };
    let due = limits.auto_compact.unwrap();
    assert!(matches!(act(due, None).kind, ActionKind::Compact));
    let waits = act(due, Some("guard"));
    assert!(matches!(waits.kind, ActionKind::Nothing) && waits.reason.contains("`guard`"), "{waits:?}");
    let ends = act(limits.blocking, Some("guard"));
    assert!(matches!(ends.kind, ActionKind::Stop) && ends.reason.contains("`guard`"), "{ends:?}");
}

/// Recorded sessions, at several points, with every method and window.
#[test]
fn recorded_sessions_keep_the_laws() {
    let files = session_sample("compaction");
    let work = |file: &PathBuf| {
        let (mut done, mut refused) = (0, 0);
        let entries = pal_testkit::recorded_entries(file);
        for (part, window) in [(4, 30_000), (2, 60_000), (1, 200_000)] {
            let beginning = entries[..entries.len() / part].to_vec();
            for voice in [ScriptedReply::Short, ScriptedReply::Useless] {
                let mut one = setting("claude-opus-4-6", beginning.clone(), window);
                let messages = said(&one.view);
                let Some(middle) = messages.get(messages.len() / 2).copied() else { continue };
                for reach in
                    [CompactionRange::From(middle), CompactionRange::UpTo(middle), CompactionRange::Whole]
                {
                    let order = order(reach, CompactionTrigger::Manual);
                    let view = one.view.clone();
                    match carried_through(&one, order.clone(), voice) {
                        Ok(boundary) => {
                            done += 1;
                            let checked = check(&mut one, &order, &boundary);
                            checked.unwrap_or_else(|error| {
                                panic!("{}, {window}, {reach:?}: {error}", file.display())
                            });
                        }
                        Err(_) => refused += 1,
                    }
                    one.view = view;
                }
            }
        }
        (done, refused)
    };
    let (done, refused) =
        map_on_all_cores(&files, work).iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("{} sessions: {done} compactions, {refused} refused", files.len());
    assert!(files.is_empty() || done > refused, "{done} done, {refused} refused");
}

/// A conversation of about 12,000 tokens of which the provider has reported `reported`, and its compaction.
fn reported_as(
    reported: u64,
    trigger: CompactionTrigger,
    reply: &str,
) -> (u64, Result<Box<Boundary>, String>) {
    let log = format!(
        "user: go\nsent\nmodel m1: call c Edit {{}}\nresult c: ~40000~\nsent\nmodel m2: Done.\nusage m2 {reported} 9"
    );
    let setting = LayerFixture::of("claude-opus-4-6", &spelled_out(&log));
    let before = setting.view.size().tokens;
    (before, compact_with(&setting, order(CompactionRange::Whole, trigger), &|| summary(reply)))
}

#[test]
fn sizes_before_and_after_are_counted_alike() {
    let estimated = reported_as(0, CompactionTrigger::Auto, "").0;
    let after = |percent: u64| {
        let (before, boundary) =
            reported_as(estimated * percent / 100, CompactionTrigger::Auto, "It goes on.");
        let boundary = boundary.unwrap();
        assert_eq!(boundary.tokens_before, Some(before));
        boundary.tokens_after.unwrap()
    };
    let exact = after(100);
    for percent in [70, 90, 130, 180] {
        let share = 100.0 * after(percent) as f64 / exact as f64;
        assert!((share - percent as f64).abs() < 3.0, "{percent}%: {share}%");
    }
}

#[test]
fn a_compaction_that_does_not_shrink_is_refused_unless_it_was_asked_for() {
    let estimated = reported_as(0, CompactionTrigger::Auto, "").0;
    // As long as the conversation by the same count, and shorter than what the provider reported of it.
    let estimator = pal_view::Estimator::shipped(pal_model::TokenGeneration::Claude46);
    let words = "one more of many words ";
    let as_long = words.repeat((110.0 * estimated as f64 / estimator.text(&words.repeat(100))) as usize);
    let (before, refused) = reported_as(estimated * 125 / 100, CompactionTrigger::Auto, &as_long);
    // The summary of a model does not help; what is extracted from the log does.
    assert_eq!(refused.unwrap().method, "extractive", "{before}");
    let (_, done) = reported_as(estimated * 125 / 100, CompactionTrigger::Manual, &as_long);
    assert_eq!(done.unwrap().method, "fork");
}

#[test]
fn files_of_spilled_content_are_not_invented_paths() {
    let log = "user: ~40000~\nsent\nmodel m1: It is long.\nuser: And?\nsent\nmodel m2: Done.\n";
    let mut setting = LayerFixture::of("claude-opus-4-6", &spelled_out(log));
    let invented = |setting: &LayerFixture| {
        let order = order(CompactionRange::Whole, CompactionTrigger::Manual);
        let boundary =
            compact_with(setting, order, &|| summary("The paste is in /s/tool-results/entry-1.txt."));
        boundary.unwrap().audit.unwrap().invented
    };
    assert_eq!(invented(&setting), ["/s/tool-results/entry-1.txt"]);
    let path = "/s/tool-results/entry-1.txt".to_owned();
    let text = format!("[The user's text has 40 000 characters. All of it is in {path}.]");
    let pasted = said(&setting.view)[0];
    let decision = Decision {
        kind: DecisionKind::Spill { tool_use_id: None, entry: Some(pasted), path, text },
        reason: "too long".to_owned(),
        cost: pal_model::DecisionCost::default(),
    };
    push(&mut setting.view, EntryDraft::decision(&decision));
    assert_eq!(invented(&setting), [""; 0]);
}

/// Files restored by a boundary, in order.
fn put_back(boundary: &Boundary) -> Vec<String> {
    let texts = boundary.restored.blocks().iter().filter_map(|block| block.string("text"));
    texts.filter_map(|text| Some(text.strip_prefix("[File `")?.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn last_touched_files_are_restored_by_each_compaction() {
    let mut log = String::from("tools Read Edit\nuser: go\n");
    for (number, file) in ["a", "b", "c", "d", "e", "f"].iter().enumerate() {
        log += &format!("sent\nmodel m{number}: call r{number} Read {{\"file_path\":\"/{file}\"}}\n");
        log += &format!("result r{number}: ~4000~\n");
    }
    let edit = r#"{"file_path":"/a","old_string":"o","new_string":"p"}"#;
    log += &format!("sent\nmodel m6: call e1 Edit {edit}\nresult e1: done\n");
    let refused = r#"{"file_path":"/refused","old_string":"o","new_string":"p"}"#;
    log += &format!("sent\nmodel m7: call e2 Edit {refused}\nresult e2 error: Not carried out\n");
    log += "sent\nmodel m8: Done.\n";
    let mut setting = LayerFixture::of("claude-opus-4-6", &spelled_out(&log));
    let compacted = |setting: &LayerFixture, trigger: CompactionTrigger| {
        carried_through(setting, order(CompactionRange::Whole, trigger), ScriptedReply::Short).unwrap()
    };
    let first = compacted(&setting, CompactionTrigger::Auto);
    assert_eq!(put_back(&first), ["/a", "/f", "/e", "/d", "/c"], "newest first, changed counts");
    push(&mut setting.view, EntryDraft::boundary(&first));
    let call = r#"[{"type":"tool_use","id":"r9","name":"Read","input":{"file_path":"/g"}}]"#;
    push(&mut setting.view, EntryDraft::assistant(Some(&ResponseId::from("m9")), None, call));
    let result = format!(
        r#"[{{"type":"tool_result","tool_use_id":"r9","content":"{}"}}]"#,
        "as it was written. ".repeat(4_000)
    );
    push(&mut setting.view, EntryDraft::user(MessageOrigin::Tool, &result));
    push(&mut setting.view, EntryDraft::assistant(Some(&ResponseId::from("m10")), None, r#""Done.""#));
    let again = ["/g", "/a", "/f", "/e", "/d"];
    assert_eq!(
        put_back(&compacted(&setting, CompactionTrigger::Auto)),
        again,
        "what was put back was read then"
    );
    assert_eq!(put_back(&compacted(&setting, CompactionTrigger::Manual)), ["/g"], "by hand, less is wanted");
}

#[test]
fn a_budget_of_tokens_is_spread_over_more_and_smaller_files() {
    let mut log = String::from("tools Read\nuser: go\n");
    for number in 0..20 {
        log += &format!("sent\nmodel m{number}: call r{number} Read {{\"file_path\":\"/f{number}\"}}\n");
        log += &format!("result r{number}: ~4000~\n");
    }
    log += "sent\nmodel m20: Done.\n";
    let restored = |files: usize, tokens: u64| {
        let setting = LayerFixture::of("claude-opus-4-6", &spelled_out(&log));
        let setting = setting.with_policy(|policy| policy.restoration = RestorationBudget { files, tokens });
        let order = order(CompactionRange::Whole, CompactionTrigger::Auto);
        put_back(&carried_through(&setting, order, ScriptedReply::Short).unwrap())
    };
    assert_eq!(restored(2, 50_000), ["/f19", "/f18"]);
    let all = restored(15, 50_000);
    assert_eq!((all.len(), all[14].as_str()), (15, "/f5"));
    // As many of the newest as have room as a whole.
    let some = restored(15, 2_000);
    assert!((1..15).contains(&some.len()) && all.starts_with(&some), "{some:?}");
    assert_eq!(restored(15, 0), [""; 0]);
}
