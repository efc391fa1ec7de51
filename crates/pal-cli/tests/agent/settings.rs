//! Settings of a session: permissions, hooks, kill switches, modes, skills, instruction files; and the tools that are
//! about the session itself.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::json;

use crate::test_world::TestWorld;
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
