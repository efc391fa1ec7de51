//! Reading a log without writing it, for tools. No lock is needed and nothing is changed: a torn last line, or one
//! that a live session is just writing, is reported like any other bad line.

use std::fs::File;
use std::path::{Path, PathBuf};

use pal_model::Entry;

use crate::error::{BadLine, FileError, OpenError, Problem};
use crate::file;
use crate::index::line_number;
use crate::log::Branch;
use crate::resume::{Resumed, resume, whole_branch};
use crate::segment::{Forward, Located, Source};
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
    /// What it says.
    pub entry: Entry,
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
        Lines { forward: Forward::new(self.source(self.length), 0), number: 0, has_failed: false }
    }

    /// The lines from one on, numbered from it; none if no line starts at `offset`.
    pub fn lines_from(&self, offset: u64) -> Result<Option<Lines<'_>>, FileError> {
        let source = self.source(self.length);
        // Behind the last line there is nothing yet, and a line of its own begins there.
        let is_start =
            source.is_line_start(offset)? || (offset == self.length && self.ends_a_line(offset)?);
        let lines = || Lines { forward: Forward::new(source, offset), number: 0, has_failed: false };
        Ok(is_start.then(lines))
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

    fn branch_by(
        &self,
        select: impl Fn(Source<'_>, Located) -> Result<Resumed, OpenError>,
    ) -> Result<Branch, OpenError> {
        let tail = find_tail(self.source(self.length))?;
        let mut branch = Branch::default();
        if let Some(last) = tail.last {
            let Resumed { located, problems } = select(self.source(tail.end), last)?;
            branch.entries = located.into_iter().map(|located| located.entry).collect();
            branch.problems = problems;
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
}

impl Iterator for Lines<'_> {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Result<Line, ReadError>> {
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
        let number = self.number;
        Some(match line.parse() {
            Ok(Located { offset, entry }) => Ok(Line { number, offset, entry }),
            Err(bad) => {
                let bytes = bad.end - bad.offset;
                Err(BadLine { number, offset: bad.offset, bytes, why: bad.why }.into())
            }
        })
    }
}
