//! `pal import`: directories, sessions that grow, and following them while they are written.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::commands::SESSION;
use crate::program::{CommandOutput, TestHome};

#[track_caller]
fn good(said: CommandOutput) -> String {
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
    said.out
}

fn logs(home: &TestHome) -> Vec<PathBuf> {
    let mut logs: Vec<PathBuf> =
        home.written().into_iter().filter(|file| file.ends_with("log.jsonl")).collect();
    logs.sort();
    logs
}

/// What was said in a log, and the ids of the entries.
fn said_in(log: &Path) -> (Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(log).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let contents = entries.iter().filter(|entry| entry["kind"] == "user" || entry["kind"] == "assistant");
    (
        contents.map(|entry| entry["content"].to_string()).collect(),
        entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect(),
    )
}

#[test]
fn a_session_that_grew_extends_its_log() {
    let lines: Vec<&str> = SESSION.lines().collect();
    // Cut after each line: the tools of the prefix and the end of a response change while it grows.
    for cut in 1..lines.len() {
        let home = TestHome::new();
        let file = home.file("session.jsonl", lines[..cut].join("\n") + "\n");
        good(home.run(&["import", &file]));
        let first = logs(&home);
        std::fs::write(&file, SESSION).unwrap();
        let out = good(home.run(&["import", &file]));
        assert!(out.contains("extended by "), "cut {cut}: {out}");
        assert_eq!(logs(&home), first, "cut {cut}: one log under the same id");
        let whole = TestHome::new();
        let whole_file = whole.file("session.jsonl", SESSION);
        good(whole.run(&["import", &whole_file]));
        let (grown, fresh) = (&first[0], &logs(&whole)[0]);
        assert_eq!(
            std::fs::read(grown).unwrap(),
            std::fs::read(fresh).unwrap(),
            "cut {cut}: as imported at once"
        );
        let checked = home.run(&["check", grown.to_str().unwrap()]);
        assert_eq!(checked.code, 0, "{}", checked.out);
        // An older copy takes nothing away.
        std::fs::write(&file, lines[..cut].join("\n") + "\n").unwrap();
        assert!(good(home.run(&["import", &file])).contains("already imported"));
        assert_eq!(said_in(grown).0.len(), 4);
    }
}

#[test]
fn a_log_that_was_continued_in_pal_is_never_rewritten() {
    let home = TestHome::new();
    let start: String = SESSION.lines().take(2).map(|line| format!("{line}\n")).collect();
    let file = home.file("session.jsonl", &start);
    good(home.run(&["import", &file]));
    let log = logs(&home)[0].clone();
    good(home.run(&["pin", log.to_str().unwrap(), "Keep the port."]));
    let continued = std::fs::read(&log).unwrap();
    std::fs::write(&file, SESSION).unwrap();
    let out = good(home.run(&["import", &file]));
    assert!(out.contains("was continued in pal or differs"), "{out}");
    assert_eq!(std::fs::read(&log).unwrap(), continued);
    let all = logs(&home);
    assert_eq!(all.len(), 2);
    assert!(good(home.run(&["import", &file])).contains("already imported"), "the copy is not copied again");
    assert_eq!(logs(&home), all);
}

#[test]
fn directories_are_searched_and_other_files_left_alone() {
    let home = TestHome::new();
    let directory = home.path().join("projects/deep");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("a.jsonl"), SESSION).unwrap();
    std::fs::write(directory.join("b.jsonl"), SESSION.replace("\"s1\"", "\"s2\"")).unwrap();
    std::fs::write(directory.join("package.json"), "{\"name\": \"x\"}").unwrap();
    let folder = home.path().join("projects");
    let out = good(home.run(&["import", folder.to_str().unwrap()]));
    for words in ["2 logs written, 0 extended, 0 already imported", "1 other file", "cost", "$0.2751"] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    assert_eq!(logs(&home).len(), 2);
    let named = home.run(&["import", directory.join("package.json").to_str().unwrap()]);
    assert!(named.code == 1 && named.err.contains("not recognised"), "{}", named.err);
    let empty = home.path().join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let said = home.run(&["import", empty.to_str().unwrap()]);
    assert!(said.code == 1 && said.err.contains("empty: no session files there"), "{}", said.err);
}

#[test]
fn watched_sessions_are_imported_while_they_are_written() {
    let home = TestHome::new();
    let directory = home.path().join("projects");
    std::fs::create_dir_all(&directory).unwrap();
    let lines: Vec<&str> = SESSION.lines().collect();
    let file = directory.join("a.jsonl");
    std::fs::write(&file, lines[..1].join("\n") + "\n").unwrap();
    let mut command = home.command(&["import", "--watch", directory.to_str().unwrap()]);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = out.next().unwrap().unwrap();
    assert!(first.starts_with("new: "), "{first}");
    let mut source = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    source.write_all((lines[1..].join("\n") + "\n").as_bytes()).unwrap();
    let second = out.next().unwrap().unwrap();
    assert!(second.starts_with('+') && second.contains(" entries: "), "{second}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(said_in(&logs(&home)[0]).0.len(), 4);
}
