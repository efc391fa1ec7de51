//! `pal sessions`: which are listed, what is said of them, and that the sums are those of the ledger.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use pal_model::DecisionKind;
use pal_testkit::session_files;
use serde_json::Value;

use crate::program::{CommandOutput, TestHome};
use crate::stored_session::{ImportedSession, foreign, question};

#[track_caller]
fn good(said: CommandOutput) -> String {
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
    said.out
}

#[track_caller]
fn list(said: CommandOutput) -> Vec<Value> {
    serde_json::from_str(&good(said)).unwrap()
}

#[test]
fn a_session_is_listed_with_title_size_and_cost() {
    let stored = ImportedSession::new(3);
    let row = list(stored.home.run_in(&stored.project, &["sessions", "--json"])).remove(0);
    assert_eq!(row["title"], question(1), "the first prompt stands for a title");
    assert_eq!(row["bytes"], stored.bytes().len());
    let lines = stored.bytes().iter().filter(|byte| **byte == b'\n').count();
    assert_eq!((&row["entries"], &row["responses"]), (&lines.into(), &6.into()));
    assert_eq!((&row["model"], &row["problem"]), (&"claude-opus-4-6".into(), &Value::Null));
    assert_eq!(row["last_active"], "2026-11-15T09:03:30.000Z");
    stored.decide(DecisionKind::Title { title: "The moon, and what it breaks".into() }, "asked");
    let out = good(stored.home.run_in(&stored.project, &["sessions"]));
    assert!(out.contains("The moon, and what it breaks") && out.contains(" · claude-opus-4-6\n"), "{out}");
    let id = row["id"].as_str().unwrap();
    assert!(out.starts_with(&id[..8]), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(out.contains("1 session: $0.1014, 142.5 K tokens, "), "totals: {out}");
    let other = stored.home.path().join("elsewhere");
    std::fs::create_dir_all(&other).unwrap();
    let elsewhere = good(stored.home.run_in(&other, &["sessions"]));
    assert!(elsewhere.contains("1 session in other directories: `pal sessions --all`"), "{elsewhere}");
    assert_eq!(stored.home.run(&["cost", &id[..8]]).code, 0, "what is shown of an id is enough to name it");
}

#[test]
fn responses_copied_by_a_fork_count_once() {
    let stored = ImportedSession::new(3);
    let original = list(stored.home.run_in(&stored.project, &["sessions", "--json"])).remove(0);
    let log = Path::new(original["path"].as_str().unwrap());
    let sessions = log.parent().unwrap().parent().unwrap();
    // A fork in the same project, and one in a project whose name sorts before it.
    let elsewhere = sessions.parent().unwrap().with_file_name("-a").join("sessions");
    for folder in [
        sessions.join("ffffffff-0000-7000-8000-000000000001"),
        elsewhere.join("ffffffff-0000-7000-8000-000000000002"),
    ] {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(log, folder.join("log.jsonl")).unwrap();
    }
    let rows = list(stored.home.run(&["sessions", "--all", "--json"]));
    assert_eq!(rows.len(), 3);
    for row in &rows {
        let is_original = row["id"] == original["id"];
        let expected = if is_original { original["cost_usd"].clone() } else { Value::Null };
        assert_eq!(
            (&row["cost_usd"], &row["copied_responses"]),
            (&expected, &(if is_original { 0 } else { 6 }).into())
        );
    }
    let out = good(stored.home.run(&["sessions", "--all"]));
    assert!(out.contains("3 sessions: $0.1014, 142.5 K tokens, "), "{out}");
    let overview = good(stored.home.run(&["cost", "--all", "--by", "session"]));
    assert!(overview.contains("$0.10") && !overview.contains("ffffffff"), "{overview}");
    // The original counts although it is not in the list.
    let fork = elsewhere.join("ffffffff-0000-7000-8000-000000000002");
    let moved = std::fs::read_to_string(log).unwrap();
    let directory = stored.home.path().canonicalize().unwrap().join("other");
    std::fs::create_dir_all(&directory).unwrap();
    let project = stored.project.canonicalize().unwrap();
    std::fs::write(
        fork.join("log.jsonl"),
        moved.replace(&project.display().to_string(), &directory.display().to_string()),
    )
    .unwrap();
    let rows = list(stored.home.run_in(&directory, &["sessions", "--json"]));
    assert_eq!((rows.len(), &rows[0]["cost_usd"]), (1, &Value::Null), "{rows:?}");
}

#[test]
fn usage_that_no_response_reports_is_not_zero() {
    let stored = ImportedSession::new(1);
    let row = list(stored.home.run_in(&stored.project, &["sessions", "--json"])).remove(0);
    let log = row["path"].as_str().unwrap();
    let text = std::fs::read_to_string(log).unwrap();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut value: Value = serde_json::from_str(line).unwrap();
        if value["kind"] == "response" {
            value["usage"] = serde_json::json!({"basis": "simulated"});
            value.as_object_mut().unwrap().shift_remove("cost");
        }
        lines.push(match value["kind"] == "response" {
            true => format!("{}\n", value),
            false => format!("{line}\n"),
        });
    }
    std::fs::write(log, lines.concat()).unwrap();
    let out = good(stored.home.run_in(&stored.project, &["sessions"]));
    assert!(out.contains("  usage not reported · ") && !out.contains("0 tokens"), "{out}");
}

