//! Logs that fuzzing found: each of them was rendered to a request that the validator refused.

use pal_model::{Draft, Entry, IdSource, Origin, Prefix, Text, Timestamp};
use pal_view::{CacheLifetime, Mark, Scope, Spot, View};

use crate::common::{checked, lens};

/// The body of the request that these drafts lead to.
fn check(drafts: Vec<Draft>) -> String {
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<Entry> = Vec::new();
    for draft in drafts {
        let parent = entries.last().map(|entry| entry.id);
        let line = draft.into_line(ids.next_id(at), parent, at, None);
        entries.push(Entry::parse(Text::from(line)).unwrap());
    }
    let request = checked(&View::of(lens(Scope::Current), entries)).unwrap_or_else(|error| panic!("{error}"));
    request.body()
}

/// What becomes of blocks that the model said.
fn said(blocks: &str) -> String {
    let response = "msg_1".into();
    check(vec![
        Draft::user(Origin::Person, r#""go""#),
        Draft::assistant(Some(&response), Some("claude-opus-5-5"), blocks),
    ])
}

/// What becomes of tools.
fn with_tools(tools: &str) -> String {
    let prefix = Prefix {
        system: Text::from("[]"),
        tools: Text::from(tools),
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    check(vec![Draft::prefix(&prefix), Draft::user(Origin::Person, r#""go""#)])
}

#[test]
fn marks_stand_at_the_end_of_the_head_and_of_the_last_messages() {
    let prefix = Prefix {
        system: Text::from("[]"),
        tools: Text::from(r#"[{"name":"Read","input_schema":{"type":"object"}}]"#),
        context: Default::default(),
        unseen_tokens: 20_000,
        notes: Default::default(),
    };
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let response = "msg_1".into();
    let drafts = vec![
        Draft::prefix(&prefix),
        Draft::user(Origin::Person, r#""one""#),
        Draft::assistant(Some(&response), None, r#"[{"type":"text","text":"two"}]"#),
        Draft::user(Origin::Person, r#"[{"type":"text","text":"three"},{"type":"text","text":"four"}]"#),
    ];
    let mut entries: Vec<Entry> = Vec::new();
    for draft in drafts {
        let parent = entries.last().map(|entry| entry.id);
        entries.push(Entry::parse(Text::from(draft.into_line(ids.next_id(at), parent, at, None))).unwrap());
    }
    let request = checked(&View::of(lens(Scope::Current), entries)).unwrap();
    let marked = |spots: &[Spot], lifetime| -> (usize, Vec<String>) {
        let marks = spots.iter().map(|spot| Mark { spot: *spot, lifetime, scope: None });
        let request = request.clone().with_marks(marks.collect());
        let body: serde_json::Value = serde_json::from_str(&request.body()).unwrap();
        let ttl = |block: &serde_json::Value| block.get("cache_control").map(|mark| mark["ttl"].to_string());
        let all: Vec<String> = body["system"].as_array().unwrap().iter().filter_map(ttl).collect();
        let blocks = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| message["content"].as_array().unwrap().iter());
        let texts = blocks.filter_map(|block| Some(format!("{} {}", block["text"].as_str()?, ttl(block)?)));
        (all.len(), texts.collect())
    };
    let (system, end) = (Spot::System(0), Spot::Block(request.blocks() - 1));
    assert_eq!(marked(&[end, system], CacheLifetime::Minutes5), (1, vec!["four null".into()]));
    let hour = vec!["two \"1h\"".to_owned(), "four \"1h\"".to_owned()];
    let two = Spot::Block(request.blocks() - 3);
    assert_eq!(marked(&[system, two, end], CacheLifetime::Hour1), (1, hour));
    assert_eq!(marked(&[system], CacheLifetime::Hour1), (1, Vec::new()));
}

const SEARCH: &str = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}"#;
const FOUND: &str = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;

#[test]
fn a_server_result_answers_a_call_of_its_own_tool() {
    let fetched = r#"{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{}}"#;
    assert!(!said(&format!("[{SEARCH},{fetched}]")).contains(fetched));
    // The right answer behind the wrong one still counts.
    let body = said(&format!("[{SEARCH},{fetched},{FOUND}]"));
    assert!(body.contains(SEARCH) && body.contains(FOUND) && !body.contains(fetched), "{body}");
}

#[test]
fn a_server_call_under_a_used_id_takes_its_result_along() {
    let body = said(&format!("[{SEARCH},{FOUND},{SEARCH},{FOUND}]"));
    assert_eq!((body.matches(SEARCH).count(), body.matches(FOUND).count()), (1, 1), "{body}");
    let body = said(&format!("[{SEARCH},{SEARCH},{FOUND},{FOUND}]"));
    assert_eq!((body.matches(SEARCH).count(), body.matches(FOUND).count()), (1, 1), "{body}");
}

#[test]
fn a_client_call_may_not_take_the_id_of_a_server_call() {
    let call = r#"{"type":"tool_use","id":"srvtoolu_1","name":"Read","input":{}}"#;
    for blocks in [format!("[{SEARCH},{FOUND},{call}]"), format!("[{call},{SEARCH},{FOUND}]")] {
        assert!(!said(&blocks).contains(call));
    }
    assert!(said(&format!("[{call}]")).contains(call));
}

#[test]
fn server_ids_have_a_form_of_their_own() {
    for id in ["toolu_1", "srvtoolu_", "srvtoolu_a-b"] {
        let (call, result) = (SEARCH.replace("srvtoolu_1", id), FOUND.replace("srvtoolu_1", id));
        assert!(!said(&format!("[{call},{result}]")).contains(&call));
    }
}

#[test]
fn odd_fields_of_known_names_are_left_out() {
    for citations in [r#"[{"type":"x"},7]"#, r#"[{"type":"x"},"y"]"#, "[]", "{}", "null"] {
        let body = said(&format!(r#"[{{"type":"text","text":"cited","citations":{citations}}}]"#));
        assert!(body.contains("cited") && !body.contains("citations"), "{body}");
    }
    let body = said(r#"[{"type":"text","text":"cited","citations":[{"type":"x"}, {"type":"y"}]}]"#);
    assert!(body.contains(r#""citations":[{"type":"x"}, {"type":"y"}]"#), "{body}");
    for name in ["7", "null", "[]"] {
        let body = said(&format!(
            r#"[{{"type":"tool_use","id":"a","name":"b","input":{{}},"toolset_name":{name}}}]"#
        ));
        assert!(!body.contains("toolset_name"), "{body}");
    }
}

#[test]
fn nesting_that_no_reader_follows_is_left_out() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(150), "}".repeat(150));
    said(&format!(r#"[{{"type":"text","text":"cited","citations":[{deep}]}}]"#));
    with_tools(&format!(r#"[{{"name":"Deep","input_schema":{{"type":"object","properties":{deep}}}}}]"#));
    with_tools(&format!(r#"[{{"type":"bash_20250124","name":"bash","more":{deep}}}]"#));
}

#[test]
fn only_tools_that_the_provider_knows_are_sent() {
    let cases = [
        (r#"{"type":"bash_20250124","name":"bash"}"#, true),
        (r#"{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}"#, true),
        (r#"{"type":"custom","name":"Read","input_schema":{"type":"object"}}"#, true),
        (r#"{"type":"bash_20250124","name":"zsh"}"#, false),
        (r#"{"type":"bash_20250124","name":"bash","defer_loading":7}"#, false),
        (r#"{"type":"bash_2025","name":"bash"}"#, false),
        (r#"{"type":"tool_use","name":"Read","input":{}}"#, false),
        (r#"{"type":7,"name":"Read","input_schema":{"type":"object"}}"#, false),
        (r#"{"name":"Read","input_schema":{}}"#, false),
        (r#"{"name":"Read","input_schema":{"type":"string"}}"#, false),
        (r#"{"name":"Read","input_schema":{"type":"object","type":"object"}}"#, false),
    ];
    for (tool, is_sent) in cases {
        assert_eq!(with_tools(&format!("[{tool}]")).contains(tool), is_sent, "{tool}");
    }
    // One that cannot be sent does not take the name away from one that can.
    let body = with_tools(r#"[{"name":"Read"},{"name":"Read","input_schema":{"type":"object"}}]"#);
    assert!(body.contains(r#""tools":[{"name":"Read","input_schema":{"type":"object"}}]"#), "{body}");
    let body = with_tools(r#"[{"name":"A","description":"\ud83d","input_schema":{"type":"object"}}]"#);
    assert!(body.contains(r#""description":"\ufffd""#), "{body}");
}

/// Quadratic work takes half a minute here, linear work less than a second.
#[test]
fn a_turn_may_be_long() {
    let list =
        |of: &dyn Fn(usize) -> String| format!("[{}]", (0..40_000).map(of).collect::<Vec<_>>().join(","));
    let call = |at| format!(r#"{{"type":"tool_use","id":"toolu_{at}","name":"Read","input":{{}}}}"#);
    let result = |at| format!(r#"{{"type":"tool_result","tool_use_id":"toolu_{at}","content":"ok"}}"#);
    let server_call = |at| {
        SEARCH.replace("srvtoolu_1", &format!("srvtoolu_{at}"))
            + ","
            + &FOUND.replace("srvtoolu_1", &format!("srvtoolu_{at}"))
    };
    let response = "msg_1".into();
    let body = check(vec![
        Draft::user(Origin::Person, r#""go""#),
        Draft::assistant(Some(&response), None, &list(&call)),
        Draft::assistant(Some(&response), None, &list(&server_call)),
        Draft::user(Origin::Tool, &list(&result)),
    ]);
    assert!(body.contains(&result(39_998)) && !body.contains("interrupted"));
}
