//! `pal check` on sessions: damage is named by every command that reads the log, and repaired by appending.

use std::path::PathBuf;

use pal_model::{EntryDraft, IdSource, MessageOrigin, PromptPrefix, SessionStart, SharedText, Timestamp};
use pal_store::{Log, log_path, project_directory};
use serde_json::Value;

use crate::program::TestHome;

const MODEL: &str = "claude-opus-4-6";

const ID: &str = "0199a8f2-7b10-7000-9c1e-5a2f4d6e8b01";

/// A session that is kept, with one prompt and some answers.
fn session(home: &TestHome) -> PathBuf {
    let directory = home.path().join("project");
    std::fs::create_dir_all(directory.join(".git")).unwrap();
    let folder = project_directory(&home.path().join("pal"), &directory).join("sessions").join(ID);
    pal_store::create_private_directory(&folder).unwrap();
    let path = log_path(&folder);
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let at = |second: i64| Timestamp::from_milliseconds(1_790_000_000_000 + second * 1_000);
    let began = SessionStart {
        program: String::from("pal"),
        cwd: Some(directory.display().to_string()),
        ..SessionStart::default()
    };
    log.append(EntryDraft::session(&began), at(0)).unwrap();
    let prefix = PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from("[]"),
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    log.append(EntryDraft::prefix(&prefix), at(1)).unwrap();
    for (number, text) in
        ["walrus prompt", "heron prompt", "otter prompt", "marmot prompt"].iter().enumerate()
    {
        let said = format!("\"{text}\"");
        log.append(EntryDraft::user(MessageOrigin::Person, &said), at(2 + 2 * number as i64)).unwrap();
        let model = Some("claude-opus-4-6");
        let answer = format!("[{{\"type\":\"text\",\"text\":\"answer {number}\"}}]");
        log.append(EntryDraft::assistant(None, model, &answer), at(3 + 2 * number as i64)).unwrap();
    }
    path
}

