//! Settings that fill sections of the system prompt, notices of changes on disk, task budgets and prompt suggestions.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use pal_agent_testkit::{AgentWorld, PATIENCE, ProviderSetup, calls, says};
use pal_events::{AgentEvent, PermissionAnswer};
use pal_wire::Dialect;
use serde_json::{Value, json};

use crate::{BYPASS, bash, caller, last_message};

/// System prompt and tools of the first request of a session with these settings, and the notices of its start.
fn head(world: &AgentWorld, settings: &str) -> (String, String) {
    let mut agent = world.start(settings);
    agent.prompt("hi");
    let notices = agent.notices();
    let heard = world.provider.heard();
    (heard.asked.last().unwrap().head.concat(), notices)
}

fn greeter() -> AgentWorld {
    AgentWorld::new(ProviderSetup::answers(|_, _| says("Hello.")))
}

#[test]
fn language_and_output_style_are_in_the_system_prompt() {
    let world = greeter();
    world.file(".claude/output-styles/pirate.md", "---\nname: Pirate\n---\nSpeak like a pirate.\n");
    let (head, notices) = head(&world, "language = \"Portuguese\"\noutput_style = \"Pirate\"\n");
    assert!(head.contains("Write to the user in Portuguese"), "{head}");
    assert!(head.contains("# Output style: Pirate") && head.contains("Speak like a pirate."), "{head}");
    assert!(!notices.contains("output style"), "{notices}");
}

#[test]
fn an_unknown_output_style_is_reported_with_the_known_ones() {
    let world = greeter();
    world.file(".pal/output-styles/terse.md", "One line only.\n");
    let (head, notices) = head(&world, "output_style = \"verbose\"\n");
    assert!(notices.contains("no output style is named \"verbose\"; there are: terse"), "{notices}");
    assert!(!head.contains("# Output style"));
}

