//! Breakpoints and their priority; and the cause of a cache break for each input of the cache key.

use pal_context::RequestParams;
use pal_context::cache::{
    BreakpointOptions, CacheBaseline, CacheReadDrop, ExpectedDrop, SentRequest, TtlPreference, diagnose_drop,
    find_differences, latched_ttl, plan_breakpoints, request_diff,
};
use pal_model::{
    BreakCause, CacheBreak, Content, EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCard, ModelCatalog,
    PrefixNotes, PromptPrefix, RequestChange, RequestRecord, RequestSource, SectionNote, SessionSnapshot,
    SharedText, SystemBlockNote, Timestamp, Usage,
};
use pal_view::{BreakpointPosition, CacheScope, CacheTtl, Estimator, Lens, RenderOptions, View, ViewScope};

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 1_000, stream: true, spell_out_unseen: false };

/// Inputs of a request.
#[derive(Clone)]
struct RequestInputs {
    card: ModelCard,
    /// Name, text, and true for the static block.
    sections: Vec<(&'static str, String, bool)>,
    tools: Vec<String>,
    /// The opening context, as JSON.
    context: &'static str,
    messages: Vec<String>,
    /// Number of unsent messages at the end.
    unsent: usize,
    standing: RequestParams,
    betas: Vec<&'static str>,
}

impl RequestInputs {
    fn new() -> RequestInputs {
        let tool = |name: &str| {
            format!(
                r#"{{"name":"{name}","description":"{}","input_schema":{{"type":"object"}}}}"#,
                "It helps. ".repeat(60)
            )
        };
        RequestInputs {
            card: ModelCatalog::built_in().find("claude-opus-5-5").card,
            sections: vec![
                ("identity", "You help. ".repeat(200), true),
                ("tone", "Be brief. ".repeat(40), true),
                ("environment", "Linux. ".repeat(200), false),
            ],
            tools: ["Bash", "Edit", "Read"].map(tool).into(),
            context: "[]",
            messages: (0..7).map(|number| format!("message {number}: {}", "words ".repeat(300))).collect(),
            unsent: 0,
            standing: RequestParams::default(),
            betas: vec!["one", "two"],
        }
    }

    fn prefix(&self) -> PromptPrefix {
        let block = |is_static: bool| {
            let own: Vec<_> = self.sections.iter().filter(|section| section.2 == is_static).collect();
            let text = own.iter().map(|section| section.1.as_str()).collect::<Vec<_>>().join("\n\n");
            let notes = own.iter().map(|section| SectionNote {
                name: section.0.into(),
                bytes: section.1.len() as u64,
                volatile: None,
            });
            let note = SystemBlockNote { sections: notes.collect(), is_static, markable: true };
            (serde_json::json!({"type": "text", "text": text}).to_string(), note)
        };
        let (blocks, notes): (Vec<String>, Vec<SystemBlockNote>) =
            [block(true), block(false)].into_iter().unzip();
        PromptPrefix {
            system: SharedText::from(format!("[{}]", blocks.join(","))),
            tools: SharedText::from(format!("[{}]", self.tools.join(","))),
            context: Content::parse(&SharedText::from(self.context)),
            unseen_tokens: 0,
            notes: PrefixNotes { system: notes, ..PrefixNotes::default() },
        }
    }

