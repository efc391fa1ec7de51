//! Kill -9 at 200 random moments: every resume goes on, with a valid request that repeats what was sent before, and nothing
//! that was said is lost, and no call is carried out twice.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pal_model::{DecisionKind, EntryBody, LogEntry, SharedText};
use pal_sim::{ExtractiveModel, ModelOutput, ModelPrompt, ReplyPace, SimulatedModel};
use serde_json::json;

use crate::test_world::{TestWorld, finish, reader};
use pal_agent_testkit::{ProviderSetup, calls, is_summary, says};

const SESSIONS: u64 = 4;
const KILLS: u64 = 50;
/// Time limit for the moment of a kill.
const PATIENCE: Duration = Duration::from_secs(4);
/// Results beyond this many characters are spilled.
const SPILLED: u64 = 50_000;
/// A window so small that sessions are compacted again and again.
const CARDS: &str = "[models.claude-opus-5-5]\nwindow = 60_000\n";
/// The same of a provider that does not clear old results by itself.
const CARDS_WITHOUT_CLEARING: &str = "[models.claude-opus-5-5]\nwindow = 60_000\ncontext_management = []\n";

/// SplitMix64: the same kills for the same seed, as far as the machine allows.
struct KillRandom(u64);

impl KillRandom {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % most
    }
}

/// A model that works until it is told to finish: commands that leave a trace, long results, files.
fn worker(seed: u64, record: &Path) -> ProviderSetup {
    let (mut chance, mut number) = (KillRandom(seed), 0);
    let made = ProviderSetup::answers(move |_, ask| {
        number += 1;
        step(ask, number, &mut chance)
    });
    let pace = ReplyPace { per_1k_output: Duration::from_millis(500), ..ReplyPace::none() };
    let cards = if seed.is_multiple_of(2) { CARDS } else { CARDS_WITHOUT_CLEARING };
    ProviderSetup { cards: cards.to_owned(), pace, seed, record: Some(record.to_owned()), ..made }
}

fn step(ask: &ModelPrompt<'_>, number: u64, chance: &mut KillRandom) -> ModelOutput {
    if is_summary(ask) {
        return ExtractiveModel.answer(ask);
    }
    let said = "Something is looked at, and something is done about it. ".repeat(8);
    let trace = format!("echo {number} >> ran.txt");
    let bash = |command: String| ("Bash", json!({"command": command}));
    if ask.messages.last().is_some_and(|last| last.blocks.iter().any(|raw| raw.contains("finish now"))) {
        return says("It is finished.");
    }
    let read = ("Read", json!({"file_path": "long.txt", "offset": 1 + chance.below(300), "limit": 120}));
    match chance.below(10) {
        0..=3 => calls(&said, &[bash(format!("{trace}; sleep 0.0{}; {trace}-end", chance.below(10)))]),
        4 | 5 => calls(&said, &[bash(format!("{trace}; seq 1 12000"))]),
        6 => calls(
            &said,
            &[("Write", json!({"file_path": format!("notes-{number}.txt"), "content": said.repeat(9)}))],
        ),
        7 | 8 => calls(&said, &[read]),
        _ => calls(&said, &[read, ("Grep", json!({"pattern": "line 1.", "path": "long.txt"})), bash(trace)]),
    }
}

/// Phase of the work in which the kill happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum KillPhase {
    Start,
    Stream,
    Tool,
    Spill,
    Compaction,
    Append,
}

/// Output of the program up to now.
#[derive(Default)]
struct ObservedLines {
    has_begun: bool,
    answers: u64,
    begun: u64,
    ended: u64,
    boundaries: u64,
    messages: u64,
    /// The newest line reported a result that will be spilled.
    is_long: bool,
    prompts: Vec<String>,
}

type SharedLines = Arc<(Mutex<ObservedLines>, Condvar)>;

