//! References to tools that a search found: as they are where the provider puts the definition in, else in words.

use pal_model::{Cards, Content, Draft, Entry, IdSource, Origin, Prefix, PrefixNotes, Text, Timestamp};
use pal_view::{Category, Estimator, Lens, Scope, View};

use crate::common::{OPTIONS, checked, lens, reminding_lens};

const REFERENCE: &str = r#"{"type":"tool_reference","tool_name":"Late"}"#;
const TOLD: &str = r#"{"type":"text","text":"Tool found: Late"}"#;

/// A session whose search found tools; `tools` are declared besides `ToolSearch`.
fn drafts(tools: &[&str], found: &str) -> Vec<Draft> {
    let tool = |name: &str, more: &str| {
        let description = "It does what it says, and says it at some length. ".repeat(20);
        format!(
            r#"{{"name":"{name}","description":"{description}","input_schema":{{"type":"object"}}{more}}}"#
        )
    };
    let mut listed = vec![tool("ToolSearch", "")];
    listed.extend(tools.iter().map(|name| tool(name, r#","defer_loading":true"#)));
    let prefix = Prefix {
        system: Text::from("[]"),
        tools: Text::from(format!("[{}]", listed.join(","))),
        context: Content::default(),
        unseen_tokens: 0,
        notes: PrefixNotes::default(),
    };
    let call = r#"[{"type":"tool_use","id":"toolu_1","name":"ToolSearch","input":{"query":"late"}}]"#;
    let result = format!(r#"[{{"type":"tool_result","tool_use_id":"toolu_1","content":[{found}]}}]"#);
    vec![
        Draft::prefix(&prefix),
        Draft::user(Origin::Person, r#""find it""#),
        Draft::assistant(Some(&"msg_1".into()), None, call),
        Draft::user(Origin::Tool, &result),
    ]
}

fn view(lens: Lens, drafts: Vec<Draft>) -> View {
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut view = View::new(lens);
    for draft in drafts {
        let line = draft.into_line(ids.next_id(at), view.newest(), at, None);
        view.push(Entry::parse(Text::from(line)).unwrap());
    }
    view
}

fn body(view: &View) -> String {
    checked(view).unwrap_or_else(|error| panic!("{error}")).body()
}

#[test]
fn a_tool_of_the_session_is_referred_to() {
    let body = body(&view(lens(Scope::Current), drafts(&["Late"], REFERENCE)));
    assert!(body.contains(&format!(r#""content":[{REFERENCE}]"#)), "{body}");
    // What the provider would not take is left out of the block.
    let marked = r#"{"type":"tool_reference","tool_name":"Late","cache_control":{"type":"ephemeral"}}"#;
    let body = self::body(&view(lens(Scope::Current), drafts(&["Late"], marked)));
    assert!(body.contains(&format!(r#""content":[{REFERENCE}]"#)), "{body}");
}

#[test]
fn any_other_tool_is_told_in_words() {
    let unknown = body(&view(lens(Scope::Current), drafts(&["Later"], REFERENCE)));
    assert!(unknown.contains(TOLD) && !unknown.contains("tool_reference"), "{unknown}");
    let card = Cards::shipped().find("gpt-5.5-codex").card;
    assert!(!card.can.tool_search);
    let unable = Lens { estimator: Estimator::shipped(card.generation), card, scope: Scope::Current };
    let body = view(unable, drafts(&["Late"], REFERENCE)).render(OPTIONS).body();
    assert!(body.contains(TOLD) && !body.contains("tool_reference"), "{body}");
}

#[test]
fn a_reference_outlives_whatever_is_done_to_its_result() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}"#;
    let mut noted = drafts(&["Late"], REFERENCE);
    noted.push(Draft::attachment("reminder", r#""by the way""#));
    let noted = body(&view(reminding_lens(Scope::Current), noted));
    assert!(noted.contains(&format!("[{REFERENCE},{{")) && noted.contains("by the way"), "{noted}");
    let mut pictured = view(lens(Scope::Current), drafts(&["Late"], &format!("{REFERENCE},{image}")));
    let entry = pictured.newest().unwrap();
    let kind = pal_model::DecisionKind::Strip { entry, text: "no picture".into() };
    let strip = pal_model::Decision { kind, reason: String::new(), cost: Default::default() };
    pictured = pictured.with(&strip);
    let body = body(&pictured);
    assert!(body.contains(&format!("[{REFERENCE},{{")) && body.contains("no picture"), "{body}");
    let mut orphaned = drafts(&["Late"], REFERENCE);
    orphaned.remove(2);
    let orphaned = self::body(&view(reminding_lens(Scope::Current), orphaned));
    assert!(orphaned.contains(r"Tool found: Late") && !orphaned.contains("tool_reference"), "{orphaned}");
}

#[test]
fn a_deferred_tool_takes_room_where_it_is_referred_to() {
    let tokens = |tools: &[&str], found: &str| {
        let view = view(lens(Scope::Current), drafts(tools, found));
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
