//! What can go wrong with a log on disk. Each message names the file and says what to do.
//!
//! [`FileError`] is what the system refused, in one shape for all operations; the enums above it name what a
//! caller may branch on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::{EntryError, EntryId};
use rustix::io::Errno;

/// The system refused an operation on a file or a directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {}; {}", .path.display(), plain(.source), remedy(.source, .path))]
pub struct FileError {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// On which file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> FileError {
        FileError { action, path: path.to_owned(), source }
    }

    /// Whether space ran out: the disk is full, or a quota or a file size limit is reached.
    pub fn is_full(&self) -> bool {
        is_full(&self.source)
    }
}

/// A log that cannot be opened, created or read. Nothing was changed on disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is already something at this path.
    #[error("{} exists already; open it, or choose another session", .path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// Another process writes this log.
    #[error("{} is open in another pal process{}; close that one, or start a new session or a fork", .path.display(), by(*.pid))]
    Locked {
        /// The log.
        path: PathBuf,
        /// The process that holds it, where the system tells.
        pid: Option<u32>,
    },
    /// A directory, a pipe, a socket or a device.
    #[error("{} is {what}, not a log file; give the path of a log.jsonl", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is, with its article.
        what: &'static str,
    },
    /// A file of something else.
    #[error("{} is not a log of pal (its first line is no entry: {why}); give the path of a log.jsonl, or import the file", .path.display())]
    NotALog {
        /// The path.
        path: PathBuf,
        /// Why the first line is no entry.
        why: Why,
    },
    /// A newer program wrote part of this log.
    #[error("{} has entries of format version {version}, which this pal does not know; update pal", .path.display())]
    Newer {
        /// The log.
        path: PathBuf,
        /// The version found.
        version: u64,
    },
    /// The system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

/// An entry that was not appended. The log is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The draft's JSON is malformed, so that its line could not be read back.
    #[error("refused to append a line to {} that could not be read back: {why}", .path.display())]
    Invalid {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        why: EntryError,
    },
    /// The line is longer than any line that a log may have.
    #[error("refused to append a line of {bytes} bytes to {}: the limit is {limit}; store the content in a file of its own", .path.display())]
    TooLong {
        /// The log.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// The greatest length.
        limit: u64,
    },
    /// The system refused; nothing was lost, and a later append may succeed.
    #[error("{0}; nothing was lost")]
    File(#[from] FileError),
    /// The log is no longer the file that was opened. Nothing was written.
    #[error("{} was {change} while the session was running", .path.display())]
    Changed {
        /// The log.
        path: PathBuf,
        /// What happened to it.
        change: LogChange,
        /// The lines that were to be appended, each with its line end.
        lines: String,
    },
    /// An earlier append failed halfway and could not be taken back.
    #[error("an earlier write to {} failed halfway and could not be taken back; close the session and open it again: the broken line is then set aside, and nothing else is lost", .path.display())]
    Broken {
        /// The log.
        path: PathBuf,
    },
}

/// What another program did to a log that was open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogChange {
    /// It, or a folder that it is in, is gone.
    Deleted,
    /// Another file stands in its place.
    Replaced,
    /// Something was cut off it or added to it.
    Resized {
        /// Bytes that were written.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
}

impl fmt::Display for LogChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogChange::Deleted => formatter.write_str("deleted"),
            LogChange::Replaced => formatter.write_str("replaced by another file"),
            LogChange::Resized { expected, found } => {
                write!(formatter, "changed by another program (it has {found} bytes instead of {expected})")
            }
        }
    }
}

/// A rewind that was not made. The log goes on from where it was.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// No line of the log has this id.
    #[error("{} has no entry {id}; give the id of an entry of this log", .path.display())]
    NoSuchEntry {
        /// The log.
        path: PathBuf,
        /// The id.
        id: EntryId,
    },
    /// The log could not be read.
    #[error(transparent)]
    Read(#[from] OpenError),
}

impl From<FileError> for RewindError {
    fn from(error: FileError) -> RewindError {
        RewindError::Read(OpenError::File(error))
    }
}

/// Why a line is no entry.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// Its bytes are no text.
    #[error("not UTF-8")]
    NotUtf8,
    /// Its text is no entry.
    #[error(transparent)]
    NotAnEntry(#[from] EntryError),
    /// It was altered, and what is left is no entry.
    #[error("it was altered: its checksum does not match")]
    Checksum,
}

