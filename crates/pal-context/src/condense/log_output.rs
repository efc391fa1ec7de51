//! Logs: builds, test runs, progress, and any other long shell output.
//!
//! Errors and warnings stay with their locations and details; routine output is dropped.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::gap_marker::{LineReport, USUAL_LENGTH};
use super::line_prefix;
use super::line_selection::{LineRank, RankedLine};
use super::output_format::OutputFormat;
use super::routine_lines::{self, NoiseKind};
use super::severity;

/// Number of lines after an alarm that count as its details.
const DETAILS: usize = 15;
/// Number of locations kept with an alarm.
const PLACES: usize = 4;
/// Minimum run of similar lines whose middle is dropped first.
const SIMILAR_MIN: usize = 6;
/// Minimum run of similar lines in a known log whose middle is always dropped.
const SIMILAR_MANY: usize = 30;

/// Minimum routine lines of a build or test log.
const NOISE_MIN: usize = 5;
/// Sample size for recognition.
const SAMPLE: usize = 4_000;

/// Evidence from the origin that a text is a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LogHint {
    /// Output of some tool.
    Nothing,
    /// Output of a shell.
    Shell,
    /// Output of a build or test command.
    Command,
}

/// Ranks the lines of a build, test or download log and names the format; `None` if it is none of these.
pub(super) fn recognized<'a>(
    lines: &[&'a str],
    hint: LogHint,
) -> Option<(Vec<RankedLine<'a>>, OutputFormat)> {
    // Quick rejection by a sample: most long texts are no such logs.
    let sample: Vec<&str> = lines.iter().step_by(lines.len() / SAMPLE + 1).copied().collect();
    let share_least = match hint {
        LogHint::Nothing => 50,
        LogHint::Shell => 25,
        LogHint::Command => 5,
    };
    if NoiseCounts::of(&sample, &noises(&sample)).share() * 2 < share_least {
        return None;
    }
    let noises = noises(lines);
    let counts = NoiseCounts::of(lines, &noises);
    if counts.noise() < NOISE_MIN || counts.share() < share_least {
        return None;
    }
    let format = if counts.test * 4 >= counts.noise() {
        OutputFormat::TestRun
    } else if counts.build >= counts.progress {
        OutputFormat::BuildLog
    } else {
        OutputFormat::Progress
    };
    Some((ranked(lines, &noises, LineRank::NOISE), format))
}

fn noises(lines: &[&str]) -> Vec<Option<NoiseKind>> {
    lines.iter().map(|line| routine_lines::of(line)).collect()
}

/// Routine lines of a text, by kind.
#[derive(Default)]
struct NoiseCounts {
    build: usize,
    test: usize,
    progress: usize,
    said: usize,
}

impl NoiseCounts {
    fn of(lines: &[&str], noises: &[Option<NoiseKind>]) -> NoiseCounts {
        let mut counts = NoiseCounts::default();
        for (line, noise) in lines.iter().zip(noises) {
            counts.said += usize::from(!line.trim().is_empty());
            match noise {
                Some(NoiseKind::Build) => counts.build += 1,
                Some(NoiseKind::Test) => counts.test += 1,
                Some(NoiseKind::Progress) => counts.progress += 1,
                None => {}
            }
        }
        counts
    }

    fn noise(&self) -> usize {
        self.build + self.test + self.progress
    }

    /// Percentage of routine lines.
    fn share(&self) -> usize {
        self.noise() * 100 / self.said.max(1)
    }
}

/// Ranks the lines of any log. Nothing is dropped while there is room.
pub(super) fn any<'a>(lines: &[&'a str]) -> Vec<RankedLine<'a>> {
    ranked(lines, &vec![None; lines.len()], LineRank::SIMILAR)
}

/// Returns true if most lines begin with a time or a level.
pub(super) fn has_shape(lines: &[&str]) -> bool {
    const LEVELS: [&str; 8] = ["INFO", "DEBUG", "WARN", "ERROR", "TRACE", "info:", "debug:", "level="];
    let said = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let opened = lines.iter().filter(|line| {
        let line = line.trim_start_matches(['[', ' ']);
        line_prefix::has_time(line) || LEVELS.iter().any(|level| line.starts_with(level))
    });
    said >= 10 && opened.count() * 2 >= said
}

