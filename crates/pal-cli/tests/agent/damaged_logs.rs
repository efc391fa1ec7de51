//! A log that is damaged, or disappears while the agent works: told in every form of output.

use serde_json::{Value, json};

use crate::test_world::TestWorld;
use pal_agent_testkit::{ProviderSetup, calls, says};

/// A session with a prompt and an answer, one of whose lines was altered since; its id.
fn damaged(world: &TestWorld) -> String {
    let said = world.run(&["Remember the walrus.", "--output-format", "json"]);
    let id = serde_json::from_str::<Value>(&said.out).unwrap()["session_id"].as_str().unwrap().to_owned();
    let log = &world.logs()[0];
    let text = std::fs::read_to_string(log).unwrap();
    std::fs::write(log, text.replace("the walrus", "the badger")).unwrap();
    id
}

#[test]
fn damage_is_reported_in_all_output_formats() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("Fine.")));
    let id = damaged(&world);
    let said = world.run(&["Go on.", "--resume", &id]);
    assert!(said.code == 0 && said.out == "Fine.\n", "{}{}", said.out, said.err);
    assert!(said.err.contains("damaged log: line ") && said.err.contains("(byte "), "{}", said.err);
    assert!(said.err.contains(&format!("pal check {id} --repair")), "{}", said.err);

    let said = world.run(&["Go on.", "--resume", &id, "--output-format", "json"]);
    let result: Value = serde_json::from_str(&said.out).unwrap();
    assert!(result["warnings"][0].as_str().unwrap().contains("was altered"), "{result}");
    assert!(said.err.contains("was altered"), "{}", said.err);

    let said = world.run(&["Go on.", "--resume", &id, "--output-format", "stream-json", "--verbose"]);
    let warned = |line: &&Value| line["type"] == "system" && line["subtype"] == "warning";
    let lines = said.lines();
    let warning = lines.iter().find(warned).unwrap_or_else(|| panic!("{}", said.out));
    assert!(warning["text"].as_str().unwrap().contains("was altered"), "{warning}");

    let repaired = world.command(&["check", &id, "--repair"]).output().unwrap();
    assert!(repaired.status.success());
    let said = world.run(&["Go on.", "--resume", &id]);
    assert!(said.code == 0 && !said.err.contains("damaged"), "{}", said.err);
}

#[test]
fn a_deleted_log_is_an_error_that_names_the_copy() {
    let mut number = 0;
    let world = TestWorld::new(ProviderSetup::answers(move |_, _| {
        number += 1;
        match number {
            1 => calls("I clean up.", &[("Bash", json!({"command": "rm -r ../pal/projects"}))]),
            _ => says("Nobody hears this."),
        }
    }));
    let said = world.run(&["Clean up.", "--permission-mode", "bypass", "--no-sandbox"]);
    assert_ne!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.contains("was deleted while the session was running"), "{}", said.err);
    let saved = said.err.split("saved in ").nth(1).unwrap().split(": continue").next().unwrap();
    let text = std::fs::read_to_string(saved).unwrap();
    assert!(text.contains("Clean up.") && text.contains("tool_use"), "{text}");
}
