//! Work behind the conversation: notes, extracted memories, prefetched memories, cache keepalive, their budget.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pal_agent::SessionOrigin;
use pal_agent_testkit::{AgentWorld, PATIENCE, ProviderSetup, TestAgent, calls, is_summary, says};
use pal_events::{AgentEvent, PermissionAnswer};
use pal_memory::{Author, MemoryFile, MemoryHeader, MemoryKind};
use pal_model::{Content, Timestamp};
use pal_sim::{ExtractiveModel, ModelPrompt, SimulatedModel};
use serde_json::json;

use crate::{BYPASS, bash, last_message};

/// Settings that let a fork write notes after every prompt.
const NOTES: &str = "notes = \"fork\"\nnotes_min_tokens = 1\nnotes_growth_tokens = 1\nnotes_min_calls = 0\n";

/// Settings that let a fork extract memories after every prompt.
const EXTRACTION: &str = "extraction = true\nextraction_tokens = 0\n";

/// Returns whether a request is one of the fork that writes notes.
fn is_note_fork(ask: &ModelPrompt<'_>) -> bool {
    ask.messages.iter().any(|message| message.blocks.concat().contains("Update the session notes in"))
}

/// Returns whether a request is one of the fork that extracts memories.
fn is_extraction(ask: &ModelPrompt<'_>) -> bool {
    ask.messages
        .iter()
        .any(|message| message.blocks.concat().contains("The conversation rests. Before it goes on"))
}

/// Sources of the exchanges that an agent reported.
fn sources(agent: &TestAgent) -> Vec<String> {
    agent.events(|event| match event {
        AgentEvent::ExchangeEnded(report) => {
            assert!(report.usage.is_some() && report.cost.is_some_and(|cost| cost > 0.0), "{report:?}");
            Some(report.source.as_str().to_owned())
        }
        _ => None,
    })
}

/// Adds a memory of a person.
fn add_memory(world: &AgentWorld, slug: &str, text: &str) {
    let now = Timestamp::from_milliseconds(1_800_000_000_000);
    let header = MemoryHeader {
        name: slug.to_owned(),
        description: format!("About the {slug}"),
        kind: MemoryKind::Project,
        modified: None,
        origin: Author::Person,
    };
    let mut store = pal_memory::MemoryStore::open(&world.memory().directory, now).unwrap();
    store.write(slug, &MemoryFile::new(header, text), &Author::Person, now).unwrap();
}

#[test]
fn notes_of_a_fork_are_the_summary_of_a_compaction() {
    let world = AgentWorld::new(ProviderSetup::answers(|_, ask| match is_note_fork(ask) {
        true => ExtractiveModel.answer(ask),
        false => says(&"The answer takes some room in the window. ".repeat(400)),
    }));
    let mut agent = world.start(&format!("{NOTES}{BYPASS}"));
    for prompt in ["Mind the tests, please.", "And the docs.", "three", "four", "five", "six"] {
        agent.prompt(prompt);
    }
    // A compaction waits for notes that are being written.
    agent.agent.compact(None).unwrap();
    let boundary = agent.log_of_kind("boundary").pop().unwrap();
    assert_eq!(boundary["how"], "notes", "{boundary}");
    let notes = std::fs::read_to_string(agent.log_path().with_file_name("notes").join("notes.md")).unwrap();
    assert!(notes.contains("Mind the tests"), "{notes}");
    assert!(boundary["summary"].to_string().contains("Mind the tests"), "{boundary}");
    assert!(
        !world.provider.heard().asked.iter().any(|asked| asked.is_summary),
        "no model was asked for a summary"
    );
    agent.prompt("On.");
    assert!(sources(&agent).contains(&String::from("notes")), "{:?}", sources(&agent));
    assert!(agent.log_of_kind("response").iter().any(|line| line["source"] == "notes"));
    assert!(!agent.log().iter().any(|line| line.to_string().contains("Update the session notes in")));
}

#[test]
fn an_exhausted_budget_stops_notes_and_is_reported_once() {
    let world = AgentWorld::new(ProviderSetup::answers(|_, ask| {
        assert!(!is_note_fork(ask), "there is no budget");
        says("Done.")
    }));
    let mut agent = world.start(&format!("background_tokens_daily = 0\n{NOTES}"));
    for prompt in ["one", "two", "three"] {
        agent.prompt(prompt);
    }
    assert_eq!(agent.notices().matches("notes: no more today").count(), 1, "{}", agent.notices());
    assert_eq!(world.provider.heard().asked.len(), 3);
}

