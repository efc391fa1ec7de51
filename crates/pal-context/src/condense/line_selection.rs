//! Selection of lines by rank until the room is used, with a marker at each gap.
//!
//! Independent of formats: the recognizer ranked each line.

use super::gap_marker::{LineReport, OutputGap, USUAL_LENGTH, cut, repeated};

/// Importance of a line: lower ranks are chosen first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LineRank(u8);

impl LineRank {
    /// Header: files and hunks of a diff.
    pub(super) const HEAD: LineRank = LineRank(0);
    /// Reports an error, or belongs to such a report.
    pub(super) const ERROR: LineRank = LineRank(1);
    /// Reports a warning, or belongs to such a report.
    pub(super) const WARNING: LineRank = LineRank(2);
    /// Summary line.
    pub(super) const SUMMARY: LineRank = LineRank(3);
    /// Ordinary line.
    pub(super) const PLAIN: LineRank = LineRank(20);
    /// Similar to the lines around it.
    pub(super) const SIMILAR: LineRank = LineRank(21);
    /// Never worth sending.
    pub(super) const NOISE: LineRank = LineRank(22);

    /// Line `distance` lines away from an important one.
    pub(super) fn near(distance: usize) -> LineRank {
        LineRank(4 + u8::try_from(distance.min(15)).unwrap_or(15))
    }
}

/// A line with its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankedLine<'a> {
    /// The line, without its end.
    pub(super) text: &'a str,
    /// Importance.
    pub(super) rank: LineRank,
    /// Kind of the line, for the count at a gap.
    pub(super) report: LineReport,
    /// Number of direct repetitions.
    pub(super) more: u64,
}

impl<'a> RankedLine<'a> {
    /// Creates an unrepeated line that is not counted at a gap.
    pub(super) fn new(text: &'a str, rank: LineRank) -> RankedLine<'a> {
        RankedLine { text, rank, report: LineReport::Nothing, more: 0 }
    }
}

/// First lines that always stay.
const FIRST_LINES: usize = 2;
/// Last lines that always stay.
const LAST_LINES: usize = 3;

/// Length limits.
#[derive(Clone, Copy)]
pub(super) struct OutputRoom {
    /// Approximate characters of the whole text.
    pub(super) most: usize,
    /// Maximum characters of a line, if the text is too long as a whole.
    pub(super) line_most: usize,
}

/// Writes the most important lines that fit; also returns the number of omitted lines.
pub(super) fn assemble(lines: &[RankedLine<'_>], room: OutputRoom, ends_line: bool) -> (String, u64) {
    let mut choice = LineSelection::new(lines, room);
    choice.take_ends();
    let mut by_rank: Vec<Vec<usize>> = vec![Vec::new(); usize::from(LineRank::NOISE.0)];
    for (line_idx, line) in lines.iter().enumerate() {
        if let Some(same_rank) = by_rank.get_mut(usize::from(line.rank.0)) {
            same_rank.push(line_idx);
        }
    }
    for same_rank in &by_rank {
        choice.take_rank(same_rank);
    }
    choice.close_small_gaps();
    choice.write(ends_line)
}

/// The selected lines and their cost.
struct LineSelection<'a, 'b> {
    lines: &'b [RankedLine<'a>],
    taken: Vec<bool>,
    /// Characters left; negative if the mandatory lines take more.
    room: isize,
    line_length_most: usize,
}

impl<'a, 'b> LineSelection<'a, 'b> {
    fn new(lines: &'b [RankedLine<'a>], room: OutputRoom) -> LineSelection<'a, 'b> {
        let OutputRoom { most, line_most } = room;
        let total: usize = lines.iter().map(|line| length(line.text) + 1).sum();
        let line_length_most =
            if total > most { line_most.max(most / lines.len().max(1)) } else { usize::MAX };
        let room = isize::try_from(most).unwrap_or(isize::MAX);
        LineSelection { lines, taken: vec![false; lines.len()], room, line_length_most }
    }

