//! Choosing lines by rank until the room is used, and writing them with a mark at each gap.
//!
//! Knows nothing of what lines mean: whoever recognised the text gave each line its rank.

use super::mark::{Gap, Says, USUAL_LENGTH, cut, repeated};

/// How much a line matters: lower ranks are chosen first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Rank(u8);

impl Rank {
    /// Names the things that other lines are about: files and hunks of a diff.
    pub(super) const HEAD: Rank = Rank(0);
    /// Reports an error, or belongs to such a report.
    pub(super) const ERROR: Rank = Rank(1);
    /// Reports a warning, or belongs to such a report.
    pub(super) const WARNING: Rank = Rank(2);
    /// Sums up.
    pub(super) const SUMMARY: Rank = Rank(3);
    /// Nothing special.
    pub(super) const PLAIN: Rank = Rank(20);
    /// Looks like the lines around it.
    pub(super) const SIMILAR: Rank = Rank(21);
    /// Never worth sending.
    pub(super) const NOISE: Rank = Rank(22);

    /// Stands near something that matters, `distance` lines away.
    pub(super) fn near(distance: usize) -> Rank {
        Rank(4 + u8::try_from(distance.min(15)).unwrap_or(15))
    }
}

/// A line with its rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// The line, without its end.
    pub(super) text: &'a str,
    /// How much it matters.
    pub(super) rank: Rank,
    /// What it says, for the count at a gap.
    pub(super) says: Says,
    /// How many more times it came, directly after.
    pub(super) more: u64,
}

impl<'a> Line<'a> {
    /// A line that says nothing countable and came once.
    pub(super) fn new(text: &'a str, rank: Rank) -> Line<'a> {
        Line { text, rank, says: Says::Nothing, more: 0 }
    }
}

/// First lines that always stay.
const FIRST_LINES: usize = 2;
/// Last lines that always stay.
const LAST_LINES: usize = 3;

/// How much room there is.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Characters of the whole text, about.
    pub(super) most: usize,
    /// Lines are cut beyond this, where the text is too long as a whole.
    pub(super) line_most: usize,
}

/// Writes the lines that matter most, as far as there is room; also says how many lines are not there.
pub(super) fn assemble(lines: &[Line<'_>], room: Room, ends_line: bool) -> (String, u64) {
    let mut choice = Choice::new(lines, room);
    choice.take_ends();
    let mut by_rank: Vec<Vec<usize>> = vec![Vec::new(); usize::from(Rank::NOISE.0)];
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

/// Which lines are taken, and what they cost.
struct Choice<'a, 'b> {
    lines: &'b [Line<'a>],
    taken: Vec<bool>,
    /// Characters still to give away; below zero when what always stays takes more.
    room: isize,
    line_length_most: usize,
}

impl<'a, 'b> Choice<'a, 'b> {
    fn new(lines: &'b [Line<'a>], room: Room) -> Choice<'a, 'b> {
        let Room { most, line_most } = room;
        let total: usize = lines.iter().map(|line| length(line.text) + 1).sum();
        let line_length_most =
            if total > most { line_most.max(most / lines.len().max(1)) } else { usize::MAX };
        let room = isize::try_from(most).unwrap_or(isize::MAX);
        Choice { lines, taken: vec![false; lines.len()], room, line_length_most }
    }

    /// What taking a line costs: itself, and the marks that it makes necessary or needless.
    fn cost(&self, line_idx: usize) -> isize {
        let line = &self.lines[line_idx];
        let own = length(line.text).min(self.line_length_most) + 1;
        let repeats = if line.more > 0 { USUAL_LENGTH } else { 0 };
        let is_taken = |line_idx: usize| self.taken.get(line_idx).copied().unwrap_or(true);
        let neighbours =
            [line_idx.wrapping_sub(1), line_idx + 1].map(|line_idx| isize::from(is_taken(line_idx)));
        let marks = (1 - neighbours.iter().sum::<isize>()) * USUAL_LENGTH.cast_signed();
        (own + repeats).cast_signed() + marks
    }

    fn take(&mut self, line_idx: usize) {
        if !self.taken[line_idx] {
            self.room -= self.cost(line_idx);
            self.taken[line_idx] = true;
        }
    }

    /// The first and last lines that say something stay, whatever they are.
    fn take_ends(&mut self) {
        let lines = self.lines;
        let said = |line_idx: &usize| !lines[*line_idx].text.trim().is_empty();
        let first: Vec<usize> = (0..lines.len()).filter(said).take(FIRST_LINES).collect();
        let last: Vec<usize> = (0..lines.len()).rev().filter(said).take(LAST_LINES).collect();
        for line_idx in first.into_iter().chain(last) {
            self.take(line_idx);
        }
    }

    /// Takes all lines of a rank; where they do not fit, the first and the last ones.
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

    /// A gap that its mark would hardly shorten is no gap.
    fn close_small_gaps(&mut self) {
        let mut from = 0;
        while from < self.lines.len() {
            let mut to = from;
            let (mut cost, mut gap) = (0, Gap::default());
            while to < self.lines.len() && !self.taken[to] {
                let line = &self.lines[to];
                cost += length(line.text).min(self.line_length_most) + 1;
                gap.add(line.more + 1, line.says);
                to += 1;
            }
            if to > from && cost <= length(&gap.mark()) + 20 {
                self.taken[from..to].fill(true);
            }
            from = to + 1;
        }
    }

    fn write(&self, ends_line: bool) -> (String, u64) {
        let (mut text, mut left_out) = (String::new(), 0);
        let mut gap = Gap::default();
        let mut add = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        for (line, taken) in self.lines.iter().zip(&self.taken) {
            if !taken {
                gap.add(line.more + 1, line.says);
                continue;
            }
            if gap.lines() > 0 {
                add(&gap.mark());
                left_out += gap.lines();
                gap = Gap::default();
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
            add(&gap.mark());
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

/// The line with its middle cut out; none if it is short enough.
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
