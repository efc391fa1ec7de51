//! Memories drawn from a conversation that has come to rest.

use std::sync::{Arc, Mutex};

use pal_memory::{Author, MemoryFile, MemoryHeader, MemoryKind, MemoryStore};
use pal_model::Timestamp;
use serde_json::json;

use super::{FORK, is_fork, memory, turns, write};
use crate::test_world::{TestWorld, finish, log_lines};
use pal_agent_testkit::{ProviderSetup, calls, says};

#[test]
fn extracted_memories_have_an_origin_and_no_secrets() {
    let directory = Arc::new(Mutex::new(std::path::PathBuf::new()));
    let (place, key) = (Arc::clone(&directory), format!("ghp_{}", "a1B2c3D4e5F6".repeat(3)));
    let secret = key.clone();
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        if !is_fork(ask) {
            return says("Friday it is.");
        }
        let place = place.lock().unwrap().clone();
        let content = memory("Release day", "project", &format!("On Fridays. The token is {secret}."));
        match turns(ask) {
            1 => calls("", &[("Read", json!({"file_path": "README.md"}))]),
            _ => calls(
                "",
                &[
                    ("Write", json!({"file_path": place.join("release-day.md"), "content": content})),
                    write(&place, "second", "Support is closed on Mondays."),
                ],
            ),
        }
    }));
    directory.lock().unwrap().push(world.memory());
    let said = finish(world.learning(&["We release on Fridays, remember?"]).spawn().unwrap());
    assert_eq!((said.code, said.out.trim()), (0, "Friday it is."), "{}", said.err);
    let memories = world.memories();
    let release = &memories["release-day.md"];
    let log = world.log();
    let session = world.logs()[0].parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let said_last = log.iter().rfind(|line| line["kind"] == "assistant").unwrap()["id"].as_str().unwrap();
    assert!(release.contains(&format!("origin: session {session} entry {said_last}")), "{release}");
    assert!(release.contains("type: project") && release.contains("On Fridays"), "{release}");
    assert!(!release.contains(&key) && release.contains("[secret:"), "{release}");
    let index = &memories["MEMORY.md"];
    assert!(index.contains("(release-day.md)") && index.contains("(second.md)"), "{index}");
    let log_said = finish(world.command(&["memory", "log", "--json"]).spawn().unwrap());
    assert_eq!(log_said.out.matches(&format!("session {session} entry")).count(), 2, "{}", log_said.out);
    assert!(!log.iter().any(|line| line.to_string().contains(FORK)), "nothing of it is in the conversation");
    let booked = log.iter().filter(|line| line["kind"] == "response" && line["source"] == "memory").count();
    assert_eq!(booked, 2, "what it took is in the books, and its last words were not asked for");
}

#[test]
fn totals_of_a_run_include_background_work() {
    let directory = Arc::new(Mutex::new(std::path::PathBuf::new()));
    let place = Arc::clone(&directory);
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| match is_fork(ask) {
        true => calls("", &[write(&place.lock().unwrap(), "support", "Support is closed on Mondays.")]),
        false => says("Monday it is."),
    }));
    directory.lock().unwrap().push(world.memory());
    for (run, format) in ["json", "stream-json"].into_iter().enumerate() {
        let prompt = format!("Support is closed on Mondays, remember? {run}");
        let arguments = ["--output-format", format, "--verbose", &prompt];
        let said = finish(world.learning(&arguments).spawn().unwrap());
        assert_eq!(said.code, 0, "{}", said.err);
        let lines = said.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let told: f64 = lines.filter_map(|line| line["total_cost_usd"].as_f64()).sum();
        let log = log_lines(&world.logs()[run]);
        let paid = |source: &str| -> f64 {
            let of_source = log.iter().filter(|line| source.is_empty() || line["source"] == source);
            of_source.filter_map(|line| line["cost"].as_f64()).sum()
        };
        assert!(paid("memory") > 0.0, "{log:?}");
        assert!((told - paid("")).abs() < 1e-9, "{format}: {told} told, {} paid", paid(""));
    }
}