#[test]
fn an_extraction_writes_a_memory_without_secrets_and_with_its_origin() {
    let directory: Arc<Mutex<PathBuf>> = Arc::default();
    let (place, secret) = (Arc::clone(&directory), format!("ghp_{}", "a1B2c3D4e5F6".repeat(3)));
    let key = secret.clone();
    let world = AgentWorld::new(ProviderSetup::answers(move |_, ask| {
        if !is_extraction(ask) {
            return says("Friday it is.");
        }
        if last_message(ask).contains("tool_result") {
            return says("nothing more");
        }
        let path = place.lock().unwrap().join("release-day.md");
        let content = format!(
            "---\nname: Release day\ndescription: When we release\ntype: project\n---\n\nOn Fridays, with {key}.\n"
        );
        calls(
            "",
            &[
                ("Write", json!({"file_path": path, "content": content})),
                ("Write", json!({"file_path": "stolen.md", "content": content})),
                bash("touch ran.txt"),
            ],
        )
    }));
    directory.lock().unwrap().push(world.memory().directory);
    let mut agent = world.start(&format!("{EXTRACTION}{BYPASS}"));
    assert_eq!(agent.prompt("We release on Fridays, remember?").text, "Friday it is.");
    agent.agent.wait_for_memories(PATIENCE).unwrap();
    let memory = std::fs::read_to_string(world.memory().directory.join("release-day.md")).unwrap();
    assert!(memory.contains("On Fridays") && !memory.contains(&secret), "{memory}");
    assert!(memory.contains(&format!("origin: session {} entry ", agent.agent.id())), "{memory}");
    assert!(!world.has_file("stolen.md") && !world.has_file("ran.txt"), "it writes memories only");
    assert!(sources(&agent).contains(&String::from("memory")), "{:?}", sources(&agent));
    assert!(agent.log_of_kind("response").iter().any(|line| line["source"] == "memory"));
    assert_eq!(agent.agent.memories().len(), 1);
}

#[test]
fn an_extraction_reads_the_project_and_writes_only_memories() {
    let directory: Arc<Mutex<PathBuf>> = Arc::default();
    let place = Arc::clone(&directory);
    let memory = |name: &str, kind: &str| {
        format!("---\nname: {name}\ndescription: About {name}\ntype: {kind}\n---\n\n{name}\n")
    };
    let world = AgentWorld::new(ProviderSetup::answers(move |_, ask| {
        let path = |name: &str| place.lock().unwrap().join(name);
        if !is_extraction(ask) {
            return says("Done.");
        }
        if last_message(ask).contains("tool_result") {
            return says("nothing");
        }
        calls(
            "",
            &[
                ("Read", json!({"file_path": "README.md"})),
                ("Read", json!({"file_path": "/etc/hostname"})),
                ("Read", json!({"file_path": ".env"})),
                ("Write", json!({"file_path": "stolen.md", "content": memory("x", "user")})),
                ("Write", json!({"file_path": path("MEMORY.md"), "content": "mine"})),
                ("Write", json!({"file_path": path("x.md"), "content": "no front matter"})),
                ("Write", json!({"file_path": path("y.md"), "content": memory("y", "gossip")})),
                bash("ls"),
                ("Agent", json!({"description": "x", "prompt": "y"})),
                ("WebFetch", json!({"url": "http://127.0.0.1:1/", "prompt": "y"})),
                ("Write", json!({"file_path": path("kept.md"), "content": memory("kept", "project")})),
            ],
        )
    }));
    directory.lock().unwrap().push(world.memory().directory);
    world.file(".env", "KEY=xyzzy-of-the-env\n");
    world.file("README.md", "a word of the project: plugh\n");
    let mut agent = world.start(&format!("{EXTRACTION}{BYPASS}"));
    agent.prompt("go");
    agent.agent.wait_for_memories(PATIENCE).unwrap();
    let files = std::fs::read_dir(world.memory().directory).unwrap().flatten();
    let names =
        files.filter(|file| file.path().is_file()).map(|file| file.file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.filter(|name| !name.starts_with('.')).collect();
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), ["MEMORY.md", "kept.md"]);
    assert!(!world.has_file("stolen.md"));
    let sent = world.provider.heard().asked.last().unwrap().text();
    assert!(sent.contains("plugh") && !sent.contains("xyzzy-of-the-env"), "{sent}");
    let refused = sent.matches("Not carried out").count() + sent.matches("not available here").count();
    assert_eq!(refused, 7, "{sent}");
    assert!(
        sent.contains("The front matter lacks") && sent.contains("`gossip` is no type of memory"),
        "{sent}"
    );
}

#[test]
fn a_failed_extraction_does_not_affect_the_session() {
    let mut setup = ProviderSetup::answers(|_, _| says("Done."));
    setup.faults = String::from("400@2");
    let world = AgentWorld::new(setup);
    let mut agent = world.start(EXTRACTION);
    assert_eq!(agent.prompt("go").text, "Done.");
    agent.agent.wait_for_memories(PATIENCE).unwrap();
    assert_eq!(agent.notices(), "");
    assert_eq!(agent.prompt("again").text, "Done.");
}

