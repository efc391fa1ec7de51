//! Teammates: separate processes, messages between them, and recovery after kills.

use std::time::{Duration, Instant};

use pal_sim::{ModelOutput, ModelPrompt};
use serde_json::{Value, json};

use crate::test_world::{TestWorld, finish, log_lines};
use pal_agent_testkit::{ProviderSetup, calls, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// Text of the messages after the last answer.
fn news(ask: &ModelPrompt<'_>) -> String {
    let after = ask.messages.iter().rev().take_while(|message| message.role != pal_model::Role::Assistant);
    let mut news: Vec<String> = after.map(|message| message.blocks.concat()).collect();
    news.reverse();
    news.join("\n")
}

/// A model that answers in two places: as the lead, and as teammates.
fn team(
    mut lead: impl FnMut(usize, &str) -> ModelOutput + Send + 'static,
    mut mate: impl FnMut(usize, &str) -> ModelOutput + Send + 'static,
) -> ProviderSetup {
    let (mut led, mut worked) = (0, 0);
    ProviderSetup::answers(move |_, ask| {
        let first = ask.messages.first().map(|message| message.blocks.concat()).unwrap_or_default();
        if first.contains("a teammate of the agent") {
            worked += 1;
            mate(worked, &news(ask))
        } else {
            led += 1;
            lead(led, &news(ask))
        }
    })
}

fn send(input: Value) -> ModelOutput {
    calls("I send.", &[("Agent", input)])
}

fn say(input: Value) -> ModelOutput {
    calls("I say.", &[("SendMessage", input)])
}

/// The log of a teammate.
fn log_of(world: &TestWorld, name: &str) -> std::path::PathBuf {
    let logs = world.logs();
    let is_its = |log: &&std::path::PathBuf| log.parent().unwrap().file_name().unwrap() == name;
    logs.iter().find(is_its).unwrap_or_else(|| panic!("{logs:?}")).clone()
}

#[test]
fn a_teammate_takes_more_work_and_ends_on_request() {
    let world = TestWorld::new(team(
        |at, news| match at {
            1 => {
                send(json!({"description": "Parse", "name": "parser", "prompt": "Count.", "teammate": true}))
            }
            // What it says on the way may come with its last word or before it.
            _ if news.contains("The first half is done.") => {
                say(json!({"to": "parser", "message": "Now the second half."}))
            }
            _ if news.contains("Both halves are done") => {
                say(json!({"to": "parser", "message": "Thank you.", "kind": "shutdown_request"}))
            }
            _ => says("I wait."),
        },
        |at, news| match at {
            1 => calls("", &[("Bash", json!({"command": "echo counted > counted.txt"}))]),
            2 => say(json!({"to": "lead", "message": "I am half way.", "summary": "half way"})),
            3 => says("The first half is done."),
            4 => {
                assert!(news.contains("Now the second half."), "{news}");
                says("Both halves are done.")
            }
            _ => {
                assert!(news.contains("It asks you to end.") && news.contains("Thank you."), "{news}");
                says("Good bye.")
            }
        },
    ));
    let said = world.run(&[&FREELY[..], &["--output-format", "json", "go"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.text("counted.txt"), "counted\n");
    let mate = log_of(&world, "parser");
    let lead = mate.parent().unwrap().parent().unwrap().parent().unwrap().join("log.jsonl");
    let lead = log_lines(&lead);
    let heard: Vec<String> = lead
        .iter()
        .filter(|line| line["origin"] == "agent")
        .map(|line| line["content"].to_string())
        .collect();
    let times = |words: &str| heard.iter().filter(|heard| heard.contains(words)).count();
    assert_eq!(times("I am half way."), 1, "{heard:?}");
    assert_eq!(times("The first half is done."), 1, "{heard:?}");
    assert_eq!(times("Both halves are done."), 1, "{heard:?}");
    let is_its = |line: &&Value| line["kind"] == "response" && line["source"] == "subagent:parser";
    assert_eq!(lead.iter().filter(is_its).count(), 5, "what it took stands in the books of its lead");
    let mate = log_lines(&mate);
    assert!(mate.iter().any(|line| line["origin"] == "agent" && line.to_string().contains("second half")));
}

#[test]
fn a_plan_needs_the_approval_of_the_lead() {
    let world = TestWorld::new(team(
        |at, news| match at {
            1 => send(json!({
                "description": "Mend", "name": "smith", "prompt": "Mend it.", "teammate": true, "plan_first": true
            })),
            _ if news.contains("asks whether it may carry out this plan") => {
                let is_second = news.contains("With a hammer and care");
                let words = if is_second { "Go ahead." } else { "With care, please." };
                let input =
                    json!({"to": "smith", "kind": "plan_approval", "accepted": is_second, "message": words});
                say(input)
            }
            _ => says("I see."),
        },
        |at, news| match at {
            1 => calls("", &[("Write", json!({"file_path": "early.txt", "content": "x"}))]),
            2 => calls("", &[("ExitPlanMode", json!({"plan": "With a hammer"}))]),
            3 => {
                assert!(news.contains("With care, please."), "{news}");
                calls("", &[("ExitPlanMode", json!({"plan": "With a hammer and care"}))])
            }
            4 => calls("", &[("Write", json!({"file_path": "late.txt", "content": "x"}))]),
            _ => says("Mended."),
        },
    ));
    let said = world.run(&["--permission-mode", "accept-edits", "go"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!((world.text("early.txt"), world.text("late.txt")), (String::new(), String::from("x")));
    let asked = |world: &TestWorld| {
        let heard = world.provider.heard();
        heard
            .asked
            .iter()
            .filter(|asked| asked.text().contains("asks whether it may carry out this plan"))
            .count()
    };
    assert!(asked(&world) >= 2, "the lead was asked, and asked again");
    let mate = std::fs::read_to_string(log_of(&world, "smith")).unwrap();
    assert!(mate.contains("`lead` did not approve the plan. It says: With care, please."), "{mate}");
    assert!(!mate.contains("Not carried out: the user"), "words of an agent are not the user's");
}

#[test]
fn a_killed_teammate_is_reported_and_resumes() {
    let again = json!({"description": "x", "name": "miner", "prompt": "Go on.", "teammate": true});
    let sent = again.clone();
    let world = TestWorld::new(team(
        move |at, news| match at {
            1 => send(sent.clone()),
            _ if news.contains("The teammate `miner` is gone") => send(again.clone()),
            _ => says("I see."),
        },
        |at, news| match at {
            1 => calls("", &[("Bash", json!({"command": "kill -9 $PPID; sleep 5"}))]),
            _ => {
                assert!(news.contains("Go on."), "{news}");
                says("Here I am again.")
            }
        },
    ));
    let said = world.run(&[&FREELY[..], &["go"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    let last = heard.asked.iter().rev().find(|asked| asked.text().contains("Here I am again."));
    assert!(last.is_some(), "the lead heard of it");
    drop(heard);
    let log = log_lines(&log_of(&world, "miner"));
    let prompts = log.iter().filter(|line| line["origin"] == "person").count();
    assert_eq!(prompts, 2, "one session, gone on with");
}

#[test]
fn a_killed_lead_gets_messages_after_resume() {
    let world = TestWorld::new(team(
        |at, _| match at {
            1 => send(json!({"description": "x", "name": "diver", "prompt": "Dive.", "teammate": true})),
            2 => calls("", &[("Bash", json!({"command": "touch ready; sleep 30"}))]),
            _ => says("I see."),
        },
        |at, _| match at {
            1 => calls(
                "",
                &[("Bash", json!({"command": "touch diving; while [ ! -e gone ]; do sleep 0.1; done"}))],
            ),
            _ => says("Found a pearl."),
        },
    ));
    let mut lead = world.spawn(&[&FREELY[..], &["go"]].concat());
    // Both are at work: a teammate that has not begun yet has nothing to say.
    wait(|| ["ready", "diving"].iter().all(|file| world.repository().join(file).exists()));
    lead.kill().unwrap();
    let _ = lead.wait();
    world.file("gone", "");
    let mate = log_of(&world, "diver");
    let box_of_lead = mate.parent().unwrap().parent().unwrap().parent().unwrap().join("team/mail/lead");
    wait(|| holds(&box_of_lead, "diver"));
    let running = || world.command(&["agents"]).output().unwrap().stdout;
    wait(|| String::from_utf8_lossy(&running()).contains("No sessions are running"));
    let said = finish(world.spawn(&[&FREELY[..], &["--continue", "Where are we?"]].concat()));
    assert_eq!(said.code, 0, "{}", said.err);
    wait(|| {
        world
            .provider
            .heard()
            .asked
            .iter()
            .any(|asked| asked.text().contains("from `diver`, an agent of your team"))
    });
}

#[test]
fn sessions_send_messages_with_permission_and_sender() {
    let other = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => {
            calls("", &[("Bash", json!({"command": "touch ready; while [ ! -e told ]; do sleep 0.1; done"}))])
        }
        _ => says("Heard."),
    }));
    let running = other.spawn(&[&FREELY[..], &["go"]].concat());
    wait(|| other.repository().join("ready").exists());
    let world = TestWorld::new(ProviderSetup::answers(|_, ask| {
        let news = news(ask);
        if news.contains("Not carried out") || news.contains("Said to") {
            return says("Done.");
        }
        let Some(from) = news.find("uds:repository-") else {
            return say(json!({"to": "uds:nobody", "message": "x"}));
        };
        let name = news[from..].split(['.', ',', '"']).next().unwrap();
        say(json!({"to": name, "message": "The network is down."}))
    }));
    let home = other.pal();
    let denied =
        world.command(&["-p", "--output-format", "json", "go"]).env("PAL_HOME", &home).output().unwrap();
    let denied: Value = serde_json::from_slice(&denied.stdout).unwrap();
    assert_eq!(denied["permission_denials"][0]["rule"], "SendMessage", "{denied}");
    let mut allowed = world.command(&["-p", "--allowed-tools", "SendMessage", "go"]);
    let allowed = allowed.env("PAL_HOME", &home).output().unwrap();
    assert!(allowed.status.success(), "{allowed:?}");
    other.file("told", "");
    let said = finish(running);
    assert_eq!(said.code, 0, "{}", said.err);
    let told = other.provider.heard().asked.last().unwrap().text();
    assert!(
        told.contains("The network is down.") && told.contains("who is not the user of this session"),
        "{told}"
    );
}

#[test]
fn the_small_model_describes_the_work_of_agents() {
    let world = TestWorld::new(ProviderSetup::answers(|_, ask| {
        let all: String = ask.messages.iter().map(|message| message.blocks.concat()).collect();
        if all.contains("These are its last calls") {
            assert!(all.contains("Bash sleep 4") && ask.tools.is_empty(), "{all}");
            return says("Waiting for the clock.");
        }
        if all.contains("[A task]") {
            return match all.contains("tool_result") {
                true => says("Waited."),
                false => calls("", &[("Bash", json!({"command": "sleep 4"}))]),
            };
        }
        match all.contains("tool_result") {
            true => says("Done."),
            false => send(json!({"description": "Wait", "name": "waiter", "prompt": "[A task] Wait."})),
        }
    }));
    std::fs::write(world.pal().join("settings.toml"), "progress_interval_s = 1\n").unwrap();
    let said = world.run(&[&FREELY[..], &["--output-format", "stream-json", "--verbose", "go"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    let lines = said.lines();
    let doing: Vec<&Value> = lines.iter().filter(|line| line["subtype"] == "agent_doing").collect();
    assert_eq!(doing.len(), 1, "once, because nothing else was done: {doing:?}");
    assert_eq!((&doing[0]["agent"], &doing[0]["doing"]), (&json!("waiter"), &json!("Waiting for the clock")));
    let lead = world.logs().into_iter().find(|log| log.parent().unwrap().join("agents").is_dir()).unwrap();
    let asked = log_lines(&lead).into_iter().find(|line| line["source"] == "progress:waiter").unwrap();
    assert!(asked["model"].as_str().unwrap().contains("haiku"), "{asked}");
}

/// Waits until something is so; a hang fails the test.
fn wait(is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(40);
    while !is_so() {
        assert!(Instant::now() < until, "it never came about");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Searches the files of a directory for a text.
fn holds(folder: &std::path::Path, words: &str) -> bool {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter_map(|file| std::fs::read(file.path()).ok())
        .any(|bytes| String::from_utf8_lossy(&bytes).contains(words))
}

#[test]
fn an_unanswered_plan_does_not_block_the_end() {
    let world = TestWorld::new(team(
        |at, _| match at {
            1 => send(json!({
                "description": "Mend", "name": "smith", "prompt": "Mend it.", "teammate": true, "plan_first": true
            })),
            _ => says("I do not care."),
        },
        |_, _| calls("", &[("ExitPlanMode", json!({"plan": "With a hammer"}))]),
    ));
    let said = world.run(&["go"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    assert!(heard.asked.iter().any(|asked| asked.text().contains("asks whether it may carry out this plan")));
}

#[test]
fn intermediate_agents_approve_nothing_and_names_are_unique() {
    let inner = json!({"to": "smith", "kind": "plan_approval", "accepted": true, "message": "yes"});
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        let first = ask.messages.first().map(|message| message.blocks.concat()).unwrap_or_default();
        let news = news(ask);
        if first.contains("a teammate of the agent") {
            return match news.contains("tool_result") {
                false => calls("", &[("ExitPlanMode", json!({"plan": "With a hammer"}))]),
                true => says("I see."),
            };
        }
        if first.contains("[A task]") {
            return match news.contains("tool_result") {
                false => say(inner.clone()),
                true => says(&format!(
                    "It said: {}",
                    if news.contains("none of yours") { "refused" } else { "done" }
                )),
            };
        }
        let mate = json!({"description": "x", "name": "smith", "prompt": "Mend.", "teammate": true, "plan_first": true});
        match () {
            () if news.contains("It said: ") => says("Done."),
            () if news.contains("asks whether it may carry out") => {
                send(json!({"description": "Approve", "prompt": "[A task] Approve it."}))
            }
            () if news.contains("is there already") => says("One of them."),
            () if news.contains("tool_result") || news.contains("message") => says("I see."),
            () => calls("", &[("Agent", mate.clone()), ("Agent", mate)]),
        }
    }));
    let said = world.run(&["go"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    let texts: Vec<String> = heard.asked.iter().map(pal_agent_testkit::ReceivedRequest::text).collect();
    assert!(texts.iter().any(|text| text.contains("It said: refused")), "{}", texts.last().unwrap());
    assert!(texts.iter().any(|text| text.contains("is there already")), "the second of a name is refused");
}
