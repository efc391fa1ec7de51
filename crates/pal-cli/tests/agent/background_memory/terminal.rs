//! A dream that an interactive session begins by itself: seen as a task, stopped, and taken back.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};

use super::{is_dream, turns, write};
use crate::test_world::{PATIENCE, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

/// The next line that holds this.
fn next(lines: &Receiver<String>, words: &str) -> String {
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line with {words:?} comes"));
        if line.contains(words) {
            return line;
        }
    }
}

#[test]
fn a_dream_is_a_task_that_can_be_stopped() {
    let place = Arc::new(Mutex::new(PathBuf::new()));
    let free = Arc::new((Mutex::new(false), Condvar::new()));
    let (there, held) = (Arc::clone(&place), Arc::clone(&free));
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| match (is_dream(ask), turns(ask)) {
        (false, _) => says("Hello."),
        (true, 0) => calls("I begin.", &[write(&there.lock().unwrap(), "half", "Half a thought.")]),
        (true, _) => {
            let waits = held.0.lock().unwrap();
            drop(held.1.wait_timeout_while(waits, PATIENCE, |is_free| !*is_free).unwrap());
            says("Too late.")
        }
    }));
    place.lock().unwrap().push(world.memory());
    world.remember("fridays", "We release on Fridays.");
    let before = world.memories();
    let mut command = world.command(&["--plain", "--settings", "dream_sessions = 0"]);
    let mut child = command.env("PAL_DREAMING", "true").stdin(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "hello there").unwrap();
    assert!(world.provider.wait_until(PATIENCE, |heard| heard.asked.len() >= 3), "it dreams");
    writeln!(input, "/tasks").unwrap();
    let task = next(&lines, "dream: ");
    assert!(task.contains("updating") && task.contains("half.md"), "{task}");
    writeln!(input, "/tasks dream").unwrap();
    next(&lines, "I begin.");
    writeln!(input, "/tasks dream stop").unwrap();
    next(&lines, "The dream is stopped");
    *free.0.lock().unwrap() = true;
    free.1.notify_all();
    loop {
        writeln!(input, "/tasks dream").unwrap();
        if next(&lines, "dream: ").contains("killed") {
            break;
        }
    }
    drop(input);
    let said = finish(child);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(world.memories(), before);
    assert_eq!(std::fs::read_to_string(world.memory().join(".consolidate-lock")).unwrap(), "");
}
