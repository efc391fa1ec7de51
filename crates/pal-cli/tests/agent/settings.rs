//! Settings of a session: permissions, hooks, kill switches, modes, skills, instruction files; and the tools that are
//! about the session itself.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::json;

use crate::test_world::{TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, is_summary, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// A model that makes these calls, one an answer, and then says that it is done.
fn caller(steps: Vec<(&'static str, serde_json::Value)>) -> ProviderSetup {
    ProviderSetup::answers(move |at, ask| match steps.get(at) {
        _ if is_summary(ask) => ExtractiveModel.answer(ask),
        Some(step) => calls(&format!("Step {at}."), std::slice::from_ref(step)),
        None => says("Done."),
    })
}

impl TestWorld {
    /// Everything that the model was told in the newest request.
    fn newest(&self) -> String {
        self.provider.heard().asked.last().unwrap().text()
    }
}

#[test]
fn a_denied_call_names_the_rule_that_would_allow_it() {
    let steps = || {
        vec![
            // In a folder below: Landlock alone lets commands make nothing new at the top.
            ("Bash", json!({"command": "touch src/made.txt"})),
            ("Write", json!({"file_path": "new.txt", "content": "x"})),
        ]
    };
    let world = TestWorld::new(caller(steps()));
    let said = world.run(&["--output-format", "json", "make it"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let denials = said.lines()[0]["permission_denials"].as_array().cloned().unwrap();
    assert_eq!(denials.len(), 2, "{}", said.out);
    let rules: Vec<String> =
        denials.iter().map(|denial| denial["rule"].as_str().unwrap().to_owned()).collect();
    assert_eq!((world.text("src/made.txt").len(), world.text("new.txt").len()), (0, 0));
    assert!(!world.repository().join("src/made.txt").exists());
    // With the very rules, everything runs.
    let world = TestWorld::new(caller(steps()));
    let said = world.run(&["--output-format", "json", "--allowed-tools", &rules.join(","), "make it"]);
    assert_eq!(said.lines()[0]["permission_denials"], json!([]), "{}", said.out);
    assert!(world.repository().join("src/made.txt").exists(), "{}", world.newest());
    assert_eq!(world.text("new.txt"), "x");
}

#[test]
fn a_kill_switch_works_while_a_session_runs() {
    let long = || ("Bash", json!({"command": "seq 1 12000"}));
    let flags = Arc::new(OnceLock::<PathBuf>::new());
    let switch = Arc::clone(&flags);
    let world = TestWorld::new(ProviderSetup::answers(move |at, _| match at {
        0 => calls("Long.", &[long()]),
        1 => {
            std::fs::write(switch.get().unwrap(), "disabled = [\"spill\"]\n").unwrap();
            calls("It is looked at once a second.", &[("Bash", json!({"command": "sleep 1.2"}))])
        }
        2 => calls("Long again.", &[long()]),
        _ => says("Done."),
    }));
    flags.set(world.pal().join("flags.toml")).unwrap();
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let spills = world.log().iter().filter(|line| line["kind"] == "spill").count();
    assert_eq!(spills, 1, "the second long result is not spilled");
    assert_eq!(world.newest().matches("\\n11999\\n").count(), 1, "and the model sees all of it");
}

#[test]
fn the_session_tool_describes_the_session() {
    let world = TestWorld::new(caller(vec![
        ("Bash", json!({"command": "echo the magic word is xyzzy; seq 1 12000"})),
        ("Recall", json!({"query": "magic word"})),
        ("Context", json!({})),
        ("Context", json!({"compact": true})),
    ]));
    let said = world.run(&[&FREELY[..], &["--output-format", "stream-json", "work"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let results: Vec<String> = said
        .lines()
        .iter()
        .filter(|line| line["origin"] == "tool")
        .map(|line| line["message"]["content"][0].to_string())
        .collect();
    assert!(results[1].contains("xyzzy"), "{}", results[1]);
    assert!(results[2].contains("tokens are in the window"), "{}", results[2]);
    assert!(said.out.contains("compact_boundary"), "the model may have it compacted: {}", said.out);
}

#[test]
fn a_resumed_session_keeps_the_window_that_its_model_name_chose() {
    let world = TestWorld::new(caller(Vec::new()));
    let model = "claude-opus-4-5[1m]";
    for arguments in
        [["hello", "--model", model].as_slice(), &["go on", "--continue"], &["more", "--continue"]]
    {
        let said = world.run(arguments);
        assert_eq!(said.code, 0, "{}", said.err);
    }
    let lines = world.log();
    let asked: Vec<_> =
        lines.iter().filter(|line| line["kind"] == "request").map(|line| line["model"].clone()).collect();
    assert_eq!(asked, [model; 3]);
    let log = world.logs()[0].display().to_string();
    let shown = finish(world.command(&["context", "--session", &log, "--json"]).spawn().unwrap());
    let report: serde_json::Value =
        serde_json::from_str(&shown.out).unwrap_or_else(|_| panic!("{}", shown.err));
    assert_eq!(report["limits"]["window"], 1_000_000, "{}", shown.out);
}

#[test]
fn a_chat_server_with_a_small_window_and_no_usage_answers() {
    let made = ProviderSetup {
        faults: String::from("usage=missing"),
        cards: String::from("[models.local]\nwindow = 8_192\n"),
        ..caller(Vec::new())
    };
    let world = TestWorld::new(made);
    let run = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("OPENAI_BASE_URL", format!("{}/v1", world.provider.address));
        finish(command.spawn().unwrap())
    };
    let model = ["--provider", "chat", "--model", "local"];
    let said = run(&[&["-p", "Say hello", "--output-format", "json"], &model[..]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let result = &said.lines()[0];
    assert_eq!((&result["result"], &result["usage"]), (&json!("Done."), &json!(null)), "{}", said.out);
    assert_eq!(result["modelUsage"], json!({}), "no zeros: {}", said.out);
    let cost = run(&["cost", &world.logs()[0].display().to_string()]);
    assert!(cost.out.contains("usage not reported"), "{}", cost.out);
    let context = run(&["context", "--model", "local"]);
    assert!(context.out.contains("lean profile for a window of 8,192 tokens"), "{}", context.out);
}

#[test]
fn model_cards_are_refreshed_from_the_provider() {
    // The provider knows a model that the program does not.
    let world = TestWorld::new(ProviderSetup {
        cards: String::from("[models.claude-next-7]\nwindow = 750_000\nmax_output = 90_000\n"),
        ..caller(Vec::new())
    });
    std::fs::remove_file(world.pal().join("models.toml")).unwrap();
    let run = |arguments: &[&str]| finish(world.command(arguments).spawn().unwrap());
    let window = |model: &str| {
        let said = run(&["models", "--json"]);
        let cards: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let found = cards.as_array().unwrap().iter().find(|card| card["name"] == model).cloned();
        found.map(|card| card["window"].clone())
    };
    assert_eq!(window("claude-next-7"), None);
    // A session asks by itself, unless that is off.
    let off = finish(
        world
            .command(&["-p", "hi", "--model", "claude-next-7"])
            .env("PAL_REFRESH_MODELS", "false")
            .spawn()
            .unwrap(),
    );
    assert!(off.err.contains("is not in the model table"), "{}", off.err);
    let asked = run(&["-p", "hi", "--model", "claude-next-7"]);
    assert!(asked.code == 0 && !asked.err.contains("is not in the model table"), "{}", asked.err);
    assert_eq!(window("claude-next-7"), Some(json!(750_000)));
    // The user's own table goes before it.
    std::fs::write(world.pal().join("models.toml"), "[models.claude-next-7]\nwindow = 100_000\n").unwrap();
    let refreshed = run(&["models", "--refresh"]);
    assert!(
        refreshed.code == 0 && refreshed.out.contains("claude-next-7"),
        "{}{}",
        refreshed.out,
        refreshed.err
    );
    assert_eq!(window("claude-next-7"), Some(json!(100_000)));
}

/// The setup of Claude Code in the user's home: rules, a hook that cannot run here, variables, and a project that it trusts.
#[test]
fn a_setup_of_claude_code_guards_and_allows() {
    let world = TestWorld::new(caller(vec![
        ("Bash", json!({"command": "touch allowed-1"})),
        ("Bash", json!({"command": "touch denied-1"})),
        ("Write", json!({"file_path": "guarded.txt", "content": "x"})),
        ("Bash", json!({"command": "touch of-project"})),
        ("Bash", json!({"command": "sh variable.sh"})),
    ]));
    let user = json!({
        "permissions": {"allow": ["Bash(touch allowed*)", "Bash(sh variable.sh)", "Write"], "deny": ["Bash(touch denied*)"]},
        "env": {"FROM_SETTINGS": "value"},
        "hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "http", "url": "http://127.0.0.1:1/guard"}]}]},
    });
    std::fs::create_dir_all(world.home().join(".claude")).unwrap();
    std::fs::write(world.home().join(".claude/settings.json"), user.to_string()).unwrap();
    world.file(".claude/settings.json", r#"{"permissions": {"allow": ["Bash(touch of-project)"]}}"#);
    world.file("variable.sh", "touch \"of-$FROM_SETTINGS\"\n");
    let run = || world.run(&["--output-format", "json", "--no-sandbox", "work"]);
    let denied = |said: &crate::test_world::RunOutput| -> Vec<String> {
        let denials = said.lines()[0]["permission_denials"].as_array().cloned().unwrap();
        denials.iter().map(|denial| denial["tool_input"].to_string()).collect()
    };
    let said = run();
    let refused = denied(&said);
    assert_eq!(refused.len(), 3, "{}{}", said.out, said.err);
    assert!(refused[0].contains("denied-1") && refused[1].contains("guarded.txt"), "{refused:?}");
    assert!(refused[2].contains("of-project"), "the project is not trusted: {refused:?}");
    assert!(said.err.contains("http") && said.err.contains("pal trust"), "{}", said.err);
    let exists = |name: &str| world.repository().join(name).exists();
    assert!(exists("allowed-1") && exists("of-value") && !exists("denied-1") && !exists("guarded.txt"));
    // Trust that was given in Claude Code counts here.
    let project = world.repository().canonicalize().unwrap().display().to_string();
    let trust = json!({"projects": {project: {"hasTrustDialogAccepted": true}}});
    std::fs::write(world.home().join(".claude.json"), trust.to_string()).unwrap();
    let said = world.command(&["config", "permissions.allow"]).output().unwrap();
    assert!(String::from_utf8_lossy(&said.stdout).contains("of-project"));
}

#[test]
fn tools_agents_prompts_and_effort_are_given_as_in_claude_code() {
    let world = TestWorld::new(caller(Vec::new()));
    world.file("prompt.txt", "You are terse and precise.");
    let agents = r#"{"scout": {"description": "Looks ahead for pitfalls.", "prompt": "You scout."}}"#;
    let said = world.run(&[
        "--agents",
        agents,
        "--tools",
        "Read,Task",
        "--append-system-prompt-file",
        "prompt.txt",
        "--effort",
        "low",
        "work",
        "on",
        "it",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard().asked.last().cloned().unwrap();
    let head = heard.head.concat();
    let has_tool = |name: &str| head.contains(&format!("\"name\":\"{name}\""));
    assert!(has_tool("Read") && has_tool("Agent") && !has_tool("Bash") && !has_tool("Write"), "{head}");
    assert!(head.contains("You are terse and precise."));
    let text = heard.text();
    assert!(text.contains("Looks ahead for pitfalls.") && text.contains("work on it"), "{text}");
}
