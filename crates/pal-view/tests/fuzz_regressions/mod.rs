//! Logs that fuzzing found: each of them was rendered to a request that the validator refused.

use pal_model::{EntryDraft, IdSource, LogEntry, MessageOrigin, PromptPrefix, SharedText, Timestamp};
use pal_view::{BreakpointPosition, CacheBreakpoint, CacheTtl, View, ViewScope};

use crate::common::{checked, lens};

/// The body of the request that these drafts lead to.
fn check(drafts: Vec<EntryDraft>) -> String {
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let mut entries: Vec<LogEntry> = Vec::new();
    for draft in drafts {
        let parent = entries.last().map(|entry| entry.id);
        let line = draft.into_line(ids.next_id(at), parent, at, None);
        entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }
    let request = checked(&View::from_branch(lens(ViewScope::Current), entries))
        .unwrap_or_else(|error| panic!("{error}"));
    request.body()
}

/// Renders a log with these blocks in the model's message.
fn said(blocks: &str) -> String {
    let response = "msg_1".into();
    check(vec![
        EntryDraft::user(MessageOrigin::Person, r#""go""#),
        EntryDraft::assistant(Some(&response), Some("claude-opus-5-5"), blocks),
    ])
}

/// Renders a log with these tools.
fn with_tools(tools: &str) -> String {
    let prefix = PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from(tools),
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    check(vec![EntryDraft::prefix(&prefix), EntryDraft::user(MessageOrigin::Person, r#""go""#)])
}

#[test]
fn breakpoints_are_rendered_at_their_positions() {
    let prefix = PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from(r#"[{"name":"Read","input_schema":{"type":"object"}}]"#),
        context: Default::default(),
        unseen_tokens: 20_000,
        notes: Default::default(),
    };
    let mut ids = IdSource::seeded(1);
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let response = "msg_1".into();
    let drafts = vec![
        EntryDraft::prefix(&prefix),
        EntryDraft::user(MessageOrigin::Person, r#""one""#),
        EntryDraft::assistant(Some(&response), None, r#"[{"type":"text","text":"two"}]"#),
        EntryDraft::user(
            MessageOrigin::Person,
            r#"[{"type":"text","text":"three"},{"type":"text","text":"four"}]"#,
        ),
    ];
    let mut entries: Vec<LogEntry> = Vec::new();
    for draft in drafts {
        let parent = entries.last().map(|entry| entry.id);
        entries.push(
            LogEntry::parse(SharedText::from(draft.into_line(ids.next_id(at), parent, at, None))).unwrap(),
        );
    }
    let request = checked(&View::from_branch(lens(ViewScope::Current), entries)).unwrap();
    let marked = |spots: &[BreakpointPosition], ttl| -> (usize, Vec<String>) {
        let marks = spots.iter().map(|spot| CacheBreakpoint { position: *spot, ttl, scope: None });
        let request = request.clone().with_breakpoints(marks.collect());
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
    let (system, end) = (BreakpointPosition::System(0), BreakpointPosition::Block(request.block_count() - 1));
    assert_eq!(marked(&[end, system], CacheTtl::Minutes5), (1, vec!["four null".into()]));
    let hour = vec!["two \"1h\"".to_owned(), "four \"1h\"".to_owned()];
    let two = BreakpointPosition::Block(request.block_count() - 3);
    assert_eq!(marked(&[system, two, end], CacheTtl::Hour1), (1, hour));
    assert_eq!(marked(&[system], CacheTtl::Hour1), (1, Vec::new()));
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
fn duplicate_server_calls_are_dropped_with_their_results() {
    let body = said(&format!("[{SEARCH},{FOUND},{SEARCH},{FOUND}]"));
    assert_eq!((body.matches(SEARCH).count(), body.matches(FOUND).count()), (1, 1), "{body}");
    let body = said(&format!("[{SEARCH},{SEARCH},{FOUND},{FOUND}]"));
    assert_eq!((body.matches(SEARCH).count(), body.matches(FOUND).count()), (1, 1), "{body}");
}

#[test]
fn client_calls_cannot_reuse_server_ids() {
    let call = r#"{"type":"tool_use","id":"srvtoolu_1","name":"Read","input":{}}"#;
    for blocks in [format!("[{SEARCH},{FOUND},{call}]"), format!("[{call},{SEARCH},{FOUND}]")] {
        assert!(!said(&blocks).contains(call));
    }
    assert!(said(&format!("[{call}]")).contains(call));
}

#[test]
fn server_ids_need_their_prefix() {
    for id in ["toolu_1", "srvtoolu_", "srvtoolu_a-b"] {
        let (call, result) = (SEARCH.replace("srvtoolu_1", id), FOUND.replace("srvtoolu_1", id));
        assert!(!said(&format!("[{call},{result}]")).contains(&call));
    }
}

#[test]
fn invalid_optional_fields_are_dropped() {
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
fn too_deep_json_is_dropped() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(150), "}".repeat(150));
    said(&format!(r#"[{{"type":"text","text":"cited","citations":[{deep}]}}]"#));
    with_tools(&format!(r#"[{{"name":"Deep","input_schema":{{"type":"object","properties":{deep}}}}}]"#));
    with_tools(&format!(r#"[{{"type":"bash_20250124","name":"bash","more":{deep}}}]"#));
}

#[test]
fn only_valid_tools_are_sent() {
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
fn long_turns_take_linear_time() {
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
        EntryDraft::user(MessageOrigin::Person, r#""go""#),
        EntryDraft::assistant(Some(&response), None, &list(&call)),
        EntryDraft::assistant(Some(&response), None, &list(&server_call)),
        EntryDraft::user(MessageOrigin::Tool, &list(&result)),
    ]);
    assert!(body.contains(&result(39_998)) && !body.contains("interrupted"));
}
