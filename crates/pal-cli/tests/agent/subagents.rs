//! Agents that an agent sends: fresh, forked, in the background, in a worktree.

use pal_sim::{ModelOutput, ModelPrompt};
use serde_json::{Value, json};

use crate::test_world::{TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// Text of the last message of a request.
fn last(ask: &ModelPrompt<'_>) -> String {
    ask.messages.last().map(|message| message.blocks.concat()).unwrap_or_default()
}

/// A model that sends agents in its first answer; what those answer says a function.
fn sender(
    sent: Vec<Value>,
    answers: impl Fn(&ModelPrompt<'_>, &str) -> ModelOutput + Send + 'static,
) -> ProviderSetup {
    let mut has_sent = false;
    ProviderSetup::answers(move |_, ask| {
        let last = last(ask);
        let first = ask.messages.first().map(|message| message.blocks.concat()).unwrap_or_default();
        let is_scout = ask.system.concat().contains("You are a scout");
        if is_scout
            || first.contains("[A task")
            || last.contains("The task: ")
            || last.contains("do not fork")
        {
            return answers(ask, &last);
        }
        if has_sent {
            return says("All is done.");
        }
        has_sent = true;
        let sent: Vec<(&str, Value)> = sent.iter().map(|input| ("Agent", input.clone())).collect();
        calls("I send for help.", &sent)
    })
}

/// The results that the model that sent agents was told.
fn results(world: &TestWorld) -> String {
    world.provider.heard().asked.last().unwrap().text()
}

#[test]
fn a_definition_gives_a_prompt_and_tools_and_a_worktree_keeps_changes_apart() {
    let world = TestWorld::new(sender(
        vec![json!({"description": "Scout", "prompt": "go", "subagent_type": "scout"})],
        |ask, last| {
            let tools = ask.tools.concat();
            assert!(tools.contains("\"Write\"") && !tools.contains("\"Bash\""), "{tools}");
            match last.contains("tool_result") {
                false => calls("I write.", &[("Write", json!({"file_path": "new.txt", "content": "found"}))]),
                true => says("Written."),
            }
        },
    ));
    world.file(
        ".claude/agents/scout.md",
        "---\nname: scout\ndescription: Looks ahead.\ntools: Read, Write\nisolation: worktree\n---\nYou are a scout.\n",
    );
    world.git(&["add", "."]);
    world.git(&["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "All"]);
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let told = results(&world);
    assert!(told.contains("Looks ahead."), "the model is told of it: {told}");
    assert!(told.contains("Its changes are in the worktree"), "{told}");
    assert!(!world.repository().join("new.txt").exists(), "the repository itself stays as it was");
}

#[test]
fn a_background_agent_reports_its_end() {
    let sent =
        json!({"description": "Slowly", "prompt": "[A task] Take your time.", "run_in_background": true});
    let mut round = 0;
    let made = ProviderSetup::answers(move |_, ask| {
        let last = last(ask);
        if last.contains("[A task] Take") {
            return says("Slow, but sure.");
        }
        round += 1;
        match round {
            1 => calls("I send somebody.", &[("Agent", sent.clone())]),
            2 => calls("Meanwhile.", &[("Bash", json!({"command": "sleep 1.5"}))]),
            _ => says("Done."),
        }
    });
    let world = TestWorld::new(made);
    let said = world.run(&[&FREELY[..], &["work"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let told = results(&world);
    assert!(told.contains("is at work in the background"), "{told}");
    assert!(told.contains("has ended. It reports:") && told.contains("Slow, but sure."), "{told}");
}

#[test]
fn a_running_session_is_listed_and_receives_messages() {
    let mut round = 0;
    let world = TestWorld::new(ProviderSetup::answers(move |_, _| {
        round += 1;
        match round {
            1 => calls(
                "I wait.",
                &[(
                    "Bash",
                    json!({"command": "for i in $(seq 100); do test -e go && break; sleep 0.1; done"}),
                )],
            ),
            _ => says("Heard."),
        }
    }));
    let run = |arguments: &[&str]| finish(world.command(arguments).spawn().unwrap());
    let child = world.spawn(&[&FREELY[..], &["work"]].concat());
    assert!(world.provider.wait_until(std::time::Duration::from_secs(20), |heard| !heard.asked.is_empty()));
    let listed = run(&["agents", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let name = listed[0]["name"].as_str().unwrap().to_owned();
    assert!(name.starts_with("repository-"), "{listed}");
    let said = run(&["send", "repository", "The bridge is out."]);
    assert_eq!((said.code, said.out.as_str()), (0, format!("sent to {name}\n").as_str()), "{}", said.err);
    world.file("go", "");
    let ended = finish(child);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(results(&world).contains("The bridge is out."), "{}", results(&world));
    assert!(results(&world).contains("not the user of this session"), "{}", results(&world));
    let said = run(&["send", "repository", "Too late."]);
    assert!(said.code == 1 && said.err.contains("no session is running"), "{}", said.err);
    assert_eq!(run(&["agents"]).out, "No sessions are running.\n");
}