/// A line that is no entry. It stays in the file as it is.
#[derive(Debug, thiserror::Error)]
#[error("line {number} (byte {offset}, {bytes} bytes) is no entry: {why}")]
pub struct BadLine {
    /// Its number, from 1.
    pub number: u64,
    /// Where it starts.
    pub offset: u64,
    /// Its length, line end included.
    pub bytes: u64,
    /// What is wrong with it.
    pub why: Why,
}

/// A line of a log and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePosition {
    /// Its number, from 1.
    pub number: u64,
    /// Where it starts.
    pub offset: u64,
    /// Its length, without its line end.
    pub bytes: u64,
}

impl fmt::Display for LinePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinePosition { number, offset, bytes } = self;
        write!(formatter, "line {number} (byte {offset}, {bytes} bytes)")
    }
}

/// Damage of a log, or something that a branch should have and the file no longer gives. Everything that is intact was
/// read all the same.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A line was skipped.
    #[error("skipped {0}")]
    Skipped(BadLine),
    /// A line no longer matches its checksum.
    #[error("{line} was altered after it was written (its checksum does not match): {}", treated(*.is_used))]
    Altered {
        /// The line.
        line: LinePosition,
        /// Whether its content is used as it stands; what hides other entries is not.
        is_used: bool,
    },
    /// A line has no checksum, although lines before it have.
    #[error(
        "{line} lost its checksum, or an earlier version of pal wrote it: its content is used as it stands"
    )]
    Unsealed {
        /// The line.
        line: LinePosition,
    },
    /// A line is no entry because a line end was lost, but holds whole ones.
    #[error("{line} lost a line end: {} in it read all the same", intact(*.entries))]
    Merged {
        /// The line.
        line: LinePosition,
        /// How many whole entries it holds.
        entries: usize,
    },
    /// An entry stands in the log more than once.
    #[error("{line} repeats entry {entry}: the copy was not used")]
    Repeated {
        /// The line of the copy.
        line: LinePosition,
        /// The entry.
        entry: EntryId,
    },
    /// An entry stands before the one that it follows.
    #[error("{line} stands before line {parent}, although it follows it: the order was restored")]
    Misplaced {
        /// The line.
        line: LinePosition,
        /// The number of the line that it follows.
        parent: u64,
    },
    /// An entry does not stand behind its parent, nor names the offset of it.
    #[error("{line} is not where the entry before it left off: lines before it were moved, removed or added")]
    Shifted {
        /// The line.
        line: LinePosition,
    },
    /// A second log begins in the middle of the file.
    #[error("{line} is the first entry of another log: it was read as following line {before}")]
    Joined {
        /// The line.
        line: LinePosition,
        /// The number of the line that it was read as following.
        before: u64,
    },
    /// Lines end with CRLF.
    #[error("{line} and {} end with CRLF, so a program converted the file: they were read all the same", others(*.lines))]
    Crlf {
        /// The first such line.
        line: LinePosition,
        /// How many lines there are.
        lines: u64,
    },
    /// An entry's parent is not in the file.
    #[error(
        "{line} follows entry {parent}, which is not in the log: {}", continued(*.before)
    )]
    LostParent {
        /// The line of the entry.
        line: LinePosition,
        /// Its parent.
        parent: EntryId,
        /// The number of the line that the branch continues with, in the order of the file; none if there is none.
        before: Option<u64>,
    },
    /// The end of the log was no entry and was moved to a file of its own.
    #[error("{line} at the end was no entry: moved to {}", .path.display())]
    Torn {
        /// The first line that was moved; its length is that of everything that was.
        line: LinePosition,
        /// The file that has it now.
        path: PathBuf,
    },
    /// The messages that a boundary keeps are not on its branch.
    #[error(
        "the messages {head} to {tail} that boundary {boundary} keeps are not in the log: only its summary remains"
    )]
    LostPreserved {
        /// The boundary.
        boundary: EntryId,
        /// The first of them.
        head: EntryId,
        /// The last of them.
        tail: EntryId,
    },
    /// The prefix that was in force at a boundary is not in the log.
    #[error(
        "the prefix {prefix} that was in force at boundary {boundary} is not in the log: it will be rendered anew"
    )]
    LostPrefix {
        /// The boundary.
        boundary: EntryId,
        /// The prefix.
        prefix: EntryId,
    },
}

