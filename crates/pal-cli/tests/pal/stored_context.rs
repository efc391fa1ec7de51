//! `pal context --session`: what fills a stored session.

use pal_model::{
    EntryDraft, IdSource, MessageOrigin, PrefixNotes, PromptPrefix, SectionNote, SourceNote, SystemBlockNote,
    Timestamp,
};
use pal_store::Log;
use pal_testkit::session_files;
use serde_json::Value;

use crate::context::fits;
use crate::program::TestHome;
use crate::stored_session::ImportedSession;

#[test]
fn a_stored_session_shows_its_contents() {
    let stored = ImportedSession::new(3);
    let log = stored.log.to_str().unwrap();
    let before = stored.bytes();
    let said = stored.home.run(&["context", "--session", log]);
    assert_eq!(said.code, 0, "{}", said.err);
    fits(&said.out, 80);
    for expected in [
        "Session ",
        "reported by the latest response",
        "unseen prefix",
        "█ tool results",
        "after the newest message",
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
    let home = TestHome::new();
    let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
    let path = home.path().join("log.jsonl");
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let section = |name: &str, bytes, volatile: Option<&str>| SectionNote {
        name: name.into(),
        bytes,
        volatile: volatile.map(str::to_owned),
    };
    let note = |sections, is_static| SystemBlockNote { sections, is_static, markable: true };
    let prefix = PromptPrefix {
        system: r#"[{"type":"text","text":"Be kind.\n\nBe brief."},{"type":"text","text":"It rains."}]"#
            .into(),
        tools: "[]".into(),
        context: std::iter::once(pal_model::ContentBlock::text(
            "<system-reminder>\nRun the tests.\n</system-reminder>",
        ))
        .collect(),
        unseen_tokens: 0,
        notes: PrefixNotes {
            system: vec![
                note(vec![section("kindness", 8, None), section("brevity", 9, None)], true),
                note(vec![section("weather", 9, Some("it changes"))], false),
            ],
            sources: vec![SourceNote { path: "/src/AGENTS.md".into(), fingerprint: "0".into() }],
            ..PrefixNotes::default()
        },
    };
    log.append(EntryDraft::prefix(&prefix), at).unwrap();
    log.append(EntryDraft::user(MessageOrigin::Person, "\"Hello\""), at).unwrap();
    drop(log);
    let arguments = ["context", "--model", "claude-opus-5-5", "--session", path.to_str().unwrap()];
    let page = home.run(&arguments);
    assert_eq!(page.code, 0, "{}", page.err);
    for expected in [
        "8 B  kindness",
        "9 B  brevity",
        "weather  volatile: it changes",
        "/src/AGENTS.md",
        "no prefix below",
    ] {
        assert!(page.out.contains(expected), "`{expected}` is not in\n{}", page.out);
    }
    let shown = home.run(&[&arguments[..], &["--show", "system"]].concat());
    assert_eq!(shown.out, "Be kind.\n\nBe brief.\n\nIt rains.\n");
}

#[test]
fn deferred_tools_count_no_tokens() {
    let home = TestHome::new();
    let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
    let path = home.path().join("log.jsonl");
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let tool = |name: &str, rest: &str| {
        let described = "It says what it says. ".repeat(200);
        format!(r#"{{"name":"{name}","description":"{described}","input_schema":{{"type":"object"}}{rest}}}"#)
    };
    let tools = [tool("Read", ""), tool("mcp__far__away", r#","defer_loading":true"#)].join(",");
    let prefix = PromptPrefix {
        system: "[]".into(),
        tools: format!("[{tools}]").into(),
        context: std::iter::empty::<pal_model::ContentBlock>().collect(),
        unseen_tokens: 0,
        notes: PrefixNotes::default(),
    };
    log.append(EntryDraft::prefix(&prefix), at).unwrap();
    log.append(EntryDraft::user(MessageOrigin::Person, "\"Hello\""), at).unwrap();
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
fn recorded_session_reports_fit_the_terminal() {
    let home = TestHome::new();
    for file in session_files().iter().step_by(9) {
        let said = home.run(&["context", "--session", file.to_str().unwrap()]);
        assert_eq!(said.code, 0, "{}: {}", file.display(), said.err);
        fits(&said.out, 80);
        assert!(said.out.contains("reserved for output"), "{}", said.out);
    }
}