fn listen(child: &mut Child, prompt: &str) -> SharedLines {
    let told = SharedLines::default();
    let (shared, prompt) = (Arc::clone(&told), prompt.to_owned());
    let out = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            let mut told = shared.0.lock().unwrap();
            told.is_long = false;
            match (line["type"].as_str(), line["subtype"].as_str(), line["state"].as_str()) {
                (_, Some("init"), _) => told.has_begun = true,
                (_, Some("compact_boundary"), _) => told.boundaries += 1,
                (_, _, Some("began")) => told.begun += 1,
                (_, _, Some("ended")) => {
                    told.ended += 1;
                    told.is_long = line["bytes"].as_u64() > Some(SPILLED);
                }
                (Some("assistant"), ..) => told.answers += 1,
                (Some("user"), ..) => {
                    told.messages += 1;
                    if line["message"].to_string().contains(&prompt) {
                        told.prompts.push(prompt.clone());
                    }
                }
                _ => {}
            }
            shared.1.notify_all();
        }
    });
    told
}

fn wait_until(told: &SharedLines, fits: impl Fn(&ObservedLines) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut state = told.0.lock().unwrap();
    while !fits(&state) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        state = told.1.wait_timeout(state, left).unwrap().0;
    }
}

/// Waits for the moment and tells where the kill falls, as far as it can be seen from outside.
fn strike(
    world: &TestWorld,
    child: &mut Child,
    told: &SharedLines,
    wish: KillPhase,
    chance: &mut KillRandom,
) -> KillPhase {
    let before = world.provider.heard().asked.len();
    let nth = 1 + chance.below(3);
    let microseconds = |most: u64, chance: &mut KillRandom| Duration::from_micros(chance.below(most));
    let pause = match wish {
        KillPhase::Start => microseconds(400_000, chance),
        KillPhase::Stream => {
            let count = |summaries: bool, heard: &pal_agent_testkit::ReceivedTraffic| {
                heard.asked[before..].iter().filter(|asked| asked.is_summary == summaries).count() as u64
            };
            world.provider.wait_until(PATIENCE, |heard| count(false, heard) >= nth);
            microseconds(90_000, chance)
        }
        KillPhase::Compaction => {
            let is_asked = |heard: &pal_agent_testkit::ReceivedTraffic| {
                heard.asked[before..].iter().any(|asked| asked.is_summary)
            };
            world.provider.wait_until(PATIENCE, is_asked);
            microseconds(900_000, chance)
        }
        KillPhase::Tool => {
            wait_until(told, |told| told.begun >= nth);
            microseconds(50_000, chance)
        }
        KillPhase::Spill => {
            wait_until(told, |told| told.is_long);
            microseconds(4_000, chance)
        }
        KillPhase::Append => {
            wait_until(told, |told| told.answers >= nth);
            microseconds(3_000, chance)
        }
    };
    std::thread::sleep(pause);
    child.kill().unwrap();
    let heard = world.provider.heard();
    let asked = |summaries: bool| {
        heard.asked[before..].iter().filter(|asked| asked.is_summary == summaries).count() as u64
    };
    let told = told.0.lock().unwrap();
    if !told.has_begun {
        KillPhase::Start
    } else if told.begun > told.ended {
        KillPhase::Tool
    } else if asked(true) > told.boundaries {
        KillPhase::Compaction
    } else if asked(false) > told.answers {
        KillPhase::Stream
    } else if told.is_long {
        KillPhase::Spill
    } else {
        KillPhase::Append
    }
}

/// One session that is killed again and again, and in the end finishes. Where the kills fell.
fn session(seed: u64) -> BTreeMap<KillPhase, u64> {
    let record = tempfile::tempdir().unwrap();
    let world = TestWorld::new(worker(seed, record.path()));
    let lines: String = (1..=600)
        .map(|line| format!("line {line} of a text that is long enough to be read in parts, and dull\n"))
        .collect();
    world.file("long.txt", &lines);
    let id = format!("01890000-0000-7000-8000-{seed:012}");
    let mut chance = KillRandom(seed ^ 0xdead);
    let wishes = [
        KillPhase::Start,
        KillPhase::Stream,
        KillPhase::Tool,
        KillPhase::Spill,
        KillPhase::Compaction,
        KillPhase::Append,
        KillPhase::Stream,
        KillPhase::Tool,
    ];
    let (mut fell, mut said) = (BTreeMap::new(), BTreeSet::new());
    let mut first: Option<String> = None;
    for kill in 0..KILLS {
        let prompt = format!("go on, kill {kill} of session {seed}.");
        let mut child = world.spawn(&arguments(&world, &id, &prompt));
        let err = reader(child.stderr.take());
        let told = listen(&mut child, &prompt);
        let wish = wishes[chance.below(wishes.len() as u64) as usize];
        *fell.entry(strike(&world, &mut child, &told, wish, &mut chance)).or_default() += 1;
        let status = child.wait().unwrap();
        if status.code().is_some() {
            first.get_or_insert_with(|| {
                format!("kill {kill} came too late: {status}: {}", err.join().unwrap())
            });
        }
        let told = told.0.lock().unwrap();
        let was_asked = world.provider.heard().asked.iter().any(|asked| asked.text().contains(&prompt));
        if was_asked || !told.prompts.is_empty() {
            said.insert(prompt);
        }
    }
    assert_eq!(first, None, "the program goes on until it is killed");
    let last = finish(world.spawn(&arguments(&world, &id, "finish now.")));
    assert_eq!(last.code, 0, "{}\n{}", last.out, last.err);
    assert!(last.out.contains("It is finished."), "{}", last.out);
    check(&world, &said, record.path());
    fell
}

