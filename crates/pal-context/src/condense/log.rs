//! Logs: builds, test runs, progress, and any other long output of a shell.
//!
//! Errors and warnings stay with the lines that say where, and with what stands around them; what is printed while
//! all is well goes.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::alarm;
use super::assemble::{Line, Rank};
use super::mark::{Says, USUAL_LENGTH};
use super::noise::{self, Noise};
use super::prefix;

/// Lines after an alarm that count as its details.
const DETAILS: usize = 15;
/// Places that an alarm names and that stay with it.
const PLACES: usize = 4;
/// From this many similar lines on, those in the middle are the first to go.
const SIMILAR_LEAST: usize = 6;
/// From this many similar lines on, those in the middle of a known log go in any case.
const SIMILAR_MANY: usize = 30;

/// Fewer lines of noise make no log of a build or a test run.
const NOISE_LEAST: usize = 5;
/// Lines looked at before all are.
const SAMPLE: usize = 4_000;

/// How sure the surroundings make us that a text is a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hint {
    /// Some tool said it.
    Nothing,
    /// A shell printed it.
    Shell,
    /// The command is one that builds or tests.
    Command,
}

/// The lines of a log of a build, a test run or a download, ranked, and which it is; none if it is none of these.
pub(super) fn recognised<'a>(lines: &[&'a str], hint: Hint) -> Option<(Vec<Line<'a>>, &'static str)> {
    // Most long texts are no such logs; a sample spares looking at all of their lines.
    let sample: Vec<&str> = lines.iter().step_by(lines.len() / SAMPLE + 1).copied().collect();
    let share_least = match hint {
        Hint::Nothing => 50,
        Hint::Shell => 25,
        Hint::Command => 5,
    };
    if Counts::of(&sample, &noises(&sample)).share() * 2 < share_least {
        return None;
    }
    let noises = noises(lines);
    let counts = Counts::of(lines, &noises);
    if counts.noise() < NOISE_LEAST || counts.share() < share_least {
        return None;
    }
    let by = if counts.test * 4 >= counts.noise() {
        "test run"
    } else if counts.build >= counts.progress {
        "build log"
    } else {
        "progress"
    };
    Some((ranked(lines, &noises, Rank::NOISE), by))
}

fn noises(lines: &[&str]) -> Vec<Option<Noise>> {
    lines.iter().map(|line| noise::of(line)).collect()
}

/// How many lines of a text are noise of which kind.
#[derive(Default)]
struct Counts {
    build: usize,
    test: usize,
    progress: usize,
    said: usize,
}

impl Counts {
    fn of(lines: &[&str], noises: &[Option<Noise>]) -> Counts {
        let mut counts = Counts::default();
        for (line, noise) in lines.iter().zip(noises) {
            counts.said += usize::from(!line.trim().is_empty());
            match noise {
                Some(Noise::Build) => counts.build += 1,
                Some(Noise::Test) => counts.test += 1,
                Some(Noise::Progress) => counts.progress += 1,
                None => {}
            }
        }
        counts
    }

    fn noise(&self) -> usize {
        self.build + self.test + self.progress
    }

    /// Noise in a hundred lines.
    fn share(&self) -> usize {
        self.noise() * 100 / self.said.max(1)
    }
}

/// The lines of any log, ranked. Nothing is left out while there is room.
pub(super) fn any<'a>(lines: &[&'a str]) -> Vec<Line<'a>> {
    ranked(lines, &vec![None; lines.len()], Rank::SIMILAR)
}

/// Whether most lines open with a time or a level, as lines of logs do.
pub(super) fn has_shape(lines: &[&str]) -> bool {
    const LEVELS: [&str; 8] = ["INFO", "DEBUG", "WARN", "ERROR", "TRACE", "info:", "debug:", "level="];
    let said = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let opened = lines.iter().filter(|line| {
        let line = line.trim_start_matches(['[', ' ']);
        prefix::has_time(line) || LEVELS.iter().any(|level| line.starts_with(level))
    });
    said >= 10 && opened.count() * 2 >= said
}

fn ranked<'a>(lines: &[&'a str], noises: &[Option<Noise>], similar: Rank) -> Vec<Line<'a>> {
    let mut ranked: Vec<Line<'a>> = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let text = lines[at];
        let same = lines[at..].iter().take_while(|line| **line == text).count();
        let line = first_rank(text, noises[at]);
        let saved = (text.len() + 1) * (same - 1);
        if same > 2 && saved > USUAL_LENGTH + 10 {
            ranked.push(Line { more: same as u64 - 1, ..line });
        } else {
            ranked.extend(std::iter::repeat_n(line, same));
        }
        at += same;
    }
    rank_details(&mut ranked);
    rank_failures_before(&mut ranked);
    rank_similar(&mut ranked, similar);
    ranked
}

/// What a line is by itself.
fn first_rank(text: &str, noise: Option<Noise>) -> Line<'_> {
    if noise == Some(Noise::Test) {
        return Line::new(text, Rank::NOISE);
    }
    let says = alarm::says(text);
    let rank = match says {
        Says::Error => Rank::ERROR,
        Says::Warning => Rank::WARNING,
        _ if is_failure_head(text) => Rank::ERROR,
        _ if noise.is_some() || noise::is_test_file(text) => Rank::NOISE,
        _ if noise::is_summary(text) => Rank::SUMMARY,
        _ => Rank::PLAIN,
    };
    Line { says, ..Line::new(text, rank) }
}

