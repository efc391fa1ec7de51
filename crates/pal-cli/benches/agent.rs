//! The whole agent over a long session: the real program, real tools on real files, the simulator as its provider.
//!
//! `cargo bench -p pal-cli --bench agent` prints a table: what lies between the end of a response and the arrival of the next
//! request besides the tool's own time, the largest memory, and how long the first request takes.
//!
//! Between the program and the simulator stands a relay that notes when bytes pass: a round is the time from the last
//! bytes of a response to the last bytes of the request that follows it. The tool's own time is what the program tells of it
//! in `stream-json` (`duration_ms`, which is rounded down, so that too little is taken off rather than too much).

// A benchmark that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pal_model::Text;
use pal_sim::{Answer, Ask, Extractive, Model, Said, Settings, Simulator};
use pal_sim_server::{Options, Speed, serve};
use serde_json::{Value, json};

const ROUNDS: usize = 200;
const FILES: usize = 300;
const STARTS: usize = 30;
const CARDS: &str = "[models.claude-opus-5-5]\nwindow = 200_000\n";

/// Calls a tool in each of its rounds, then says that it is done.
struct Rounds {
    rounds: usize,
    made: usize,
}

impl Model for Rounds {
    fn answer(&mut self, ask: &Ask<'_>) -> Answer {
        let is_summary = |raw: &str| raw.contains("Your task is to write a summary of");
        if ask.messages.last().is_some_and(|last| last.blocks.iter().any(|raw| is_summary(raw))) {
            return Extractive.answer(ask);
        }
        let (at, path) = (self.made, format!("data/{:03}.txt", self.made % FILES));
        if at == self.rounds {
            return Answer {
                blocks: vec![Said::Text(String::from("Everything was looked at."))],
                stop: None,
            };
        }
        self.made += 1;
        let (name, input) = match at % 3 {
            0 => ("Read", json!({"file_path": path})),
            1 => ("Grep", json!({"pattern": "word", "path": path, "output_mode": "content"})),
            _ => ("Bash", json!({"command": format!("cat {path}")})),
        };
        let call = Said::ToolUse { id: None, name: name.to_owned(), input: Text::from(input.to_string()) };
        Answer { blocks: vec![Said::Text(format!("Round {at}.")), call], stop: None }
    }
}

/// When bytes passed the relay.
#[derive(Default)]
struct Passed {
    /// For each request its first and its last bytes.
    requests: Vec<(Instant, Instant)>,
    /// For each response its last bytes.
    responses: Vec<Instant>,
    is_answering: bool,
}

type Shared = Arc<Mutex<Passed>>;

/// Passes bytes on in both directions and notes when.
fn relay(to: std::net::SocketAddr) -> (std::net::SocketAddr, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let passed = Shared::default();
    let shared = Arc::clone(&passed);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(to).unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let (one, other) = ((client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client));
            let noted = Arc::clone(&shared);
            std::thread::spawn(move || {
                pass(one.0, one.1, |now| {
                    let mut passed = noted.lock().unwrap();
                    let is_next = passed.is_answering;
                    match passed.requests.last_mut() {
                        Some(newest) if !is_next => newest.1 = now,
                        _ => passed.requests.push((now, now)),
                    }
                    passed.is_answering = false;
                })
            });
            let noted = Arc::clone(&shared);
            std::thread::spawn(move || {
                pass(other.0, other.1, |now| {
                    let mut passed = noted.lock().unwrap();
                    if passed.is_answering {
                        passed.responses.pop();
                    }
                    passed.is_answering = true;
                    passed.responses.push(now);
                })
            });
        }
    });
    (address, passed)
}

fn pass(mut from: TcpStream, mut to: TcpStream, note: impl Fn(Instant)) {
    let mut buffer = vec![0; 1 << 18];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        note(Instant::now());
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

/// A simulator, and the relay before it.
fn provider(rounds: usize) -> (String, Shared) {
    let (told, listening) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let settings =
            Settings { cards: pal_model::Cards::shipped().overridden(CARDS).unwrap(), ..Settings::plain() };
        let simulator = Simulator::new(settings, Box::new(Rounds { rounds, made: 0 }));
        let options = Options { speed: Speed::Real, record: None, notice: Box::new(|_| {}) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            serve(listener, simulator, options, std::future::pending()).await.unwrap();
        });
    });
    let (address, passed) = relay(listening.recv().unwrap());
    (format!("http://{address}"), passed)
}