fn arguments<'a>(world: &TestWorld, id: &'a str, prompt: &'a str) -> Vec<&'a str> {
    let begins = if world.logs().is_empty() { "--session-id" } else { "--resume" };
    vec![
        begins,
        id,
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypass",
        "--no-sandbox",
        prompt,
    ]
}

fn check(world: &TestWorld, said: &BTreeSet<String>, record: &Path) {
    let mut heard = world.provider.heard();
    // In so small a window one long result can make even the request for a summary too long (§4.16). Nothing else is refused.
    let is_too_long =
        |body: &str| body.contains("exceed context limit") || body.contains("prompt is too long");
    let invalid: Vec<_> = heard.refused.iter().filter(|(_, body)| !is_too_long(body)).collect();
    assert!(invalid.is_empty(), "every request was valid: {invalid:?}");
    let log = std::fs::read_to_string(&world.logs()[0]).unwrap();
    let entries: Vec<LogEntry> =
        log.lines().filter_map(|line| LogEntry::parse(SharedText::from(line)).ok()).collect();
    let people: String = entries
        .iter()
        .filter(|entry| matches!(entry.body, EntryBody::User(_)))
        .map(|entry| entry.line.to_string())
        .collect();
    for prompt in said {
        assert!(people.contains(prompt.as_str()), "lost: {prompt}");
    }
    let changes: Vec<i64> =
        entries.iter().filter(|entry| changes(entry)).map(|entry| entry.at.milliseconds()).collect();
    let conversation = heard.conversation(record);
    for pair in conversation.windows(2) {
        let is_between = |at: &&i64| (pair[0].at - 5..=pair[1].at + 5).contains(*at);
        if let Some(departs) = pair[1].departs_from(&pair[0]) {
            assert!(
                changes.iter().any(|at| is_between(&at)),
                "a request departs without a decision: {departs}"
            );
        }
    }
    let ran = world.text("ran.txt");
    let ran: Vec<&str> = ran.lines().collect();
    let once: BTreeSet<&&str> = ran.iter().collect();
    assert_eq!(once.len(), ran.len(), "a call was carried out twice: {ran:?}");
    assert!(ran.len() > KILLS as usize / 4, "work was done");
}

/// Is true for entries that change content that was sent before.
fn changes(entry: &LogEntry) -> bool {
    match &entry.body {
        EntryBody::Boundary(_) => true,
        EntryBody::Decision(decision) => !matches!(
            decision.kind,
            DecisionKind::Spill { .. } | DecisionKind::Keep { .. } | DecisionKind::Latch { .. }
        ),
        _ => false,
    }
}

#[test]
fn a_session_resumes_after_a_kill_at_any_moment() {
    let begun = Instant::now();
    let sessions: Vec<_> = (0..SESSIONS).map(|seed| std::thread::spawn(move || session(seed + 1))).collect();
    let mut fell: BTreeMap<KillPhase, u64> = BTreeMap::new();
    for session in sessions {
        for (phase, kills) in session.join().unwrap() {
            *fell.entry(phase).or_default() += kills;
        }
    }
    println!("kills by phase in {} s: {fell:?}", begun.elapsed().as_secs());
    assert_eq!(fell.values().sum::<u64>(), SESSIONS * KILLS);
    for phase in [KillPhase::Start, KillPhase::Stream, KillPhase::Tool, KillPhase::Compaction] {
        assert!(fell.contains_key(&phase), "no kill fell into {phase:?}: {fell:?}");
    }
}
