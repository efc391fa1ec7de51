//! Settings of a session: permissions, hooks, kill switches, modes, skills, instruction files; and the tools that are
//! about the session itself.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::json;

use crate::test_provider::{ProviderSetup, calls, is_summary, says};
use crate::test_world::TestWorld;

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
    fn set(&self, settings: &str) {
        std::fs::write(self.pal().join("settings.toml"), settings).unwrap();
    }

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
fn hooks_deny_and_change_calls_and_block_the_end() {
    let world = TestWorld::new(caller(vec![
        ("Bash", json!({"command": "echo secret > denied.txt"})),
        ("Bash", json!({"command": "echo plain"})),
    ]));
    world.set(
        r#"
[[hooks.PreToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = "if grep -q secret; then echo 'No secrets here.' >&2; exit 2; fi" }]

[[hooks.PostToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = """echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"replaced by a hook"}}'""" }]

[[hooks.Stop]]
hooks = [{ type = "command", command = "test -e stopped || { touch stopped; echo 'One more look, please.' >&2; exit 2; }" }]
"#,
    );
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!((said.code, said.out.as_str()), (0, "Done.\n"), "{}", said.err);
    assert!(!world.repository().join("denied.txt").exists());
    let told = world.newest();
    for words in ["No secrets here.", "replaced by a hook", "One more look, please."] {
        assert_eq!(told.matches(words).count(), 1, "{words}\n{told}");
    }
    assert!(!told.contains(r#""text":"plain"#), "{told}");
    assert_eq!(world.provider.heard().asked.len(), 4, "the end was forbidden once");
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
fn plan_mode_is_read_only() {
    let world = TestWorld::new(caller(vec![
        ("Read", json!({"file_path": "src/lib.rs"})),
        ("Write", json!({"file_path": "new.txt", "content": "x"})),
        ("Bash", json!({"command": "touch made.txt"})),
    ]));
    let said = world.run(&["--permission-mode", "plan", "--output-format", "json", "make it"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.lines()[0]["permission_denials"].as_array().unwrap().len(), 2, "{}", said.out);
    assert!(world.newest().contains("pub fn add"));
    assert!(!world.repository().join("new.txt").exists() && !world.repository().join("made.txt").exists());
}

#[test]
fn skills_are_listed_once_and_read_on_use() {
    let world = TestWorld::new(caller(vec![
        ("Bash", json!({"command": "true"})),
        ("Skill", json!({"skill": "polish"})),
    ]));
    world.file(
        ".pal/skills/polish/SKILL.md",
        "---\nname: polish\ndescription: Makes texts shine.\n---\nRub every sentence twice.\n",
    );
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let told = world.newest();
    assert_eq!(told.matches("Makes texts shine.").count(), 1, "{told}");
    assert!(told.contains("Rub every sentence twice."), "{told}");
    let said = world.run(&[&FREELY[..], &["--continue", "and now"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        world.newest().matches("Makes texts shine.").count(),
        1,
        "a resumed session does not say it again"
    );
}

#[test]
fn directory_instructions_load_when_a_file_there_is_read() {
    let world = TestWorld::new(caller(vec![
        ("Read", json!({"file_path": "README.md"})),
        ("Read", json!({"file_path": "deep/code.rs"})),
        ("Read", json!({"file_path": "deep/more.rs"})),
    ]));
    world.file("AGENTS.md", "Always say please.\n");
    world.file("deep/AGENTS.md", "In the deep, whisper.\n");
    world.file("deep/code.rs", "fn deep() {}\n");
    world.file("deep/more.rs", "fn more() {}\n");
    let said = world.run(&["look around"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    let whispers: Vec<usize> =
        heard.asked.iter().map(|asked| asked.text().matches("In the deep, whisper.").count()).collect();
    assert_eq!(whispers, [0, 0, 1, 1]);
    let all = heard.asked[0].text() + &heard.asked[0].head.concat();
    assert!(all.contains("Always say please."));
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

/// A todo list with open items, and N rounds that do not use it.
fn list_and_rounds(rounds: usize) -> Vec<(&'static str, serde_json::Value)> {
    let item = |content: &str, status: &str| json!({"content": content, "status": status});
    let todos = json!({"todos": [item("Sweep", "completed"), item("Paint the fence", "pending")]});
    let mut steps = vec![("Todo", todos)];
    steps.extend((0..rounds).map(|round| ("Bash", json!({"command": format!("echo {round}")}))));
    steps
}

#[test]
fn an_unused_todo_list_is_reminded() {
    let reminders = |text: &str| text.matches("Your list of things to do has not changed").count();
    let world = TestWorld::new(caller(list_and_rounds(11)));
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!((said.code, reminders(&world.newest())), (0, 0), "not yet: {}", said.err);
    let said = world.run(&[&FREELY[..], &["--continue", "and now"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let told = world.newest();
    assert_eq!(reminders(&told), 1, "what was counted before the program ended counts: {told}");
    assert!(told.contains("[ ] Paint the fence"), "{told}");
    let world = TestWorld::new(caller(list_and_rounds(30)));
    world.set("disabled = [\"reminders\"]\n");
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!((said.code, reminders(&world.newest())), (0, 0), "switched off: {}", said.err);
    let world = TestWorld::new(caller(list_and_rounds(30)));
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!((said.code, reminders(&world.newest())), (0, 2), "now and then: {}", said.err);
}

#[test]
fn cache_breakpoints_and_break_detection_can_be_disabled() {
    let bodies = |settings: &str| {
        let record = tempfile::tempdir().unwrap();
        let steps = vec![("Read", json!({"file_path": "long.txt"}))];
        let world = TestWorld::new(ProviderSetup { record: Some(record.path().to_owned()), ..caller(steps) });
        world.file("long.txt", &"a line like others\n".repeat(1_500));
        world.set(settings);
        let said = world.run(&["look"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let last = record.path().join("0002.request.json");
        std::fs::read_to_string(last).unwrap()
    };
    let (usual, off) = (bodies(""), bodies("disabled = [\"cache_breakpoints\", \"break_detector\"]\n"));
    assert!(usual.contains("\"cache_control\"") && usual.contains("\"previous_message_id\""), "{usual}");
    assert!(!off.contains("\"cache_control\"") && !off.contains("\"previous_message_id\""), "{off}");
}
