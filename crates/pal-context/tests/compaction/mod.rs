//! Laws of compaction: whatever a log holds and whatever a model says, what comes of a compaction is smaller, valid, keeps
//! what it says that it keeps, and loses no word of the user and no pin. On soups and on recorded sessions.

use std::collections::BTreeMap;

use pal_context::{Compaction, FileRead, Order, Policy, Reach, Reply, Step, Trigger, What, World};
use pal_model::{
    Block, BlockType, Body, Boundary, Cards, Content, Decision, DecisionKind, Draft, Entry, EntryId,
    IdSource, Origin, RequestSent, ResponseId, Source, Text, ToolUseId,
};
use pal_testkit::{Soup, cases, script, session_files, soup};
use pal_view::{Shown, View};
use pal_wire::{Betas, Rules, check_request};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngSeed};

use crate::common::{OPTIONS, Setting, spelled_out};
use crate::laws::imported;

/// More questions than this no compaction asks.
const QUESTIONS_MOST: usize = 6;

/// What the model says when it is asked for a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Voice {
    /// A short summary.
    Short,
    /// Nothing that could be used.
    Useless,
    /// More than there was.
    Endless,
    /// That the request is too long.
    TooLong,
}

const VOICES: [Voice; 4] = [Voice::Short, Voice::Useless, Voice::Endless, Voice::TooLong];

impl Voice {
    fn reply(self) -> Reply {
        let said = |text: String| Reply::Said(vec![Block::text(&text)]);
        match self {
            Voice::Short => said("<summary>\n8. Current work\nIt goes on.\n</summary>".into()),
            Voice::Useless => said("Certainly!".into()),
            Voice::Endless => said(format!("<summary>\n{}</summary>", "and so on ".repeat(40_000))),
            Voice::TooLong => Reply::TooLong { have: None, limit: None },
        }
    }
}

fn order(reach: Reach, trigger: Trigger) -> Order {
    Order {
        trigger,
        reach,
        source: Source::main(),
        instructions: None,
        hook_instructions: None,
        notes: None,
        only: None,
        is_attended: true,
        world: World::default(),
        standing: Default::default(),
    }
}

/// Carries a compaction through: the boundary, or why there is none.
fn carried_through(setting: &Setting, order: Order, voice: Voice) -> Result<Box<Boundary>, String> {
    let situation = setting.situation();
    let mut compaction =
        Compaction::new(&setting.view, order, &setting.limits, &setting.policy, situation.place);
    let mut n_asked = 0;
    loop {
        match compaction.next(&setting.view) {
            Step::Ask(question) => {
                n_asked += 1;
                assert!(n_asked <= QUESTIONS_MOST, "asked again and again");
                assert!(question.how.asks_a_model());
                compaction.answered(&setting.view, voice.reply());
            }
            Step::ReadFiles(wanted) => {
                let read = |path| FileRead { path, text: Some("fn main() {}\n".repeat(40)), seen: None };
                compaction.files_read(wanted.into_iter().map(|wanted| read(wanted.path)).collect());
            }
            Step::Done(done) => return Ok(Box::new(done.boundary)),
            Step::Failed { message, counts_as_failure } => {
                assert!(!message.is_empty());
                assert!(!counts_as_failure || n_asked > 0, "nobody was asked: {message}");
                return Err(message);
            }
        }
    }
}

fn push(view: &mut View, draft: Draft) {
    let at = view.branch().last().map_or_else(Default::default, |entry| entry.at);
    let id = IdSource::seeded(2_000_000 + view.branch().len() as u64).next_id(at);
    let line = draft.into_line(id, view.newest(), at, None);
    view.push(Entry::parse(Text::from(line)).unwrap());
}

fn is_said(shown: &Shown<'_>) -> bool {
    !matches!(shown.entry.body, Body::Boundary(_))
}

/// The entries in sight that are no summaries, in order, each once.
fn said(view: &View) -> Vec<EntryId> {
    let mut ids: Vec<EntryId> = view.shown().filter(is_said).map(|shown| shown.entry.id).collect();
    ids.dedup();
    ids
}

