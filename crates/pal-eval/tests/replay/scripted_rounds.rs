//! The 200 rounds of `cargo bench -p pal-cli --bench agent` as a recording: Read, Grep and Bash in turn on files of 2 to 40 KB, in one
//! user turn, or in ten with a pause before each but the first. A unit is the price of an uncached prompt token of the model, Claude
//! Opus 5.5: an output token has 5, a cache write 1.25 (5 minutes) or 2 (1 hour), a cache read 0.05.

use pal_eval::replay::{RecordedSession, ReplayOptions, ReplayReport, replay};
use serde_json::json;

use crate::sessions::cost_aware;
use crate::synthetic_sessions::Made;

const MODEL: &str = "claude-opus-5-5";
/// US dollars per unit.
const UNIT_USD: f64 = 4e-6;
const ROUNDS: usize = 200;
const TURNS: usize = 10;
const WINDOW: u64 = 200_000;
/// Tokens of system prompt and tools.
const PREFIX_TOKENS: u64 = 14_000;
/// Matches that Grep returns at most.
const MATCHES_MAX: usize = 250;
const SIZES: [usize; 10] = [2_000, 2_000, 2_500, 3_000, 3_500, 4_000, 5_000, 6_000, 10_000, 40_000];
const WORDS: [&str; 8] = ["river", "window", "paper", "engine", "garden", "letter", "mountain", "history"];

/// Lines of the file that a round looks at.
fn lines(round: usize) -> Vec<String> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while bytes < SIZES[(round * 7) % SIZES.len()] {
        let word = WORDS[(bytes / 7 + round) % WORDS.len()];
        lines.push(format!("a word such as {word} stands in a line with others, as words do"));
        bytes += lines.last().map_or(0, |line| line.len() + 1);
    }
    lines
}

/// The session, with nine pauses of this many minutes.
fn session(pause_minutes: Option<i64>) -> RecordedSession {
    let mut made = Made::new(PREFIX_TOKENS);
    made.person("Look.");
    for round in 0..ROUNDS {
        if let Some(minutes) = pause_minutes.filter(|_| round > 0 && round % (ROUNDS / TURNS) == 0) {
            made.wait(60 * minutes);
            made.person("Look on.");
        }
        let (lines, path) = (lines(round), format!("data/{round:03}.txt"));
        let numbered = |most: usize, separator: &str| -> String {
            let lines = lines.iter().take(most).enumerate();
            lines.map(|(at, line)| format!("{}{separator}{line}\n", at + 1)).collect()
        };
        match round % 3 {
            0 => made.call("Read", &json!({"file_path": path}), &numbered(usize::MAX, "\t")),
            1 => {
                let input = json!({"pattern": "word", "path": path, "output_mode": "content"});
                made.call("Grep", &input, &numbered(MATCHES_MAX, ":"))
            }
            _ => made.call("Bash", &json!({"command": format!("cat {path}")}), &lines.join("\n")),
        };
    }
    made.recorded()
}

fn units(report: &ReplayReport) -> f64 {
    report.measured.cost_usd.unwrap() / UNIT_USD
}

#[test]
fn scripted_rounds_cost_few_units() {
    for (name, pause, max) in [
        // The goal is 1,700,000.
        ("no pause", None, 1_880_000.0),
        ("nine pauses of 6 minutes", Some(6), 2_000_000.0),
        ("nine pauses of 20 minutes", Some(20), 2_000_000.0),
        ("nine pauses of 90 minutes", Some(90), 2_000_000.0),
    ] {
        let recorded = session(pause);
        let run = |options: ReplayOptions| {
            let report = replay(&recorded, &ReplayOptions { model: Some(MODEL.into()), ..options }).unwrap();
            assert_eq!((report.rejected, report.lost.len()), (0, 0));
            report
        };
        let ours = run(cost_aware(Some(WINDOW)));
        let none =
            run(ReplayOptions { layers: pal_context::ContextPolicy::none(), ..cost_aware(Some(WINDOW)) });
        println!(
            "{name}: {:.0} units, {} compactions, {:?}; none {:.0}",
            units(&ours),
            ours.compactions.len(),
            ours.measured.tokens,
            units(&none)
        );
        assert!(units(&ours) <= max, "{name}: {:.0} units", units(&ours));
    }
}
