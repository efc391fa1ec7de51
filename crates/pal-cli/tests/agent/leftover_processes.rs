//! Processes that commands, hooks and servers leave behind: none outlives the session, and each is told.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::test_world::{PATIENCE, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// Processes that sleep for N seconds; each test uses its own N.
fn sleepers_of(time: u32) -> Vec<String> {
    let line = format!("sleep\0{time}\0");
    let is_sleeper = |process: &std::fs::DirEntry| {
        std::fs::read(process.path().join("cmdline")).is_ok_and(|found| found == line.as_bytes())
    };
    let found = std::fs::read_dir("/proc").unwrap().flatten().filter(is_sleeper);
    found.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

fn sleepers(time: u32) -> usize {
    sleepers_of(time).len()
}

fn wait_for(count: usize, time: u32) {
    let until = Instant::now() + PATIENCE;
    while sleepers(time) != count {
        assert!(Instant::now() < until, "{} of {count} sleep", sleepers(time));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// A command line that starts four processes out of its group, in several ways.
fn scattering(time: u32) -> String {
    format!(
        "setsid sleep {time} >/dev/null 2>&1 &\n(setsid sleep {time} >/dev/null 2>&1 &) &\n\
         env -i /usr/bin/setsid sleep {time} >/dev/null 2>&1 &\nnohup setsid -f sleep {time} >/dev/null 2>&1\n\
         while [ $(pgrep -fxc 'sleep {time}') -lt 4 ]; do sleep 0.05; done\n"
    )
}

fn runs(command: String) -> ProviderSetup {
    ProviderSetup::answers(move |at, _| match at {
        0 => calls("I start it.", &[("Bash", json!({"command": command}))]),
        _ => says("Done."),
    })
}

#[test]
fn processes_left_by_a_command_are_ended_and_reported_to_the_model() {
    let time = 86_521;
    let world = TestWorld::new(runs(scattering(time)));
    let said = world.run(&[&FREELY[..], &["go"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(sleepers(time), 0);
    let result = world.provider.heard().asked[1].text();
    assert!(result.contains("4 processes that it left running were ended"), "{result}");
    assert!(result.contains("sleep 86521` (4 times)"), "{result}");
}

#[test]
fn a_signal_leaves_no_processes() {
    for (name, time) in [("-TERM", 86_531), ("-INT", 86_532), ("-HUP", 86_533)] {
        // Programs that `nohup` starts ignore hangups, and so does the program that this test starts.
        if name == "-HUP" && pal_process::is_hangup_ignored() {
            continue;
        }
        let command = format!("{}sleep 86539", scattering(time));
        let world = TestWorld::new(runs(command));
        let child = world.spawn(&[&FREELY[..], &["go"]].concat());
        wait_for(4, time);
        signal(&child, name);
        let said = finish(child);
        assert_eq!(sleepers(time), 0, "{name}: {}", said.err);
        assert_eq!(sleepers(86_539), 0, "{name}");
        assert!(!said.err.contains("panicked"), "{}", said.err);
    }
}

#[test]
fn processes_of_a_killed_program_are_ended_by_the_next_one() {
    let time = 86_541;
    let command = format!("{}sleep 86549", scattering(time));
    let world = TestWorld::new(runs(command));
    let mut child = world.spawn(&[&FREELY[..], &["go"]].concat());
    wait_for(4, time);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(sleepers(time) > 0, "nobody was there to end them");
    // A session elsewhere has nothing to do with them.
    let other = TestWorld::new(ProviderSetup::answers(|_, _| says("Hello.")));
    assert_eq!(other.run(&["go"]).code, 0);
    assert!(sleepers(time) > 0);
    let said = world.run(&["go on"]);
    assert!(said.err.contains("a killed session of this project left running"), "{}", said.err);
    // One that took the mark off its environment cannot be recognized where there is no control group.
    assert!(sleepers(time) <= 1, "{} are left: {}", sleepers(time), said.err);
    for pid in sleepers_of(time) {
        let _ = Command::new("kill").args(["-KILL", &pid]).status();
    }
}

#[test]
fn processes_left_by_hooks_and_servers_end_with_the_session() {
    let (hooked, served) = (86_551, 86_552);
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I look.", &[("Bash", json!({"command": "sleep 1; echo looked"}))]),
        _ => says("Done."),
    }));
    std::fs::write(
        world.pal().join("settings.toml"),
        format!(
            "[[hooks.PreToolUse]]\nmatcher = \"Bash\"\nhooks = [{{ type = \"command\", command = \"setsid sleep {hooked} >/dev/null 2>&1 &\" }}]\n"
        ),
    )
    .unwrap();
    let servers = world.servers(&[("s", "")]);
    let script = format!("setsid sleep {served} </dev/null >/dev/null 2>&1 &\n{}", world.text("server.sh"));
    world.file("server.sh", &script);
    let said = world.run(&[&FREELY[..], &["--mcp-config", &servers, "go"]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!((sleepers(hooked), sleepers(served)), (0, 0), "{}", said.err);
    for time in [hooked, served] {
        assert!(said.err.contains(&format!("`sleep {time}`")), "{time}: {}", said.err);
    }
}
