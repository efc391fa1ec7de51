//! Real commands in the foreground and background.

#![allow(clippy::expect_used)]

mod background_runs;
mod foreground_runs;

use std::path::Path;
use std::time::{Duration, Instant};

use pal_process::Program;

/// Shell command line as a program.
fn shell(line: &str) -> Program {
    Program {
        path: "sh".into(),
        arguments: vec!["-c".into(), line.into()],
        directory: "/".into(),
        environment: Vec::new(),
        thread_setup: None,
    }
}

/// Returns whether a process is alive; a zombie is not.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Returns whether a process ends within a second.
fn has_gone(pid: &str) -> bool {
    assert!(Path::new("/proc/self/stat").exists(), "these tests look at /proc");
    assert!(pid.trim().parse::<u32>().is_ok(), "{pid:?} is a process number");
    eventually(|| !is_alive(pid))
}

fn eventually(holds: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}
