//! Processes that leave their group: none outlives its command, session or program, and each is reported.
//!
//! Everything here concerns the whole process, so there is one test in steps.

// Panics are test failures.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pal_process::{
    BackgroundCommands, BackgroundState, COMMAND_VARIABLE, CancelToken, CaptureLimits, CommandInput,
    CommandOutcome, CommandSpec, EndedProcesses, ProcessSession, Program, SESSION_VARIABLE, StreamMode,
    adopt_orphans, end_abandoned, end_descendants, run_command, take_unreported,
};

fn shell(line: &str) -> Program {
    Program {
        path: "bash".into(),
        arguments: vec!["-c".into(), line.into()],
        directory: PathBuf::from("/"),
        environment: Vec::new(),
        thread_setup: None,
    }
}

fn finished(program: Program) -> CommandOutcome {
    let spec = CommandSpec {
        program,
        input: CommandInput::Nothing,
        streams: StreamMode::Merged,
        keep: CaptureLimits::up_to(100_000),
        limit: Some(Duration::from_secs(60)),
    };
    run_command(spec, &CancelToken::new(), &|_| ()).unwrap()
}

/// Other processes whose command line contains a text.
fn running(text: &str) -> BTreeSet<i32> {
    processes(|line| line.contains(text))
}

/// Other processes with a matching command line, whose words end with a zero byte.
fn processes(is_meant: impl Fn(&str) -> bool) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        if pid != std::process::id().cast_signed() && is_meant(&String::from_utf8_lossy(&line)) {
            found.insert(pid);
        }
    }
    found
}

/// Waits until this number of processes run this program: before that they still run `setsid`.
fn wait_for(count: usize, text: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    let whole = format!("{text}\0");
    while processes(|line| line == whole).len() < count {
        assert!(Instant::now() < until, "{} of {count} {text}", running(text).len());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Zombie children of this process.
fn zombies() -> usize {
    let own = std::process::id().to_string();
    let is_zombie = |process: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
        matches!(fields.as_slice(), ["Z", parent, ..] if *parent == own)
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|process| is_zombie(process).then_some(()))
        .count()
}

/// Ways in which a command leaves its group or outlives its shell, with a placeholder for the program.
const WAYS: [&str; 8] = [
    "setsid SLEEP >/dev/null 2>&1 &",
    "setsid -f SLEEP >/dev/null 2>&1",
    "(setsid SLEEP >/dev/null 2>&1 &) &",
    "nohup SLEEP >/dev/null 2>&1 &",
    "SLEEP >/dev/null 2>&1 & disown",
    "echo x | setsid SLEEP >/dev/null 2>&1 &",
    "env -i /usr/bin/setsid /usr/bin/env -i SLEEP >/dev/null 2>&1 &",
    "bash -c 'trap \"\" TERM; setsid bash -c \"trap : TERM; while :; do SLEEP; done\" >/dev/null 2>&1 &'",
];

/// Python double fork with a new session.
const DAEMONS: &str = "python3 - <<'END'
import os, time
for _ in range(NUMBER):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in (0, 1, 2): os.close(fd)
            os.execvp('sleep', ['sleep', 'TIME'])
        os._exit(0)
for _ in range(NUMBER):
    os.wait()
END";

#[test]
fn nothing_that_a_command_started_outlives_it() {
    adopt_orphans(std::path::Path::new("/project"));
    five_hundred_in_every_way();
    a_background_command_is_left_alone();
    a_session_ends_what_its_commands_left();
    the_program_ends_everything_below_it();
    leftovers_of_a_killed_program_are_found_by_their_tag();
    strangers_are_never_touched();
    the_same_holds_in_a_container();
}

/// In a container, the leaders of our session and group may be invisible: the system reports 0.
fn the_same_holds_in_a_container() {
    const INSIDE: &str = "PAL_TEST_IN_CONTAINER";
    if std::env::var_os(INSIDE).is_some() {
        return;
    }
    let unshare = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", program]);
        command
    };
    if !unshare("true").output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED LOUDLY: no namespaces here, so this was not seen in a container");
        return;
    }
    let test = std::env::current_exe().unwrap();
    let output = unshare(test.to_str().unwrap()).env(INSIDE, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn five_hundred_in_every_way() {
    let time = "86411";
    let each = 60;
    let mut lines: Vec<String> = Vec::new();
    for way in WAYS {
        let line = way.replace("SLEEP", &format!("sleep {time}"));
        lines.push(format!("for i in $(seq {each}); do {line}\ndone"));
    }
    lines.push(DAEMONS.replace("NUMBER", "40").replace("TIME", time));
    // All of them run before the command ends.
    let count = each * WAYS.len() + 40;
    lines.push(format!(
        "for i in $(seq 300); do [ $(pgrep -fxc 'sleep {time}') -ge {count} ] && break; sleep 0.1; done"
    ));
    let began = Instant::now();
    let done = finished(shell(&lines.join("\n")));
    assert!(done.status.is_success(), "{:?} {}", done.status, done.output.text());
    assert!(done.left_processes);
    let told = done.ended.iter().filter(|ended| ended.command.contains(time)).count();
    let left = running(&format!("sleep {time}"));
    let left_too = running(&format!("sleep\0{time}"));
    assert!(left.is_empty() && left_too.is_empty(), "{} of {count} are left", left.len() + left_too.len());
    assert!(told >= count, "{told} of {count} were told: {}", EndedProcesses(&done.ended));
    assert_eq!(zombies(), 0);
    eprintln!("{count} processes, {told} told, {:?}; {}", began.elapsed(), EndedProcesses(&done.ended));
}

/// A background command continues while others end.
fn a_background_command_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let background = BackgroundCommands::new(folder.path().to_owned(), 1 << 20);
    let line = "env -i setsid sleep 86412 & setsid sleep 86412 & sleep 86412";
    let task = background.start(shell(line), "serve").unwrap();
    wait_for(3, "sleep\x0086412");
    let done = finished(shell("setsid sleep 86413 & exit 0"));
    assert!(running("sleep\x0086413").is_empty());
    assert_eq!(done.ended.len(), 1, "{}", EndedProcesses(&done.ended));
    assert_eq!(running("sleep\x0086412").len(), 3, "what runs in the background goes on");
    assert_eq!(background.task(&task.id).unwrap().state, BackgroundState::Running);
    let ended = background.kill(&task.id).unwrap();
    assert_eq!(ended.state, BackgroundState::Killed);
    assert!(running("sleep\x0086412").is_empty(), "{ended:?}");
    assert!(ended.ended.len() >= 2, "{ended:?}");
}