#[test]
fn extraction_reads_the_project_and_writes_only_memories() {
    let directory = Arc::new(Mutex::new(std::path::PathBuf::new()));
    let place = Arc::clone(&directory);
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        let place = place.lock().unwrap().clone();
        match (is_fork(ask), turns(ask)) {
            (false, _) => says("Done."),
            (true, 1) => calls(
                "",
                &[
                    ("Read", json!({"file_path": "README.md"})),
                    ("Read", json!({"file_path": "/etc/hostname"})),
                    ("Read", json!({"file_path": ".env"})),
                    ("Write", json!({"file_path": "stolen.md", "content": memory("x", "user", "x")})),
                    ("Write", json!({"file_path": place.join("MEMORY.md"), "content": "mine"})),
                    ("Write", json!({"file_path": place.join("x.md"), "content": "no front matter"})),
                    (
                        "Write",
                        json!({"file_path": place.join("y.md"), "content": memory("y", "gossip", "y")}),
                    ),
                    ("Bash", json!({"command": "ls"})),
                    ("Agent", json!({"description": "x", "prompt": "y"})),
                    ("WebFetch", json!({"url": "http://127.0.0.1:1/", "prompt": "y"})),
                    write(&place, "kept", "kept"),
                ],
            ),
            _ => says("nothing"),
        }
    }));
    directory.lock().unwrap().push(world.memory());
    world.file(".env", "KEY=xyzzy-of-the-env\n");
    world.file("README.md", "a word of the project: plugh\n");
    let said =
        finish(world.learning(&["--permission-mode", "bypass", "--no-sandbox", "go"]).spawn().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    let names: Vec<String> = world.memories().into_keys().collect();
    assert_eq!(names, ["MEMORY.md", "kept.md"]);
    assert!(!world.repository().join("stolen.md").exists());
    let heard = world.provider.heard();
    let told = heard.asked.last().unwrap().text();
    assert!(told.contains("plugh") && !told.contains("xyzzy-of-the-env"), "{told}");
    assert_eq!(
        told.matches("Not carried out").count() + told.matches("not available here").count(),
        7,
        "{told}"
    );
    assert!(
        told.contains("The front matter lacks") && told.contains("`gossip` is no type of memory"),
        "{told}"
    );
}

#[test]
fn extraction_skips_sessions_that_saved_memories_and_can_be_disabled() {
    let id = "019a8f20-0000-7000-8000-000000000001";
    let directory = Arc::new(Mutex::new(std::path::PathBuf::new()));
    let place = Arc::clone(&directory);
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        assert!(!is_fork(ask), "nobody is to be asked");
        let now = Timestamp::from_milliseconds(1_800_000_000_000);
        let by = Author::Session { session: id.to_owned(), entry: None };
        let head = MemoryHeader {
            name: String::from("mine"),
            description: String::from("d"),
            kind: MemoryKind::User,
            modified: None,
            origin: by.clone(),
        };
        let mut memory = MemoryStore::open(&place.lock().unwrap(), now).unwrap();
        memory.write("mine", &MemoryFile::new(head, "x\n"), &by, now).unwrap();
        says("Written.")
    }));
    directory.lock().unwrap().push(world.memory());
    let said = finish(world.learning(&["--session-id", id, "Remember this."]).spawn().unwrap());
    assert_eq!((said.code, said.out.trim()), (0, "Written."), "{}", said.err);
    let covered = world.logs()[0].parent().unwrap().join("memory.json");
    assert!(
        std::fs::read_to_string(covered).unwrap().contains("\"point\":1"),
        "it is noted how far that was"
    );
    for (name, value) in [
        ("PAL_EXTRACTION", "false"),
        ("PAL_DISABLE_MEMORY", "1"),
        ("PAL_EXTRACTION_TOKENS", "100000"),
        ("PAL_BACKGROUND_TOKENS_DAILY", "0"),
    ] {
        let said = finish(world.learning(&["go"]).env(name, value).spawn().unwrap());
        assert_eq!(said.code, 0, "{name}: {}", said.err);
    }
    assert_eq!(world.provider.heard().asked.len(), 5);
}

#[test]
fn extractions_run_one_after_another_and_the_last_sees_everything() {
    let world = TestWorld::new(ProviderSetup::answers(|_, ask| match (is_fork(ask), turns(ask)) {
        (false, _) => says("Done."),
        (true, _) if !ask.messages.last().unwrap().blocks.concat().contains("tool_result") => {
            calls("", &[("Glob", json!({"pattern": "*"}))])
        }
        (true, _) => says("nothing"),
    }));
    let mut command = world.learning(&["--input-format", "stream-json", "--output-format", "stream-json"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    {
        use std::io::Write;
        let mut lines = child.stdin.take().unwrap();
        for prompt in ["first", "second", "the third and last"] {
            let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
            writeln!(lines, "{line}").unwrap();
        }
    }
    let said = finish(child);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    let forks: Vec<String> = heard
        .asked
        .iter()
        .map(pal_agent_testkit::ReceivedRequest::text)
        .filter(|text| text.contains(FORK))
        .collect();
    assert!(forks.len().is_multiple_of(2) && (2..=6).contains(&forks.len()), "{}", forks.len());
    for pair in forks.chunks(2) {
        assert!(pair[1].starts_with(pair[0].trim_end()), "a run goes to its end before another begins");
    }
    assert!(forks.last().unwrap().contains("the third and last"));
}
