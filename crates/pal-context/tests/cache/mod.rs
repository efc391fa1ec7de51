//! Marks and their order of need; and each input of the cache's key changed in turn, with the cause that is named.

use pal_context::Standing;
use pal_context::cache::{
    Asked, Baseline, Eligibility, Expected, Fall, Marking, diff, difference, judge, latched_lifetime, plan,
};
use pal_model::{
    BreakCause, Card, Cards, Change, Content, Draft, Entry, IdSource, Origin, Prefix, PrefixNotes,
    RequestSent, SectionNote, Snapshot, Source, SystemNote, Text, Timestamp, Usage,
};
use pal_view::{CacheLifetime, CacheScope, Estimator, Lens, RenderOptions, Scope, Spot, View};

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 1_000, stream: true, spell_out_unseen: false };

/// What a request is made of.
#[derive(Clone)]
struct Parts {
    card: Card,
    /// Name, text and whether it is part of the static block.
    sections: Vec<(&'static str, String, bool)>,
    tools: Vec<String>,
    messages: Vec<String>,
    /// Words that were said at the end and have not been sent.
    unsent: usize,
    standing: Standing,
    betas: Vec<&'static str>,
}

impl Parts {
    fn new() -> Parts {
        let tool = |name: &str| {
            format!(
                r#"{{"name":"{name}","description":"{}","input_schema":{{"type":"object"}}}}"#,
                "It helps. ".repeat(60)
            )
        };
        Parts {
            card: Cards::shipped().find("claude-opus-5-5").card,
            sections: vec![
                ("identity", "You help. ".repeat(200), true),
                ("tone", "Be brief. ".repeat(40), true),
                ("environment", "Linux. ".repeat(200), false),
            ],
            tools: ["Bash", "Edit", "Read"].map(tool).into(),
            messages: (0..7).map(|number| format!("message {number}: {}", "words ".repeat(300))).collect(),
            unsent: 0,
            standing: Standing::default(),
            betas: vec!["one", "two"],
        }
    }

    fn prefix(&self) -> Prefix {
        let block = |is_static: bool| {
            let own: Vec<_> = self.sections.iter().filter(|section| section.2 == is_static).collect();
            let text = own.iter().map(|section| section.1.as_str()).collect::<Vec<_>>().join("\n\n");
            let notes = own.iter().map(|section| SectionNote {
                name: section.0.into(),
                bytes: section.1.len() as u64,
                volatile: None,
            });
            let note = SystemNote { sections: notes.collect(), is_static, markable: true };
            (serde_json::json!({"type": "text", "text": text}).to_string(), note)
        };
        let (blocks, notes): (Vec<String>, Vec<SystemNote>) = [block(true), block(false)].into_iter().unzip();
        Prefix {
            system: Text::from(format!("[{}]", blocks.join(","))),
            tools: Text::from(format!("[{}]", self.tools.join(","))),
            context: Content::default(),
            unseen_tokens: 0,
            notes: PrefixNotes { system: notes, sources: Vec::new() },
        }
    }