fn ranked<'a>(lines: &[&'a str], noises: &[Option<NoiseKind>], similar: LineRank) -> Vec<RankedLine<'a>> {
    let mut ranked: Vec<RankedLine<'a>> = Vec::with_capacity(lines.len());
    let mut at = 0;
    while at < lines.len() {
        let text = lines[at];
        let same = lines[at..].iter().take_while(|line| **line == text).count();
        let line = first_rank(text, noises[at]);
        let saved = (text.len() + 1) * (same - 1);
        if same > 2 && saved > USUAL_LENGTH + 10 {
            ranked.push(RankedLine { more: same as u64 - 1, ..line });
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

/// Rank of a line by itself.
fn first_rank(text: &str, noise: Option<NoiseKind>) -> RankedLine<'_> {
    if noise == Some(NoiseKind::Test) {
        return RankedLine::new(text, LineRank::NOISE);
    }
    let report = severity::classify_line(text);
    let rank = match report {
        LineReport::Error => LineRank::ERROR,
        LineReport::Warning => LineRank::WARNING,
        _ if is_failure_head(text) => LineRank::ERROR,
        _ if noise.is_some() || routine_lines::is_test_file(text) => LineRank::NOISE,
        _ if routine_lines::is_summary(text) => LineRank::SUMMARY,
        _ => LineRank::PLAIN,
    };
    RankedLine { report, ..RankedLine::new(text, rank) }
}

/// Returns true for lines that name a failing test without a failure word.
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

/// An alarm whose details are being ranked.
struct OpenAlarm {
    rank: LineRank,
    distance: usize,
    places: usize,
    is_list: bool,
}

/// Ranks the lines around alarms, and lowers repeated alarms.
fn rank_details(lines: &mut [RankedLine<'_>]) {
    let mut seen: FxHashSet<(&str, &str)> = FxHashSet::default();
    let mut alarm: Option<OpenAlarm> = None;
    let mut test_file = None;
    for at in 0..lines.len() {
        let line = lines[at];
        if line.rank == LineRank::NOISE && routine_lines::is_test_file(line.text) {
            test_file = Some(at);
        }
        if line.rank == LineRank::ERROR || line.rank == LineRank::WARNING {
            let next = lines.get(at + 1).map_or("", |next| next.text);
            let is_new = seen.insert((line.text, if severity::is_location(next) { next } else { "" }));
            // A repeated alarm directly after another is a detail of it.
            let rank = if is_new { line.rank } else { LineRank::near(4) };
            lines[at].rank = rank;
            if let Some(file) = test_file.take() {
                lines[file].rank = LineRank::near(1);
            }
            alarm =
                Some(OpenAlarm { rank, distance: 0, places: 0, is_list: line.text.trim() == "failures:" });
            for distance in 1..=2.min(at) {
                let before = &mut lines[at - distance];
                if before.rank == LineRank::PLAIN {
                    before.rank = LineRank::near(distance + 1);
                }
            }
        } else if line.rank == LineRank::NOISE {
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

fn detail_rank(line: &RankedLine<'_>, alarm: &mut OpenAlarm, before: &str) -> LineRank {
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
    if alarm.places < PLACES && severity::is_location(text) {
        alarm.places += 1;
        return alarm.rank;
    }
    line.rank.min(LineRank::near(alarm.distance))
}

/// Ranks Go test output, which precedes the failure line.
fn rank_failures_before(lines: &mut [RankedLine<'_>]) {
    for at in 0..lines.len() {
        if !lines[at].text.trim_start().starts_with("--- FAIL") {
            continue;
        }
        for before in lines[..at].iter_mut().rev().take(20) {
            let is_detail = before.text.starts_with("    ") && !before.text.trim_start().starts_with("---");
            if !is_detail {
                break;
            }
            before.rank = LineRank::ERROR;
        }
    }
}

/// Lowers the middle of a run of lines that differ only in numbers.
fn rank_similar(lines: &mut [RankedLine<'_>], similar: LineRank) {
    let mut from = 0;
    while from < lines.len() {
        let mut to = from + 1;
        if lines[from].rank == LineRank::PLAIN && !lines[from].text.trim().is_empty() {
            let first = shape(lines[from].text);
            while to < lines.len() && lines[to].rank == LineRank::PLAIN && shape(lines[to].text) == first {
                to += 1;
            }
            if to - from >= SIMILAR_MIN {
                let rank = if to - from >= SIMILAR_MANY { similar } else { LineRank::SIMILAR };
                lines[from + 2..to - 1].iter_mut().for_each(|line| line.rank = rank);
            }
        }
        from = to;
    }
}

/// Hash of a line with all words containing digits treated as equal.
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
