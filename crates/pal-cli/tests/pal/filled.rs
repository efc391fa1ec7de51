//! `pal context --session`: what fills a stored session.

use pal_model::{
    Draft, IdSource, Origin, Prefix, PrefixNotes, SectionNote, SourceNote, SystemNote, Timestamp,
};
use pal_store::Log;
use pal_testkit::session_files;
use serde_json::Value;

use crate::contexts::fits;
use crate::program::Home;
use crate::stored::Stored;

#[test]
fn a_stored_session_shows_what_fills_it() {
    let stored = Stored::new(3);
    let log = stored.log.to_str().unwrap();
    let before = stored.bytes();
    let said = stored.home.run(&["context", "--session", log]);
    assert_eq!(said.code, 0, "{}", said.err);
    fits(&said.out, 80);
    for expected in [
        "The session ",
        "reported by its newest response",
        "unseen prefix",
        "█ tool results",
        "behind the newest message",
    ] {
        assert!(said.out.contains(expected), "`{expected}` is not in\n{}", said.out);
    }
    let json: Value =
        serde_json::from_str(&stored.home.run(&["context", "--json", "--session", log]).out).unwrap();
    let tokens: Value = serde_json::from_str(&stored.good("tokens", &["--json"])).unwrap();
    assert_eq!(json["tokens"], tokens["tokens"]);
    let drawn: f64 =
        json["categories"].as_array().unwrap().iter().map(|slice| slice["tokens"].as_f64().unwrap()).sum();
    assert!((drawn - tokens["tokens"].as_f64().unwrap()).abs() < 8.0, "{drawn}");
    assert_eq!(stored.bytes(), before);
}

#[test]
fn sections_of_a_stored_session_come_from_its_log() {
    let home = Home::new();
    let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
    let path = home.path().join("log.jsonl");
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let section = |name: &str, bytes, volatile: Option<&str>| SectionNote {
        name: name.into(),
        bytes,
        volatile: volatile.map(str::to_owned),
    };
    let note = |sections, is_static| SystemNote { sections, is_static, markable: true };
    let prefix = Prefix {
        system: r#"[{"type":"text","text":"Be kind.\n\nBe brief."},{"type":"text","text":"It rains."}]"#
            .into(),
        tools: "[]".into(),
        context: std::iter::once(pal_model::Block::text(
            "<system-reminder>\nRun the tests.\n</system-reminder>",
        ))
        .collect(),
        unseen_tokens: 0,
        notes: PrefixNotes {
            system: vec![
                note(vec![section("kindness", 8, None), section("brevity", 9, None)], true),
                note(vec![section("weather", 9, Some("it changes"))], false),
            ],
            sources: vec![SourceNote { path: "/src/AGENTS.md".into(), print: "0".into() }],
        },
    };
    log.append(Draft::prefix(&prefix), at).unwrap();
    log.append(Draft::user(Origin::Person, "\"Hello\""), at).unwrap();
    drop(log);
    let arguments = ["context", "--model", "claude-opus-5-5", "--session", path.to_str().unwrap()];
    let page = home.run(&arguments);
    assert_eq!(page.code, 0, "{}", page.err);
    for expected in
        ["8 B  kindness", "9 B  brevity", "weather  volatile: it changes", "/src/AGENTS.md", "fewer than"]
    {
        assert!(page.out.contains(expected), "`{expected}` is not in\n{}", page.out);
    }
    let shown = home.run(&[&arguments[..], &["--show", "system"]].concat());
    assert_eq!(shown.out, "Be kind.\n\nBe brief.\n\nIt rains.\n");
}

#[test]
fn a_tool_that_the_provider_looks_up_takes_no_room_where_it_is_listed() {
    let home = Home::new();
    let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
    let path = home.path().join("log.jsonl");
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let tool = |name: &str, rest: &str| {
        let described = "It says what it says. ".repeat(200);
        format!(r#"{{"name":"{name}","description":"{described}","input_schema":{{"type":"object"}}{rest}}}"#)
    };
    let tools = [tool("Read", ""), tool("mcp__far__away", r#","defer_loading":true"#)].join(",");
    let prefix = Prefix {
        system: "[]".into(),
        tools: format!("[{tools}]").into(),
        context: std::iter::empty::<pal_model::Block>().collect(),
        unseen_tokens: 0,
        notes: PrefixNotes { system: Vec::new(), sources: Vec::new() },
    };
    log.append(Draft::prefix(&prefix), at).unwrap();
    log.append(Draft::user(Origin::Person, "\"Hello\""), at).unwrap();
    drop(log);
    let tokens = |model: &str| -> (f64, f64, f64) {
        let said = home.run(&["context", "--json", "--model", model, "--session", path.to_str().unwrap()]);
        let json: Value = serde_json::from_str(&said.out).unwrap();
        let tokens = |list: &Value, at: usize| list[at]["tokens"].as_f64().unwrap();
        let slices = json["categories"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|slice| slice["name"].as_str().is_some_and(|name| name.starts_with("tools")));
        let drawn = slices.map(|slice| slice["tokens"].as_f64().unwrap()).sum();
        (tokens(&json["tools"], 0), tokens(&json["tools"], 1), drawn)
    };
    let (listed, deferred, drawn) = tokens("claude-opus-5-5");
    assert!(deferred == 0.0 && listed > 500.0 && (drawn - listed).abs() < 8.0, "{listed} {deferred} {drawn}");
    let (listed, sent, drawn) = tokens("gpt-6-sol");
    assert!(sent > 500.0 && (drawn - listed - sent).abs() < 8.0, "{listed} {sent} {drawn}");
}

#[test]
fn recorded_sessions_fit_the_terminal() {
    let home = Home::new();
    for file in session_files().iter().step_by(9) {
        let said = home.run(&["context", "--session", file.to_str().unwrap()]);
        assert_eq!(said.code, 0, "{}: {}", file.display(), said.err);
        fits(&said.out, 80);
        assert!(said.out.contains("kept for the answer"), "{}", said.out);
    }
}
