//! Full scan of a damaged log: all entries and how they follow each other.
//!
//! Used only after a read from the end met an inconsistency. Parents are looked up by id anywhere in the
//! file; where one is missing, the branch continues with the previous line, so that nothing intact is hidden.
//! The result depends on the file alone.

use pal_model::{EntryBody, EntryId, LogRepair, RepairLink};
use rustc_hash::FxHashSet;

use crate::error::{BadLine, FileError, LinePosition, LogProblem, OpenError};
use crate::located_entry::LocatedEntry;
use crate::repairs::KnownRepairs;
use crate::segment::{ForwardCursor, LogSource, SEGMENT_BYTES, UnreadableLine};

/// All entries of a file.
pub(crate) struct LogScan {
    entries: Vec<ScannedEntry>,
    /// (id, position in `entries`), sorted by id.
    by_id: Vec<(EntryId, usize)>,
    damage: Vec<LogProblem>,
    repairs: KnownRepairs,
    counts: ScanCounts,
    /// End of the last line with CRLF.
    crlf_before: Option<u64>,
}

/// Totals of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ScanCounts {
    pub(crate) lines: u64,
    pub(crate) entries: u64,
    /// Entries with a checksum.
    pub(crate) sealed: u64,
}

/// An entry and its position in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScannedEntry {
    pub(crate) id: EntryId,
    pub(crate) offset: u64,
    /// Length without the line end.
    pub(crate) bytes: u64,
    parent: Option<EntryId>,
    parent_offset: Option<u64>,
    number: u64,
    /// Offset after its line; none if it shares the line with others.
    line_end: Option<u64>,
}

impl ScannedEntry {
    fn line(&self) -> LinePosition {
        LinePosition { number: self.number, offset: self.offset, bytes: self.bytes }
    }
}

/// A branch of a damaged log, newest first.
pub(crate) struct RecoveredBranch {
    pub(crate) entries: Vec<ScannedEntry>,
    /// Links that the entries themselves do not give.
    links: Vec<RepairLink>,
    /// Offset of the first entry, if that entry names a parent or is not the first of the file.
    start: Option<u64>,
    problems: Vec<LogProblem>,
}

impl LogScan {
    /// Scans all of `source`.
    pub(crate) fn read(source: LogSource<'_>) -> Result<LogScan, OpenError> {
        LogScan::read_with(source, &mut |_| ())
    }

    /// Scans all of `source`; `progress` receives the bytes read.
    pub(crate) fn read_with(
        source: LogSource<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<LogScan, OpenError> {
        let mut scan = LogScan {
            entries: Vec::new(),
            by_id: Vec::new(),
            damage: Vec::new(),
            repairs: KnownRepairs::default(),
            counts: ScanCounts::default(),
            crlf_before: None,
        };
        let mut crlf: Option<(LinePosition, u64)> = None;
        let mut lines = ForwardCursor::new(source, 0);
        while let Some(line) = lines.next_line()? {
            scan.counts.lines += 1;
            let end = line.end;
            progress(end);
            match line.parse() {
                Ok(located) => {
                    if located.has_crlf {
                        let position = scan.position(&located);
                        crlf.get_or_insert((position, 0)).1 += 1;
                        scan.crlf_before = Some(end);
                    }
                    scan.add(&located, Some(end));
                }
                Err(bad) => scan.add_bad(bad.unless_newer(source.path)?),
            }
        }
        if let Some((line, lines)) = crlf {
            scan.damage.push(LogProblem::Crlf { line, lines });
        }
        scan.by_id = scan.entries.iter().enumerate().map(|(at, entry)| (entry.id, at)).collect();
        scan.by_id.sort_unstable();
        scan.find_repeated();
        Ok(scan)
    }

    /// Ids of the entries of all branches.
    pub(crate) fn ids(&self) -> FxHashSet<EntryId> {
        self.entries.iter().map(|entry| entry.id).collect()
    }

    pub(crate) fn counts(&self) -> ScanCounts {
        self.counts
    }

    /// Finds the entry with this id; the newest if it occurs several times.
    pub(crate) fn find(&self, id: EntryId) -> Option<ScannedEntry> {
        self.places(id).last().and_then(|(_, at)| self.entries.get(*at)).copied()
    }

    /// Newest entry of the session: the last of the file, unless it was moved or repeated; then the leaf with
    /// the largest id.
    pub(crate) fn newest(&self) -> Option<ScannedEntry> {
        let last = self.entries.last()?;
        let others = |entry: &ScannedEntry| entry.parent.filter(|parent| *parent != entry.id);
        let parents: FxHashSet<EntryId> = self.entries.iter().filter_map(others).collect();
        let places = last.parent.map_or(&[][..], |parent| self.places(parent));
        let is_behind = |(_, place): &(EntryId, usize)| match last.parent_offset {
            Some(offset) => self.entries[*place].offset == offset,
            None => place + 2 == self.entries.len(),
        };
        let is_in_place = last.parent.is_none() || places.iter().any(is_behind);
        let is_repeated = self.places(last.id).len() > 1;
        if is_in_place && !is_repeated && !parents.contains(&last.id) {
            return Some(*last);
        }
        let leaves = self.entries.iter().filter(|entry| !parents.contains(&entry.id));
        Some(*leaves.max_by_key(|entry| entry.id).unwrap_or(last))
    }

    /// Follows the branch of the entry at `offset`.
    pub(crate) fn branch(&self, offset: u64) -> RecoveredBranch {
        let mut branch =
            RecoveredBranch { entries: Vec::new(), links: Vec::new(), start: None, problems: Vec::new() };
        let mut seen = FxHashSet::default();
        let mut next = self.at_offset(offset);
        while let Some(at) = next {
            let entry = self.entries[at];
            seen.insert(entry.id);
            branch.entries.push(entry);
            next = self.parent_of(at, &seen, &mut branch.problems);
            if let Some(parent) = next.map(|parent| self.entries[parent])
                && !is_direct(&entry, &parent)
            {
                branch.links.push(RepairLink {
                    offset: entry.offset,
                    parent: parent.id,
                    parent_offset: parent.offset,
                    parent_bytes: parent.bytes,
                });
            }
        }
        let is_strange = |first: &&ScannedEntry| first.parent.is_some() || first.offset > 0;
        branch.start = branch.entries.last().filter(is_strange).map(|first| first.offset);
        branch
    }

    /// Damage outside a branch: entries of other branches with lost parents, and wrong parent offsets.
    pub(crate) fn damage_beside(&self, branch: &RecoveredBranch) -> Vec<LogProblem> {
        let on_branch: FxHashSet<u64> = branch.entries.iter().map(|entry| entry.offset).collect();
        let mut damage = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let Some(parent) = entry.parent else { continue };
            let is_lost = self.places(parent).is_empty();
            if is_lost && !on_branch.contains(&entry.offset) && !self.is_explained(at, entry.offset) {
                let before = at.checked_sub(1).map(|before| self.entries[before].number);
                damage.push(LogProblem::LostParent { line: entry.line(), parent, before });
            }
            let is_there = |(_, place): &(EntryId, usize)| is_direct(entry, &self.entries[*place]);
            if !is_lost && !self.places(parent).iter().any(is_there) && !self.is_explained(at, entry.offset) {
                damage.push(LogProblem::Shifted { line: entry.line() });
            }
        }
        damage
    }

