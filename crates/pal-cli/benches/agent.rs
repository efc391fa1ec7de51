//! The whole agent over a long session: the real program, real tools on real files, the simulator as its provider.
//!
//! `cargo bench -p pal-cli --bench agent` prints a table: what lies between the end of a response and the arrival of the next
//! request besides the tool's own time, the largest memory, and how long the first request takes.
//!
//! A relay between the program and the simulator records when bytes pass: a round is the time from the last
//! bytes of a response to the last bytes of the request that follows it. A request is passed on when all of it has arrived,
//! so that the simulator does not use the CPU meanwhile. The tool's own time is the `duration_ms` of its `stream-json`
//! line.

// Any error fails the benchmark.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pal_model::SharedText;
use pal_sim::{
    ExtractiveModel, ModelOutput, ModelPrompt, OutputBlock, SimSettings, SimulatedModel, SimulatedProvider,
};
use pal_sim_server::{ClockSpeed, SimServerOptions, serve};
use serde_json::{Value, json};

const ROUNDS: usize = 200;
const FILES: usize = 300;
const STARTS: usize = 30;
const WORDS: [&str; 8] = ["river", "window", "paper", "engine", "garden", "letter", "mountain", "history"];
/// Text of a summary request.
const SUMMARY: &str = "Your task is to write a summary of";
/// The provider clears old results itself, so requests grow until a compaction although the window stays within its limit.
const CLEARING: &str = "[models.claude-opus-5-5]\nwindow = 200_000\n";
/// The provider clears nothing: requests are as long as the view.
const PLAIN: &str = "[models.claude-opus-5-5]\nwindow = 200_000\ncontext_management = []\n";

/// Calls a tool in each round, then ends.
struct RoundsModel {
    rounds: usize,
    made: usize,
}

impl SimulatedModel for RoundsModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let is_summary = |raw: &str| raw.contains(SUMMARY);
        if ask.messages.last().is_some_and(|last| last.blocks.iter().any(|raw| is_summary(raw))) {
            return ExtractiveModel.answer(ask);
        }
        let (at, path) = (self.made, format!("data/{:03}.txt", self.made % FILES));
        if at == self.rounds {
            return ModelOutput {
                blocks: vec![OutputBlock::Text(String::from("Everything was looked at."))],
                stop: None,
            };
        }
        self.made += 1;
        let (name, input) = match at % 3 {
            0 => ("Read", json!({"file_path": path})),
            1 => ("Grep", json!({"pattern": "word", "path": path, "output_mode": "content"})),
            _ => ("Bash", json!({"command": format!("cat {path}")})),
        };
        let call = OutputBlock::ToolUse {
            id: None,
            name: name.to_owned(),
            input: SharedText::from(input.to_string()),
        };
        ModelOutput { blocks: vec![OutputBlock::Text(format!("Round {at}.")), call], stop: None }
    }
}

/// A request with the arrival times of its first and last byte.
struct ArrivedRequest {
    first: Instant,
    last: Instant,
    bytes: usize,
    wants_summary: bool,
}

/// Times at which bytes passed the relay.
#[derive(Default)]
struct RelayTraffic {
    requests: Vec<ArrivedRequest>,
    /// Time of the last bytes of each response.
    responses: Vec<Instant>,
    is_answering: bool,
}

type SharedTraffic = Arc<Mutex<RelayTraffic>>;

/// Forwards bytes in both directions and records when.
fn relay(to: std::net::SocketAddr) -> (std::net::SocketAddr, SharedTraffic) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let passed = SharedTraffic::default();
    let shared = Arc::clone(&passed);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(to).unwrap();
            client.set_nodelay(true).unwrap();
            server.set_nodelay(true).unwrap();
            let (one, other) = ((client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client));
            let noted = Arc::clone(&shared);
            std::thread::spawn(move || pass_requests(one.0, one.1, &noted));
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

