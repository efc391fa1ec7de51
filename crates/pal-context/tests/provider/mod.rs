//! The provider's own compaction: its request, and the fallback if it gives no summary.

use pal_context::{
    Compaction, CompactionRange, CompactionRequest, CompactionStep, CompactionTrigger, RequestParams,
    RestoreSources, SessionPaths, SummaryMethod, SummaryQuestion, SummaryReply,
};
use pal_model::{ContentBlock, RequestSource, SharedText};

use crate::common::LayerFixture;

const BLOCK: &str = r#"{"type":"compaction","content":"In short.","signature":"c2ln","tool_changes":[]}"#;

fn setting(model: &str) -> LayerFixture {
    let mut log = String::from("user: first request\nsent\n");
    for at in 0..6 {
        log += &format!(
            "model m{at}: call c{at} Bash {{\"command\":\"step {at}\"}}\nresult c{at}: output {at}\\n~20000~\nsent\n"
        );
    }
    LayerFixture::of(model, &(log + "model z: done\nuser: more"))
        .with_policy(|policy| policy.provider_compaction = true)
}

fn order(reach: CompactionRange, instructions: Option<String>) -> CompactionRequest {
    CompactionRequest {
        trigger: CompactionTrigger::Manual,
        reason: None,
        range: reach,
        source: RequestSource::main(),
        instructions,
        hook_instructions: None,
        notes: None,
        methods: None,
        is_attended: true,
        sources: RestoreSources::default(),
        params: RequestParams {
            members: vec![("context_management".into(), SharedText::from("{}"))],
            ..RequestParams::default()
        },
    }
}

fn compaction(setting: &LayerFixture, order: CompactionRequest) -> Compaction {
    let place = SessionPaths { directory: "/s".into(), transcript: "/s/log.jsonl".into() };
    Compaction::new(&setting.view, order, &setting.limits, &setting.policy, &place)
}

fn asked(step: CompactionStep) -> SummaryQuestion {
    match step {
        CompactionStep::Ask(question) => *question,
        other => panic!("{other:?}"),
    }
}

#[test]
fn provider_block_opens_the_boundary() {
    let setting = setting("claude-opus-5-5");
    let mut compaction = compaction(&setting, order(CompactionRange::Whole, None));
    let question = asked(compaction.next(&setting.view));
    let body: serde_json::Value = serde_json::from_str(&question.request.body()).unwrap();
    assert_eq!((question.method, &body["stream"]), (SummaryMethod::Provider, &serde_json::json!(true)));
    assert!(body["context_management"].is_null(), "not beside clearing");
    let instructions = body["compaction"]["instructions"].as_str().unwrap();
    assert!(!instructions.contains("<analysis>") && !instructions.contains("<summary>"), "{instructions}");
    let said = vec![ContentBlock::parse(SharedText::from(BLOCK))];
    compaction.receive_reply(&setting.view, SummaryReply::of_answer(said, Some("compaction")));
    let CompactionStep::Done(done) = compaction.next(&setting.view) else { panic!() };
    let [block, words] = done.boundary.summary.blocks() else { panic!("{:?}", done.boundary.summary) };
    assert_eq!(block.raw().as_str(), BLOCK);
    let words = words.string("text").unwrap();
    assert!(words.contains("The summary above") && words.contains("first request"), "{words}");
}

#[test]
fn next_method_is_tried_without_a_summary() {
    let call = r#"{"type":"tool_use","id":"a","name":"Bash","input":{}}"#;
    let empty = r#"{"type":"compaction","content":null}"#;
    for (blocks, stop, next) in [
        (vec![], "max_tokens", SummaryMethod::Plain),
        (vec![], "tool_use", SummaryMethod::Plain),
        (vec![call], "tool_use", SummaryMethod::Plain),
        (vec![empty], "compaction", SummaryMethod::Plain),
        (vec![BLOCK], "refusal", SummaryMethod::Plain),
        // A conversation too long for this is too long for any request with the same content.
        (vec![], "model_context_window_exceeded", SummaryMethod::Truncated),
    ] {
        let setting = setting("claude-opus-4-6");
        let mut compaction = compaction(&setting, order(CompactionRange::Whole, None));
        assert_eq!(asked(compaction.next(&setting.view)).method, SummaryMethod::Provider);
        let blocks = blocks.into_iter().map(|raw| ContentBlock::parse(SharedText::from(raw))).collect();
        compaction.receive_reply(&setting.view, SummaryReply::of_answer(blocks, Some(stop)));
        assert_eq!(asked(compaction.next(&setting.view)).method, next, "{stop}");
    }
}

#[test]
fn provider_is_not_asked_for_unsupported_ranges() {
    let part = |setting: &LayerFixture| {
        CompactionRange::UpTo(setting.view.visible_entries().nth(8).unwrap().entry.id)
    };
    let new = setting("claude-opus-5-5");
    let old = setting("claude-opus-4-5");
    let long = Some("Mind the tests. ".repeat(1_100));
    for (setting, order, how) in [
        (&old, order(CompactionRange::Whole, None), SummaryMethod::Fork),
        (&new, order(part(&new), None), SummaryMethod::Fork),
        (&new, order(CompactionRange::Whole, long), SummaryMethod::Plain),
    ] {
        assert_eq!(asked(compaction(setting, order).next(&setting.view)).method, how);
    }
}

#[test]
fn plain_request_sends_provider_summary_as_text() {
    let mut setting = setting("claude-opus-5-5");
    let mut first = compaction(&setting, order(CompactionRange::Whole, None));
    first.next(&setting.view);
    first.receive_reply(
        &setting.view,
        SummaryReply::Response(vec![ContentBlock::parse(SharedText::from(BLOCK))]),
    );
    let CompactionStep::Done(done) = first.next(&setting.view) else { panic!() };
    setting.view = setting.view.with_boundary(&done.boundary);
    let mut order = order(CompactionRange::Whole, None);
    order.methods = Some(vec![SummaryMethod::Plain]);
    let more = pal_model::EntryDraft::user(pal_model::MessageOrigin::Person, r#""and more""#);
    let at = setting.now;
    let line =
        more.into_line(pal_model::IdSource::seeded(77).next_id(at), setting.view.newest_id(), at, None);
    setting.view.push(pal_model::LogEntry::parse(SharedText::from(line)).unwrap());
    let body = asked(compaction(&setting, order).next(&setting.view)).request.body();
    assert!(body.contains("In short.") && !body.contains(r#""type":"compaction""#), "{body}");
    setting.policy.provider_compaction = false;
    let act = setting.act("microcompact");
    assert_eq!(act.reason, "the provider compacts, and does not clear beside that");
    let live = setting.view.render(crate::common::OPTIONS).body();
    assert!(live.contains(&format!(r#""messages":[{{"role":"assistant","content":[{BLOCK}"#)), "{live}");
}