fn a_session_ends_what_its_commands_left() {
    let session = ProcessSession::default();
    let other = ProcessSession::default();
    // A process that only the session mark identifies, as if its starter had been lost.
    let start = |session: &ProcessSession, time: &str| {
        let started = Command::new("setsid")
            .args(["-f", "sleep", time])
            .env(SESSION_VARIABLE, session.tag())
            .stdin(Stdio::null())
            .status();
        assert!(started.unwrap().success());
        wait_for(1, &format!("sleep\0{time}"));
    };
    start(&session, "86414");
    start(&other, "86415");
    session.end_leftovers();
    assert!(running("sleep\x0086414").is_empty());
    assert_eq!(running("sleep\x0086415").len(), 1, "another session's");
    let told = take_unreported();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(EndedProcesses(&told).to_string(), format!("`sleep 86414` (pid {})", told[0].pid));
    assert!(take_unreported().is_empty(), "each is told once");
    other.end_leftovers();
    assert_eq!(take_unreported().len(), 1);
}

fn the_program_ends_everything_below_it() {
    let started = Command::new("bash")
        .args(["-c", "for i in 1 2 3; do env -i setsid sleep 86416 >/dev/null 2>&1 & done; (setsid sleep 86416 &) & exit"])
        .process_group(0)
        .status();
    assert!(started.unwrap().success());
    wait_for(4, "sleep\x0086416");
    end_descendants();
    assert!(running("sleep\x0086416").is_empty());
    assert_eq!(EndedProcesses(&take_unreported()).to_string(), "`sleep 86416` (4 times)");
    assert_eq!(zombies(), 0);
}

fn leftovers_of_a_killed_program_are_found_by_their_tag() {
    // A foreign process whose owner is gone: pid 1 of another boot.
    let stray = |mark: String, time: &str| {
        let mut command = Command::new("setsid");
        command.args(["-f", "sleep", time]).env(COMMAND_VARIABLE, mark).stdin(Stdio::null());
        assert!(command.status().unwrap().success());
        wait_for(1, &format!("sleep\0{time}"));
    };
    stray(String::from("1-999999999999.7"), "86417");
    // Below us it is ours; the sweep at the start spares its own lineage.
    assert!(end_abandoned().is_empty());
    assert_eq!(running("sleep\x0086417").len(), 1);
    end_descendants();
    take_unreported();
    assert!(running("sleep\x0086417").is_empty());
}

fn strangers_are_never_touched() {
    // A process group and session of their own below a foreign parent.
    let mut stranger = Command::new("sleep").arg("86418").spawn().unwrap();
    let done = finished(shell("setsid sleep 86419 & exit 0"));
    assert_eq!(done.ended.len(), 1, "{}", EndedProcesses(&done.ended));
    assert_eq!(running("sleep\x0086418").len(), 1, "what no command started is not ended with one");
    stranger.kill().unwrap();
    assert!(!stranger.wait().unwrap().success(), "and nobody else has reaped it");
}
