//! The provider's own compaction: what is asked, and what follows when it gives no summary.

use pal_context::{Compaction, How, Order, Place, Question, Reach, Reply, Standing, Step, Trigger, World};
use pal_model::{Block, Source, Text};

use crate::common::Setting;

const BLOCK: &str = r#"{"type":"compaction","content":"In short.","signature":"c2ln","tool_changes":[]}"#;

fn setting(model: &str) -> Setting {
    let mut log = String::from("user: first request\nsent\n");
    for at in 0..6 {
        log += &format!(
            "model m{at}: call c{at} Bash {{\"command\":\"step {at}\"}}\nresult c{at}: output {at}\\n~20000~\nsent\n"
        );
    }
    Setting::of(model, &(log + "model z: done\nuser: more"))
        .with_policy(|policy| policy.provider_compaction = true)
}

fn order(reach: Reach, instructions: Option<String>) -> Order {
    Order {
        trigger: Trigger::Manual,
        reach,
        source: Source::main(),
        instructions,
        hook_instructions: None,
        notes: None,
        only: None,
        is_attended: true,
        world: World::default(),
        standing: Standing {
            members: vec![("context_management".into(), Text::from("{}"))],
            ..Standing::default()
        },
    }
}

fn compaction(setting: &Setting, order: Order) -> Compaction {
    let place = Place { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
    Compaction::new(&setting.view, order, &setting.limits, &setting.policy, &place)
}

fn asked(step: Step) -> Question {
    match step {
        Step::Ask(question) => *question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn its_block_opens_the_boundary_and_our_words_follow() {
    let setting = setting("claude-opus-5-5");
    let mut compaction = compaction(&setting, order(Reach::Whole, None));
    let question = asked(compaction.next(&setting.view));
    let body: serde_json::Value = serde_json::from_str(&question.request.body()).unwrap();
    assert_eq!((question.how, &body["stream"]), (How::Provider, &serde_json::json!(true)));
    assert!(body["context_management"].is_null(), "not beside clearing");
    let instructions = body["compaction"]["instructions"].as_str().unwrap();
    assert!(!instructions.contains("<analysis>") && !instructions.contains("<summary>"), "{instructions}");
    let said = vec![Block::parse(Text::from(BLOCK))];
    compaction.answered(&setting.view, Reply::of_answer(said, Some("compaction")));
    let Step::Done(done) = compaction.next(&setting.view) else { panic!() };
    let [block, words] = done.boundary.summary.blocks() else { panic!("{:?}", done.boundary.summary) };
    assert_eq!(block.raw().as_str(), BLOCK);
    let words = words.string("text").unwrap();
    assert!(words.contains("The summary above") && words.contains("first request"), "{words}");
}

#[test]
fn without_a_summary_the_next_way_is_tried() {
    let call = r#"{"type":"tool_use","id":"a","name":"Bash","input":{}}"#;
    let empty = r#"{"type":"compaction","content":null}"#;
    for (blocks, stop, next) in [
        (vec![], "max_tokens", How::Plain),
        (vec![], "tool_use", How::Plain),
        (vec![call], "tool_use", How::Plain),
        (vec![empty], "compaction", How::Plain),
        (vec![BLOCK], "refusal", How::Plain),
        // What is too long for this is too long for any request that says as much.
        (vec![], "model_context_window_exceeded", How::Truncated),
    ] {
        let setting = setting("claude-opus-4-6");
        let mut compaction = compaction(&setting, order(Reach::Whole, None));
        assert_eq!(asked(compaction.next(&setting.view)).how, How::Provider);
        let blocks = blocks.into_iter().map(|raw| Block::parse(Text::from(raw))).collect();
        compaction.answered(&setting.view, Reply::of_answer(blocks, Some(stop)));
        assert_eq!(asked(compaction.next(&setting.view)).how, next, "{stop}");
    }
}

#[test]
fn it_is_not_asked_for_what_it_cannot_do() {
    let part = |setting: &Setting| Reach::UpTo(setting.view.shown().nth(8).unwrap().entry.id);
    let new = setting("claude-opus-5-5");
    let old = setting("claude-opus-4-5");
    let long = Some("Mind the tests. ".repeat(1_100));
    for (setting, order, how) in [
        (&old, order(Reach::Whole, None), How::Fork),
        (&new, order(part(&new), None), How::Fork),
        (&new, order(Reach::Whole, long), How::Plain),
    ] {
        assert_eq!(asked(compaction(setting, order).next(&setting.view)).how, how);
    }
}

#[test]
fn a_plain_request_tells_an_earlier_block_in_words() {
    let mut setting = setting("claude-opus-5-5");
    let mut first = compaction(&setting, order(Reach::Whole, None));
    first.next(&setting.view);
    first.answered(&setting.view, Reply::Said(vec![Block::parse(Text::from(BLOCK))]));
    let Step::Done(done) = first.next(&setting.view) else { panic!() };
    setting.view = setting.view.with_boundary(&done.boundary);
    let mut order = order(Reach::Whole, None);
    order.only = Some(vec![How::Plain]);
    let more = pal_model::Draft::user(pal_model::Origin::Person, r#""and more""#);
    let at = setting.now;
    let line = more.into_line(pal_model::IdSource::seeded(77).next_id(at), setting.view.newest(), at, None);
    setting.view.push(pal_model::Entry::parse(Text::from(line)).unwrap());
    let body = asked(compaction(&setting, order).next(&setting.view)).request.body();
    assert!(body.contains("In short.") && !body.contains(r#""type":"compaction""#), "{body}");
    setting.policy.provider_compaction = false;
    let act = setting.act("microcompact");
    assert_eq!(act.reason, "the provider compacts, and does not clear beside that");
    let live = setting.view.render(crate::common::OPTIONS).body();
    assert!(live.contains(&format!(r#""messages":[{{"role":"assistant","content":[{BLOCK}"#)), "{live}");
}