    /// Reports whether a damaged line directly precedes an entry.
    fn is_explained(&self, at: usize, offset: u64) -> bool {
        let from = at.checked_sub(1).map_or(0, |before| self.entries[before].offset);
        let mut damaged = self.damage.iter().filter_map(LogProblem::line);
        damaged.any(|line| (from..offset).contains(&line.offset))
    }

    /// All damage that no repair names yet, last in the file first.
    pub(crate) fn unknown_damage(
        self,
        source: LogSource<'_>,
        branch: RecoveredBranch,
    ) -> Result<Vec<LogProblem>, FileError> {
        let (problems, _) = self.damage_and_repair(source, branch, Vec::new())?;
        Ok(problems)
    }

    /// Same as [`LogScan::unknown_damage`] with damage outside the branch, and the repair that would name it;
    /// none if nothing needs repair.
    pub(crate) fn damage_and_repair(
        self,
        source: LogSource<'_>,
        branch: RecoveredBranch,
        beside: Vec<LogProblem>,
    ) -> Result<(Vec<LogProblem>, Option<LogRepair>), FileError> {
        let LogScan { damage, repairs, crlf_before, .. } = self;
        let mut repair = LogRepair { crlf_before, start: branch.start, ..LogRepair::default() };
        let mut unknown = Vec::new();
        for problem in damage.into_iter().chain(branch.problems).chain(beside) {
            let is_known = match (&problem, problem.line()) {
                (LogProblem::Crlf { .. }, _) => crlf_before <= Some(repairs.crlf_before()),
                (_, Some(line)) => repairs.is_known_damage(source, line.offset, line.bytes)?,
                (_, None) => false,
            };
            if let Some(line) = problem.line() {
                repair.damage.push(KnownRepairs::range(source, line.offset, line.bytes)?);
            }
            if !is_known {
                unknown.push(problem);
            }
        }
        let is_linked = |link: &RepairLink| repairs.link(link.offset).is_some_and(|known| known == *link);
        let is_needed = !unknown.is_empty()
            || !branch.links.iter().all(is_linked)
            || branch.start.is_some_and(|start| !repairs.is_start(start));
        repair.links = branch.links;
        let offset = |problem: &LogProblem| problem.line().map(|line| line.offset);
        unknown.sort_by_key(|problem| std::cmp::Reverse(offset(problem)));
        Ok((unknown, is_needed.then_some(repair)))
    }

    fn position(&self, located: &LocatedEntry) -> LinePosition {
        LinePosition { number: self.counts.lines, offset: located.offset, bytes: located.bytes() }
    }