#[test]
fn simulated_money_is_kept_out_of_the_sums() {
    let stored = ImportedSession::new(3);
    let cost = || {
        let row = list(stored.home.run_in(&stored.project, &["sessions", "--json"])).remove(0);
        (row["cost_usd"].as_f64().unwrap(), row["simulated_cost_usd"].as_f64())
    };
    let before = cost();
    assert_eq!(before.1, None);
    let _ = stored.good("compact", &["--provider", "sim"]);
    let after = cost();
    assert_eq!(after.0, before.0, "nothing was paid");
    assert!(after.1.is_some_and(|simulated| simulated > 0.0), "{after:?}");
    let out = good(stored.home.run_in(&stored.project, &["sessions"]));
    assert!(out.contains(" simulated · "), "{out}");
    let out = stored.good("cost", &[]);
    assert!(out.contains("1 request went to the simulator: that money was not spent"), "{out}");
}

#[test]
fn the_newest_session_comes_first_and_all_adds_other_projects() {
    let stored = ImportedSession::new(1);
    let elsewhere = tempfile::tempdir().unwrap();
    let other =
        stored.home.file("other.jsonl", foreign(elsewhere.path(), "0ther000", 2).replace("T09:", "T10:"));
    good(stored.home.run(&["import", &other]));
    assert_eq!(list(stored.home.run_in(&stored.project, &["sessions", "--json"])).len(), 1);
    let inner = stored.project.join("src");
    assert_eq!(
        list(stored.home.run_in(&inner, &["sessions", "--json"])).len(),
        1,
        "from a folder inside, too"
    );
    let all = list(stored.home.run_in(&stored.project, &["sessions", "--all", "--json"]));
    let cwds: Vec<&str> = all.iter().map(|row| row["cwd"].as_str().unwrap()).collect();
    assert_eq!(cwds, [elsewhere.path().to_str().unwrap(), stored.project.to_str().unwrap()]);
    let named = list(stored.home.run(&["sessions", elsewhere.path().to_str().unwrap(), "--json"]));
    assert_eq!(named, [all[0].clone()]);
    let out = good(stored.home.run(&["sessions", "--all", "--limit", "1"]));
    assert!(out.contains("… and 1 older") && out.contains(elsewhere.path().to_str().unwrap()), "{out}");
    let nowhere = tempfile::tempdir().unwrap();
    let out = good(stored.home.run_in(nowhere.path(), &["sessions"]));
    assert!(out.starts_with("No sessions found for ") && out.contains("pal import"), "{out}");
    assert_eq!(list(stored.home.run_in(nowhere.path(), &["sessions", "--json"])).len(), 0);
}

fn git(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=a@example.org"])
        .args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(command.output().unwrap().status.success(), "git {arguments:?}");
}

