//! The provider's cache over whole sessions: how much of a tool loop is read, that nothing is lost by a restart, that a
//! compaction reads what the conversation wrote, and that every fall of the reads gets its true cause.

use std::time::Duration;

use pal_context::{
    CompactionRange, CompactionRequest, CompactionTrigger, RequestParams, RestoreSources, SummaryMethod,
};
use pal_engine::CompactionResult;
use pal_model::{BreakCause, EntryBody, EntryDraft, PromptPrefix, RequestChange, RequestSource, SharedText};
use pal_sim::PromptDifference;

use crate::simulated_session::SimulatedSession;

/// The share of all prompt tokens that came from the cache.
fn share(simulated: &SimulatedSession) -> f64 {
    let usages = simulated.host.answers.iter().map(|(finished, _)| &finished.usage);
    let (read, all) = usages.fold((0, 0), |(read, all), usage| {
        (read + usage.cache_read_input_tokens, all + usage.prompt_tokens())
    });
    read as f64 / all as f64
}

#[test]
fn a_tool_loop_of_200_turns_reads_97_percent_of_its_input() {
    for model in ["claude-opus-5-5", "claude-sonnet-4-6", "claude-opus-4-5"] {
        let mut simulated = SimulatedSession::new(model);
        for _ in 0..200 {
            let sent = simulated.turn();
            assert_eq!(sent.cache_break, None);
        }
        let share = share(&simulated);
        println!("{model}: 200 turns read {:.2} % of their input from the cache", share * 100.0);
        assert!(share >= 0.97, "{model}: {share}");
    }
}

#[test]
fn the_first_request_after_a_restart_reads_what_its_predecessor_wrote() {
    let mut simulated = SimulatedSession::new("claude-opus-5-5");
    (0..40).for_each(|_| drop(simulated.turn()));
    simulated.restart();
    let sent = simulated.turn();
    let (before, now) = (simulated.usage(39), simulated.usage(40));
    let readable = before.cache_read_input_tokens + before.cache_creation_input_tokens;
    let share = now.cache_read_input_tokens as f64 / readable as f64;
    println!("after a restart {:.2} % of what was written is read", share * 100.0);
    assert!(share >= 0.99, "{share}");
    assert_eq!(sent.cache_break, None);
    assert_eq!(sent.answered.cache_miss, None, "the provider has nothing to say against it");
}

