//! Sessions that are continued from another directory than their own.

use std::path::Path;

use pal_agent_testkit::{ProviderSetup, calls, says};
use serde_json::json;

use crate::test_world::{RunOutput, TestWorld, finish, log_lines};

/// A provider whose second answer writes `note.txt`, a relative path.
fn writing_world() -> TestWorld {
    TestWorld::new(ProviderSetup::answers(|at, _| match at {
        1 => calls("Writing.", &[("Write", json!({"file_path": "note.txt", "content": "here"}))]),
        _ => says("Done."),
    }))
}

fn run_in(world: &TestWorld, directory: &Path, arguments: &[&str]) -> RunOutput {
    let all = [&["-p", "--permission-mode", "accept-edits"], arguments].concat();
    finish(world.command(&all).current_dir(directory).spawn().unwrap())
}

fn id_of(log: &Path) -> String {
    log.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_session_of_another_directory_is_not_continued_silently() {
    let world = writing_world();
    let (own, other) = (world.repository(), world.home().join("other"));
    std::fs::create_dir_all(&other).unwrap();
    assert_eq!(run_in(&world, &own, &["hello"]).code, 0);
    let id = id_of(&world.logs()[0]);
    let sent = world.provider.heard().asked.len();
    let said = run_in(&world, &other, &["--resume", &id, "write"]);
    assert_eq!(said.code, 1, "{}", said.out);
    let own_path = own.canonicalize().unwrap();
    for word in ["--cd", "--fork-session", own_path.to_str().unwrap()] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert_eq!(world.provider.heard().asked.len(), sent, "nothing is sent");
    assert!(!other.join("note.txt").exists());

    let said = run_in(&world, &other, &["--cd", own.to_str().unwrap(), "--resume", &id, "write"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(own.join("note.txt").exists() && !other.join("note.txt").exists());
    assert_eq!(world.logs().len(), 1);
}

#[test]
fn a_fork_continues_in_the_current_directory_and_belongs_to_it() {
    let world = writing_world();
    let (own, other) = (world.repository(), world.home().join("other"));
    std::fs::create_dir_all(&other).unwrap();
    assert_eq!(run_in(&world, &own, &["hello"]).code, 0);
    let original = world.logs().pop().unwrap();
    let said = run_in(&world, &other, &["--resume", &id_of(&original), "--fork-session", "write"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(other.join("note.txt").exists() && !own.join("note.txt").exists());
    let heard = world.provider.heard();
    let told = heard.asked[1].text();
    let other_path = other.canonicalize().unwrap();
    assert!(told.contains(&format!("working directory is now {}", other_path.display())), "{told}");
    assert_eq!(heard.asked[0].head, heard.asked[1].head, "the fork reads the cache of the original");
    drop(heard);

    let fork = world.logs().into_iter().find(|log| *log != original).unwrap();
    let lines = log_lines(&fork).len();
    let said = run_in(&world, &other, &["--continue", "again"]);
    assert_eq!(said.code, 0, "the fork belongs to the other directory: {}", said.err);
    assert!(log_lines(&fork).len() > lines);
    let told = world.provider.heard().asked.last().unwrap().text();
    assert_eq!(told.matches("working directory is now").count(), 1, "it is told once: {told}");
    let said = run_in(&world, &own, &["--resume", &id_of(&fork), "write"]);
    assert!(said.code == 1 && said.err.contains("--fork-session"), "{}", said.err);
}

/// The newest session of the project is one of another worktree; the newest of this directory is continued.
#[test]
fn the_newest_session_of_the_directory_is_continued_first() {
    let world = writing_world();
    let (own, below) = (world.repository(), world.repository().join("src"));
    assert_eq!(run_in(&world, &own, &["hello"]).code, 0);
    let original = world.logs().pop().unwrap();
    let said = run_in(&world, &below, &["--continue", "and here?"]);
    assert!(said.code == 1 && said.err.contains("--cd"), "{}", said.err);
    assert_eq!(run_in(&world, &below, &["hello"]).code, 0);
    let lines = log_lines(&original).len();
    let said = run_in(&world, &own, &["--continue", "go on"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(log_lines(&original).len() > lines);
}