    fn add(&mut self, located: &LocatedEntry, line_end: Option<u64>) {
        let entry = &located.entry;
        self.counts.entries += 1;
        self.counts.sealed += u64::from(located.has_checksum);
        let line = self.position(located);
        if located.is_altered {
            let is_used = !matches!(entry.body, EntryBody::Unknown);
            self.damage.push(LogProblem::Altered { line, is_used });
        } else if !located.has_checksum && self.counts.sealed > 0 {
            self.damage.push(LogProblem::Unsealed { line });
        }
        if !located.is_altered
            && let EntryBody::Repair(repair) = &entry.body
        {
            self.repairs.add(repair);
        }
        self.entries.push(ScannedEntry {
            id: entry.id,
            offset: located.offset,
            bytes: line.bytes,
            parent: entry.parent,
            parent_offset: entry.parent_offset,
            number: line.number,
            line_end,
        });
    }

    fn add_bad(&mut self, bad: UnreadableLine) {
        let number = self.counts.lines;
        let bytes = bad.end - bad.offset;
        for located in &bad.found {
            self.add(located, None);
        }
        self.damage.push(match bad.found.len() {
            0 => LogProblem::Skipped(BadLine { number, offset: bad.offset, bytes, why: bad.why }),
            entries => {
                LogProblem::Merged { line: LinePosition { number, offset: bad.offset, bytes }, entries }
            }
        });
    }

    fn find_repeated(&mut self) {
        for pair in self.by_id.windows(2) {
            if let [(first, _), (second, at)] = pair
                && first == second
            {
                let copy = self.entries[*at];
                self.damage.push(LogProblem::Repeated { line: copy.line(), entry: copy.id });
            }
        }
    }

    fn places(&self, id: EntryId) -> &[(EntryId, usize)] {
        let start = self.by_id.partition_point(|(found, _)| *found < id);
        let end = self.by_id.partition_point(|(found, _)| *found <= id);
        &self.by_id[start..end]
    }

    fn at_offset(&self, offset: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&offset, |entry| entry.offset).ok()
    }

    /// Finds the parent of the entry at index `at`.
    fn parent_of(
        &self,
        at: usize,
        seen: &FxHashSet<EntryId>,
        problems: &mut Vec<LogProblem>,
    ) -> Option<usize> {
        let child = self.entries[at];
        let line = child.line();
        let Some(parent) = child.parent else {
            let before = self.unseen_before(child.offset, seen)?;
            problems.push(LogProblem::Joined { line, before: self.entries[before].number });
            return Some(before);
        };
        if !seen.contains(&parent) {
            let named = child.parent_offset.and_then(|offset| self.at_offset(offset));
            if let Some(named) = named.filter(|named| *named < at && self.entries[*named].id == parent) {
                return Some(named);
            }
            let places = self.places(parent);
            let earlier = places.partition_point(|(_, place)| *place < at);
            if let Some((_, before)) = earlier.checked_sub(1).and_then(|place| places.get(place)) {
                return Some(*before);
            }
            if let Some((_, behind)) = places.first() {
                problems.push(LogProblem::Misplaced { line, parent: self.entries[*behind].number });
                return Some(*behind);
            }
        }
        // Position of the lost parent: the offset that the child names, else just before the child.
        let named = child.parent_offset.filter(|offset| *offset < child.offset);
        let named = named.and_then(|gap| Some((gap, self.unseen_before(gap, seen)?)));
        let (gap, before) = match named {
            Some((gap, before)) => (gap, Some(before)),
            None => (child.offset, self.unseen_before(child.offset, seen)),
        };
        let from = before.map_or(0, |before| self.entries[before].offset);
        let is_explained = self
            .damage
            .iter()
            .filter_map(LogProblem::line)
            .any(|damaged| (from..=gap).contains(&damaged.offset) && damaged.offset != child.offset);
        if !is_explained {
            let before = before.map(|before| self.entries[before].number);
            problems.push(LogProblem::LostParent { line, parent, before });
        }
        before
    }

    /// Last entry before `offset` that is not on the branch yet.
    fn unseen_before(&self, offset: u64, seen: &FxHashSet<EntryId>) -> Option<usize> {
        let end = self.entries.partition_point(|entry| entry.offset < offset);
        (0..end).rev().find(|at| !seen.contains(&self.entries[*at].id))
    }
}

/// Reports whether a read from the end gets from `child` to `parent` without a repair.
fn is_direct(child: &ScannedEntry, parent: &ScannedEntry) -> bool {
    let is_alone = child.line_end.is_some() && parent.line_end.is_some();
    let is_there = match child.parent_offset {
        Some(offset) => offset == parent.offset && offset < child.offset,
        None => parent.line_end == Some(child.offset),
    };
    is_alone && is_there && child.parent == Some(parent.id)
}

/// Number of the line that starts at `offset`, from 1.
pub(crate) fn line_number(source: LogSource<'_>, offset: u64) -> Result<u64, FileError> {
    let mut number = 1;
    let mut from = 0;
    while from < offset {
        let to = offset.min(from + SEGMENT_BYTES);
        number += memchr::memchr_iter(b'\n', &source.read(from, to)?).count() as u64;
        from = to;
    }
    Ok(number)
}