/// Lines that name a failing test without a word of failure.
fn is_failure_head(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("● ")
        || (text.starts_with("---- ") && text.ends_with(" ----"))
        || (text.starts_with("____") && text.ends_with("____") && text.contains(' '))
        || is_enumerated(text)
}

/// `3) parser reads numbers:`, as mocha numbers what failed.
fn is_enumerated(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (1..=4).contains(&digits) && text[digits..].starts_with(") ")
}

/// An alarm whose details are being read.
struct Alarm {
    rank: Rank,
    distance: usize,
    places: usize,
    is_list: bool,
}

/// Gives the lines around alarms their ranks, and alarms that came before a lower one.
fn rank_details(lines: &mut [Line<'_>]) {
    let mut seen: FxHashSet<(&str, &str)> = FxHashSet::default();
    let mut alarm: Option<Alarm> = None;
    let mut test_file = None;
    for at in 0..lines.len() {
        let line = lines[at];
        if line.rank == Rank::NOISE && noise::is_test_file(line.text) {
            test_file = Some(at);
        }
        if line.rank == Rank::ERROR || line.rank == Rank::WARNING {
            let next = lines.get(at + 1).map_or("", |next| next.text);
            let is_new = seen.insert((line.text, if alarm::is_location(next) { next } else { "" }));
            // A repeated alarm directly after another is a detail of it.
            let rank = if is_new { line.rank } else { Rank::near(4) };
            lines[at].rank = rank;
            if let Some(file) = test_file.take() {
                lines[file].rank = Rank::near(1);
            }
            alarm = Some(Alarm { rank, distance: 0, places: 0, is_list: line.text.trim() == "failures:" });
            for distance in 1..=2.min(at) {
                let before = &mut lines[at - distance];
                if before.rank == Rank::PLAIN {
                    before.rank = Rank::near(distance + 1);
                }
            }
        } else if line.rank == Rank::NOISE {
            alarm = None;
        } else if let Some(open) = &mut alarm {
            open.distance += 1;
            lines[at].rank = detail_rank(&line, open, at.checked_sub(1).map_or("", |at| lines[at].text));
            if open.distance >= DETAILS {
                alarm = None;
            }
        }
    }
}

fn detail_rank(line: &Line<'_>, alarm: &mut Alarm, before: &str) -> Rank {
    const DETAIL_OPENS: [&str; 16] = [
        "left:",
        "right:",
        "Expected",
        "Received",
        "expected",
        "actual",
        "got",
        "want",
        "assert",
        "- Expected",
        "+ Received",
        "+ expected",
        "help:",
        "note:",
        "Error:",
        "message:",
    ];
    let text = line.text.trim_start();
    let is_member = alarm.is_list && text.len() < line.text.len();
    let is_message = before.contains("panicked at") && !text.is_empty();
    if is_member || is_message || DETAIL_OPENS.iter().any(|opening| text.starts_with(opening)) {
        return alarm.rank;
    }
    if alarm.places < PLACES && alarm::is_location(text) {
        alarm.places += 1;
        return alarm.rank;
    }
    line.rank.min(Rank::near(alarm.distance))
}

/// Go prints what a test said before it says that the test failed.
fn rank_failures_before(lines: &mut [Line<'_>]) {
    for at in 0..lines.len() {
        if !lines[at].text.trim_start().starts_with("--- FAIL") {
            continue;
        }
        for before in lines[..at].iter_mut().rev().take(20) {
            let is_detail = before.text.starts_with("    ") && !before.text.trim_start().starts_with("---");
            if !is_detail {
                break;
            }
            before.rank = Rank::ERROR;
        }
    }
}

/// Of a run of lines that differ in numbers alone, the middle matters least.
fn rank_similar(lines: &mut [Line<'_>], similar: Rank) {
    let mut from = 0;
    while from < lines.len() {
        let mut to = from + 1;
        if lines[from].rank == Rank::PLAIN && !lines[from].text.trim().is_empty() {
            let first = shape(lines[from].text);
            while to < lines.len() && lines[to].rank == Rank::PLAIN && shape(lines[to].text) == first {
                to += 1;
            }
            if to - from >= SIMILAR_LEAST {
                let rank = if to - from >= SIMILAR_MANY { similar } else { Rank::SIMILAR };
                lines[from + 2..to - 1].iter_mut().for_each(|line| line.rank = rank);
            }
        }
        from = to;
    }
}

/// What stays of a line if every word with a digit in it is taken for the same.
fn shape(line: &str) -> u64 {
    let mut hasher = FxHasher::default();
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let word = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        if word == 0 {
            hasher.write_u8(bytes[at]);
            at += 1;
        } else {
            let word = &bytes[at..at + word];
            if word.iter().any(u8::is_ascii_digit) {
                hasher.write_u8(b'0')
            } else {
                hasher.write(word)
            }
            at += word.len();
        }
    }
    hasher.finish()
}
