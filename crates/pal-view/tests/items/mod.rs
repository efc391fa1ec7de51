//! Output items of the Responses dialect in a log: the model that said them gets them back as they came, and no
//! other model sees a trace of them beyond the words and the calls.

use pal_model::{Cards, Draft, Entry, IdSource, Origin, Text, Timestamp};
use pal_view::{Estimator, Lens, Scope, View};

use crate::common::{OPTIONS, checked};

const REASONING: &str =
    r#"{"type":"reasoning","item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}}"#;
const TEXT: &str = r#"{"type":"text","text":"I look.","item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"I look.","annotations":[]}],"phase":"commentary"}}"#;
const CALL: &str = r#"{"type":"tool_use","id":"call_1","name":"Read","input":{"path":"a"},"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"Read","arguments":"{\"path\":\"a\"}","status":"completed"}}"#;
const COMPACTION: &str =
    r#"{"type":"compaction","item":{"id":"cmp_1","type":"compaction","encrypted_content":"gBBB"}}"#;

fn view(model: &str) -> View {
    let response = "resp_1".into();
    let said = format!("[{COMPACTION},{REASONING},{TEXT},{CALL}]");
    let drafts = [
        Draft::user(Origin::Person, r#""go""#),
        Draft::assistant(Some(&response), Some("gpt-6-sol"), &said),
        Draft::user(Origin::Tool, r#"[{"type":"tool_result","tool_use_id":"call_1","content":"found"}]"#),
    ];
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<Entry> = Vec::new();
    for draft in drafts {
        let parent = entries.last().map(|entry| entry.id);
        let line = draft.into_line(ids.next_id(at), parent, at, None);
        entries.push(Entry::parse(Text::from(line)).unwrap());
    }
    let card = Cards::shipped().find(model).card;
    let estimator = Estimator::shipped(card.generation);
    View::of(Lens { card, estimator, scope: Scope::Current }, entries)
}

#[test]
fn the_model_that_said_them_gets_its_items_back() {
    let request = view("gpt-6-sol").render(OPTIONS);
    let blocks: Vec<&str> = request.pieces().map(|(_, block, _)| block.as_str()).collect();
    assert_eq!(&blocks[1..5], &[COMPACTION, REASONING, TEXT, CALL]);
}

#[test]
fn another_model_of_the_family_does_not_get_reasoning_that_is_not_its_own() {
    let request = view("gpt-6-luna").render(OPTIONS);
    let blocks: Vec<&str> = request.pieces().map(|(_, block, _)| block.as_str()).collect();
    assert_eq!(&blocks[1..4], &[COMPACTION, TEXT, CALL]);
}

#[test]
fn a_claude_model_gets_words_and_calls_without_items() {
    let body = checked(&view("claude-opus-5-5")).unwrap_or_else(|error| panic!("{error}")).body();
    assert!(body.contains(r#"{"type":"text","text":"I look."}"#), "{body}");
    assert!(
        body.contains(r#"{"type":"tool_use","id":"call_1","name":"Read","input":{"path":"a"}}"#),
        "{body}"
    );
    assert!(!body.contains("rs_1") && !body.contains("fc_1") && !body.contains("msg_1"), "{body}");
}