impl Problem {
    /// The damaged line; none if the damage is that something is missing altogether.
    pub fn line(&self) -> Option<LinePosition> {
        match self {
            Problem::Skipped(bad) => {
                Some(LinePosition { number: bad.number, offset: bad.offset, bytes: bad.bytes })
            }
            Problem::Altered { line, .. }
            | Problem::Unsealed { line }
            | Problem::Merged { line, .. }
            | Problem::Repeated { line, .. }
            | Problem::Misplaced { line, .. }
            | Problem::Shifted { line }
            | Problem::Joined { line, .. }
            | Problem::Crlf { line, .. }
            | Problem::LostParent { line, .. }
            | Problem::Torn { line, .. } => Some(*line),
            Problem::LostPreserved { .. } | Problem::LostPrefix { .. } => None,
        }
    }

    /// A word for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Problem::Skipped(_) => "skipped",
            Problem::Altered { .. } => "altered",
            Problem::Unsealed { .. } => "unsealed",
            Problem::Merged { .. } => "merged",
            Problem::Repeated { .. } => "repeated",
            Problem::Misplaced { .. } => "misplaced",
            Problem::Shifted { .. } => "shifted",
            Problem::Joined { .. } => "joined",
            Problem::Crlf { .. } => "crlf",
            Problem::LostParent { .. } => "lost_parent",
            Problem::Torn { .. } => "torn",
            Problem::LostPreserved { .. } => "lost_preserved",
            Problem::LostPrefix { .. } => "lost_prefix",
        }
    }
}

fn treated(is_used: bool) -> &'static str {
    match is_used {
        true => "its content is used as it stands",
        false => "it hides other entries, so it is not applied",
    }
}

fn intact(entries: usize) -> String {
    match entries {
        1 => String::from("the intact entry was"),
        _ => format!("the {entries} intact entries were"),
    }
}

fn others(lines: u64) -> String {
    match lines {
        0 | 1 => String::from("no other"),
        2 => String::from("1 other"),
        _ => format!("{} others", lines - 1),
    }
}

fn continued(before: Option<u64>) -> String {
    match before {
        Some(line) => format!("continued with line {line}, in the order of the file"),
        None => String::from("what came before is missing"),
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG))
}

/// The system's words without the number behind them.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut plain = String::with_capacity(end);
    let mut letters = text[..end].chars();
    plain.extend(letters.next().map(|first| first.to_ascii_lowercase()));
    plain.extend(letters);
    plain
}

/// What the user can do about it.
fn remedy(error: &io::Error, path: &Path) -> String {
    let path = path.display();
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC) => format!("free space on the disk that holds {path} and try again"),
        Some(Errno::DQUOT) => format!("free space in your quota on the disk that holds {path} and try again"),
        Some(Errno::FBIG) => "raise the file size limit (ulimit -f) and try again".into(),
        Some(Errno::ROFS) => {
            "that disk is mounted read-only: set PAL_HOME to a place that can be written".into()
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            "check the owner and the permissions of the file and of its directory".into()
        }
        Some(Errno::NOENT) => "check the path; its directory must exist".into(),
        Some(Errno::NOTDIR) => "a part of the path is a file, not a directory: check the path".into(),
        Some(Errno::LOOP) => "its symbolic links lead in a circle: remove one of them".into(),
        Some(Errno::NAMETOOLONG) => "choose a shorter path".into(),
        Some(Errno::MFILE | Errno::NFILE) => {
            "too many files are open: close some programs or raise ulimit -n".into()
        }
        Some(Errno::IO) => "the disk reports a fault: check it, and copy the file elsewhere".into(),
        _ => "check the file and the disk that holds it".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_names_the_file_and_the_remedy() {
        let error = FileError::new("append to", Path::new("/x/log.jsonl"), Errno::NOSPC.into());
        assert!(error.is_full());
        assert_eq!(
            AppendError::from(error).to_string(),
            "cannot append to /x/log.jsonl: no space left on device; free space on the disk that holds \
             /x/log.jsonl and try again; nothing was lost"
        );
    }
}