    fn view(&self) -> View {
        let mut ids = IdSource::seeded(7);
        let at = Timestamp::default();
        let lens = Lens {
            estimator: Estimator::shipped(self.card.generation),
            card: self.card.clone(),
            scope: ViewScope::Current,
        };
        let mut view = View::new(lens);
        let mut push = |view: &mut View, draft: EntryDraft| {
            let line = draft.into_line(ids.next_id(at), view.newest_id(), at, None);
            view.push(LogEntry::parse(SharedText::from(line)).unwrap());
        };
        push(&mut view, EntryDraft::prefix(&self.prefix()));
        for (number, message) in self.messages.iter().enumerate() {
            let content = serde_json::Value::from(message.as_str()).to_string();
            let draft = match number % 2 {
                0 => EntryDraft::user(MessageOrigin::Person, &content),
                _ => EntryDraft::assistant(Some(&format!("msg_{number}").as_str().into()), None, &content),
            };
            push(&mut view, draft);
            if number % 2 == 0 && number + 1 < self.messages.len() {
                let last = view.newest_id();
                push(
                    &mut view,
                    EntryDraft::request(&RequestRecord::new(
                        RequestSource::main(),
                        last,
                        self.card.model.clone(),
                    )),
                );
            }
        }
        for _ in 0..self.unsent {
            push(&mut view, EntryDraft::user(MessageOrigin::Person, r#""and""#));
        }
        view
    }

    fn asked(&self) -> SentRequest {
        let request = self.standing.request(&self.view(), OPTIONS);
        SentRequest { request, betas: self.betas.iter().map(|beta| (*beta).into()).collect() }
    }
}

/// Causes found when inputs are changed and one message is added.
fn all_named(change: impl Fn(&mut RequestInputs)) -> Vec<BreakCause> {
    let before = RequestInputs::new();
    let mut now = before.clone();
    now.messages.extend(["an answer", "and on"].map(String::from));
    change(&mut now);
    find_differences(&before.asked(), &now.asked())
}

/// Cause found when one input is changed; one change has one cause.
fn named(change: impl Fn(&mut RequestInputs)) -> Option<BreakCause> {
    let mut causes = all_named(change);
    assert!(causes.len() <= 1, "{causes:?}");
    causes.pop()
}

#[test]
fn several_changes_have_several_causes() {
    let section = |name: &str, characters| BreakCause::Section {
        name: name.into(),
        change: RequestChange::Changed,
        characters,
    };
    let tool = |name: &str, change| BreakCause::Tool { name: name.into(), change };
    let check = |change: &dyn Fn(&mut RequestInputs), causes: &[BreakCause]| {
        assert_eq!(all_named(change), causes);
    };
    check(
        &|parts| {
            parts.tools[1] = parts.tools[1].replacen("It", "That", 1);
            parts.sections[1].1.push_str("!!");
        },
        &[tool("Edit", RequestChange::Changed), section("tone", 2)],
    );
    check(
        &|parts| {
            drop(parts.tools.remove(0));
            parts.tools.push(parts.tools[0].replace("Edit", "Write"));
        },
        &[tool("Bash", RequestChange::Removed), tool("Write", RequestChange::Added)],
    );
    check(
        &|parts| {
            parts.sections[0].1.push('!');
            parts.sections[2].1.push('!');
            parts.betas = vec!["one"];
            parts.messages[3].push('!');
        },
        &[
            section("identity", 1),
            section("environment", 1),
            BreakCause::Betas { added: Vec::new(), removed: vec!["two".into()] },
            BreakCause::Message { message: 3, block: 0, change: RequestChange::Changed, characters: 1 },
        ],
    );
    check(
        &|parts| {
            for (name, value) in [("thinking", r#"{"type":"disabled"}"#), ("inference_geo", r#""eu""#)] {
                parts.standing.members.push((name.into(), SharedText::from(value)));
            }
        },
        &[BreakCause::Thinking, BreakCause::Member { name: "inference_geo".into() }],
    );
}

#[test]
fn appending_is_no_difference() {
    assert_eq!(named(|_| {}), None);
}

#[test]
fn each_cache_key_input_has_its_cause() {
    let section =
        |name: &str, change, characters| Some(BreakCause::Section { name: name.into(), change, characters });
    let tool = |name: &str, change| Some(BreakCause::Tool { name: name.into(), change });
    let message =
        |message, change, characters| Some(BreakCause::Message { message, block: 0, change, characters });
    assert_eq!(named(|parts| parts.sections[1].1.push_str("!!")), section("tone", RequestChange::Changed, 2));
    assert_eq!(
        named(|parts| parts.sections[2].1 = "Lunix".into()),
        section("environment", RequestChange::Changed, 5 - 1_400)
    );
    assert_eq!(named(|parts| drop(parts.sections.remove(1))), section("tone", RequestChange::Removed, -400));
    assert_eq!(
        named(|parts| parts.sections.insert(1, ("style", "Loud.".into(), true))),
        section("style", RequestChange::Added, 5)
    );
    assert_eq!(named(|parts| parts.sections.swap(0, 1)), section("identity", RequestChange::Moved, 0));
    assert_eq!(
        named(|parts| parts.tools[1] = parts.tools[1].replacen("It", "That", 1)),
        tool("Edit", RequestChange::Changed)
    );
    assert_eq!(named(|parts| parts.tools.swap(0, 1)), tool("Bash", RequestChange::Moved));
    assert_eq!(named(|parts| drop(parts.tools.pop())), tool("Read", RequestChange::Removed));
    assert_eq!(
        named(|parts| parts.tools.push(parts.tools[0].replace("Bash", "Write"))),
        tool("Write", RequestChange::Added)
    );
    assert_eq!(
        named(|parts| {
            let deferred = parts.tools[0].replace("\"Bash\"", "\"Web\",\"defer_loading\":true");
            parts.tools.push(deferred);
        }),
        None,
        "a deferred tool is no part of the prefix"
    );
    let model = all_named(|parts| parts.card = ModelCatalog::built_in().find("claude-sonnet-5-5").card);
    assert_eq!(
        model.first().cloned(),
        Some(BreakCause::Model { from: "claude-opus-5-5".into(), to: "claude-sonnet-5-5".into() })
    );
    assert_eq!(
        named(|parts| parts.betas = vec!["one", "three"]),
        Some(BreakCause::Betas { added: vec!["three".into()], removed: vec!["two".into()] })
    );
    let member = |name: &'static str, value: &'static str| {
        named(move |parts| parts.standing.members.push((name.into(), SharedText::from(value))))
    };
    assert_eq!(member("thinking", r#"{"type":"disabled"}"#), Some(BreakCause::Thinking));
    assert_eq!(member("output_config", r#"{"effort":"low"}"#), Some(BreakCause::Effort));
    assert_eq!(member("tool_choice", r#"{"type":"none"}"#), Some(BreakCause::ToolChoice));
    assert_eq!(member("speed", r#""fast""#), Some(BreakCause::Speed));
    assert_eq!(member("context_management", "{}"), Some(BreakCause::Edits));
    assert_eq!(member("inference_geo", r#""eu""#), Some(BreakCause::Member { name: "inference_geo".into() }));
    assert_eq!(member("metadata", "{}"), None, "no part of the key");
    assert_eq!(named(|parts| parts.standing.ttl = CacheTtl::Hour1), Some(BreakCause::CacheTtl));
    for k in 0..7 {
        let changed = named(|parts| parts.messages[k] = parts.messages[k].replacen('w', "W", 1));
        assert_eq!(changed, message(k as u64, RequestChange::Changed, 0), "a byte of message {k}");
    }
    assert_eq!(named(|parts| parts.messages.truncate(5)), message(5, RequestChange::Removed, -1_836));
}

/// Cause of a drop between two requests, the second `idle_ms` milliseconds later.
fn judged(change: impl Fn(&mut RequestInputs), idle_ms: i64, expected: Option<&str>) -> BreakCause {
    diagnosed(change, idle_ms, expected).cause
}

fn diagnosed(change: impl Fn(&mut RequestInputs), idle_ms: i64, expected: Option<&str>) -> CacheBreak {
    let before = RequestInputs::new();
    let mut now = before.clone();
    change(&mut now);
    let baseline = CacheBaseline { started: Timestamp::default(), ttl_ms: 300_000, read: 50_000 };
    let expected = expected.map(|what| ExpectedDrop { kind: what.into() });
    let usage = Usage { cache_creation_input_tokens: 50_000, ..Usage::default() };
    let found = diagnose_drop(
        &CacheReadDrop {
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
    // 40,000 tokens written at $5 instead of read at $0.20.
    assert!((found.cost.unwrap() - 0.192).abs() < 1e-9, "{:?}", found.cost);
    found
}

#[test]
fn a_break_names_all_its_causes() {
    let check = |change: &dyn Fn(&mut RequestInputs), idle_ms, expected, reason: &str| {
        assert_eq!(diagnosed(change, idle_ms, expected).reason(), reason);
    };
    let edit = |parts: &mut RequestInputs| parts.messages[2].push('!');
    let section = |parts: &mut RequestInputs| parts.sections[1].1.push('!');
    let both = |parts: &mut RequestInputs| {
        edit(parts);
        section(parts);
        parts.betas = vec!["one"];
    };
    check(&section, 0, None, "section `tone` of the system prompt changed: 1 character longer");
    check(
        &both,
        0,
        None,
        "section `tone` of the system prompt changed: 1 character longer; also, beta headers were removed: two; already sent \
         block 1 of message 3 changed: 1 character longer",
    );
    check(
        &both,
        400_000,
        Some("clear"),
        "section `tone` of the system prompt changed: 1 character longer; also, beta headers were removed: two; expected: old \
         tool results were cleared; idle for 6 min 40 s, cached for 5 min",
    );
    check(&edit, 400_000, Some("clear"), "expected: old tool results were cleared");
    check(&both, 400_000, Some("boundary"), "expected: the conversation was compacted");
}

#[test]
fn first_explanation_is_the_cause() {
    let edit = |parts: &mut RequestInputs| parts.messages[2].push('!');
    let changed =
        |characters| BreakCause::Message { message: 2, block: 0, change: RequestChange::Changed, characters };
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
    let hour = |parts: &mut RequestInputs| parts.standing.ttl = CacheTtl::Hour1;
    assert_eq!(judged(hour, 1_000, None), BreakCause::CacheTtl);
    assert_eq!(judged(hour, 300_000, None), expired, "marks that last otherwise lose nothing by themselves");
}

#[test]
fn a_diff_shows_what_changed_and_not_what_was_added() {
    let before = RequestInputs::new();
    let mut now = before.clone();
    now.messages.extend(["an answer", "appended"].map(String::from));
    now.messages[2] = String::from("another text");
    now.sections[2].1 = String::from("Another machine.");
    let text = request_diff(&before.asked(), &now.asked());
    assert!(
        text.contains("+another text") && text.contains("-message 2") && text.contains("+Another machine.")
    );
    assert!(!text.contains("+appended") && !text.contains("@@ -1,1 +1,1 @@"), "{text}");
    assert_eq!(request_diff(&before.asked(), &before.asked()), "");
}

fn spots(parts: &RequestInputs, is_fork: bool) -> Vec<BreakpointPosition> {
    let view = parts.view();
    let request = if is_fork { view.fork(OPTIONS, "Sum up.") } else { view.render(OPTIONS) };
    let marking = BreakpointOptions { ttl: CacheTtl::Minutes5, is_fork };
    plan_breakpoints(&request, &parts.card, marking).iter().map(|mark| mark.position).collect()
}

#[test]
fn small_static_part_gets_no_breakpoint() {
    let mut parts = RequestInputs::new();
    let until = |parts: &RequestInputs, spot| parts.view().render(OPTIONS).tokens_up_to(spot);
    let (tools, small, whole) = (
        until(&parts, BreakpointPosition::Tool(2)),
        until(&parts, BreakpointPosition::System(0)),
        until(&parts, BreakpointPosition::System(1)),
    );
    assert!(
        until(&parts, BreakpointPosition::Tool(0)) < tools && tools < small && small < whole,
        "{tools} {small} {whole}"
    );
    parts.card.min_cacheable = small as u64 + 1;
    assert!(parts.card.min_cacheable < whole as u64);
    assert_eq!(spots(&parts, false), [BreakpointPosition::System(1), BreakpointPosition::Block(6)]);
    // The corrected estimate is compared with the provider's minimum, not the raw one.
    let view = parts.view();
    let lens = Lens { estimator: Estimator::classic(), ..view.lens().clone() };
    let view = View::from_branch(lens, view.branch().iter().cloned());
    let end = view.render(OPTIONS).tokens_up_to(BreakpointPosition::Block(6));
    assert_eq!(end.round() as u64, (view.estimate() * 4.0 / 3.0).round() as u64);
}

#[test]
fn breakpoints_follow_their_priority() {
    let mut parts = RequestInputs::new();
    // Tools, the static part, the whole system prompt, the tail.
    assert_eq!(
        spots(&parts, false),
        [
            BreakpointPosition::Tool(2),
            BreakpointPosition::System(0),
            BreakpointPosition::System(1),
            BreakpointPosition::Block(6)
        ]
    );
    // A fork writes nothing: its breakpoint is the last request's.
    assert_eq!(spots(&parts, true)[3], BreakpointPosition::Block(4));
    // Many new blocks: the end of the previous request gets a breakpoint instead of the last tool.
    parts.unsent = 15;
    let far = spots(&parts, false);
    assert_eq!(
        far,
        [
            BreakpointPosition::System(0),
            BreakpointPosition::System(1),
            BreakpointPosition::Block(4),
            BreakpointPosition::Block(21)
        ]
    );
    // Below the card's minimum there are no breakpoints.
    parts.card.min_cacheable = 1_000_000;
    assert_eq!(spots(&parts, false), []);
    parts.card.min_cacheable = 1_500;
    parts.tools[2] = parts.tools[2].replace("\"Read\"", "\"Read\",\"defer_loading\":true");
    assert!(!spots(&parts, false).contains(&BreakpointPosition::Tool(2)), "a deferred tool carries no mark");
}

#[test]
fn opening_context_has_its_own_breakpoint_at_every_ttl() {
    let parts = RequestInputs {
        context: r#"[{"type":"text","text":"Rules of the project."}]"#,
        ..RequestInputs::new()
    };
    let request = parts.view().render(OPTIONS);
    let opening = BreakpointPosition::Block(request.opening_blocks() - 1);
    for (ttl, of_opening, of_tail) in [
        (CacheTtl::Minutes5, CacheTtl::Minutes5, CacheTtl::Minutes5),
        (CacheTtl::Hour1ThenMinutes5, CacheTtl::Hour1, CacheTtl::Minutes5),
        (CacheTtl::Hour1, CacheTtl::Hour1, CacheTtl::Hour1),
    ] {
        let planned = plan_breakpoints(&request, &parts.card, BreakpointOptions { ttl, is_fork: false });
        let found = planned.iter().find(|mark| mark.position == opening).map(|mark| mark.ttl);
        assert_eq!(
            (found, planned.last().map(|mark| mark.ttl)),
            (Some(of_opening), Some(of_tail)),
            "{ttl:?}"
        );
    }
    // A fork writes nothing.
    assert!(!spots(&parts, true).contains(&opening));
}

#[test]
fn forks_share_the_last_requests_fingerprint() {
    let parts = RequestInputs::new();
    let print = |parts: &RequestInputs, directive: &str| {
        let options = RenderOptions { max_tokens: 20_000, stream: false, ..OPTIONS };
        parts.standing.fork(&parts.view(), options, directive).shared_fingerprint()
    };
    let shared = print(&parts, "Sum up.");
    assert_eq!(shared, print(&parts, "What next?"));
    assert_eq!(
        shared,
        parts.asked().request.shared_fingerprint(),
        "the length of the answer has no part in it"
    );
    let changed = |change: &dyn Fn(&mut RequestInputs)| {
        let mut parts = parts.clone();
        change(&mut parts);
        print(&parts, "Sum up.")
    };
    let unsent = changed(&|parts| parts.messages[6].push('!'));
    assert_eq!(shared, unsent, "what was said since the last request is not in the cache");
    let metadata = changed(&|parts| parts.standing.members.push(("metadata".into(), SharedText::from("{}"))));
    assert_eq!(shared, metadata);
    let others: [&dyn Fn(&mut RequestInputs); 4] = [
        &|parts| parts.messages[4].push('!'),
        &|parts| parts.sections[0].1.push('!'),
        &|parts| parts.tools.truncate(2),
        &|parts| {
            parts.standing.members.push(("output_config".into(), SharedText::from(r#"{"effort":"low"}"#)))
        },
    ];
    for (at, change) in others.iter().enumerate() {
        assert_ne!(shared, changed(change), "change {at}");
    }
}

#[test]
fn optional_tools_come_after_the_breakpoint_of_the_tools() {
    let mut parts = RequestInputs::new();
    let own = parts.tools.len() - 1;
    let tool = |parts: &RequestInputs| {
        let spots = spots(parts, false);
        spots.into_iter().find(|spot| matches!(spot, BreakpointPosition::Tool(_)))
    };
    assert_eq!(tool(&parts), Some(BreakpointPosition::Tool(own)));
    parts.tools.push(parts.tools[0].replace("Bash", "mcp__server__tool"));
    parts.tools.push(String::from(r#"{"type":"web_search_20260318","name":"web_search"}"#));
    assert_eq!(
        tool(&parts),
        Some(BreakpointPosition::Tool(own)),
        "tools of servers and of the provider follow it"
    );
}

#[test]
fn scopes_follow_the_tools() {
    let mut parts = RequestInputs::new();
    parts.card.can.cache_scopes = true;
    let scopes = |parts: &RequestInputs| -> Vec<(BreakpointPosition, Option<CacheScope>)> {
        let request = parts.view().render(OPTIONS);
        let marking = BreakpointOptions { ttl: CacheTtl::Hour1, is_fork: false };
        let marks = plan_breakpoints(&request, &parts.card, marking);
        marks
            .iter()
            .filter(|mark| matches!(mark.position, BreakpointPosition::System(_)))
            .map(|mark| (mark.position, mark.scope))
            .collect()
    };
    assert_eq!(scopes(&parts), [(BreakpointPosition::System(0), Some(CacheScope::Global))]);
    parts.tools.push(parts.tools[0].replace("Bash", "mcp__server__tool"));
    let organization = Some(CacheScope::Organisation);
    assert_eq!(
        scopes(&parts),
        [(BreakpointPosition::System(0), organization), (BreakpointPosition::System(1), organization)]
    );
}

#[test]
fn ttl_is_latched() {
    let mut state = SessionSnapshot::default();
    let hour = TtlPreference { fixed: Some(CacheTtl::Hour1), is_in_overage: false };
    let (ttl, decision) = latched_ttl(&state, &RequestSource::main(), hour);
    assert_eq!(ttl, CacheTtl::Hour1);
    let Some(pal_model::DecisionKind::Latch { name, value }) = decision.map(|decision| decision.kind) else {
        panic!("it is latched")
    };
    state.latches.insert(name, value);
    // The latch wins over later settings.
    let (ttl, decision) = latched_ttl(&state, &RequestSource::from_name("compact"), TtlPreference::default());
    assert_eq!((ttl, decision), (CacheTtl::Hour1, None));
    assert_eq!(latched_ttl(&state, &RequestSource::from_name("notes"), hour).0, CacheTtl::Minutes5);
    let overage = TtlPreference { fixed: Some(CacheTtl::Hour1), is_in_overage: true };
    assert_eq!(
        latched_ttl(&SessionSnapshot::default(), &RequestSource::main(), overage).0,
        CacheTtl::Minutes5
    );
}
