//! The tools block, and tools that are found when they are needed.

use std::collections::BTreeSet;

use pal_model::{BlockType, SharedText, ToolKind, object_fields};
use pal_prompt::{PrefixInputs, ToolCatalog, ToolOrigin, ToolSpec, assemble, built_in_tools};
use proptest::prelude::*;

use crate::common::{card, mcp, names};

fn session() -> Vec<ToolSpec> {
    let mut tools = vec![
        mcp("tracker", "create_issue", true),
        mcp("tracker", "listIssues", true),
        mcp("mail", "send", true),
        mcp("db", "query", false),
    ];
    tools.extend(built_in_tools());
    tools
}

#[test]
fn deferred_tools_are_marked_or_stay_out() {
    let catalog = ToolCatalog::new(&session());
    assert_eq!(
        names(&catalog.render_tools(&card("claude-opus-5-5"))),
        [
            "Agent",
            "AskUserQuestion",
            "Bash",
            "BashOutput",
            "Context",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Glob",
            "Grep",
            "KillBash",
            "NotebookEdit",
            "Read",
            "Recall",
            "SendMessage",
            "Skill",
            "Todo",
            "ToolSearch",
            "WebFetch",
            "WebSearch",
            "Write",
            "mcp__db__query",
            "mcp__mail__send*",
            "mcp__tracker__create_issue*",
            "mcp__tracker__listIssues*"
        ]
    );
    assert_eq!(
        names(&catalog.render_tools(&card("gpt-5.5-codex"))),
        [
            "Agent",
            "AskUserQuestion",
            "Bash",
            "BashOutput",
            "CallTool",
            "Context",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Glob",
            "Grep",
            "KillBash",
            "NotebookEdit",
            "Read",
            "Recall",
            "SendMessage",
            "Skill",
            "Todo",
            "ToolSearch",
            "WebFetch",
            "WebSearch",
            "Write",
            "mcp__db__query"
        ]
    );
}

#[test]
fn without_deferred_tools_there_is_no_search() {
    for model in ["claude-opus-5-5", "gpt-5.5-codex"] {
        let listed = names(&ToolCatalog::new(&built_in_tools()).render_tools(&card(model)));
        assert_eq!(
            listed,
            [
                "Agent",
                "AskUserQuestion",
                "Bash",
                "BashOutput",
                "Context",
                "Edit",
                "EnterPlanMode",
                "ExitPlanMode",
                "Glob",
                "Grep",
                "KillBash",
                "NotebookEdit",
                "Read",
                "Recall",
                "SendMessage",
                "Skill",
                "Todo",
                "WebFetch",
                "WebSearch",
                "Write"
            ]
        );
    }
}

