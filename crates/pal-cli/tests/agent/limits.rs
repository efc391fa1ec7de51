//! Limits that end what would never end: loops of a model, answers of a hostile server, outputs that fill the disk.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::test_world::{RunOutput, TestWorld, finish, reader};
use pal_agent_testkit::{ProviderSetup, calls, says};

const FREELY: [&str; 3] = ["--permission-mode", "bypass", "--no-sandbox"];

/// Runs a prompt with a limit of four stalled turns, and says what the result line holds.
fn run_stalled(world: &TestWorld, arguments: &[&str]) -> (RunOutput, Value) {
    let mut command = world.command(&[&["-p", "--output-format", "json"], arguments, &["go"]].concat());
    command.env("PAL_MAX_STALLED_TURNS", "4");
    let said = finish(command.spawn().unwrap());
    let result = said.lines().pop().unwrap_or_default();
    (said, result)
}

#[test]
fn a_call_that_is_denied_again_and_again_ends_with_exit_code_3() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| {
        calls("I try again.", &[("Bash", json!({"command": "rm -rf src"}))])
    }));
    let (said, result) = run_stalled(&world, &[]);
    assert_eq!((said.code, result["subtype"].as_str()), (3, Some("error_limit")), "{}{}", said.out, said.err);
    let error = result["error"].as_str().unwrap();
    for part in ["no progress in 4 turns", "rm -rf src", "5 times", "max_stalled_turns"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(world.provider.heard().asked.len(), 5);
    let last = world.provider.heard().asked.last().unwrap().text();
    assert!(last.contains("You repeat yourself"), "the model is told: {last}");
}

#[test]
fn looping_background_work_is_stopped() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| {
        calls("Looking.", &[("Bash", json!({"command": "ls"}))])
    }));
    let added = finish(
        world.command(&["memory", "add", "--name", "days", "We release on Fridays."]).spawn().unwrap(),
    );
    assert_eq!(added.code, 0, "{}", added.err);
    let mut command = world.command(&["dream", "--now"]);
    command.env("PAL_DREAMING", "true").env("PAL_MAX_STALLED_TURNS", "4");
    let said = finish(command.spawn().unwrap());
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("no progress in 4 turns"), "{}{}", said.out, said.err);
    assert_eq!(world.provider.heard().asked.len(), 5);
}

/// Serves every connection the same answer: its beginning once, then the rest again and again.
fn hostile_server(begin: &'static str, rest: Vec<u8>, pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, rest) = (stream.unwrap(), rest.clone());
            std::thread::spawn(move || {
                let mut buffer = [0; 1 << 16];
                // What is still to come of the request stays unread: it is not waited for.
                let _ = stream.read(&mut buffer);
                let _ = stream.write_all(begin.as_bytes());
                while stream.write_all(&rest).is_ok() {
                    std::thread::sleep(pause);
                }
            });
        }
    });
    address
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\
    \"model\":\"claude-opus-5-5\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
    event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\
    \"text\":\"\"}}\n\n";

fn delta(text: &str) -> Vec<u8> {
    let data = format!(
        "{{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"
    );
    format!("event: content_block_delta\ndata: {data}\n\n").into_bytes()
}

/// The largest memory that a running program has had, in megabytes; none once it is gone.
fn peak_mb(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()? / 1024)
}

#[test]
fn an_endless_answer_is_aborted_in_bounded_memory() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("unused")));
    let address = hostile_server(STREAM, delta(&"x".repeat(60_000)), Duration::ZERO);
    for format in ["text", "stream-json"] {
        let mut command = world.command(&["-p", "--verbose", "--output-format", format, "go"]);
        command.env("ANTHROPIC_BASE_URL", &address);
        let mut child = command.spawn().unwrap();
        let (out, err) = (reader(child.stdout.take()), reader(child.stderr.take()));
        let begun = Instant::now();
        let mut peak = 0;
        let status = loop {
            peak = peak.max(peak_mb(&child).unwrap_or(0));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the program hangs");
            std::thread::sleep(Duration::from_millis(1));
        };
        let (out, err) = (out.join().unwrap(), err.join().unwrap());
        let said =
            format!("{}{}", &out[out.len().saturating_sub(2_000)..], &err[err.len().saturating_sub(2_000)..]);
        assert_eq!(status.code(), Some(1), "{said}");
        assert!(said.contains("more than 32 MB") && said.contains("max_response_mb"), "{said}");
        eprintln!("peak memory with {format}: {peak} MB");
        assert!(peak > 0 && peak <= 300, "{peak} MB with {format}");
    }
    for log in world.logs() {
        let bytes = log.metadata().unwrap().len();
        assert!(bytes < 1 << 20, "only the beginning of the answer is kept, not {bytes} bytes");
    }
}