/// Passes on whole requests.
fn pass_requests(from: TcpStream, mut to: TcpStream, noted: &SharedTraffic) {
    let mut from = BufReader::with_capacity(1 << 13, from);
    // Written once, so that no request waits for the memory that it is read into.
    let mut request = vec![1_u8; 8 << 20];
    loop {
        request.clear();
        let (mut length, mut begun) = (0, None);
        loop {
            let start = request.len();
            if from.read_until(b'\n', &mut request).unwrap_or(0) == 0 {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            begun.get_or_insert_with(Instant::now);
            let line = String::from_utf8_lossy(&request[start..]).to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let start = request.len();
        request.resize(start + length, 0);
        from.read_exact(&mut request[start..]).unwrap();
        let mut passed = noted.lock().unwrap();
        let (first, last, bytes) = (begun.unwrap(), Instant::now(), request.len());
        let end = String::from_utf8_lossy(&request[bytes.saturating_sub(16_000)..]);
        passed.requests.push(ArrivedRequest { first, last, bytes, wants_summary: end.contains(SUMMARY) });
        passed.is_answering = false;
        drop(passed);
        to.write_all(&request).unwrap();
    }
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
fn provider(rounds: usize, cards: &'static str) -> (String, SharedTraffic) {
    let (told, listening) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let settings = SimSettings {
            cards: pal_model::ModelCatalog::built_in().with_overrides(cards).unwrap(),
            ..SimSettings::plain()
        };
        let simulator = SimulatedProvider::new(settings, Box::new(RoundsModel { rounds, made: 0 }));
        let options = SimServerOptions {
            speed: ClockSpeed::Real,
            record: None,
            announces: false,
            notice: Box::new(|_| {}),
        };
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
    let sizes = [2_000, 2_000, 2_500, 3_000, 3_500, 4_000, 5_000, 6_000, 10_000, 40_000];
    let mut bytes = 0;
    for file in 0..FILES {
        let mut text = String::new();
        while text.len() < sizes[(file * 7) % sizes.len()] {
            let word = WORDS[(text.len() / 7 + file) % WORDS.len()];
            text.push_str(&format!("a word such as {word} stands in a line with others, as words do\n"));
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
    command
        .env("PAL_HOME", folder.join("pal"))
        .env("ANTHROPIC_BASE_URL", address)
        .env("PAL_EXTRACTION", "false");
    command.env("ANTHROPIC_API_KEY", "simulated").current_dir(folder.join("repository"));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Peak memory of a process, in kilobytes.
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
    println!("{ROUNDS} rounds, results of {:.1} MB, a window of 200 000 tokens\n", bytes as f64 / 1e6);
    start(folder.path());
    session(folder.path(), "the provider clears old results", CLEARING);
    session(folder.path(), "only compactions make room", PLAIN);
}

fn start(folder: &Path) {
    let mut starts: Vec<f64> = (0..STARTS)
        .map(|_| {
            let (address, passed) = provider(0, CLEARING);
            let begun = Instant::now();
            let done = command(folder, &address).output().unwrap();
            assert!(done.status.success());
            milliseconds(passed.lock().unwrap().requests[0].last - begun)
        })
        .collect();
    let median = median(&mut starts);
    println!("start to the first request, {FILES} files: {median:.1} ms, median of {STARTS} (bar 50 ms)\n");
}

fn session(folder: &Path, name: &str, cards: &'static str) {
    std::fs::write(folder.join("pal/models.toml"), cards).unwrap();
    let (address, passed) = provider(ROUNDS, cards);
    let begun = Instant::now();
    let mut child = command(folder, &address).spawn().unwrap();
    let (process, out) = (child.id(), child.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        BufReader::new(out).read_to_string(&mut text).unwrap();
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
    let passed = passed.lock().unwrap();
    println!(
        "{name}: {} requests in {:.1} s, {boundaries} compactions, {:.1} MB of memory at most (bar 60 MB)\n",
        passed.requests.len(),
        took.as_secs_f64(),
        memory as f64 * 1024.0 / 1e6
    );
    report(&rounds(&passed, &lines));
    println!("\nusage: {}\n", result["usage"]);
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// From the end of a response to the next request.
struct RoundTiming {
    /// Until its first byte, beyond the tool's time.
    first: f64,
    /// Until its last.
    last: f64,
    tool: f64,
    bytes: usize,
}

/// The rounds of tools; what lies around a compaction is none.
fn rounds(passed: &RelayTraffic, lines: &[Value]) -> Vec<RoundTiming> {
    let ended = lines.iter().filter(|line| line["state"] == "ended");
    let mut tools = ended.map(|line| line["duration_ms"].as_f64().unwrap());
    let mut rounds = Vec::new();
    for (pair, response) in passed.requests.windows(2).zip(&passed.responses) {
        if pair[0].wants_summary {
            continue;
        }
        let (tool, next) = (tools.next().unwrap(), &pair[1]);
        if !next.wants_summary {
            let after = |at: Instant| milliseconds(at - *response) - tool;
            rounds.push(RoundTiming {
                first: after(next.first),
                last: after(next.last),
                tool,
                bytes: next.bytes,
            });
        }
    }
    rounds
}

fn report(rounds: &[RoundTiming]) {
    let of = |rounds: &[RoundTiming], what: fn(&RoundTiming) -> f64| {
        median(&mut rounds.iter().map(what).collect::<Vec<f64>>())
    };
    let (first, last) = (&rounds[..50], &rounds[rounds.len() - 50..]);
    let row = |name: &str, what: fn(&RoundTiming) -> f64, bar: &str| {
        let (all, first, last) = (of(rounds, what), of(first, what), of(last, what));
        println!("| {name} | {all:.2} | {first:.2} | {last:.2} | {:.2} × | {bar} |", last / first);
    };
    println!(
        "| from the end of a response, beyond the tool's time | all | first 50 | last 50 | growth | bar |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    row("to the first byte of the next request (ms)", |round| round.first, "2 ms, 1.5 ×");
    row("to its last byte (ms)", |round| round.last, "2 ms, 1.5 ×");
    row("the tool's own time (ms)", |round| round.tool, "–");
    row("size of the request (MB)", |round| round.bytes as f64 / 1e6, "–");
}