#[test]
fn a_log_is_verified_and_repaired_by_appending() {
    let home = TestHome::new();
    let log = session(&home);
    let said = home.run(&["check", ID]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.contains("10 entries in 10 lines, 10 with a checksum") && said.out.contains("no damage"),
        "{}",
        said.out
    );

    // One line is lost, another altered.
    let text = std::fs::read_to_string(&log).unwrap();
    let damaged: String =
        text.lines().filter(|line| !line.contains("heron")).map(|line| format!("{line}\n")).collect();
    std::fs::write(&log, damaged.replace("marmot", "badger")).unwrap();
    let before = std::fs::read(&log).unwrap();
    let said = home.run(&["check", &ID[..8], "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (said.code, report["lines"].as_u64(), report["repaired"].as_bool()),
        (1, Some(9), Some(false))
    );
    let kinds: Vec<&str> =
        report["damage"].as_array().unwrap().iter().map(|damage| damage["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["lost_parent", "altered"], "{}", said.out);
    assert!(report["damage"][1]["line"].as_u64() == Some(8) && report["damage"][1]["offset"].is_u64());
    assert_eq!(std::fs::read(&log).unwrap(), before, "a check changes nothing");

    let said = home.run(&["check", ID]);
    assert!(said.code == 1 && said.err.contains("--repair"), "{}{}", said.out, said.err);
    let said = home.run(&["check", ID, "--repair"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("2 damaged places: repaired by appending one entry"), "{}", said.out);
    let after = std::fs::read(&log).unwrap();
    assert!(after.starts_with(&before) && after.len() > before.len(), "only appends");
    let said = home.run(&["check", ID]);
    assert!(said.code == 0 && said.out.contains("no damage"), "{}", said.out);
    let said = home.run(&["view", ID, "--model", MODEL]);
    assert!(
        !said.err.contains("damaged") && said.out.contains("walrus") && said.out.contains("badger"),
        "{}",
        said.err
    );
}

#[test]
fn every_command_reports_damage_and_hides_nothing() {
    let home = TestHome::new();
    let log = session(&home);
    let text = std::fs::read_to_string(&log).unwrap();
    let damaged: String =
        text.lines().filter(|line| !line.contains("heron")).map(|line| format!("{line}\n")).collect();
    std::fs::write(&log, damaged.replace("marmot", "badger")).unwrap();
    let path = log.display().to_string();
    let commands: [&[&str]; 7] = [
        &["view", ID, "--model", MODEL],
        &["view", ID, "--model", MODEL, "--json"],
        &["export", ID],
        &["export", ID, "-f", "json"],
        &["export", ID, "-f", "html"],
        &["context", "--session", ID, "--model", MODEL, "--json"],
        &["render", &path, "--model", MODEL],
    ];
    for command in commands {
        let said = home.run(command);
        assert_eq!(said.code, 0, "{command:?}: {}", said.err);
        assert!(
            said.err.contains("line 8 (byte ") && said.err.contains("altered"),
            "{command:?}: {}",
            said.err
        );
        assert!(said.err.contains("which is not in the log"), "{command:?}: {}", said.err);
    }
    for command in
        [["view", ID, "--model", MODEL].as_slice(), &["export", ID], &["render", &path, "--model", MODEL]]
    {
        let said = home.run(command);
        assert!(
            said.out.contains("walrus prompt") && said.out.contains("otter prompt"),
            "{command:?}: {}",
            said.out
        );
    }
    for _ in 0..2 {
        let said = home.run(&["recall", "--session", ID, "walrus"]);
        assert!(said.out.contains("walrus prompt"), "{}", said.out);
        assert!(
            said.err.contains("damaged log: ") && said.err.contains("line 8 (byte "),
            "every time: {}",
            said.err
        );
    }
    let json: Value = serde_json::from_str(&home.run(&["view", ID, "--model", MODEL, "--json"]).out).unwrap();
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(2), "{}", json["problems"]);
}

#[test]
fn request_bodies_are_still_validated() {
    let home = TestHome::new();
    session(&home);
    let body = home.file(
        "body.json",
        r#"{"model":"claude-opus-4-6","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}"#,
    );
    let said = home.run(&["check", &body]);
    assert!(said.code == 0 && said.out.starts_with("valid: "), "{}{}", said.out, said.err);
    let said = home.run(&["check", &body, "--repair"]);
    assert!(said.code == 2 && said.err.contains("not a log of pal"), "{}", said.err);
    let said = home.run(&["check", ID, "--model", "claude-opus-4-6"]);
    assert!(said.code == 2 && said.err.contains("is the log of a session"), "{}", said.err);
    let said = home.run(&["check", "nowhere"]);
    assert!(said.code == 1 && said.err.contains("hint"), "{}", said.err);
}

#[test]
fn rendered_requests_of_own_sessions_are_valid() {
    let home = TestHome::new();
    let project = home.path().join("project");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    let said = home.run_in(&project, &["-p", "--provider", "sim", "Say hello."]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = home.run_in(&project, &["sessions", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let id = rows[0]["id"].as_str().unwrap();
    for arguments in [&["render", id][..], &["render", "--at", "1", id]] {
        let rendered = home.run(arguments);
        assert_eq!(rendered.code, 0, "{}", rendered.err);
        let body = home.file("body.json", rendered.out);
        let checked = home.run(&["check", &body]);
        assert!(checked.code == 0 && checked.out.starts_with("valid: "), "{}{}", checked.out, checked.err);
    }
    // Without names: the newest session of the directory, and the piped body.
    let rendered = home.run_in(&project, &["render"]);
    assert_eq!(rendered.code, 0, "{}", rendered.err);
    let checked = home.run_with_input(&["check"], rendered.out.as_bytes());
    assert!(checked.code == 0 && checked.out.starts_with("valid: "), "{}{}", checked.out, checked.err);
    let tokens = home.run_in(&project, &["tokens"]);
    assert_eq!((tokens.code, tokens.out == home.run(&["tokens", id]).out), (0, true), "{}", tokens.err);
}

#[test]
fn rendered_requests_have_the_answer_length_of_the_settings() {
    let home = TestHome::new();
    let project = home.path().join("project");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    assert_eq!(home.run_in(&project, &["-p", "--provider", "sim", "Say hello."]).code, 0);
    home.file("pal/settings.toml", "max_output_tokens = 1234\n");
    let rendered = home.run_in(&project, &["render"]);
    assert!(rendered.out.contains("\"max_tokens\":1234"), "{}{}", rendered.out, rendered.err);
}