#[test]
fn a_scratchpad_is_private_and_writable_without_asking() {
    let mut folder = None;
    let world = AgentWorld::new(ProviderSetup::answers(move |at, ask| {
        let system = ask.system.concat();
        let start = system.find("shared temporary folder: ").map(|at| at + "shared temporary folder: ".len());
        let found =
            start.map(|start| system[start..].split(['\\', '"']).next().unwrap_or_default().to_owned());
        let path = folder.get_or_insert(found.unwrap_or_default()).clone();
        match at {
            0 => {
                calls("I try.", &[("Write", json!({"file_path": format!("{path}/try.txt"), "content": "x"}))])
            }
            _ => says(&path),
        }
    }));
    let mut agent = world.start("scratchpad = true\n");
    let ended = agent.prompt("go");
    assert_eq!(ended.denials, []);
    let folder = std::path::PathBuf::from(&ended.text);
    assert_eq!(std::fs::read_to_string(folder.join("try.txt")).unwrap(), "x");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_coordinator_changes_nothing_itself_and_its_agents_do() {
    let task = json!({"description": "Write", "prompt": "[A task] Write it."});
    let world = AgentWorld::new(ProviderSetup::answers(move |_, ask| {
        let first = ask.messages.first().map(|message| message.blocks.concat()).unwrap_or_default();
        let last = last_message(ask);
        match (first.contains("[A task] Write"), last.contains("tool_result")) {
            (true, false) => calls("I write.", &[("Write", json!({"file_path": "new.txt", "content": "x"}))]),
            (true, true) => says("Written."),
            (false, false) => {
                let write = json!({"file_path": "own.txt", "content": "x"});
                calls("I delegate.", &[("Agent", task.clone()), ("Write", write)])
            }
            (false, true) => says("Done."),
        }
    }));
    let mut agent = world.start(&format!("coordinator = true\n{BYPASS}"));
    agent.prompt("work");
    let heard = world.provider.heard();
    let own = heard.asked[0].head.concat();
    assert!(own.contains("You direct other agents and change nothing yourself"), "{own}");
    assert!(!own.contains("\"name\":\"Write\"") && own.contains("\"name\":\"Agent\""));
    assert!(heard.asked.last().unwrap().text().contains("There is no tool of the name `Write`"));
    assert!(world.has_file("new.txt") && !world.has_file("own.txt"));
}

#[test]
fn a_proactive_session_has_the_default_prompt_and_its_own() {
    let (head, _) = head(&greeter(), "proactive = true\n");
    assert!(head.contains("# Working on your own"), "{head}");
    assert!(head.contains("\"name\":\"Write\"") && head.contains("You are"), "{head}");
}

#[test]
fn a_file_that_changed_after_it_was_read_is_announced_once() {
    let world = AgentWorld::new(caller(vec![
        ("Read", json!({"file_path": "README.md"})),
        ("Read", json!({"file_path": "src/lib.rs"})),
        bash("echo more >> README.md"),
        bash("true"),
    ]));
    let mut agent = world.start(BYPASS);
    agent.prompt("go");
    let notice = "have changed on disk since you last saw them";
    let counts: Vec<usize> =
        world.provider.heard().asked.iter().map(|asked| asked.text().matches(notice).count()).collect();
    assert_eq!(counts, [0, 0, 0, 1, 1], "with the request after the change, and never again");
    let sent = world.provider.heard().asked[3].text();
    let readme = world.project().join("README.md").display().to_string();
    let listed = sent.split(notice).nth(1).unwrap();
    assert!(listed.contains(&format!("- {readme}")) && !listed.contains("lib.rs"), "{listed}");
    // Between two prompts, one file is changed and the other deleted.
    world.file("README.md", "# Other\n");
    std::fs::remove_file(world.project().join("src/lib.rs")).unwrap();
    agent.prompt("again");
    let sent = world.provider.heard().asked.last().unwrap().text();
    assert_eq!(sent.matches(notice).count(), 2);
    assert!(sent.contains("no longer exist"), "{sent}");
}

#[test]
fn own_changes_of_files_are_not_announced() {
    let edit = json!({"file_path": "README.md", "old_string": "few", "new_string": "lot of"});
    let world = AgentWorld::new(caller(vec![
        ("Read", json!({"file_path": "README.md"})),
        ("Edit", edit),
        ("Write", json!({"file_path": "new.txt", "content": "x"})),
        bash("true"),
    ]));
    let mut agent = world.start(BYPASS);
    agent.prompt("go");
    assert!(!world.provider.heard().asked.last().unwrap().text().contains("changed on disk"));
}

#[test]
fn skills_and_agents_that_appear_during_a_session_are_announced_and_work() {
    let scout = json!({"description": "Look", "prompt": "go", "subagent_type": "scout"});
    let mut round = 0;
    let world = AgentWorld::new(ProviderSetup::answers(move |_, ask| {
        if ask.system.concat().contains("You are a scout") {
            return says("All clear.");
        }
        round += 1;
        match round {
            2 => calls("I send it.", &[("Agent", scout.clone()), ("Skill", json!({"skill": "deploy"}))]),
            _ => says("Done."),
        }
    }));
    let mut agent = world.start(BYPASS);
    agent.prompt("hi");
    world.file(
        ".claude/agents/scout.md",
        "---\nname: scout\ndescription: Looks ahead.\n---\nYou are a scout.\n",
    );
    world.file(
        ".claude/skills/deploy/SKILL.md",
        "---\nname: deploy\ndescription: Ships it.\n---\nPush the button.\n",
    );
    agent.prompt("look ahead and ship");
    let heard = world.provider.heard();
    assert!(!heard.asked[0].text().contains("Looks ahead."));
    let announced = heard.asked[1].text();
    assert!(announced.contains("Looks ahead.") && announced.contains("Ships it."), "{announced}");
    assert_eq!(heard.asked[1].head, heard.asked[0].head, "the prefix stays as it is");
    let last = heard.asked.last().unwrap().text();
    assert!(last.contains("All clear.") && last.contains("Push the button."), "{last}");
}

#[test]
fn a_task_budget_is_stated_and_its_rest_carried_over_a_compaction() {
    let record = tempfile::tempdir().unwrap();
    let mut setup = ProviderSetup::answers(|_, ask| match pal_agent_testkit::is_summary(ask) {
        true => pal_sim::SimulatedModel::answer(&mut pal_sim::ExtractiveModel, ask),
        false => says("Hello."),
    });
    setup.record = Some(record.path().to_owned());
    let world = AgentWorld::new(setup);
    let mut agent = world.start("task_budget_tokens = 900000\n");
    agent.prompt("one");
    agent.agent.compact(None).unwrap();
    agent.prompt("two");
    assert!(world.provider.heard().refused.is_empty(), "{:?}", world.provider.heard().refused);
    let mut files: Vec<_> =
        std::fs::read_dir(record.path()).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let budgets: Vec<Value> = files
        .iter()
        .map(|file| serde_json::from_str::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap())
        .map(|body| body["output_config"]["task_budget"].clone())
        .collect();
    assert_eq!(budgets[0], json!({"type": "tokens", "total": 900_000}), "{budgets:?}");
    let last = budgets.last().unwrap();
    let remaining = last["remaining"].as_u64().unwrap();
    assert_eq!(last["total"], 900_000);
    let spent = agent.log_of_kind("response")[0]["usage"].clone();
    let new = ["input_tokens", "cache_creation_input_tokens", "output_tokens"];
    let spent: u64 = new.iter().map(|name| spent[*name].as_u64().unwrap()).sum();
    assert!(remaining < 900_000 && remaining + spent <= 900_000, "{remaining} of 900000, {spent} spent");
}

#[test]
fn an_account_in_overage_gets_no_hour_and_that_is_latched() {
    let world = greeter();
    let ttl = |settings: &str| {
        let mut agent = world.start(settings);
        agent.prompt("hi");
        let latch = agent.log_of_kind("latch").into_iter().find(|latch| latch["name"] == "cache_lifetime");
        latch.map(|latch| (latch["value"].clone(), latch["reason"].as_str().unwrap_or_default().to_owned()))
    };
    assert_eq!(ttl("cache_ttl = \"1h\"\n").unwrap().0, "1h");
    let (value, reason) = ttl("cache_ttl = \"1h\"\naccount_in_overage = true\n").unwrap();
    assert_eq!(value, "5m");
    assert!(reason.contains("overage"), "{reason}");
}

#[test]
fn an_injected_cache_break_is_reported_with_its_section() {
    let world = greeter();
    world.file("CLAUDE.md", &"A line that is like all the others in this file.\n".repeat(600));
    let mut agent = world.start("");
    agent.prompt("one");
    agent.prompt("two");
    world.file("CLAUDE.md", "Another file.\n");
    agent.agent.break_cache().unwrap();
    agent.prompt("three");
    let breaks = agent.events(|event| match event {
        AgentEvent::CacheBroken(broke) => Some(format!("{broke:?}")),
        _ => None,
    });
    assert_eq!(breaks.len(), 1, "{breaks:?}");
    assert!(breaks[0].contains("cache breaker"), "{}", breaks[0]);
    let sent = world.provider.heard().asked.last().unwrap().text();
    assert!(sent.contains("Another file."), "both contexts are read again: {sent}");
}

#[test]
fn a_prompt_is_suggested_by_a_fork_that_reads_the_cache() {
    // The Responses API finds a cache by the key that the conversation sends.
    for (dialect, model) in [(Dialect::Messages, "claude-opus-5-5"), (Dialect::Responses, "gpt-5.1")] {
        suggestion_reads_the_cache(dialect, model);
    }
}

fn suggestion_reads_the_cache(dialect: Dialect, model: &str) {
    let setup = ProviderSetup::answers(|_, ask| {
        match last_message(ask).contains("Predict what the user will most likely type next") {
            true => says("run the tests"),
            false => says("Changed."),
        }
    });
    let world = AgentWorld::new(ProviderSetup { dialect, ..setup });
    world.file("CLAUDE.md", &"A line that is like all the others in this file.\n".repeat(600));
    let asker = |_: &pal_events::PermissionQuestion| PermissionAnswer::No(None);
    let settings = format!("prompt_suggestions = true\nmodel = \"{model}\"\n");
    let mut agent = world.start_with(&settings, |options| {
        options.permissions.asker = Some(Arc::new(asker));
    });
    let (sender, suggested) = channel();
    let sender = Mutex::new(sender);
    agent.agent.handle().on_suggestion(move |text| sender.lock().unwrap().send(text).unwrap());
    agent.prompt("change it");
    assert_eq!(suggested.recv_timeout(PATIENCE).unwrap(), "run the tests");
    let heard = world.provider.heard();
    assert_eq!(heard.asked.len(), 2);
    assert_eq!(heard.asked[1].departs_from(&heard.asked[0]), None);
    drop(heard);
    let ended = agent.prompt("run the tests");
    assert_eq!(ended.spent.responses, 2, "the suggestion counts for the session");
    let sent = world.provider.heard().asked[2].text();
    assert!(!sent.contains("Predict what"), "the conversation does not hear of it");
    let usage = agent.events(|event| match event {
        AgentEvent::ExchangeEnded(report) if report.source.as_str() == "suggest" => report.usage.clone(),
        _ => None,
    });
    assert!(usage[0].cache_read_input_tokens > 2_000, "{dialect:?}: {usage:?}");
}

#[test]
fn without_a_person_nothing_is_suggested() {
    let world = greeter();
    let mut agent = world.start("prompt_suggestions = true\n");
    agent.prompt("hi");
    agent.finish();
    assert_eq!(world.provider.heard().asked.len(), 1);
}