#[test]
fn search_result_is_a_reference_or_a_definition() {
    let catalog = ToolCatalog::new(&session());
    let hits = catalog.search("create an issue");
    let found = catalog.render_search_result(&card("claude-opus-5-5"), &hits[..1]);
    assert_eq!(
        found.blocks()[0].raw().as_str(),
        r#"{"type":"tool_reference","tool_name":"mcp__tracker__create_issue"}"#
    );
    let found = catalog.render_search_result(&card("gpt-5.5-codex"), &hits[..1]);
    let text = found.blocks()[0].string("text").unwrap();
    let definition = text.lines().last().unwrap();
    assert!(
        object_fields(definition).is_ok() && definition.contains(r#""name":"mcp__tracker__create_issue""#)
    );
    assert!(text.contains("CallTool") && definition.contains("input_schema"));
    let none = catalog.render_search_result(&card("claude-opus-5-5"), &[]);
    assert_eq!(none.blocks()[0].kind(), BlockType::Text);
}

#[test]
fn searches_find_by_words_and_by_name() {
    let catalog = ToolCatalog::new(&session());
    for (query, expected) in [
        ("create an issue", "mcp__tracker__create_issue mcp__tracker__listIssues"),
        ("issues", "mcp__tracker__create_issue mcp__tracker__listIssues"),
        ("Tracker", "mcp__tracker__create_issue mcp__tracker__listIssues"),
        ("send a mail", "mcp__mail__send"),
        ("select:mcp__mail__send, LISTISSUES", "mcp__mail__send mcp__tracker__listIssues"),
        ("select:Read", "Read"),
        ("query", ""),
        ("nothing like it", ""),
        ("", ""),
        ("select:", ""),
    ] {
        let hits = catalog.search(query);
        let hits: Vec<&str> = hits.iter().map(|tool| tool.wire_name.as_str()).collect();
        assert_eq!(hits.join(" "), expected, "{query}");
    }
    let many: Vec<ToolSpec> = (0..20).map(|n| mcp("s", &format!("thing_{n}"), true)).collect();
    assert_eq!(ToolCatalog::new(&many).search("thing").len(), 5);
}

#[test]
fn names_fit_the_wire_and_collisions_are_resolved_and_reported() {
    let long = "n".repeat(200);
    let specs = [
        mcp("a b", "c", false),
        mcp("a_b", "c", false),
        mcp("a.b", "c", false),
        mcp("a", "b__c", false),
        mcp("a__b", "c", false),
        mcp("поиск", "файл", false),
        mcp("a", &long, false),
    ];
    let catalog = ToolCatalog::new(&specs);
    assert!(catalog.left_out().is_empty());
    let listed: BTreeSet<&str> = catalog.tools().iter().map(|tool| tool.wire_name.as_str()).collect();
    assert_eq!(listed.len(), specs.len());
    let fits = |name: &&str| {
        name.len() <= 128 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    assert!(listed.iter().all(fits), "{listed:?}");
    let card = card("claude-opus-5-5");
    let parts = assemble(&PrefixInputs { tools: specs.to_vec(), ..PrefixInputs::for_card(&card) }).parts;
    let renamed: Vec<&str> =
        parts.iter().filter(|part| part.reason.contains("renamed")).map(|part| part.name.as_str()).collect();
    assert_eq!(renamed.len(), 4, "{renamed:?}");
    let tool = catalog.find_tool(renamed[0]).unwrap();
    assert!(specs.contains(&tool.spec));
}

#[test]
fn unsupported_tool_is_left_out_with_a_reason() {
    let mut specs = built_in_tools();
    specs.push(ToolSpec { description: "zzz another one".into(), ..specs[0].clone() });
    specs.push(ToolSpec { name: "a b".into(), ..specs[0].clone() });
    specs.push(ToolSpec { name: "ToolSearch".into(), ..specs[0].clone() });
    specs.push(ToolSpec { schema: SharedText::from("{"), ..mcp("s", "broken", false) });
    specs.push(mcp("s", "", false));
    specs.push(mcp("", "t", false));
    let catalog = ToolCatalog::new(&specs);
    let reports: Vec<String> =
        catalog.left_out().iter().map(|left| format!("{}: {}", left.what, left.why)).collect();
    let starts = [
        "tool Agent: another tool of this name",
        "tool ToolSearch: its name is not one",
        "tool a b: its name is not one",
        "tool t of the MCP server : it has no name",
        "tool  of the MCP server s: it has no name",
        "tool broken of the MCP server s: its schema is no JSON object",
    ];
    assert_eq!(reports.len(), starts.len(), "{reports:?}");
    assert!(reports.iter().zip(starts).all(|(report, start)| report.starts_with(start)), "{reports:?}");
    assert_eq!(catalog.tools().len(), 20);
}

#[test]
fn built_in_tools_are_known_and_strict() {
    let kinds: Vec<(String, Option<ToolKind>)> = built_in_tools()
        .iter()
        .map(|tool| (tool.name.to_string(), ToolKind::from_name(&tool.name)))
        .collect();
    let known: Vec<&str> =
        kinds.iter().filter(|(_, kind)| kind.is_some()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        known,
        [
            "Bash",
            "BashOutput",
            "Edit",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "WebFetch",
            "WebSearch",
            "Write"
        ]
    );
    let mut specs = built_in_tools();
    specs.push(mcp("s", "t", true));
    let rendered = ToolCatalog::new(&specs).render_tools(&card("gpt-5.5-codex"));
    let tools: Vec<serde_json::Value> = serde_json::from_str(&rendered).unwrap();
    for tool in &tools {
        let schema = &tool["input_schema"];
        assert_eq!(schema["additionalProperties"], false, "{tool}");
        let properties = schema["properties"].as_object().unwrap();
        assert!(properties.values().all(|property| property["description"].is_string()), "{tool}");
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(name.as_str().unwrap()), "{tool}");
        }
        assert!(tool["description"].as_str().unwrap().len() > 100);
    }
    let edit = tools.iter().find(|tool| tool["name"] == "Edit").unwrap();
    assert!(edit["description"].as_str().unwrap().contains("(as in `<\\system-reminder>`)"));
    assert!(tools.len() == 22 && !rendered.contains("\": "));
}