    fn view(&self) -> View {
        let mut ids = IdSource::seeded(7);
        let at = Timestamp::default();
        let lens = Lens {
            estimator: Estimator::shipped(self.card.generation),
            card: self.card.clone(),
            scope: Scope::Current,
        };
        let mut view = View::new(lens);
        let mut push = |view: &mut View, draft: Draft| {
            let line = draft.into_line(ids.next_id(at), view.newest(), at, None);
            view.push(Entry::parse(Text::from(line)).unwrap());
        };
        push(&mut view, Draft::prefix(&self.prefix()));
        for (number, message) in self.messages.iter().enumerate() {
            let content = serde_json::Value::from(message.as_str()).to_string();
            let draft = match number % 2 {
                0 => Draft::user(Origin::Person, &content),
                _ => Draft::assistant(Some(&format!("msg_{number}").as_str().into()), None, &content),
            };
            push(&mut view, draft);
            if number % 2 == 0 && number + 1 < self.messages.len() {
                let last = view.newest();
                push(
                    &mut view,
                    Draft::request(&RequestSent::plain(Source::main(), last, self.card.model.clone())),
                );
            }
        }
        for _ in 0..self.unsent {
            push(&mut view, Draft::user(Origin::Person, r#""and""#));
        }
        view
    }

    fn asked(&self) -> Asked {
        let request = self.standing.request(&self.view(), OPTIONS);
        Asked { request, betas: self.betas.iter().map(|beta| (*beta).into()).collect() }
    }
}

/// The cause that is named when one thing is changed and one message is added.
fn named(change: impl Fn(&mut Parts)) -> Option<BreakCause> {
    let before = Parts::new();
    let mut now = before.clone();
    now.messages.extend(["an answer", "and on"].map(String::from));
    change(&mut now);
    difference(&before.asked(), &now.asked())
}

#[test]
fn appending_is_no_difference() {
    assert_eq!(named(|_| {}), None);
}

#[test]
fn each_input_of_the_key_is_named_and_nothing_else() {
    let section =
        |name: &str, change, characters| Some(BreakCause::Section { name: name.into(), change, characters });
    let tool = |name: &str, change| Some(BreakCause::Tool { name: name.into(), change });
    let message =
        |message, change, characters| Some(BreakCause::Message { message, block: 0, change, characters });
    assert_eq!(named(|parts| parts.sections[1].1.push_str("!!")), section("tone", Change::Changed, 2));
    assert_eq!(
        named(|parts| parts.sections[2].1 = "Lunix".into()),
        section("environment", Change::Changed, 5 - 1_400)
    );
    assert_eq!(named(|parts| drop(parts.sections.remove(1))), section("tone", Change::Removed, -400));
    assert_eq!(
        named(|parts| parts.sections.insert(1, ("style", "Loud.".into(), true))),
        section("style", Change::Added, 5)
    );
    assert_eq!(named(|parts| parts.sections.swap(0, 1)), section("identity", Change::Moved, 0));
    assert_eq!(
        named(|parts| parts.tools[1] = parts.tools[1].replacen("It", "That", 1)),
        tool("Edit", Change::Changed)
    );
    assert_eq!(named(|parts| parts.tools.swap(0, 1)), tool("Bash", Change::Moved));
    assert_eq!(named(|parts| drop(parts.tools.pop())), tool("Read", Change::Removed));
    assert_eq!(
        named(|parts| parts.tools.push(parts.tools[0].replace("Bash", "Write"))),
        tool("Write", Change::Added)
    );
    assert_eq!(
        named(|parts| {
            let deferred = parts.tools[0].replace("\"Bash\"", "\"Web\",\"defer_loading\":true");
            parts.tools.push(deferred);
        }),
        None,
        "a deferred tool is no part of the prefix"
    );
    let model = named(|parts| parts.card = Cards::shipped().find("claude-sonnet-5-5").card);
    assert_eq!(
        model,
        Some(BreakCause::Model { from: "claude-opus-5-5".into(), to: "claude-sonnet-5-5".into() })
    );
    assert_eq!(
        named(|parts| parts.betas = vec!["one", "three"]),
        Some(BreakCause::Betas { added: vec!["three".into()], removed: vec!["two".into()] })
    );
    let member = |name: &'static str, value: &'static str| {
        named(move |parts| parts.standing.members.push((name.into(), Text::from(value))))
    };
    assert_eq!(member("thinking", r#"{"type":"disabled"}"#), Some(BreakCause::Thinking));
    assert_eq!(member("output_config", r#"{"effort":"low"}"#), Some(BreakCause::Effort));
    assert_eq!(member("tool_choice", r#"{"type":"none"}"#), Some(BreakCause::ToolChoice));
    assert_eq!(member("speed", r#""fast""#), Some(BreakCause::Speed));
    assert_eq!(member("context_management", "{}"), Some(BreakCause::Edits));
    assert_eq!(member("inference_geo", r#""eu""#), Some(BreakCause::Member { name: "inference_geo".into() }));
    assert_eq!(member("metadata", "{}"), None, "no part of the key");
    assert_eq!(named(|parts| parts.standing.lifetime = CacheLifetime::Hour1), Some(BreakCause::Lifetimes));
    for k in 0..7 {
        let changed = named(|parts| parts.messages[k] = parts.messages[k].replacen('w', "W", 1));
        assert_eq!(changed, message(k as u64, Change::Changed, 0), "a byte of message {k}");
    }
    assert_eq!(named(|parts| parts.messages.truncate(5)), message(5, Change::Removed, -1_836));
}

/// A fall between two requests of which the second came so many milliseconds later.
fn judged(change: impl Fn(&mut Parts), idle_ms: i64, expected: Option<&str>) -> BreakCause {
    let before = Parts::new();
    let mut now = before.clone();
    change(&mut now);
    let baseline = Baseline { started: Timestamp::default(), lifetime_ms: 300_000, read: 50_000 };
    let expected = expected.map(|what| Expected { what: what.into() });
    let usage = Usage { cache_creation_input_tokens: 50_000, ..Usage::default() };
    let found = judge(
        &Fall {
            tokens: 40_000,
            baseline: &baseline,
            before: &before.asked(),
            now: &now.asked(),
            started: Timestamp::from_milliseconds(idle_ms),
            usage: &usage,
            expected: expected.as_ref(),
            has_unseen: false,
            provider: None,
        },
        &before.card,
    );
    // 40 000 tokens written at $5 instead of read at $0.20.
    assert!((found.cost.unwrap() - 0.192).abs() < 1e-9, "{:?}", found.cost);
    found.cause
}

#[test]
fn the_first_thing_that_explains_a_fall_is_its_cause() {
    let edit = |parts: &mut Parts| parts.messages[2].push('!');
    let changed =
        |characters| BreakCause::Message { message: 2, block: 0, change: Change::Changed, characters };
    assert_eq!(judged(edit, 400_000, None), changed(1), "a change of ours comes before the time");
    assert_eq!(judged(edit, 0, Some("clear")), BreakCause::Expected { what: "clear".into() });
    let section = judged(|parts| parts.sections[0].1.push('!'), 0, Some("clear"));
    assert!(matches!(section, BreakCause::Section { .. }), "a clear does not explain another system prompt");
    assert_eq!(
        judged(|parts| parts.sections[0].1.push('!'), 0, Some("boundary")),
        BreakCause::Expected { what: "boundary".into() }
    );
    let expired = BreakCause::Expired { idle_ms: 300_000, lifetime_ms: 300_000 };
    assert_eq!(judged(|_| {}, 300_000, None), expired);
    assert_eq!(judged(|_| {}, 299_999, None), BreakCause::Provider);
    let hour = |parts: &mut Parts| parts.standing.lifetime = CacheLifetime::Hour1;
    assert_eq!(judged(hour, 1_000, None), BreakCause::Lifetimes);
    assert_eq!(judged(hour, 300_000, None), expired, "marks that last otherwise lose nothing by themselves");
}

#[test]
fn a_diff_shows_what_changed_and_not_what_was_added() {
    let before = Parts::new();
    let mut now = before.clone();
    now.messages.extend(["an answer", "appended"].map(String::from));
    now.messages[2] = String::from("another text");
    now.sections[2].1 = String::from("Another machine.");
    let text = diff(&before.asked(), &now.asked());
    assert!(
        text.contains("+another text") && text.contains("-message 2") && text.contains("+Another machine.")
    );
    assert!(!text.contains("+appended") && !text.contains("@@ -1,1 +1,1 @@"), "{text}");
    assert_eq!(diff(&before.asked(), &before.asked()), "");
}

fn spots(parts: &Parts, is_fork: bool) -> Vec<Spot> {
    let view = parts.view();
    let request = if is_fork { view.fork(OPTIONS, "Sum up.") } else { view.render(OPTIONS) };
    let marking = Marking { lifetime: CacheLifetime::Minutes5, is_fork };
    plan(&request, &parts.card, marking).iter().map(|mark| mark.spot).collect()
}

#[test]
fn a_static_part_too_small_to_be_cached_gets_no_mark() {
    let mut parts = Parts::new();
    let until = |parts: &Parts, spot| parts.view().render(OPTIONS).tokens_until(spot);
    let (tools, small, whole) =
        (until(&parts, Spot::Tool(2)), until(&parts, Spot::System(0)), until(&parts, Spot::System(1)));
    assert!(
        until(&parts, Spot::Tool(0)) < tools && tools < small && small < whole,
        "{tools} {small} {whole}"
    );
    parts.card.min_cacheable = small as u64 + 1;
    assert!(parts.card.min_cacheable < whole as u64);
    assert_eq!(spots(&parts, false), [Spot::System(1), Spot::Block(6)]);
    // What the provider counts is compared with its minimum, not the raw estimate.
    let view = parts.view();
    let lens = Lens { estimator: Estimator::classic(), ..view.lens().clone() };
    let view = View::of(lens, view.branch().iter().cloned());
    let end = view.render(OPTIONS).tokens_until(Spot::Block(6));
    assert_eq!(end.round() as u64, (view.estimate() * 4.0 / 3.0).round() as u64);
}

#[test]
fn marks_stand_where_they_are_needed_most() {
    let mut parts = Parts::new();
    // Tools, the static part, the whole system prompt, the tail.
    assert_eq!(spots(&parts, false), [Spot::Tool(2), Spot::System(0), Spot::System(1), Spot::Block(6)]);
    // A fork writes nothing: its mark stands where the last request's stood.
    assert_eq!(spots(&parts, true)[3], Spot::Block(4));
    // Much was added since: the end of the request before is marked instead of the last tool.
    parts.unsent = 15;
    let far = spots(&parts, false);
    assert_eq!(far, [Spot::System(0), Spot::System(1), Spot::Block(4), Spot::Block(21)]);
    // Below the card's minimum nothing is marked.
    parts.card.min_cacheable = 1_000_000;
    assert_eq!(spots(&parts, false), []);
    parts.card.min_cacheable = 1_500;
    parts.tools[2] = parts.tools[2].replace("\"Read\"", "\"Read\",\"defer_loading\":true");
    assert!(!spots(&parts, false).contains(&Spot::Tool(2)), "a deferred tool carries no mark");
}

#[test]
fn forks_of_one_conversation_share_what_its_last_request_held() {
    let parts = Parts::new();
    let print = |parts: &Parts, directive: &str| {
        let options = RenderOptions { max_tokens: 20_000, stream: false, ..OPTIONS };
        parts.standing.fork(&parts.view(), options, directive).shared_print()
    };
    let shared = print(&parts, "Sum up.");
    assert_eq!(shared, print(&parts, "What next?"));
    assert_eq!(shared, parts.asked().request.shared_print(), "the length of the answer has no part in it");
    let changed = |change: &dyn Fn(&mut Parts)| {
        let mut parts = parts.clone();
        change(&mut parts);
        print(&parts, "Sum up.")
    };
    let unsent = changed(&|parts| parts.messages[6].push('!'));
    assert_eq!(shared, unsent, "what was said since the last request is not in the cache");
    let metadata = changed(&|parts| parts.standing.members.push(("metadata".into(), Text::from("{}"))));
    assert_eq!(shared, metadata);
    let others: [&dyn Fn(&mut Parts); 4] = [
        &|parts| parts.messages[4].push('!'),
        &|parts| parts.sections[0].1.push('!'),
        &|parts| parts.tools.truncate(2),
        &|parts| parts.standing.members.push(("output_config".into(), Text::from(r#"{"effort":"low"}"#))),
    ];
    for (at, change) in others.iter().enumerate() {
        assert_ne!(shared, changed(change), "change {at}");
    }
}

#[test]
fn scopes_follow_the_tools() {
    let mut parts = Parts::new();
    parts.card.can.cache_scopes = true;
    let scopes = |parts: &Parts| -> Vec<(Spot, Option<CacheScope>)> {
        let request = parts.view().render(OPTIONS);
        let marking = Marking { lifetime: CacheLifetime::Hour1, is_fork: false };
        let marks = plan(&request, &parts.card, marking);
        marks
            .iter()
            .filter(|mark| matches!(mark.spot, Spot::System(_)))
            .map(|mark| (mark.spot, mark.scope))
            .collect()
    };
    assert_eq!(scopes(&parts), [(Spot::System(0), Some(CacheScope::Global))]);
    parts.tools.push(parts.tools[0].replace("Bash", "mcp__server__tool"));
    let organisation = Some(CacheScope::Organisation);
    assert_eq!(scopes(&parts), [(Spot::System(0), organisation), (Spot::System(1), organisation)]);
}

#[test]
fn lifetimes_are_latched() {
    let mut state = Snapshot::default();
    let hour = Eligibility { is_wanted: true, is_in_overage: false };
    let (lifetime, decision) = latched_lifetime(&state, &Source::main(), hour);
    assert_eq!(lifetime, CacheLifetime::Hour1);
    let Some(pal_model::DecisionKind::Latch { name, value }) = decision.map(|decision| decision.kind) else {
        panic!("it is latched")
    };
    state.latches.insert(name, value);
    // Whatever the settings say later.
    let (lifetime, decision) = latched_lifetime(&state, &Source::named("compact"), Eligibility::default());
    assert_eq!((lifetime, decision), (CacheLifetime::Hour1, None));
    assert_eq!(latched_lifetime(&state, &Source::named("notes"), hour).0, CacheLifetime::Minutes5);
    let overage = Eligibility { is_wanted: true, is_in_overage: true };
    assert_eq!(latched_lifetime(&Snapshot::default(), &Source::main(), overage).0, CacheLifetime::Minutes5);
}