/// A repository of a few hundred files of 2 to 40 KB.
fn repository(folder: &Path) -> u64 {
    std::fs::create_dir_all(folder.join("repository/data")).unwrap();
    std::fs::create_dir_all(folder.join("home")).unwrap();
    std::fs::create_dir_all(folder.join("pal")).unwrap();
    std::fs::write(folder.join("pal/models.toml"), CARDS).unwrap();
    let sizes = [2_000, 4_000, 6_000, 8_000, 9_000, 10_000, 12_000, 14_000, 20_000, 40_000];
    let mut bytes = 0;
    for file in 0..FILES {
        let mut text = String::new();
        while text.len() < sizes[(file * 7) % sizes.len()] {
            text.push_str(&format!(
                "word {} of file {file} stands in a line with others, as words do\n",
                text.len()
            ));
        }
        bytes += if file < ROUNDS { text.len() as u64 } else { 0 };
        std::fs::write(folder.join(format!("repository/data/{file:03}.txt")), text).unwrap();
    }
    for arguments in [&["init", "--quiet"][..], &["add", "."], &["commit", "--quiet", "-m", "All files"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(arguments);
        git.current_dir(folder.join("repository")).env("HOME", folder.join("home")).status().unwrap();
    }
    bytes
}

fn command(folder: &Path, address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pal"));
    command.args([
        "-p",
        "--permission-mode",
        "bypass",
        "--no-sandbox",
        "--verbose",
        "--output-format",
        "stream-json",
        "Look.",
    ]);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder.join("home"));
    command.env("PAL_HOME", folder.join("pal")).env("ANTHROPIC_BASE_URL", address);
    command.env("ANTHROPIC_API_KEY", "simulated").current_dir(folder.join("repository"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The largest memory of a process so far, in kilobytes.
fn peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = repository(folder.path());
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let (address, passed) = provider(0);
        let begun = Instant::now();
        let done = command(folder.path(), &address).output().unwrap();
        assert!(done.status.success());
        starts.push(milliseconds(passed.lock().unwrap().requests[0].1 - begun));
    }
    let (address, passed) = provider(ROUNDS);
    let begun = Instant::now();
    let mut child = command(folder.path(), &address).spawn().unwrap();
    let (process, out) = (child.id(), child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::BufReader::new(out).read_to_string(&mut text).unwrap();
        text
    });
    let mut memory = 0;
    let status = loop {
        memory = peak(process).unwrap_or(0).max(memory);
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        std::thread::sleep(Duration::from_millis(4));
    };
    let took = begun.elapsed();
    let lines: Vec<Value> =
        reading.join().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.last().unwrap();
    assert!(status.success() && result["num_turns"] == ROUNDS + 1, "{result}");
    let boundaries = lines.iter().filter(|line| line["subtype"] == "compact_boundary").count();
    let rounds = rounds(&passed.lock().unwrap(), &lines);
    report(&rounds, memory, &mut starts);
    println!(
        "\n{} requests in {:.1} s, {boundaries} compactions, results of {:.1} MB",
        passed.lock().unwrap().requests.len(),
        took.as_secs_f64(),
        bytes as f64 / 1e6
    );
    println!("usage: {}", result["usage"]);
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// For each round: from the end of the response to the first and the last byte of the next request, less the tool's time.
fn rounds(passed: &Passed, lines: &[Value]) -> Vec<(f64, f64, f64)> {
    let ended = lines.iter().filter(|line| line["state"] == "ended");
    let mut tools = ended.map(|line| line["duration_ms"].as_f64().unwrap());
    // Around a compaction there are more requests than calls; those rounds are told apart by what stands between them.
    let mut kinds = Vec::new();
    for line in lines {
        match (line["type"].as_str(), line["subtype"].as_str(), line["state"].as_str()) {
            (_, Some("compact_boundary"), _) => kinds.push(false),
            (_, _, Some("ended")) => kinds.push(true),
            _ => {}
        }
    }
    let gaps = passed.requests.windows(2).zip(&passed.responses).map(|(pair, response)| (pair[1], *response));
    assert_eq!(kinds.len() + 1, passed.requests.len(), "every request has its reason");
    let mut rounds = Vec::new();
    for ((next, response), is_tool) in gaps.zip(kinds) {
        let took = if is_tool { tools.next().unwrap() } else { 0.0 };
        rounds.push((milliseconds(next.0 - response) - took, milliseconds(next.1 - response) - took, took));
    }
    rounds
}

fn report(rounds: &[(f64, f64, f64)], memory: u64, starts: &mut [f64]) {
    let of =
        |rounds: &[(f64, f64, f64)]| median(&mut rounds.iter().map(|round| round.1).collect::<Vec<f64>>());
    let (first, last) = (of(&rounds[..50]), of(&rounds[rounds.len() - 50..]));
    let begun = median(&mut rounds.iter().map(|round| round.0).collect::<Vec<f64>>());
    let tool = median(&mut rounds.iter().map(|round| round.2).collect::<Vec<f64>>());
    println!("| what | figure | bar |\n| --- | --- | --- |");
    println!(
        "| end of a response to the whole next request, beyond the tool's time: median of {} | {:.2} ms | 2 ms |",
        rounds.len(),
        of(rounds)
    );
    println!("| the same to its first byte | {begun:.2} ms | – |");
    println!(
        "| first 50 rounds, last 50 rounds | {first:.2}, {last:.2} ms ({:.2} ×) | 1.5 × |",
        last / first
    );
    println!("| the tool's own time (rounded down) | {tool:.0} ms | – |");
    println!("| largest memory | {:.1} MB | 60 MB |", memory as f64 * 1024.0 / 1e6);
    println!(
        "| start to the first request, {FILES} files: median of {} | {:.1} ms | 50 ms |",
        starts.len(),
        median(starts)
    );
}