fn any_spec() -> impl Strategy<Value = ToolSpec> {
    let name = prop_oneof!["[ab._]{0,3}", "[a-z]{120,140}", "\\PC{0,6}"];
    let schema = prop_oneof![3 => Just(r#"{"type":"object"}"#), 1 => Just("{}")];
    let origin = prop_oneof![
        Just(ToolOrigin::BuiltIn),
        "[ab._]{0,3}".prop_map(|server| ToolOrigin::Mcp { server: server.into() })
    ];
    (name, "[ab]{0,2}", schema, origin, any::<bool>()).prop_map(
        |(name, description, schema, origin, is_deferred)| ToolSpec {
            name: name.into(),
            description,
            schema: SharedText::from(schema),
            origin,
            is_deferred,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_block_does_not_depend_on_the_order_given(
        (specs, shuffled) in prop::collection::vec(any_spec(), 0..12)
            .prop_flat_map(|specs| (Just(specs.clone()), Just(specs).prop_shuffle())),
    ) {
        let (one, other) = (ToolCatalog::new(&specs), ToolCatalog::new(&shuffled));
        prop_assert_eq!(&one, &other);
        prop_assert_eq!(one.tools().len() + one.left_out().len(), specs.len());
        for model in ["claude-opus-5-5", "gpt-5.5-codex"] {
            let listed = names(&one.render_tools(&card(model)));
            let plain: BTreeSet<&str> = listed.iter().map(|name| name.trim_end_matches('*')).collect();
            prop_assert_eq!(plain.len(), listed.len());
            prop_assert!(listed.is_empty() || listed.iter().any(|name| !name.ends_with('*')));
        }
    }
}

#[test]
fn late_tools_never_change_the_tool_list() {
    for model in ["claude-opus-5-5", "gpt-5.5-codex"] {
        let card = card(model);
        let mut catalog = ToolCatalog::new(&built_in_tools()).expect_late_tools();
        let listed = catalog.render_tools(&card);
        assert!(
            names(&listed).contains(&String::from("CallTool"))
                && names(&listed).contains(&String::from("ToolSearch"))
        );
        catalog.set_late_tools(&[
            mcp("tracker", "create_issue", true),
            mcp("mail", "send", true),
            mcp("mail", "send", true),
        ]);
        assert_eq!(catalog.render_tools(&card), listed);
        let offered: Vec<String> =
            catalog.list_capabilities().iter().map(|tool| tool.name.to_string()).collect();
        assert_eq!(offered, ["mcp__mail__send", "mcp__tracker__create_issue"]);
        let found = catalog.search("create issue");
        assert_eq!(found.len(), 1);
        let told = catalog.render_search_result(&card, &found);
        assert_eq!(told.blocks()[0].kind(), BlockType::Text, "no reference leads to what is not in the list");
        assert!(told.blocks()[0].raw().contains("mcp__tracker__create_issue"));
        assert!(catalog.find_tool("mcp__mail__send").is_some());
        catalog.set_late_tools(&[mcp("mail", "receive", true)]);
        assert_eq!(catalog.render_tools(&card), listed);
        assert!(catalog.find_tool("mcp__mail__send").is_none() && catalog.search("issue").is_empty());
    }
}

#[test]
fn a_late_tool_cannot_take_the_name_of_another() {
    let mut tools = built_in_tools();
    tools.push(mcp("a_b", "c", false));
    let mut catalog = ToolCatalog::new(&tools).expect_late_tools();
    catalog.set_late_tools(&[mcp("a b", "c", true)]);
    let late = catalog.late_tools()[0].wire_name.clone();
    assert!(
        late.starts_with("mcp__a_b__c_")
            && catalog.find_tool("mcp__a_b__c").is_some_and(|tool| !tool.spec.is_deferred)
    );
}

#[test]
fn the_prompt_names_servers_and_nothing_that_they_say() {
    let card = card("claude-opus-5-5");
    let with = |servers: &[&str]| {
        let servers = servers.iter().map(|name| (*name).into()).collect();
        assemble(&PrefixInputs { servers, tools: built_in_tools(), ..PrefixInputs::for_card(&card) }).prefix
    };
    let prefix = with(&["mail", "tracker"]);
    assert!(prefix.system.contains("MCP servers of this session: mail, tracker."), "{}", prefix.system);
    assert!(names(&prefix.tools).contains(&String::from("CallTool")));
    assert!(
        !with(&[]).system.contains("MCP") && !names(&with(&[]).tools).contains(&String::from("ToolSearch"))
    );
}