#[test]
fn worktrees_show_the_sessions_of_their_repository() {
    let stored = ImportedSession::new(1);
    git(&stored.project, &["init", "-q"]);
    git(&stored.project, &["add", "-A"]);
    git(&stored.project, &["commit", "-qm", "first"]);
    let tree = stored.home.path().join("tree");
    git(&stored.project, &["worktree", "add", "-q", tree.to_str().unwrap(), "-b", "tree"]);
    let second = stored.home.file("tree.jsonl", foreign(&tree, "7ree0000", 1));
    good(stored.home.run(&["import", &second]));
    for directory in [stored.project.clone(), stored.project.join("src"), tree.clone(), tree.join("src")] {
        let found = list(stored.home.run_in(&directory, &["sessions", "--json"]));
        assert_eq!(found.len(), 2, "{}", directory.display());
    }
    assert_eq!(
        good(stored.home.run_in(&tree, &["cost"])),
        good(stored.home.run_in(&stored.project, &["cost"]))
    );
}

#[test]
fn damaged_logs_are_listed_with_their_problem() {
    let stored = ImportedSession::new(1);
    let run = |stored: &ImportedSession| {
        list(stored.home.run_in(&stored.project, &["sessions", "--json"])).remove(0)
    };
    let whole = run(&stored);
    let bytes = stored.bytes();
    std::fs::write(&stored.log, &bytes[..bytes.len() - 9]).unwrap();
    let torn = run(&stored);
    assert!(torn["problem"].as_str().unwrap().contains("torn"), "{torn}");
    assert_eq!((&torn["title"], &torn["bad_lines"]), (&whole["title"], &1.into()));
    let zeros = [&bytes[..], &[0; 500], b"\n", b"{\"v\":1,\"id\":7}\n"].concat();
    std::fs::write(&stored.log, zeros).unwrap();
    let damaged = run(&stored);
    assert_eq!((&damaged["bad_lines"], &damaged["cost_usd"]), (&2.into(), &whole["cost_usd"]));
    let out = good(stored.home.run_in(&stored.project, &["sessions"]));
    assert!(out.contains("damaged (2 bad lines): line "), "{out}");
    std::fs::write(&stored.log, "{\"v\":9,\"id\":\"01890000-0000-7000-8000-000000000001\",\"at\":\"2026-11-15T09:00:00.000Z\",\"kind\":\"user\"}\n").unwrap();
    let newer = list(stored.home.run(&["sessions", "--all", "--json"])).remove(0);
    assert!(newer["problem"].as_str().unwrap().contains("update pal"), "{newer}");
    std::fs::write(&stored.log, "").unwrap();
    let empty = list(stored.home.run(&["sessions", "--all", "--json"])).remove(0);
    assert_eq!((&empty["entries"], &empty["title"]), (&0.into(), &Value::Null));
    assert!(good(stored.home.run(&["sessions", "--all"])).contains("(no prompt yet)"));
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_sessions_cost_the_same_in_list_and_ledger() {
    let files: Vec<String> = session_files().iter().map(|file| file.to_str().unwrap().to_owned()).collect();
    if files.is_empty() {
        return;
    }
    let home = TestHome::new();
    let arguments: Vec<&str> = ["import"].into_iter().chain(files.iter().map(String::as_str)).collect();
    good(home.run(&arguments));
    let listed = list(home.run(&["sessions", "--all", "--json"]));
    let by_path: BTreeMap<&str, &Value> =
        listed.iter().map(|row| (row["path"].as_str().unwrap(), row)).collect();
    let written = home.written();
    assert_eq!(listed.len(), written.iter().filter(|file| file.ends_with("log.jsonl")).count());
    for (path, row) in by_path {
        let cost: Value = serde_json::from_str(&good(home.run(&["cost", path, "--json"]))).unwrap();
        let all = &cost["all"];
        assert_eq!(
            (&row["responses"], &row["unpriced_responses"]),
            (&all["requests"], &all["unpriced"]),
            "{path}"
        );
        let (one, other) = (row["cost_usd"].as_f64(), all["cost"].as_f64());
        assert_eq!(one.is_some(), other.is_some(), "{path}");
        assert!((one.unwrap_or(0.0) - other.unwrap_or(0.0)).abs() < 1e-9, "{path}: {one:?} {other:?}");
        assert_eq!((&row["problem"], row["title"].is_string()), (&Value::Null, true), "{path}");
    }
    println!("{} sessions listed", listed.len());
}
