//! Output items of the Responses dialect in a log: the model that said them gets them back as they came, and no
//! other model sees a trace of them beyond the words and the calls.

use pal_model::{EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCatalog, SharedText, Timestamp};
use pal_view::{Estimator, Lens, View, ViewScope};

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
        EntryDraft::user(MessageOrigin::Person, r#""go""#),
        EntryDraft::assistant(Some(&response), Some("gpt-6-sol"), &said),
        EntryDraft::user(
            MessageOrigin::Tool,
            r#"[{"type":"tool_result","tool_use_id":"call_1","content":"found"}]"#,
        ),
    ];
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<LogEntry> = Vec::new();
    for draft in drafts {
        let parent = entries.last().map(|entry| entry.id);
        let line = draft.into_line(ids.next_id(at), parent, at, None);
        entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }
    let card = ModelCatalog::built_in().find(model).card;
    let estimator = Estimator::shipped(card.generation);
    View::from_branch(Lens { card, estimator, scope: ViewScope::Current }, entries)
}

#[test]
fn same_model_gets_its_items_back() {
    let request = view("gpt-6-sol").render(OPTIONS);
    let blocks: Vec<&str> = request.pieces().map(|(_, block, _)| block.as_str()).collect();
    assert_eq!(&blocks[1..5], &[COMPACTION, REASONING, TEXT, CALL]);
}

#[test]
fn other_models_get_no_foreign_reasoning() {
    let request = view("gpt-6-luna").render(OPTIONS);
    let blocks: Vec<&str> = request.pieces().map(|(_, block, _)| block.as_str()).collect();
    assert_eq!(&blocks[1..4], &[COMPACTION, TEXT, CALL]);
}

#[test]
fn claude_models_get_text_and_calls_only() {
    let body = checked(&view("claude-opus-5-5")).unwrap_or_else(|error| panic!("{error}")).body();
    assert!(body.contains(r#"{"type":"text","text":"I look."}"#), "{body}");
    assert!(
        body.contains(r#"{"type":"tool_use","id":"call_1","name":"Read","input":{"path":"a"}}"#),
        "{body}"
    );
    assert!(!body.contains("rs_1") && !body.contains("fc_1") && !body.contains("msg_1"), "{body}");
}
