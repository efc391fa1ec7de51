//! Four writer processes and one reader, which are killed repeatedly.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pal_mailbox::{Envelope, EnvelopeDraft, Inbox, Mailbox};

use super::{name, new_id, now};

const WRITERS: u64 = 4;
const MESSAGES: u64 = 1000;
const ROLE: &str = "PAL_MESSAGES_ROLE";
const PLACE: &str = "PAL_MESSAGES_PLACE";

#[test]
fn four_writers_and_a_reader_survive_repeated_kills() {
    let dir = tempfile::tempdir().unwrap();
    let seed = RandomState::new().hash_one(0);
    let mut chance = SeededRandom(seed | 1);
    let roles: Vec<String> = (0..WRITERS).map(|writer| format!("writer-{writer}")).collect();
    let mut running: BTreeMap<String, Child> = BTreeMap::new();
    for role in roles.iter().map(String::as_str).chain(["reader"]) {
        running.insert(role.to_owned(), start(dir.path(), role));
    }
    let (begun, mut kills) = (Instant::now(), BTreeMap::<String, u32>::new());
    while !running.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(180), "seed {seed}: it goes on for ever");
        std::thread::sleep(Duration::from_millis(2 + chance.below(20)));
        let role = running.keys().nth(chance.below(WRITERS + 1) as usize).cloned();
        let Some((role, mut child)) = role.and_then(|role| running.remove_entry(&role)) else { continue };
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if status.signal() == Some(9) {
            *kills.entry(role.clone()).or_default() += 1;
            running.insert(role.clone(), start(dir.path(), &role));
        } else {
            assert!(status.success(), "seed {seed}: {role} failed");
        }
    }
    check(dir.path(), &roles, seed);
    assert!(kills.values().sum::<u32>() >= 20, "only {kills:?}");
    let spool = fs::metadata(dir.path().join("mail/reader/spool.jsonl")).unwrap().len();
    assert!(spool < 3 << 20, "of 12 megabytes, {spool} bytes are still there");
    println!("{kills:?} kills in {:?}", begun.elapsed());
}

fn check(dir: &Path, roles: &[String], seed: u64) {
    let kept = fs::read_to_string(dir.join("kept")).unwrap();
    let mut numbers: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for line in kept.lines() {
        let mut words = line.split(' ');
        let (from, number) = (words.next().unwrap(), words.next().unwrap());
        numbers.entry(from).or_default().push(number.parse().unwrap());
    }
    for role in roles {
        let got = numbers.remove(role.as_str()).unwrap_or_default();
        assert!(got.iter().copied().eq(1..=MESSAGES), "seed {seed}: of {role}, once and in order: {got:?}");
    }
    assert!(numbers.is_empty());
}

/// Entry point of the child processes; does nothing as a test.
#[test]
fn child_process() {
    let (Ok(role), Ok(place)) = (std::env::var(ROLE), std::env::var(PLACE)) else { return };
    match role.as_str() {
        "reader" => read(Path::new(&place)),
        writer => write(Path::new(&place), writer),
    }
}

/// Records each message before posting it; after a kill posts again every message in doubt, and some others.
fn write(dir: &Path, role: &str) {
    let outbox = dir.join(format!("outbox-{role}"));
    heal(&outbox);
    let mut mailbox = Mailbox::open(&dir.join("mail"), &name("reader")).unwrap();
    let earlier = fs::read_to_string(&outbox).unwrap_or_default();
    let earlier: Vec<Envelope> = earlier.lines().map(|line| Envelope::parse(line).unwrap()).collect();
    for message in &earlier[earlier.len().saturating_sub(5)..] {
        mailbox.post(message).unwrap();
    }
    let mut outbox = OpenOptions::new().append(true).create(true).open(&outbox).unwrap();
    for number in earlier.len() as u64 + 1..=MESSAGES {
        let padding = "x".repeat(if number % 7 == 0 { 20_000 } else { 100 });
        let text = format!("{number} {padding}");
        let draft = EnvelopeDraft::text(name(role), name("reader"), "a number", &text);
        let message = draft.seal(new_id(), now()).unwrap();
        outbox.write_all(format!("{}\n", message.line()).as_bytes()).unwrap();
        mailbox.post(&message).unwrap();
    }
}

/// Stores messages in a file before confirming, and checks there for those perhaps seen before.
fn read(dir: &Path) {
    let path = dir.join("kept");
    heal(&path);
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let mut known: HashSet<String> =
        kept.lines().map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
    let mut kept = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let mut inbox = Inbox::open(&dir.join("mail"), &name("reader")).unwrap();
    while (known.len() as u64) < WRITERS * MESSAGES {
        for delivery in inbox.take().unwrap() {
            let message = delivery.message;
            let is_known = !known.insert(message.id.to_string());
            assert!(delivery.perhaps_seen || !is_known, "{} came twice, unmarked", message.id);
            if !is_known {
                let number = message.text.split(' ').next().unwrap().to_owned();
                kept.write_all(format!("{} {number} {}\n", message.from, message.id).as_bytes()).unwrap();
            }
        }
        inbox.confirm().unwrap();
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Truncates a partial last line after a kill.
fn heal(path: &PathBuf) {
    let Ok(bytes) = fs::read(path) else { return };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    OpenOptions::new().write(true).open(path).unwrap().set_len(end as u64).unwrap();
}

fn start(dir: &Path, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_process", "--nocapture"])
        .env(ROLE, role)
        .env(PLACE, dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Random numbers from a seed.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
