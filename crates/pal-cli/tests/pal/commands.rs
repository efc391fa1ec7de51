//! Each command on a small session.

use crate::program::TestHome;

/// A session of another agent: a question, a call with its result, an answer.
pub(crate) const SESSION: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","cwd":"/src/demo","version":"2.1.0","timestamp":"2026-11-15T09:00:00.000Z","message":{"role":"user","content":"Why does the test fail?"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","timestamp":"2026-11-15T09:00:04.000Z","requestId":"req_1","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/src/demo/test.rs"}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_creation_input_tokens":20000,"cache_read_input_tokens":0,"output_tokens":60}}}
{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s1","timestamp":"2026-11-15T09:00:05.000Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"assert_eq!(1 + 1, 3);"}]}}
{"type":"assistant","uuid":"a2","parentUuid":"u2","sessionId":"s1","timestamp":"2026-11-15T09:00:09.000Z","requestId":"req_2","message":{"id":"msg_2","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"It expects 3."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_creation_input_tokens":120,"cache_read_input_tokens":20005,"output_tokens":10}}}
"#;

#[test]
fn import_writes_a_private_log_once() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["import", &file]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for expected in
        ["Claude Code", "messages", "tool calls", "boundaries", "kept aside", "unseen prefix", "log: "]
    {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    let written = home.written();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(std::fs::metadata(&written[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = written[0].parent().unwrap();
    assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    let before = std::fs::read(&written[0]).unwrap();
    let again = home.run(&["import", &file]);
    assert!(again.code == 0 && again.out.contains("already imported"), "{}", again.out);
    assert_eq!(std::fs::read(&written[0]).unwrap(), before);
}

#[test]
fn a_dry_run_writes_nothing() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["import", "--dry-run", "--json", &file]);
    assert_eq!((said.code, home.written().len()), (0, 0), "{}", said.err);
    let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&report["user_messages"], &report["tool_calls"], &report["responses"]),
        (&1.into(), &1.into(), &2.into())
    );
    assert!(report["tokens"]["unseen_prefix"].as_f64().unwrap() > 19_000.0, "{report}");
}

#[test]
fn a_log_renders_like_its_source() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    assert_eq!(home.run(&["import", &file]).code, 0);
    let log = home.written()[0].to_str().unwrap().to_owned();
    let from_log = home.run(&["render", &log]);
    let from_source = home.run(&["render", &file]);
    assert_eq!(from_log.code, 0, "{}", from_log.err);
    assert_eq!(from_log.out, from_source.out);
    let checked = home.run_with_input(&["check", "-"], from_log.out.as_bytes());
    assert!(checked.code == 0 && checked.out.starts_with("valid: 5 messages"), "{}", checked.out);
}

#[test]
fn render_shows_the_request_of_any_response() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let messages = |arguments: &[&str]| {
        let said = home.run(&[&["render", "--json", &file], arguments].concat());
        let report: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        report["body"]["messages"].as_array().unwrap().len()
    };
    assert_eq!((messages(&["--at", "1"]), messages(&["--at", "2"]), messages(&[])), (1, 3, 5));
    let said = home.run(&["render", &file, "--at", "3"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no response 3") && said.err.contains("hint"), "{}", said.err);
}

#[test]
fn rendering_follows_the_rules_of_the_model() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["render", &file, "--model", "claude-opus-5-5"]);
    assert!(said.out.starts_with(r#"{"model":"claude-opus-5-5","max_tokens":8000"#), "{}", said.out);
    assert_eq!(home.run_with_input(&["check", "-"], said.out.as_bytes()).code, 0);
    let said = home.run(&["render", &file, "--model", "my-own-model"]);
    assert!(said.code == 0 && said.err.contains("models.toml"), "{}", said.err);
}

#[test]
fn tokens_shows_ledger_anchor_thresholds_and_calls() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    let said = home.run(&["tokens", &file]);
    assert_eq!(said.code, 0, "{}", said.err);
    for expected in [
        "Context: 20,138 tokens",
        "msg_2 reported 20,138",
        "tool results",
        "auto-compact",
        "967,000",
        "20,128",
    ] {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    let classic = home.run(&["tokens", "--json", "--estimator", "classic", &file]);
    let report: serde_json::Value = serde_json::from_str(&classic.out).unwrap();
    assert_eq!(report["calls"][1]["reported"], 20_128);
}

#[test]
fn check_reports_errors_in_the_provider_format() {
    let home = TestHome::new();
    let body =
        r#"{"model":"claude-opus-5-5","max_tokens":10,"messages":[{"role":"assistant","content":"hi"}]}"#;
    let file = home.file("body.json", body);
    let said = home.run(&["check", "--json", &file]);
    assert_eq!(said.code, 1);
    let error: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"invalid_request_error".into()));
    let said = home.run(&["check", &file]);
    assert!(said.code == 1 && said.out.starts_with("400 invalid_request_error: messages"), "{}", said.out);
}

#[test]
fn a_users_model_catalog_applies() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    std::fs::create_dir(home.path().join("pal")).unwrap();
    home.file("pal/models.toml", "[models.claude-opus-4-6]\nwindow = 100_000\n");
    let said = home.run(&["tokens", &file]);
    assert!(said.code == 0 && said.out.contains("100,000"), "{}", said.out);
    home.file("pal/models.toml", "[models.claude-opus-4-6]\nwindw = 1\n");
    let said = home.run(&["tokens", &file]);
    assert!(said.code == 1 && said.err.contains("windw") && said.err.contains("models.toml"), "{}", said.err);
}

#[test]
fn wrong_use_is_2_and_help_teaches() {
    let home = TestHome::new();
    assert_eq!(home.run(&["import"]).code, 2);
    assert_eq!(home.run(&["fold"]).code, 2);
    let help = home.run(&["import", "--help"]);
    assert!(help.code == 0 && help.out.contains("Examples:"), "{}", help.out);
}

#[test]
fn one_failed_file_does_not_stop_the_others() {
    let home = TestHome::new();
    let one = home.file("one.jsonl", SESSION);
    let two = home.file("two.jsonl", SESSION.replace("toolu_1", "toolu_9"));
    let bad = home.file("bad.jsonl", "no session\n");
    let said = home.run(&["import", &one, &bad, &two]);
    assert_eq!((said.code, home.written().len()), (1, 2), "{}", said.out);
    assert!(
        said.out.contains("one.jsonl") && said.out.contains("2 files") && said.out.contains("2 logs written")
    );
    assert!(said.err.contains("bad.jsonl") && said.err.contains("1 of 3 files"), "{}", said.err);
}

#[test]
fn the_chosen_model_answers_next() {
    let home = TestHome::new();
    let file = home.file("session.jsonl", SESSION);
    assert_eq!(home.run(&["import", &file]).code, 0);
    let log = home.written().remove(0);
    let mut text = std::fs::read_to_string(&log).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    text.push_str(&format!(
        r#"{{"v":1,"id":"01b00000-0000-7000-8000-000000000001","parent":{},"at":"2026-11-15T10:00:00.000Z","kind":"model","model":"claude-opus-5-5"}}"#,
        last["id"]
    ));
    text.push('\n');
    std::fs::write(&log, text).unwrap();
    let said = home.run(&["render", log.to_str().unwrap()]);
    assert!(said.out.starts_with(r#"{"model":"claude-opus-5-5""#), "{}", said.out);
}
