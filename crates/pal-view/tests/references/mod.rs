//! Tool references in search results: sent as references where the provider expands them, else as text.

use pal_model::{
    Content, EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCatalog, PrefixNotes, PromptPrefix,
    SharedText, Timestamp,
};
use pal_view::{Category, Estimator, Lens, View, ViewScope};

use crate::common::{OPTIONS, checked, lens, reminding_lens};

const REFERENCE: &str = r#"{"type":"tool_reference","tool_name":"Late"}"#;
const TOLD: &str = r#"{"type":"text","text":"Tool found: Late"}"#;

/// A session whose search found tools; `tools` are declared besides `ToolSearch`.
fn drafts(tools: &[&str], found: &str) -> Vec<EntryDraft> {
    let tool = |name: &str, more: &str| {
        let description = "It does what it says, and says it at some length. ".repeat(20);
        format!(
            r#"{{"name":"{name}","description":"{description}","input_schema":{{"type":"object"}}{more}}}"#
        )
    };
    let mut listed = vec![tool("ToolSearch", "")];
    listed.extend(tools.iter().map(|name| tool(name, r#","defer_loading":true"#)));
    let prefix = PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from(format!("[{}]", listed.join(","))),
        context: Content::default(),
        unseen_tokens: 0,
        notes: PrefixNotes::default(),
    };
    let call = r#"[{"type":"tool_use","id":"toolu_1","name":"ToolSearch","input":{"query":"late"}}]"#;
    let result = format!(r#"[{{"type":"tool_result","tool_use_id":"toolu_1","content":[{found}]}}]"#);
    vec![
        EntryDraft::prefix(&prefix),
        EntryDraft::user(MessageOrigin::Person, r#""find it""#),
        EntryDraft::assistant(Some(&"msg_1".into()), None, call),
        EntryDraft::user(MessageOrigin::Tool, &result),
    ]
}

fn view(lens: Lens, drafts: Vec<EntryDraft>) -> View {
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut view = View::new(lens);
    for draft in drafts {
        let line = draft.into_line(ids.next_id(at), view.newest_id(), at, None);
        view.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }
    view
}

fn body(view: &View) -> String {
    checked(view).unwrap_or_else(|error| panic!("{error}")).body()
}

#[test]
fn known_tools_are_sent_as_references() {
    let body = body(&view(lens(ViewScope::Current), drafts(&["Late"], REFERENCE)));
    assert!(body.contains(&format!(r#""content":[{REFERENCE}]"#)), "{body}");
    // Fields that the provider refuses are left out of the block.
    let marked = r#"{"type":"tool_reference","tool_name":"Late","cache_control":{"type":"ephemeral"}}"#;
    let body = self::body(&view(lens(ViewScope::Current), drafts(&["Late"], marked)));
    assert!(body.contains(&format!(r#""content":[{REFERENCE}]"#)), "{body}");
}

#[test]
fn unknown_tools_become_text() {
    let unknown = body(&view(lens(ViewScope::Current), drafts(&["Later"], REFERENCE)));
    assert!(unknown.contains(TOLD) && !unknown.contains("tool_reference"), "{unknown}");
    let card = ModelCatalog::built_in().find("gpt-5.5-codex").card;
    assert!(!card.can.tool_search);
    let unable = Lens { estimator: Estimator::shipped(card.generation), card, scope: ViewScope::Current };
    let body = view(unable, drafts(&["Late"], REFERENCE)).render(OPTIONS).body();
    assert!(body.contains(TOLD) && !body.contains("tool_reference"), "{body}");
}

#[test]
fn references_survive_decisions_on_their_result() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}"#;
    let mut noted = drafts(&["Late"], REFERENCE);
    noted.push(EntryDraft::attachment("reminder", r#""by the way""#));
    let noted = body(&view(reminding_lens(ViewScope::Current), noted));
    assert!(noted.contains(&format!("[{REFERENCE},{{")) && noted.contains("by the way"), "{noted}");
    let mut pictured = view(lens(ViewScope::Current), drafts(&["Late"], &format!("{REFERENCE},{image}")));
    let entry = pictured.newest_id().unwrap();
    let kind = pal_model::DecisionKind::Strip { entry, media: None, text: "no picture".into() };
    let strip = pal_model::Decision { kind, reason: String::new(), cost: Default::default() };
    pictured = pictured.with_decision(&strip);
    let body = body(&pictured);
    assert!(body.contains(&format!("[{REFERENCE},{{")) && body.contains("no picture"), "{body}");
    let mut orphaned = drafts(&["Late"], REFERENCE);
    orphaned.remove(2);
    let orphaned = self::body(&view(reminding_lens(ViewScope::Current), orphaned));
    assert!(orphaned.contains(r"Tool found: Late") && !orphaned.contains("tool_reference"), "{orphaned}");
}

#[test]
fn deferred_tools_count_where_they_are_referenced() {
    let tokens = |tools: &[&str], found: &str| {
        let view = view(lens(ViewScope::Current), drafts(tools, found));
        let of = |wanted: Category| {
            view.by_category().iter().filter(|(category, _)| *category == wanted).map(|known| known.1).sum()
        };
        let sums: (f64, f64) = (of(Category::ToolSchemas), of(Category::ToolResults));
        sums
    };
    let told = tokens(&[], REFERENCE);
    let found = tokens(&["Late"], REFERENCE);
    assert_eq!(told.0, found.0, "the list is as large without it");
    assert!(found.1 > told.1 + 150.0, "{found:?} {told:?}");
}