/// Every call, result and record of a response of the view, by what it belongs to; ids that are used twice are nobody's.
fn belonging(view: &View) -> Vec<Vec<EntryId>> {
    let mut calls: BTreeMap<ToolUseId, (Vec<EntryId>, Vec<EntryId>)> = BTreeMap::new();
    let mut responses: BTreeMap<ResponseId, Vec<EntryId>> = BTreeMap::new();
    for shown in view.shown().filter(is_said) {
        let is_models = match &shown.entry.body {
            Body::Assistant(assistant) => {
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

/// What people said before a place of the branch, entry by entry.
fn words_of_people(branch: &[Entry]) -> Vec<Vec<String>> {
    let said = branch.iter().filter_map(|entry| match &entry.body {
        Body::User(user) if user.origin == Origin::Person => Some(texts(&user.content)),
        _ => None,
    });
    said.filter(|said| said.iter().any(|text| !text.trim().is_empty())).collect()
}

/// How many of these are nowhere in sight.
fn out_of_sight(words: &[Vec<String>], view: &View) -> usize {
    let mut sight: Vec<String> = view.shown().filter_map(|shown| shown.content()).flat_map(texts).collect();
    if let Some(Body::Boundary(boundary)) = view.boundary().map(|entry| &entry.body) {
        sight.extend(texts(&boundary.lead));
    }
    let stands = |text: &String| sight.iter().any(|sight| sight.contains(text.trim()));
    words.iter().filter(|said| !said.iter().all(stands)).count()
}

/// All that holds of a compaction that came about. The view afterwards.
fn check(setting: &mut Setting, order: &Order, boundary: &Boundary) -> Result<(), TestCaseError> {
    let before = setting.view.clone();
    let size = before.size().tokens;
    push(&mut setting.view, Draft::boundary(boundary));
    let after = &setting.view;

    // It is smaller, by its own account, too.
    let threshold = setting.limits.auto_compact.unwrap();
    let tokens = after.size().tokens;
    prop_assert_eq!(Some(tokens), boundary.tokens_after);
    prop_assert!(tokens < threshold, "{} tokens, threshold {}", tokens, threshold);
    prop_assert!(tokens < size, "{} tokens of {}", tokens, size);
    // The provider takes it.
    let rules = Rules { betas: Betas::public(), ..Rules::from(&after.lens().card) };
    let body = after.render(OPTIONS).body();
    let checked = check_request(body.as_bytes(), &rules).map_err(|error| error.message);
    prop_assert!(checked.is_ok(), "{:?}\n{}", checked, &body[..body.floor_char_boundary(4_000)]);
    // What belongs together is kept together.
    let kept = said(after);
    for group in belonging(&before) {
        let n_kept = group.iter().filter(|id| kept.contains(id)).count();
        prop_assert!(n_kept == 0 || n_kept == group.len(), "{n_kept} of {:?} kept", group);
    }
    // It keeps what the reach says.
    let shown = said(&before);
    let place = |id| shown.iter().position(|other| *other == id);
    match order.reach {
        Reach::Whole => prop_assert!(shown.ends_with(&kept), "the newest are kept, or nothing"),
        Reach::UpTo(id) => {
            prop_assert!(shown.ends_with(&kept) && kept.contains(&id), "{:?}", kept.len());
        }
        Reach::From(id) => {
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
    // Pins are in it, and no word of the user is gone without a pointer.
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

/// What stands before the summary is what stood there, byte for byte, up to the turn in which it was cut: within one
/// turn reminders stand before what a person says, so a part of a turn may show another order.
fn same_prefix(before: &View, after: &View) -> Result<(), TestCaseError> {
    let Some(Body::Boundary(boundary)) = after.boundary().map(|entry| &entry.body) else { return Ok(()) };
    // A summary quotes what it sums up, and content does not speak for the system.
    let summary = pal_model::defuse_json(boundary.summary.blocks().last().unwrap().raw()).into_owned();
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

/// Something long, then a soup: so that a summary is worth it, and the soup is where it is cut.
fn long_before(soup: Vec<Entry>) -> Vec<Entry> {
    let log = spelled_out(
        "user: Look at all of it.\nmodel m9: call long Edit {}\nresult long: ~60000~\nmodel m8: Done.\nsent\nusage m8 30000 9\n\
         user: And then?",
    );
    script(&log).unwrap().into_iter().chain(soup).collect()
}

fn setting(model: &str, entries: Vec<Entry>, window: u64) -> Setting {
    let mut setting = Setting::from_entries(Cards::shipped().find(model).card, entries).with_window(window);
    setting.policy = Policy::classic();
    setting
}

const PLAIN: Soup = Soup { steps: 30, decisions: true, boundaries: false, rewinds: false, prefixes: true };
const COMPACTED: Soup = Soup { boundaries: true, ..PLAIN };

fn model() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["claude-opus-4-6", "claude-opus-5-5"][..])
}

fn voice() -> impl Strategy<Value = Voice> {
    prop::sample::select(&VOICES[..])
}

/// The usual cases are the same in every run; `PAL_CASES` looks for others.
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

/// Some message in sight.
fn some_message(view: &View, index: &Index) -> Option<EntryId> {
    let said = said(view);
    (!said.is_empty()).then(|| said[index.index(said.len())])
}

proptest! {
    #![proptest_config(config(160))]

    #[test]
    fn a_compaction_of_everything(
        soup in soup(COMPACTED), model in model(), voice in voice(),
        trigger in prop::sample::select(&[Trigger::Auto, Trigger::Manual, Trigger::Reactive][..]),
        window in prop::sample::select(&[30_000u64, 60_000, 200_000][..]),
    ) {
        let mut setting = setting(model, long_before(soup), window);
        let order = order(Reach::Whole, trigger);
        if let Ok(boundary) = carried_through(&setting, order.clone(), voice) {
            check(&mut setting, &order, &boundary)?;
        }
    }

    #[test]
    fn a_compaction_of_a_part(
        soup in soup(Soup { decisions: false, ..COMPACTED }), model in model(), voice in voice(),
        index in any::<Index>(), is_from in any::<bool>(),
    ) {
        let mut setting = setting(model, long_before(soup), 200_000);
        // What no request covered may still move; what was sent stands.
        let request = RequestSent::plain(Source::main(), setting.view.newest(), model.into());
        push(&mut setting.view, Draft::request(&request));
        let Some(id) = some_message(&setting.view, &index) else { return Ok(()) };
        let order = order(if is_from { Reach::From(id) } else { Reach::UpTo(id) }, Trigger::Manual);
        if let Ok(boundary) = carried_through(&setting, order.clone(), voice) {
            check(&mut setting, &order, &boundary)?;
        }
    }

    /// Several in a row: whatever a person said at any time is in sight, or one of those that are pointed to.
    #[test]
    fn no_word_of_the_user_is_lost_by_several_in_a_row(
        soups in prop::collection::vec(soup(Soup { steps: 12, ..PLAIN }), 2..4), voice in voice(), pin in "[a-z]{3,9}",
        window in prop::sample::select(&[30_000u64, 200_000][..]),
    ) {
        let mut setting = setting("claude-opus-4-6", long_before(Vec::new()), window);
        let kind = DecisionKind::Pin { text: format!("Never forget {pin}!") };
        push(&mut setting.view, Draft::decision(&Decision { kind, reason: "law".into(), cost: Default::default() }));
        for (number, soup) in soups.into_iter().enumerate() {
            for entry in soup {
                // The same ids come in every soup.
                push(&mut setting.view, Draft::copy_of(&entry).with_id(unlike(entry.id, number)));
            }
            push(&mut setting.view, Draft::user(Origin::Person, &format!("\"Step {number}: {}\"", "go on ".repeat(900))));
            let order = order(Reach::Whole, Trigger::Auto);
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

    /// A part that stays stays whole: what a person chose to keep is never dropped to make it fit.
    #[test]
    fn what_does_not_fit_is_refused(soup in soup(PLAIN), is_from in any::<bool>(), index in any::<Index>()) {
        let setting = setting("claude-opus-4-6", long_before(soup), 3_000);
        let Some(id) = some_message(&setting.view, &index) else { return Ok(()) };
        let order = order(if is_from { Reach::From(id) } else { Reach::UpTo(id) }, Trigger::Manual);
        if let Ok(boundary) = carried_through(&setting, order.clone(), Voice::Useless) {
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

/// A hook that forbids compaction: it waits, and at the blocking limit the turn ends with an error that names the hook.
#[test]
fn a_hook_makes_a_compaction_wait_until_nothing_else_helps() {
    let mut blocked = setting("claude-opus-4-6", long_before(Vec::new()), 200_000);
    blocked.blocked_by = Some("guard");
    let limits = blocked.limits;
    let act = |size: u64, blocked_by: Option<&'static str>| {
        let situation = pal_context::Situation { size, blocked_by, ..blocked.situation() };
        crate::common::layer_named("auto-compact").act(&situation)
    };
    let due = limits.auto_compact.unwrap();
    assert!(matches!(act(due, None).what, What::Compact));
    let waits = act(due, Some("guard"));
    assert!(matches!(waits.what, What::Nothing) && waits.reason.contains("`guard`"), "{waits:?}");
    let ends = act(limits.blocking, Some("guard"));
    assert!(matches!(ends.what, What::Stop) && ends.reason.contains("`guard`"), "{ends:?}");
}

/// Recorded sessions, at several points, in every way and at every window.
#[test]
fn recorded_sessions_keep_the_laws() {
    let files = session_files();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let (mut done, mut refused) = (0, 0);
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(file) = files.get(at) else { return (done, refused) };
            let entries = imported(file);
            for (part, window) in [(4, 30_000), (2, 60_000), (1, 200_000)] {
                let beginning = entries[..entries.len() / part].to_vec();
                for voice in [Voice::Short, Voice::Useless] {
                    let mut one = setting("claude-opus-4-6", beginning.clone(), window);
                    let messages = said(&one.view);
                    let Some(middle) = messages.get(messages.len() / 2).copied() else { continue };
                    for reach in [Reach::From(middle), Reach::UpTo(middle), Reach::Whole] {
                        let order = order(reach, Trigger::Manual);
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
        }
    };
    let counts: Vec<(usize, usize)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let (done, refused) = counts.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    println!("{} sessions: {done} compactions, {refused} refused", files.len());
    assert!(files.is_empty() || done > refused, "{done} done, {refused} refused");
}

/// The files that a boundary puts back, in order.
fn put_back(boundary: &Boundary) -> Vec<String> {
    let texts = boundary.restored.blocks().iter().filter_map(|block| block.string("text"));
    texts.filter_map(|text| Some(text.strip_prefix("[File `")?.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn files_that_were_read_or_changed_last_are_put_back_and_again_by_the_next_compaction() {
    let mut log = String::from("tools Read Edit\nuser: go\n");
    for (number, file) in ["a", "b", "c", "d", "e", "f"].iter().enumerate() {
        log += &format!("sent\nmodel m{number}: call r{number} Read {{\"file_path\":\"/{file}\"}}\n");
        log += &format!("result r{number}: ~4000~\n");
    }
    let edit = r#"{"file_path":"/a","old_string":"o","new_string":"p"}"#;
    log += &format!("sent\nmodel m6: call e1 Edit {edit}\nresult e1: done\nsent\nmodel m7: Done.\n");
    let mut setting = Setting::of("claude-opus-4-6", &spelled_out(&log));
    let compacted = |setting: &Setting, trigger: Trigger| {
        carried_through(setting, order(Reach::Whole, trigger), Voice::Short).unwrap()
    };
    let first = compacted(&setting, Trigger::Auto);
    assert_eq!(put_back(&first), ["/a", "/f", "/e", "/d", "/c"], "newest first, changed counts");
    push(&mut setting.view, Draft::boundary(&first));
    let call = r#"[{"type":"tool_use","id":"r9","name":"Read","input":{"file_path":"/g"}}]"#;
    push(&mut setting.view, Draft::assistant(Some(&ResponseId::from("m9")), None, call));
    let result = format!(
        r#"[{{"type":"tool_result","tool_use_id":"r9","content":"{}"}}]"#,
        "as it was written. ".repeat(4_000)
    );
    push(&mut setting.view, Draft::user(Origin::Tool, &result));
    push(&mut setting.view, Draft::assistant(Some(&ResponseId::from("m10")), None, r#""Done.""#));
    let again = ["/g", "/a", "/f", "/e", "/d"];
    assert_eq!(put_back(&compacted(&setting, Trigger::Auto)), again, "what was put back was read then");
    assert_eq!(put_back(&compacted(&setting, Trigger::Manual)), ["/g"], "by hand, less is wanted");
}