#[test]
fn a_relevant_memory_is_attached_once() {
    let text = |ask: &ModelPrompt<'_>| -> String {
        ask.messages.iter().map(|message| message.blocks.concat()).collect()
    };
    // The memory is looked up in the background: the model works until it has it.
    let world =
        AgentWorld::new(ProviderSetup::answers(move |_, ask| match text(ask).contains("parser.md\\\">") {
            true => says("Seen."),
            false if is_summary(ask) => ExtractiveModel.answer(ask),
            false => calls("", &[bash("sleep 0.01")]),
        }));
    add_memory(&world, "parser", "The parser drops comments.\n");
    add_memory(&world, "release-day", "We ship on Fridays.\n");
    let mut agent = world.start(&format!("max_stalled_turns = 1000\nmax_fruitless_turns = 1000\n{BYPASS}"));
    assert_eq!(agent.prompt("why does the parser do that?").text, "Seen.");
    agent.prompt("the parser, once more");
    let attached =
        agent.log_of_kind("attachment").into_iter().filter(|line| line["what"] == "memory").count();
    assert_eq!(attached, 1);
    let sent = world.provider.heard().asked.last().unwrap().text();
    assert_eq!((sent.matches("parser.md\\\">").count(), sent.matches("release-day.md\\\">").count()), (1, 0));
}

#[test]
fn a_keepalive_is_sent_in_a_pause_and_recorded() {
    let world = AgentWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => says(&"The answer takes some room in the window. ".repeat(800)),
        _ => says("Done."),
    }));
    // A keepalive is worth its price if the messages are large, compared with the tools and the system prompt.
    let settings = "policy = \"cost-aware\"\ncache_keepalive = true\nmax_output_tokens = 20000\n";
    let start = |origin: SessionOrigin, seconds: u64| {
        world.start_with(settings, |options| {
            options.origin = origin;
            options.clock.ahead = Duration::from_secs(seconds);
            options.tools.without = pal_prompt::built_in_tools().into_iter().map(|tool| tool.name).collect();
            options.permissions.asker = Some(Arc::new(|_| PermissionAnswer::Unavailable));
        })
    };
    let mut agent = start(SessionOrigin::New(None), 0);
    agent.prompt("one");
    agent.prompt("two");
    // The cache lasts five minutes, and a keepalive is due 30 s before its end.
    let mut agent = start(SessionOrigin::Resumed(agent.finish()), 280);
    // A cancelled prompt sends nothing, so the pause counts from the last request.
    agent.agent.record_cancelled_prompt(Content::from_text("wait")).unwrap();
    let is_sent =
        world.provider.wait_until(PATIENCE, |heard| heard.asked.iter().any(|asked| asked.max_tokens == 1));
    assert!(is_sent, "no keepalive came");
    // An answered keepalive is in the ledger at once, and in the log with the next request that finds it.
    let begun = Instant::now();
    while !agent.log_of_kind("response").iter().any(|line| line["source"] == "ping") {
        assert!(begun.elapsed() < PATIENCE, "the keepalive is not in the log");
        let ledger = pal_background::read_background_ledger(&world.pal_home()).unwrap();
        match ledger.runs.iter().any(|run| run.source == "ping" && run.is_over) {
            true => drop(agent.prompt("and now?")),
            false => std::thread::yield_now(),
        }
    }
    assert!(sources(&agent).contains(&String::from("ping")), "{:?}", sources(&agent));
    let heard = world.provider.heard();
    let last = heard.asked.last().unwrap();
    assert!(
        last.max_tokens > 1 && !last.text().contains("Nothing is to be done yet"),
        "the model never sees it"
    );
}

#[test]
fn a_killed_dream_is_undone_at_the_next_start() {
    let world = AgentWorld::new(ProviderSetup::answers(|_, _| says("Fine.")));
    let now = Timestamp::from_milliseconds(1_800_000_000_000);
    let head = MemoryHeader {
        name: String::from("Release day"),
        description: String::from("when we release"),
        kind: MemoryKind::Project,
        modified: None,
        origin: Author::Person,
    };
    let mut memory = world.memory().open(now).unwrap();
    memory.write("release", &MemoryFile::new(head.clone(), "On Fridays."), &Author::Person, now).unwrap();
    let dream = Author::Named(String::from("dream run1"));
    memory.write("release", &MemoryFile::new(head, "Half of a sent"), &dream, now).unwrap();
    // No process has this number and start.
    let lock = world.memory().directory.join(".consolidate-lock");
    std::fs::write(&lock, "4194305 never\nbefore 0\nruns run1\n").unwrap();
    let mut agent = world.start("");
    assert!(agent.notices().contains("a dream was killed halfway"), "{}", agent.notices());
    assert_eq!(memory.read("release").unwrap().body.trim(), "On Fridays.");
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "", "the lock is free");
    agent.prompt("go");
    let log = agent.finish();
    let agent = world.resume("", &log);
    assert!(!agent.notices().contains("dream"), "{}", agent.notices());
}
