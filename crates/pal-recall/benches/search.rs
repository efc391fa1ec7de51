//! Speed of indexing and searching many sessions, and the size of the index.
//!
//! `cargo bench -p pal-recall --bench search` writes logs of `PAL_BENCH_MB` megabytes (64 if unset) of made-up text with
//! words by Zipf's law, indexes them, and asks questions of rare and common words.

// A benchmark that panics has failed.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use pal_model::{EntryDraft, IdSource, MessageOrigin, Timestamp, escape_into};
use pal_recall::{Recall, RecallQuery};
use pal_store::{Log, log_path};

const SESSION_BYTES: u64 = 8_000_000;
const WORDS: u64 = 60_000;
const QUESTIONS: u64 = 100;

/// Pseudo-random numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// A word; the n-th is about n times as rare as the first.
    fn word(&mut self) -> String {
        let share = self.next() as f64 / f64::from(1_u32 << 31);
        word((WORDS as f64).powf(share) as u64)
    }

    fn text(&mut self, words: u64) -> String {
        let mut text = String::new();
        for at in 0..words {
            text.push_str(&self.word());
            text.push(if at % 12 == 11 { '\n' } else { ' ' });
        }
        text
    }
}

fn word(mut number: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "lo", "mi", "ter", "sun", "vor", "pel", "da", "rin", "ock", "bu", "fes", "gar", "hin", "jat",
        "wex",
    ];
    let mut word = String::new();
    loop {
        word.push_str(SYLLABLES[(number % 16) as usize]);
        number /= 16;
        if number == 0 {
            return word;
        }
    }
}

fn main() {
    let megabytes: u64 = std::env::var("PAL_BENCH_MB").map_or(64, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(7);
    let mut bytes = 0;
    for session in 0.. {
        if bytes >= megabytes * 1_000_000 {
            break;
        }
        bytes += write_session(folder.path(), session, &mut numbers);
    }
    let megabytes = bytes as f64 / 1e6;
    let mut recall = Recall::of_project(folder.path());
    let begun = Instant::now();
    recall.update(&mut |_| true).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let index = folder.path().join("recall.db").metadata().unwrap().len() as f64 / 1e6;
    println!(
        "index of {megabytes:.0} MB: {:.1} MB/s, {index:.0} MB ({:.0}%)",
        megabytes / seconds,
        index / megabytes * 100.0
    );
    let mut times: Vec<Duration> = (0..QUESTIONS)
        .map(|at| {
            let query = numbers.text(3 + at % 6);
            let begun = Instant::now();
            let mut recall = Recall::of_project(folder.path());
            recall.search(&question(&query)).unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort();
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("search, freshly opened: median {:.1} ms, p95 {:.1} ms", at(0.5), at(0.95));
    let begun = Instant::now();
    recall.update(&mut |_| true).unwrap();
    println!("update without new text: {:.1} ms", begun.elapsed().as_secs_f64() * 1e3);
}

fn question(query: &str) -> RecallQuery<'_> {
    let now = Timestamp::from_milliseconds(1_800_000_000_000);
    RecallQuery { query, session: None, limit: 10, context_lines: 3, now, caller: None }
}

/// Writes a session of about [`SESSION_BYTES`]: prompts, answers and long results. Returns its bytes.
fn write_session(project: &std::path::Path, session: u64, numbers: &mut Numbers) -> u64 {
    let folder = project.join("sessions").join(format!("session-{session:05}"));
    std::fs::create_dir_all(&folder).unwrap();
    let path = log_path(&folder);
    let mut log = Log::create(&path, IdSource::seeded(session + 1)).unwrap();
    let mut written = 0;
    while written < SESSION_BYTES {
        for words in [30, 150, 1_500] {
            let mut content = String::new();
            escape_into(&mut content, &numbers.text(words));
            written += content.len() as u64;
            let at =
                Timestamp::from_milliseconds(1_700_000_000_000 + (session * 86_400_000 + written) as i64);
            let draft = match words {
                30 => EntryDraft::user(MessageOrigin::Person, &content),
                150 => EntryDraft::assistant(None, None, &format!(r#"[{{"type":"text","text":{content}}}]"#)),
                _ => EntryDraft::user(
                    MessageOrigin::Tool,
                    &format!(r#"[{{"type":"tool_result","tool_use_id":"a","content":{content}}}]"#),
                ),
            };
            log.append(draft, at).unwrap();
        }
    }
    path.metadata().unwrap().len()
}
