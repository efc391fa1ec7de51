//! Read-only access to a log, without a lock. A torn last line, or one that a live session is still writing,
//! is reported like any other unreadable line.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

use pal_model::{EntryId, LogEntry, LogRepair};

use crate::entry_heads::{EntryHead, skim_ancestors};
use crate::error::{BadLine, FileError, LogProblem, OpenError};
use crate::located_entry::LocatedEntry;
use crate::log::LogBranch;
use crate::log_open;
use crate::log_scan::{LogScan, line_number};
use crate::log_tail::find_tail;
use crate::resume::{ResumeStart, ResumedBranch, newest, resume, whole_branch};
use crate::segment::{ForwardCursor, LogSource, RawLine, UnreadableLine};

/// A log as it was when it was opened for reading.
pub struct LogReader {
    file: File,
    path: PathBuf,
    length: u64,
}

/// One line of a log.
#[derive(Debug)]
pub struct LogLine {
    /// Line number, from 1 for the first line read.
    pub number: u64,
    /// Byte offset of its start.
    pub offset: u64,
    /// Offset at which reading continues: the start of the next line. An entry that shares a damaged line
    /// with others has the start of that line here; [`ReadError::Bad`] gives its end.
    pub next: u64,
    /// Parsed entry.
    pub entry: LogEntry,
    /// The line no longer matches its checksum; fields that would hide other entries are dropped from
    /// `entry`.
    pub is_altered: bool,
}

/// Result of a full check.
#[derive(Debug)]
pub struct LogCheck {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Lines of the file, unreadable ones included.
    pub lines: u64,
    /// Entries that can be read.
    pub entries: u64,
    /// Entries that carry a checksum.
    pub sealed: u64,
    /// Entries of the newest branch.
    pub branch: u64,
    /// Damage that no repair names yet, in the order of the file.
    pub problems: Vec<LogProblem>,
    /// Entry that repairs the log when appended; none if nothing needs repair.
    pub repair: Option<LogRepair>,
}

