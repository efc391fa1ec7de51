//! Reading a log without writing it, for tools. No lock is needed and nothing is changed: a torn last line, or one
//! that a live session is just writing, is reported like any other bad line.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

use pal_model::{Entry, EntryId, Repair};

use crate::error::{BadLine, FileError, OpenError, Problem};
use crate::file;
use crate::log::Branch;
use crate::resume::{Resumed, Start, newest, resume, whole_branch};
use crate::scan::{Scan, line_number};
use crate::segment::{Bad, Forward, Located, RawLine, Source};
use crate::skim::{EntryHead, skim_ancestors};
use crate::tail::find_tail;

/// A log as it stood when it was opened to be read.
pub struct Reader {
    file: File,
    path: PathBuf,
    length: u64,
}

/// One line of a log.
#[derive(Debug)]
pub struct Line {
    /// Its number, from 1 for the first that was read.
    pub number: u64,
    /// Where it starts.
    pub offset: u64,
    /// Where reading can go on behind it: the start of the next line. An entry that shares a damaged line with others
    /// has the start of that line here, whose end a [`ReadError::Bad`] gives.
    pub next: u64,
    /// What it says.
    pub entry: Entry,
    /// Whether the line no longer matches its checksum; what would hide other entries is then left out of `entry`.
    pub is_altered: bool,
}

/// What a full check of a log found.
#[derive(Debug)]
pub struct LogCheck {
    /// Length of the file in bytes.
    pub bytes: u64,
    /// Lines of the file, bad ones included.
    pub lines: u64,
    /// Entries that can be read.
    pub entries: u64,
    /// Entries that carry a checksum.
    pub sealed: u64,
    /// Entries of the newest branch.
    pub branch: u64,
    /// Damage that no repair names yet, in the order of the file.
    pub problems: Vec<Problem>,
    /// The entry that repairs the log when it is appended; none if nothing is to be repaired.
    pub repair: Option<Repair>,
}

