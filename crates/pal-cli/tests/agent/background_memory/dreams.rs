//! Dreams: what they wait for, what they change, and that nothing is changed by those that fail.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use pal_sim::ModelPrompt;
use serde_json::{Value, json};

use super::{is_dream, turns, write};
use crate::test_world::{TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

/// The directory that a dream is told of: a copy, where it only shows what it would do.
fn told(ask: &ModelPrompt<'_>) -> PathBuf {
    let system = ask.system.concat();
    let (_, behind) = system.split_once("The memories are files in ").unwrap();
    PathBuf::from(behind.split_once(", each with front matter").unwrap().0)
}

/// A dream that looks around, brings two memories together and removes one.
fn merging(_: &Arc<Mutex<PathBuf>>) -> ProviderSetup {
    ProviderSetup::answers(move |_, ask| {
        assert!(is_dream(ask));
        let place = told(ask);
        match turns(ask) {
            0 => calls(
                "Looking around.",
                &[
                    ("Bash", json!({"command": "ls && grep -rn --include='*.rs' pub src"})),
                    ("Read", json!({"file_path": place.join("fridays.md")})),
                    ("SearchSessions", json!({"query": "release"})),
                ],
            ),
            1 => calls(
                "Both say the same.",
                &[
                    (
                        "Edit",
                        json!({"file_path": place.join("fridays.md"), "old_string": "We release on Fridays.", "new_string": "Releases are on Fridays, not on Mondays."}),
                    ),
                    ("Write", json!({"file_path": place.join("mondays.md"), "content": ""})),
                ],
            ),
            _ => says("Two memories about releases are one now."),
        }
    })
}

fn world(made: impl FnOnce(&Arc<Mutex<PathBuf>>) -> ProviderSetup) -> TestWorld {
    let place = Arc::new(Mutex::new(PathBuf::new()));
    let world = TestWorld::new(made(&place));
    place.lock().unwrap().push(world.memory());
    world.remember("fridays", "We release on Fridays.");
    world.remember("mondays", "We do not release on Mondays.");
    world
}

fn lock(world: &TestWorld) -> (String, u64) {
    let file = world.memory().join(".consolidate-lock");
    let time = file.metadata().unwrap().modified().unwrap();
    let since = time.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    (std::fs::read_to_string(file).unwrap(), since.as_secs())
}

#[test]
fn a_dream_lists_its_conditions_and_asks_no_model_before() {
    let world = world(|_| ProviderSetup::answers(|_, _| panic!("nobody is to be asked")));
    let said = world.dream(&[]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("Not due"), "{}", said.out);
    assert!(said.err.contains("memories were never put in order"), "{}", said.err);
    assert!(said.err.contains("no   0 other sessions since then, of 5 that are wanted"), "{}", said.err);
    let off = finish(world.dreaming(&["--now", "--json"]).env("PAL_DISABLE_DREAMING", "1").spawn().unwrap());
    let off: Value = serde_json::from_str(&off.out).unwrap();
    let spent = finish(world.dreaming(&["--now"]).env("PAL_BACKGROUND_TOKENS_DAILY", "0").spawn().unwrap());
    assert_eq!(spent.code, 1, "{}", spent.out);
    assert!(spent.out.contains("no more today"), "{}", spent.out);
    assert_eq!((&off["run"], &off["gates"][0]["is_open"]), (&Value::Null, &json!(false)), "{off}");
}

#[test]
fn a_dream_changes_memories_and_can_be_undone() {
    let world = world(merging);
    let before = world.memories();
    let rehearsed = world.dream(&["--now", "--dry-run"]);
    assert_eq!(rehearsed.code, 0, "{}", rehearsed.err);
    assert!(
        rehearsed.out.contains("+Releases are on Fridays") && rehearsed.out.contains("+++ /dev/null"),
        "{}",
        rehearsed.out
    );
    assert_eq!(world.memories(), before, "a rehearsal changes nothing");
    let said = world.dream(&["--now", "--json"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let run = serde_json::from_str::<Value>(&said.out).unwrap()["run"].take();
    assert_eq!(
        (&run["state"], &run["requests"], &run["refused"]),
        (&json!("completed"), &json!(3), &json!([])),
        "{run}"
    );
    assert_eq!(run["turns"][1]["calls"].as_array().unwrap().len(), 2, "{run}");
    let cut: Vec<&str> =
        run["cuts"].as_array().unwrap().iter().map(|cut| cut["file"].as_str().unwrap()).collect();
    assert_eq!(cut, ["fridays.md", "mondays.md"], "less than half of both is left: {run}");
    let after = world.memories();
    assert!(after["fridays.md"].contains("not on Mondays") && !after.contains_key("mondays.md"));
    assert!(after["fridays.md"].contains("origin: person"), "who wrote it first stays");
    assert!(!after["MEMORY.md"].contains("mondays"));
    let (body, _) = lock(&world);
    assert_eq!(body, "");
    let again = world.dream(&[]);
    assert!(again.err.contains("no   the last time was"), "{}", again.err);
    let undone = finish(world.command(&["memory", "undo", &run["since"].to_string()]).spawn().unwrap());
    assert_eq!(undone.code, 0, "{}", undone.err);
    assert_eq!(world.memories(), before, "byte for byte");
}

#[test]
fn a_dream_sees_what_the_last_one_removed() {
    let place = Arc::new(Mutex::new(PathBuf::new()));
    let world = TestWorld::new(merging(&place));
    place.lock().unwrap().push(world.memory());
    world.remember("fridays", "We release on Fridays.");
    world.remember("mondays", "We do not release on Mondays.");
    assert_eq!(world.dream(&["--now"]).code, 0);
    let before = world.provider.heard().asked.len();
    let said = world.dream(&["--now", "--dry-run", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let heard = world.provider.heard();
    let told = heard.asked[before].text();
    assert!(
        told.contains("bring back what should not have gone") && told.contains("mondays.md: 0 of 1 lines"),
        "{told}"
    );
}

#[test]
fn a_failed_or_stopped_dream_changes_nothing() {
    let (child, signal) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new("")));
    let (victim, sent) = (Arc::clone(&child), Arc::clone(&signal));
    let world = world(move |place| {
        let place = Arc::clone(place);
        ProviderSetup::answers(move |_, ask| {
            let place = place.lock().unwrap().clone();
            match (turns(ask), *sent.lock().unwrap()) {
                (0, _) => calls(
                    "",
                    &[
                        write(&place, "half", "Half a thought."),
                        ("Write", json!({"file_path": place.join("mondays.md"), "content": ""})),
                    ],
                ),
                (_, "") => says("Done."),
                (1, signal) => {
                    while victim.load(Ordering::SeqCst) == 0 {
                        std::thread::yield_now();
                    }
                    let pid = victim.load(Ordering::SeqCst).to_string();
                    let killed = std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
                    assert!(killed.success());
                    calls("", &[("Glob", json!({"pattern": "*"}))])
                }
                // It hears no more answers: it was told to stop.
                _ => {
                    let process = PathBuf::from(format!("/proc/{}", victim.load(Ordering::SeqCst)));
                    let until = std::time::Instant::now() + crate::test_world::PATIENCE;
                    while process.exists() && std::time::Instant::now() < until {
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                    says("Too late.")
                }
            }
        })
    });
    let before = world.memories();
    let run = |with: &'static str| {
        *signal.lock().unwrap() = with;
        child.store(0, Ordering::SeqCst);
        let spawned = world.dreaming(&["--now"]).spawn().unwrap();
        child.store(spawned.id(), Ordering::SeqCst);
        finish(spawned)
    };
    let stopped = run("-TERM");
    assert_eq!(stopped.code, 1, "{}{}", stopped.out, stopped.err);
    assert!(stopped.out.contains("Stopped, nothing changed"), "{}", stopped.out);
    assert_eq!(world.memories(), before);
    assert_eq!(lock(&world), (String::new(), 0), "as if it had never been");
    let killed = run("-KILL");
    assert_eq!(killed.code, -1);
    assert!(!lock(&world).0.is_empty() && world.memories().contains_key("half.md"), "nobody could clean up");
    let next = world.dream(&["--json"]);
    assert!(
        next.out.contains("memories were never put in order"),
        "what was killed does not count: {}",
        next.out
    );
    let done = run("");
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(done.err.contains("what a dream had changed that was killed is taken back"), "{}", done.err);
    let (body, time) = lock(&world);
    assert!(body.is_empty() && time > 0);
    let undo = done.out.split("`pal memory undo ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let undone = finish(world.command(&["memory", "undo", &undo]).spawn().unwrap());
    assert_eq!(undone.code, 0, "{}", undone.err);
    assert_eq!(world.memories(), before, "the killed one left nothing behind");
}

#[test]
fn a_provider_failure_changes_nothing() {
    let made =
        |place: &Arc<Mutex<PathBuf>>| ProviderSetup { faults: String::from("400@2-"), ..merging(place) };
    let world = world(|place| {
        let place = Arc::clone(place);
        let faulty = made(&place);
        let answers = ProviderSetup::answers(move |_, _| {
            calls("", &[write(&place.lock().unwrap(), "half", "Half a thought.")])
        });
        ProviderSetup { model: answers.model, ..faulty }
    });
    let before = world.memories();
    let said = world.dream(&["--now"]);
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(said.out.contains("Failed, nothing changed"), "{}", said.out);
    assert_eq!(world.memories(), before);
    assert_eq!(lock(&world), (String::new(), 0));
}

#[test]
fn only_one_dream_runs_at_a_time() {
    let world = world(merging);
    std::fs::write(world.memory().join(".consolidate-lock"), held_by(std::process::id())).unwrap();
    let said = world.dream(&["--now"]);
    assert!(
        said.err.contains(&format!("process {} puts memories in order", std::process::id())),
        "{}",
        said.err
    );
    assert!(world.provider.heard().asked.is_empty());
    // The same number, but a process that began at another time.
    let body = held_by(std::process::id()).replace('@', "7@");
    std::fs::write(world.memory().join(".consolidate-lock"), body).unwrap();
    assert_eq!(world.dream(&["--now"]).code, 0, "it is dead");
}

/// Contents of a process's lock file.
fn held_by(pid: u32) -> String {
    let process = pal_mailbox::ProcessIdentity::of(pid).unwrap();
    format!("{pid} {}\nbefore 0\nruns none\n", process.began)
}