/// A line that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The line is not an entry; later lines can still be read.
    #[error(transparent)]
    Bad(#[from] BadLine),
    /// Reading failed; no further lines follow.
    #[error(transparent)]
    File(#[from] FileError),
}

impl LogReader {
    /// Opens a log for reading.
    pub fn open(path: &Path) -> Result<LogReader, OpenError> {
        let file = log_open::open_to_read(path)?;
        let length = file.metadata().map_err(|error| FileError::new("read", path, error))?.len();
        Ok(LogReader { file, path: path.to_owned(), length })
    }

    /// Length in bytes at the time of opening.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Iterates over all lines in file order, of all branches; unreadable lines are errors.
    pub fn lines(&self) -> LogLines<'_> {
        LogLines::new(ForwardCursor::new(self.source(self.length), 0))
    }

    /// Visits the ancestors of an entry, newest first, without parsing their content.
    pub fn skim_ancestors(&self, id: EntryId, visit: &mut dyn FnMut(&EntryHead)) -> Result<(), FileError> {
        skim_ancestors(self.source(self.length), id, visit)
    }

    /// Reports whether the file is a log, damaged or not.
    pub fn is_log(&self) -> Result<bool, OpenError> {
        match find_tail(self.source(self.length)) {
            Ok(tail) => Ok(tail.last.is_some()),
            Err(OpenError::NotALog { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the whole file and verifies every line and every link. `progress` receives the bytes read and
    /// the total.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<LogCheck, OpenError> {
        let source = self.source(self.length);
        // Refuse files that are not logs.
        find_tail(source)?;
        let scan = LogScan::read_with(source, &mut |done| progress(done, self.length))?;
        let counts = scan.counts();
        let newest = scan.newest().map_or(0, |newest| newest.offset);
        let branch = scan.branch(newest);
        let length = branch.entries.len() as u64;
        let beside = scan.damage_beside(&branch);
        let (mut problems, repair) = scan.damage_and_repair(source, branch, beside)?;
        problems.reverse();
        Ok(LogCheck {
            bytes: self.length,
            lines: counts.lines,
            entries: counts.entries,
            sealed: counts.sealed,
            branch: length,
            problems,
            repair,
        })
    }

    /// Iterates over lines from `offset` on, numbered from 1; none if no line starts there.
    pub fn lines_from(&self, offset: u64) -> Result<Option<LogLines<'_>>, FileError> {
        let source = self.source(self.length);
        // The end of the file counts as the start of a line that does not exist yet.
        let is_start =
            source.is_line_start(offset)? || (offset == self.length && self.ends_a_line(offset)?);
        Ok(is_start.then(|| LogLines::new(ForwardCursor::new(source, offset))))
    }

    /// Returns the entry whose line starts at `offset`, if there is one.
    pub fn entry_at(&self, offset: u64) -> Result<Option<LogEntry>, FileError> {
        let Some(mut lines) = self.lines_from(offset)? else { return Ok(None) };
        match lines.next() {
            Some(Ok(line)) => Ok(Some(line.entry)),
            Some(Err(ReadError::File(error))) => Err(error),
            Some(Err(ReadError::Bad(_))) | None => Ok(None),
        }
    }

    /// Number of the line that contains `offset`, from 1.
    pub fn line_number_at(&self, offset: u64) -> Result<u64, FileError> {
        line_number(self.source(self.length), offset.min(self.length))
    }

    /// Reads the bytes in `from..to`, clipped to the file.
    pub fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>, FileError> {
        let to = to.min(self.length);
        self.source(self.length).read(from.min(to), to)
    }

    fn ends_a_line(&self, offset: u64) -> Result<bool, FileError> {
        Ok(offset == 0 || self.bytes(offset - 1, offset)? == b"\n")
    }

    /// Reads the branch of the last entry from its start, ignoring boundaries.
    pub fn whole_branch(&self) -> Result<LogBranch, OpenError> {
        self.branch_by(whole_branch)
    }

    /// Reads what a session that resumes this log would get.
    pub fn branch(&self) -> Result<LogBranch, OpenError> {
        self.branch_by(resume)
    }

    /// Returns the first `Some` that `find` gives for the entries of a resumed session, newest first. Reads
    /// no further than needed.
    pub fn find_newest<T>(&self, find: impl Fn(&LogEntry) -> Option<T>) -> Result<Option<T>, OpenError> {
        let tail = find_tail(self.source(self.length))?;
        let Some(last) = tail.last else { return Ok(None) };
        match newest(self.source(tail.end), last, &find)? {
            Some(found) => Ok(Some(found)),
            None => Ok(self.branch()?.entries.iter().rev().find_map(find)),
        }
    }

    fn branch_by(
        &self,
        select: impl Fn(LogSource<'_>, &ResumeStart) -> Result<ResumedBranch, OpenError>,
    ) -> Result<LogBranch, OpenError> {
        let tail = find_tail(self.source(self.length))?;
        let mut branch = LogBranch::default();
        if let Some(last) = tail.last {
            let ResumedBranch { located, problems, left_out, .. } =
                select(self.source(tail.end), &ResumeStart::Last(last))?;
            branch.entries = located.into_iter().map(|located| located.entry).collect();
            branch.problems = problems;
            branch.omitted = left_out;
        }
        if let Some(bad) = tail.bad {
            let number = line_number(self.source(self.length), bad.offset)?;
            let bytes = self.length - bad.offset;
            let torn = BadLine { number, offset: bad.offset, bytes, why: bad.why };
            branch.problems.push(LogProblem::Skipped(torn));
        }
        Ok(branch)
    }

    fn source(&self, end: u64) -> LogSource<'_> {
        LogSource { file: &self.file, path: &self.path, end }
    }
}

/// Iterator over the lines of a log. Lines of one segment share memory, so keeping one keeps its neighbors.
pub struct LogLines<'a> {
    forward: ForwardCursor<'a>,
    number: u64,
    has_failed: bool,
    /// Further entries of a damaged line.
    waiting: VecDeque<Result<LogLine, ReadError>>,
}

impl<'a> LogLines<'a> {
    fn new(forward: ForwardCursor<'a>) -> LogLines<'a> {
        LogLines { forward, number: 0, has_failed: false, waiting: VecDeque::new() }
    }

    fn read(&mut self, line: RawLine) -> Result<LogLine, ReadError> {
        let (number, next) = (self.number, line.end);
        let line_of = |located: LocatedEntry, next| {
            let LocatedEntry { offset, entry, is_altered, .. } = located;
            LogLine { number, offset, next, entry, is_altered }
        };
        match line.parse() {
            Ok(located) => Ok(line_of(located, next)),
            Err(UnreadableLine { offset, end, why, found }) => {
                let bad = ReadError::from(BadLine { number, offset, bytes: end - offset, why });
                let mut found = found.into_iter().map(|located| line_of(located, offset));
                let Some(first) = found.next() else { return Err(bad) };
                self.waiting.extend(found.map(Ok));
                self.waiting.push_back(Err(bad));
                Ok(first)
            }
        }
    }
}

impl Iterator for LogLines<'_> {
    type Item = Result<LogLine, ReadError>;

    fn next(&mut self) -> Option<Result<LogLine, ReadError>> {
        if let Some(line) = self.waiting.pop_front() {
            return Some(line);
        }
        if self.has_failed {
            return None;
        }
        let line = match self.forward.next_line() {
            Ok(line) => line?,
            Err(error) => {
                self.has_failed = true;
                return Some(Err(error.into()));
            }
        };
        self.number += 1;
        Some(self.read(line))
    }
}