#[test]
fn silence_pings_and_single_bytes_time_out() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("unused")));
    let slow = Duration::from_millis(50);
    let cases = [
        ("", Vec::new(), "PAL_HEADER_TIMEOUT_S", "no answer from"),
        ("HTTP/1.1 200 OK\r\n", b"x-a: b\r\n".to_vec(), "PAL_HEADER_TIMEOUT_S", "no answer from"),
        (
            STREAM,
            b"event: ping\ndata: {\"type\":\"ping\"}\n\n".to_vec(),
            "PAL_CONTENT_GAP_TIMEOUT_S",
            "only keep-alives",
        ),
        (STREAM, b"d".to_vec(), "PAL_CONTENT_GAP_TIMEOUT_S", "only keep-alives"),
        (STREAM, delta("x"), "PAL_RESPONSE_TIMEOUT_S", "incomplete after 1 s"),
    ];
    for (begin, rest, variable, words) in cases {
        let address = hostile_server(begin, rest, slow);
        let mut command = world.command(&["-p", "go"]);
        command.env("ANTHROPIC_BASE_URL", &address).env(variable, "1").env("PAL_MAX_RETRIES", "0");
        let begun = Instant::now();
        let said = finish(command.spawn().unwrap());
        assert_eq!(said.code, 1, "{variable}: {}{}", said.out, said.err);
        assert!(said.err.contains(words), "{variable}: {}", said.err);
        assert!(begun.elapsed() < Duration::from_secs(15), "{variable}: {:?}", begun.elapsed());
    }
}

/// The outputs of commands under the home, with their sizes.
fn outputs(world: &TestWorld) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for log in world.logs() {
        for folder in ["outputs", "background"] {
            let folder = log.parent().unwrap().join(folder);
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                found.push((entry.path(), entry.metadata().unwrap().len()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn noisy_commands_stay_within_the_limits_on_the_disk() {
    let noisy = |byte: char| json!({"command": format!("head -c 3000000 /dev/zero | tr '\\0' '{byte}'")});
    let world = TestWorld::new(ProviderSetup::answers(move |at, _| match at {
        0..=3 => calls("", &[("Bash", noisy(char::from(b'a' + at as u8)))]),
        _ => says("Done."),
    }));
    let told = ["-p", "--output-format", "stream-json", "--verbose"];
    let mut command = world.command(&[&told[..], &FREELY, &["go"]].concat());
    command.env("PAL_MAX_COMMAND_OUTPUT_MB", "2").env("PAL_MAX_OUTPUTS_MB", "5");
    let said = finish(command.spawn().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("disk limit: removed"), "the user is told: {}", said.out);
    let sizes: Vec<u64> = outputs(&world).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(sizes.len(), 4);
    assert!(sizes.iter().sum::<u64>() <= 5 << 20, "{sizes:?}");
    let removed = outputs(&world).into_iter().find(|(_, bytes)| *bytes < 1_000).unwrap().0;
    let text = std::fs::read_to_string(removed).unwrap();
    assert!(text.contains("removed") && text.contains("Run the call again"), "{text}");
    let told = world.provider.heard().asked[1].text();
    assert!(told.contains("it holds no more than 2097152 bytes"), "the model is told of the cut: {told}");
}

#[test]
fn gc_removes_outputs_except_those_of_open_sessions() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("", &[("Bash", json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x"}))]),
        2 => calls("", &[("Bash", json!({"command": "touch began; sleep 30"}))]),
        _ => says("Done."),
    }));
    assert_eq!(world.run(&[&FREELY[..], &["go"]].concat()).code, 0);
    let gc = |arguments: &[&str]| finish(world.command(&[&["gc"], arguments].concat()).spawn().unwrap());
    let said = gc(&[]);
    assert!(said.code == 0 && said.out.contains("Nothing to remove"), "{}{}", said.out, said.err);
    let said = gc(&["--keep-mb", "1"]);
    assert!(
        said.out.contains("This removes the oldest 1 output") && said.out.contains("add --yes"),
        "{}",
        said.out
    );
    assert_eq!(outputs(&world)[0].1, 3_000_000, "a look changes nothing");
    let listed = finish(world.command(&["sessions"]).spawn().unwrap());
    assert!(
        listed.out.contains("1 session: $") && listed.out.contains(" tokens, 3.1 MB on disk"),
        "{}",
        listed.out
    );
    assert!(listed.out.contains("3.0 MB of 2.1 GB (`pal gc`)"), "{}", listed.out);
    let listed = finish(world.command(&["sessions", "--json"]).spawn().unwrap());
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert!(listed[0]["disk_bytes"].as_u64().unwrap() > 3_000_000, "{listed}");

    let mut open = world.spawn(&[&FREELY[..], &["--continue", "more"]].concat());
    let begun = Instant::now();
    while !world.repository().join("began").exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    let said = gc(&["--keep-mb", "0", "--yes"]);
    assert!(said.code == 0 && said.out.contains("open in another process"), "{}{}", said.out, said.err);
    assert_eq!(outputs(&world)[0].1, 3_000_000, "the session is open");
    open.kill().unwrap();
    open.wait().unwrap();
    let said = gc(&["--keep-mb", "0", "--yes", "--json"]);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, object["freed_bytes"].as_u64()), (0, Some(3_000_000)), "{object}");
    assert!(outputs(&world)[0].1 < 1_000);
}