/// A line that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no entry; the lines behind it can be read.
    #[error(transparent)]
    Bad(#[from] BadLine),
    /// The system refused; there are no further lines.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Reader {
    /// Opens a log to read it.
    pub fn open(path: &Path) -> Result<Reader, OpenError> {
        let file = file::open_to_read(path)?;
        let length = file.metadata().map_err(|error| FileError::new("read", path, error))?.len();
        Ok(Reader { file, path: path.to_owned(), length })
    }

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// All lines in the order of the file, whatever their branch; bad ones as errors.
    pub fn lines(&self) -> Lines<'_> {
        Lines::new(Forward::new(self.source(self.length), 0))
    }

    /// Visits what stands before an entry on its branch, newest first, without reading what it says.
    pub fn skim_ancestors(&self, id: EntryId, visit: &mut dyn FnMut(&EntryHead)) -> Result<(), FileError> {
        skim_ancestors(self.source(self.length), id, visit)
    }

    /// Finds out whether this is a log, damaged or not, rather than a file of something else.
    pub fn is_log(&self) -> Result<bool, OpenError> {
        match find_tail(self.source(self.length)) {
            Ok(tail) => Ok(tail.last.is_some()),
            Err(OpenError::NotALog { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads all of the file and verifies every line and every link between them. `progress` is told how many bytes were
    /// read, of how many.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<LogCheck, OpenError> {
        let source = self.source(self.length);
        // A file of something else is refused like anywhere.
        find_tail(source)?;
        let scan = Scan::read_with(source, &mut |done| progress(done, self.length))?;
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

    /// The lines from one on, numbered from it; none if no line starts at `offset`.
    pub fn lines_from(&self, offset: u64) -> Result<Option<Lines<'_>>, FileError> {
        let source = self.source(self.length);
        // Behind the last line there is nothing yet, and a line of its own begins there.
        let is_start =
            source.is_line_start(offset)? || (offset == self.length && self.ends_a_line(offset)?);
        Ok(is_start.then(|| Lines::new(Forward::new(source, offset))))
    }

    /// The entry whose line starts at `offset`; none if there is none.
    pub fn entry_at(&self, offset: u64) -> Result<Option<Entry>, FileError> {
        let Some(mut lines) = self.lines_from(offset)? else { return Ok(None) };
        match lines.next() {
            Some(Ok(line)) => Ok(Some(line.entry)),
            Some(Err(ReadError::File(error))) => Err(error),
            Some(Err(ReadError::Bad(_))) | None => Ok(None),
        }
    }

    /// The number of the line that `offset` is in, from 1.
    pub fn number_at(&self, offset: u64) -> Result<u64, FileError> {
        line_number(self.source(self.length), offset.min(self.length))
    }

    /// The bytes from `from` to `to`, as far as there are any.
    pub fn bytes(&self, from: u64, to: u64) -> Result<Vec<u8>, FileError> {
        let to = to.min(self.length);
        self.source(self.length).read(from.min(to), to)
    }

    fn ends_a_line(&self, offset: u64) -> Result<bool, FileError> {
        Ok(offset == 0 || self.bytes(offset - 1, offset)? == b"\n")
    }

    /// The branch of the last entry from its very start, boundaries or not.
    pub fn whole_branch(&self) -> Result<Branch, OpenError> {
        self.branch_by(whole_branch)
    }

    /// What a session that goes on with this log would get.
    pub fn branch(&self) -> Result<Branch, OpenError> {
        self.branch_by(resume)
    }

    /// What `find` says of the newest entry that it says something of, among those that a session which goes on with this
    /// log would get. Only as much is read as that takes.
    pub fn find_newest<T>(&self, find: impl Fn(&Entry) -> Option<T>) -> Result<Option<T>, OpenError> {
        let tail = find_tail(self.source(self.length))?;
        let Some(last) = tail.last else { return Ok(None) };
        match newest(self.source(tail.end), last, &find)? {
            Some(found) => Ok(Some(found)),
            None => Ok(self.branch()?.entries.iter().rev().find_map(find)),
        }
    }

    fn branch_by(
        &self,
        select: impl Fn(Source<'_>, &Start) -> Result<Resumed, OpenError>,
    ) -> Result<Branch, OpenError> {
        let tail = find_tail(self.source(self.length))?;
        let mut branch = Branch::default();
        if let Some(last) = tail.last {
            let Resumed { located, problems, left_out, .. } =
                select(self.source(tail.end), &Start::Last(last))?;
            branch.entries = located.into_iter().map(|located| located.entry).collect();
            branch.problems = problems;
            branch.left_out = left_out;
        }
        if let Some(bad) = tail.bad {
            let number = line_number(self.source(self.length), bad.offset)?;
            let bytes = self.length - bad.offset;
            let torn = BadLine { number, offset: bad.offset, bytes, why: bad.why };
            branch.problems.push(Problem::Skipped(torn));
        }
        Ok(branch)
    }

    fn source(&self, end: u64) -> Source<'_> {
        Source { file: &self.file, path: &self.path, end }
    }
}

/// The lines of a log, one after the other. They share memory in stretches, so keeping one keeps its neighbours.
pub struct Lines<'a> {
    forward: Forward<'a>,
    number: u64,
    has_failed: bool,
    /// What else a line holds that was damaged.
    waiting: VecDeque<Result<Line, ReadError>>,
}

impl<'a> Lines<'a> {
    fn new(forward: Forward<'a>) -> Lines<'a> {
        Lines { forward, number: 0, has_failed: false, waiting: VecDeque::new() }
    }

    fn read(&mut self, line: RawLine) -> Result<Line, ReadError> {
        let (number, next) = (self.number, line.end);
        let line_of = |located: Located, next| {
            let Located { offset, entry, is_altered, .. } = located;
            Line { number, offset, next, entry, is_altered }
        };
        match line.parse() {
            Ok(located) => Ok(line_of(located, next)),
            Err(Bad { offset, end, why, found }) => {
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

impl Iterator for Lines<'_> {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Result<Line, ReadError>> {
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