    /// Cost of selecting a line: itself, and the markers that it adds or removes.
    fn cost(&self, line_idx: usize) -> isize {
        let line = &self.lines[line_idx];
        let own = length(line.text).min(self.line_length_most) + 1;
        let repeats = if line.more > 0 { USUAL_LENGTH } else { 0 };
        let is_taken = |line_idx: usize| self.taken.get(line_idx).copied().unwrap_or(true);
        let neighbors =
            [line_idx.wrapping_sub(1), line_idx + 1].map(|line_idx| isize::from(is_taken(line_idx)));
        let marks = (1 - neighbors.iter().sum::<isize>()) * USUAL_LENGTH.cast_signed();
        (own + repeats).cast_signed() + marks
    }

    fn take(&mut self, line_idx: usize) {
        if !self.taken[line_idx] {
            self.room -= self.cost(line_idx);
            self.taken[line_idx] = true;
        }
    }

    /// Selects the first and last non-blank lines.
    fn take_ends(&mut self) {
        let lines = self.lines;
        let said = |line_idx: &usize| !lines[*line_idx].text.trim().is_empty();
        let first: Vec<usize> = (0..lines.len()).filter(said).take(FIRST_LINES).collect();
        let last: Vec<usize> = (0..lines.len()).rev().filter(said).take(LAST_LINES).collect();
        for line_idx in first.into_iter().chain(last) {
            self.take(line_idx);
        }
    }

    /// Selects all lines of a rank; if they do not fit, the first and the last ones.
    fn take_rank(&mut self, same_rank: &[usize]) {
        let half = self.room / 2;
        let mut front = 0;
        while let Some(&line_idx) = same_rank.get(front)
            && (self.taken[line_idx] || self.room - self.cost(line_idx) >= half.max(0))
        {
            self.take(line_idx);
            front += 1;
        }
        let mut back = same_rank.len();
        while back > front
            && let line_idx = same_rank[back - 1]
            && (self.taken[line_idx] || self.room - self.cost(line_idx) >= 0)
        {
            self.take(line_idx);
            back -= 1;
        }
    }

    /// Fills gaps that a marker would hardly shorten.
    fn close_small_gaps(&mut self) {
        let mut from = 0;
        while from < self.lines.len() {
            let mut to = from;
            let (mut cost, mut gap) = (0, OutputGap::default());
            while to < self.lines.len() && !self.taken[to] {
                let line = &self.lines[to];
                cost += length(line.text).min(self.line_length_most) + 1;
                gap.add(line.more + 1, line.report);
                to += 1;
            }
            if to > from && cost <= length(&gap.render()) + 20 {
                self.taken[from..to].fill(true);
            }
            from = to + 1;
        }
    }

    fn write(&self, ends_line: bool) -> (String, u64) {
        let (mut text, mut left_out) = (String::new(), 0);
        let mut gap = OutputGap::default();
        let mut add = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        for (line, taken) in self.lines.iter().zip(&self.taken) {
            if !taken {
                gap.add(line.more + 1, line.report);
                continue;
            }
            if gap.lines() > 0 {
                add(&gap.render());
                left_out += gap.lines();
                gap = OutputGap::default();
            }
            match shortened(line.text, self.line_length_most) {
                Some(shorter) => add(&shorter),
                None => add(line.text),
            }
            if line.more > 0 {
                add(&repeated(line.more));
                left_out += line.more;
            }
        }
        if gap.lines() > 0 {
            add(&gap.render());
            left_out += gap.lines();
        }
        if !ends_line {
            text.pop();
        }
        (text, left_out)
    }
}

fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Cuts out the middle of a long line; `None` if it is short enough.
fn shortened(line: &str, most: usize) -> Option<String> {
    let characters = length(line);
    if most == usize::MAX || characters <= most + USUAL_LENGTH {
        return None;
    }
    if line.trim().is_empty() {
        return Some(String::new());
    }
    let head = most / 4 * 3;
    let tail = most - head;
    let at = |character_idx: usize| match line.is_ascii() {
        true => character_idx,
        false => line.char_indices().nth(character_idx).map_or(line.len(), |(at, _)| at),
    };
    let (head_end, tail_start) = (at(head), at(characters - tail));
    Some(format!("{}{}{}", &line[..head_end], cut(characters - most), &line[tail_start..]))
}