#[test]
fn a_compaction_reads_what_the_conversation_wrote_and_its_fall_is_expected() {
    let mut simulated = SimulatedSession::new("claude-opus-5-5");
    // A few more and the provider would begin to clear, which changes what is cached.
    (0..190).for_each(|_| drop(simulated.turn()));
    let order = CompactionRequest {
        reason: None,
        trigger: CompactionTrigger::Manual,
        range: CompactionRange::Whole,
        source: RequestSource::main(),
        instructions: None,
        hook_instructions: None,
        notes: None,
        methods: Some(vec![SummaryMethod::Fork]),
        is_attended: true,
        sources: RestoreSources::default(),
        params: RequestParams::default(),
    };
    let now = simulated.now.after(Duration::from_secs(5));
    let (engine, mut session) = (simulated.engine.clone(), simulated.session.take().unwrap());
    let compacted = session.compact(order, &engine, now, &mut simulated.host).unwrap();
    assert!(matches!(compacted, CompactionResult::Done { .. }), "{compacted:?}");
    simulated.session = Some(session);
    let fork = simulated.usage(190);
    let share = fork.cache_read_input_tokens as f64 / fork.prompt_tokens() as f64;
    println!(
        "a compaction reads {:.2} % of its {} prompt tokens from the cache",
        share * 100.0,
        fork.prompt_tokens()
    );
    assert!(share >= 0.98, "{share}");
    assert_eq!(fork.cache_creation_input_tokens, 0, "a fork writes nothing");
    // What the fork sent is the conversation's last request, byte for byte, and a directive.
    let messages = |body: &str| {
        body[body.find("\"messages\"").unwrap()..].replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    let (parent, fork) = (messages(&simulated.host.bodies[189]), messages(&simulated.host.bodies[190]));
    let shared = parent.strip_suffix("]}]}").unwrap();
    assert!(fork.starts_with(shared), "the fork repeats what was sent");
    let booked = simulated.session().view().branch().iter().rev().find_map(|entry| match &entry.body {
        EntryBody::Response(got) => Some(got.source.as_str().to_owned()),
        _ => None,
    });
    assert!(booked.is_none_or(|source| source == "compact"), "usage is booked to its source");
    let sent = simulated.turn();
    let found = sent.cache_break.expect("what was summarised is not read any more");
    assert_eq!(found.cause, BreakCause::Expected { what: "boundary".into() });
}

#[test]
fn a_pause_longer_than_the_cache_is_named_and_priced() {
    let mut simulated = SimulatedSession::new("claude-opus-5-5");
    (0..10).for_each(|_| drop(simulated.turn()));
    simulated.now = simulated.now.after(Duration::from_secs(400));
    let sent = simulated.turn();
    let found = sent.cache_break.unwrap();
    assert_eq!(found.cause, BreakCause::Expired { idle_ms: 420_000, lifetime_ms: 300_000 });
    assert!(found.cost.unwrap() > 0.0 && found.diff.is_none());
    assert!(simulated.host.answers.last().unwrap().1.lapsed, "the simulator's own record says so, too");
}

/// Takes another prefix into the session: the one in force with something changed.
fn with_prefix(simulated: &mut SimulatedSession, change: impl Fn(&mut PromptPrefix)) {
    let branch = simulated.session().view().branch();
    let mut prefix = branch
        .iter()
        .rev()
        .find_map(|entry| match &entry.body {
            EntryBody::Prefix(prefix) => Some(prefix.clone()),
            _ => None,
        })
        .unwrap();
    change(&mut prefix);
    let now = simulated.now;
    simulated.session().append(EntryDraft::prefix(&prefix), now).unwrap();
}

/// Changes one thing between two requests; the cause that is named, what the simulator recorded, what it said aloud.
fn after(change: impl Fn(&mut SimulatedSession)) -> (BreakCause, PromptDifference, String) {
    let mut simulated = SimulatedSession::new("claude-opus-5-5");
    (0..12).for_each(|_| drop(simulated.turn()));
    change(&mut simulated);
    let sent = simulated.turn();
    let story = simulated.host.answers.last().unwrap().1;
    let found = sent.cache_break.expect("reads fell");
    let said = sent.answered.cache_miss.unwrap_or_default().to_string();
    (found.cause, story.differs.expect("the simulator saw a difference"), said)
}

#[test]
fn each_change_that_costs_the_cache_is_named_and_the_simulators_record_agrees() {
    let section = after(|simulated| {
        with_prefix(simulated, |prefix| {
            let note = &mut prefix.notes.system[1].sections[0];
            note.bytes += 1;
            // The first section of the static block begins behind the block's opening.
            let system = prefix.system.to_string();
            let second = system.match_indices(r#""text":""#).nth(1).unwrap().0 + r#""text":""#.len();
            prefix.system = SharedText::from(format!("{}x{}", &system[..second], &system[second..]));
        });
    });
    let BreakCause::Section { change: RequestChange::Changed, characters: 1, ref name } = section.0 else {
        panic!("{section:?}")
    };
    assert!(!name.is_empty());
    assert_eq!((section.1, section.2.as_str()), (PromptDifference::System { block: 1 }, "system_changed"));

    let schema = after(|simulated| {
        with_prefix(simulated, |prefix| {
            prefix.tools =
                SharedText::from(prefix.tools.replacen("\"description\":\"", "\"description\":\"x", 1));
        });
    });
    assert!(
        matches!(&schema.0, BreakCause::Tool { name, change: RequestChange::Changed } if name == "Agent"),
        "{schema:?}"
    );
    assert_eq!((schema.1, schema.2.as_str()), (PromptDifference::Tools { tool: 0 }, "tools_changed"));

    let order = after(|simulated| {
        with_prefix(simulated, |prefix| {
            let mut tools = pal_model::array_items(&prefix.tools).unwrap();
            tools.swap(1, 2);
            prefix.tools = SharedText::from(format!("[{}]", tools.join(",")));
        });
    });
    assert!(
        matches!(&order.0, BreakCause::Tool { name, change: RequestChange::Moved } if name == "AskUserQuestion"),
        "{order:?}"
    );
    assert_eq!((order.1, order.2.as_str()), (PromptDifference::Tools { tool: 1 }, "tools_changed"));

    let model = after(|simulated| {
        let card = pal_model::ModelCatalog::built_in().find("claude-sonnet-5-5").card;
        let lens = pal_view::Lens {
            estimator: pal_view::Estimator::shipped(card.generation),
            scope: pal_view::ViewScope::Current,
            card,
        };
        simulated.session().switch_model(lens);
    });
    let named = BreakCause::Model { from: "claude-opus-5-5".into(), to: "claude-sonnet-5-5".into() };
    assert_eq!((model.0, model.1, model.2.as_str()), (named, PromptDifference::Model, "model_changed"));

    let effort = after(|simulated| simulated.engine.cache.effort = Some("low".into()));
    assert_eq!((effort.0, effort.1), (BreakCause::Effort, PromptDifference::Parameters));
    assert_eq!(effort.2, "unavailable");
}
