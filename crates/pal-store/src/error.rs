//! Errors of logs on disk. Each message names the file and the next step.
//!
//! [`FileError`] is a refused system call, in one form for all operations; the enums name what a caller may
//! branch on.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use pal_model::{EntryError, EntryId};
use rustix::io::Errno;

/// The operating system refused an operation on a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {}; {}", .path.display(), message_without_code(.source), remedy(.source, .path))]
pub struct FileError {
    /// Attempted operation, as a verb phrase.
    pub action: &'static str,
    /// File or directory concerned.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn new(action: &'static str, path: &Path, source: io::Error) -> FileError {
        FileError { action, path: path.to_owned(), source }
    }

    /// Reports whether the disk is full or a quota or file size limit is reached.
    pub fn is_full(&self) -> bool {
        is_full(&self.source)
    }
}

/// A log cannot be opened, created or read. Nothing was changed on disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path exists already.
    #[error("{} exists already; open it, or choose another session", .path.display())]
    Exists {
        /// Path of the existing file.
        path: PathBuf,
    },
    /// Another process writes this log.
    #[error("{} is open in another pal process{}; close that one, or start a new session or a fork", .path.display(), describe_holder(*.pid))]
    Locked {
        /// The log.
        path: PathBuf,
        /// PID of the lock holder, if known.
        pid: Option<u32>,
    },
    /// A directory, a pipe, a socket or a device.
    #[error("{} is {what}, not a log file; give the path of a log.jsonl", .path.display())]
    NotAFile {
        /// Path that was given.
        path: PathBuf,
        /// File type with its article.
        what: &'static str,
    },
    /// A regular file that is not a log.
    #[error("{} is not a log of pal (its first line is not an entry: {why}); give the path of a log.jsonl, or import the file", .path.display())]
    NotALog {
        /// Path that was given.
        path: PathBuf,
        /// Fault of the first line.
        why: LineFault,
    },
    /// A newer program wrote part of this log.
    #[error("{} has entries of format version {version}, which this pal does not know; update pal", .path.display())]
    Newer {
        /// The log.
        path: PathBuf,
        /// Format version found.
        version: u64,
    },
    /// A system call failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// An entry was not appended. The log is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The draft's JSON is malformed, so that its line could not be read back.
    #[error("refused to append a line to {} that could not be read back: {why}", .path.display())]
    Invalid {
        /// The log.
        path: PathBuf,
        /// Fault of the draft.
        why: EntryError,
    },
    /// The line exceeds the maximum length.
    #[error("refused to append a line of {bytes} bytes to {}: the limit is {limit}; put the content into a separate file", .path.display())]
    TooLong {
        /// The log.
        path: PathBuf,
        /// Length of the line.
        bytes: u64,
        /// Maximum length.
        limit: u64,
    },
    /// A system call failed; a later append may succeed.
    #[error("{0}; nothing was lost")]
    File(#[from] FileError),
    /// The file at the path is no longer the one that was opened. Nothing was written.
    #[error("{} was {change} while the session was running", .path.display())]
    Changed {
        /// The log.
        path: PathBuf,
        /// Change that was detected.
        change: LogChange,
        /// Lines that were not appended, each with its line end.
        lines: String,
    },
    /// An earlier append failed halfway and could not be undone.
    #[error("an earlier write to {} failed halfway and could not be undone; close the session and reopen it: the broken line is then moved aside, and nothing else is lost", .path.display())]
    Broken {
        /// The log.
        path: PathBuf,
    },
}

/// Change by another program to an open log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogChange {
    /// The file or one of its directories is gone.
    Deleted,
    /// Another file has taken its place.
    Replaced,
    /// Its length changed.
    Resized {
        /// Bytes this process wrote.
        expected: u64,
        /// Bytes the file has.
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

/// A rewind failed. The head is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    /// No line of the log has this id.
    #[error("{} has no entry {id}; give the id of an entry of this log", .path.display())]
    NoSuchEntry {
        /// The log.
        path: PathBuf,
        /// Id that was given.
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

/// Reason why a line is not an entry.
#[derive(Debug, thiserror::Error)]
pub enum LineFault {
    /// The bytes are not text.
    #[error("not UTF-8")]
    NotUtf8,
    /// The text is not an entry.
    #[error(transparent)]
    NotAnEntry(#[from] EntryError),
    /// The line was altered, and the rest is not an entry.
    #[error("it was altered: its checksum does not match")]
    Checksum,
}

/// A line that is not an entry. It stays in the file.
#[derive(Debug, thiserror::Error)]
#[error("line {number} (byte {offset}, {bytes} bytes) is not an entry: {why}")]
pub struct BadLine {
    /// Line number, from 1.
    pub number: u64,
    /// Byte offset of its start.
    pub offset: u64,
    /// Length, line end included.
    pub bytes: u64,
    /// Reason why it is not an entry.
    pub why: LineFault,
}

/// Position of a line in a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinePosition {
    /// Line number, from 1.
    pub number: u64,
    /// Byte offset of its start.
    pub offset: u64,
    /// Length, without the line end.
    pub bytes: u64,
}

impl fmt::Display for LinePosition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinePosition { number, offset, bytes } = self;
        write!(formatter, "line {number} (byte {offset}, {bytes} bytes)")
    }
}

/// Damage of a log, or entries that a branch should have but the file lost. Everything intact is read
/// nevertheless.
#[derive(Debug, thiserror::Error)]
pub enum LogProblem {
    /// An unreadable line was skipped.
    #[error("skipped {0}")]
    Skipped(BadLine),
    /// A line no longer matches its checksum.
    #[error("{line} was altered after it was written (its checksum does not match): {}", describe_use(*.is_used))]
    Altered {
        /// Altered line.
        line: LinePosition,
        /// Its content is used unless it would hide other entries.
        is_used: bool,
    },
    /// A line has no checksum, although earlier lines have one.
    #[error(
        "{line} lost its checksum, or an earlier version of pal wrote it: its content is used as it stands"
    )]
    Unsealed {
        /// Line without a checksum.
        line: LinePosition,
    },
    /// A lost line end merged entries, which could still be read.
    #[error("{line} lost a line end: read {} from it", count_intact(*.entries))]
    Merged {
        /// Merged line.
        line: LinePosition,
        /// Number of entries in it.
        entries: usize,
    },
    /// An entry occurs more than once.
    #[error("{line} repeats entry {entry}: the copy was not used")]
    Repeated {
        /// Line of the copy.
        line: LinePosition,
        /// Id of the entry.
        entry: EntryId,
    },
    /// An entry comes before the one that it follows.
    #[error("{line} comes before line {parent}, which it follows: the order was restored")]
    Misplaced {
        /// Misplaced line.
        line: LinePosition,
        /// Number of its parent's line.
        parent: u64,
    },
    /// An entry neither directly follows its parent nor stores the parent's offset.
    #[error("{line} does not continue the entry before it: lines were moved, removed or added")]
    Shifted {
        /// Shifted line.
        line: LinePosition,
    },
    /// A second log begins in the middle of the file.
    #[error("{line} is the first entry of another log: it was read as if it followed line {before}")]
    Joined {
        /// First line of the second log.
        line: LinePosition,
        /// Number of the line that it was attached to.
        before: u64,
    },
    /// Lines end with CRLF.
    #[error("{line} and {} end with CRLF, so a program converted the file: they are still readable", count_others(*.lines))]
    Crlf {
        /// First such line.
        line: LinePosition,
        /// Number of such lines.
        lines: u64,
    },
    /// The parent of an entry is missing.
    #[error(
        "{line} follows entry {parent}, which is not in the log: {}", describe_continuation(*.before)
    )]
    LostParent {
        /// Line of the entry.
        line: LinePosition,
        /// Id of the missing parent.
        parent: EntryId,
        /// Number of the line that the branch continues with in file order, if any.
        before: Option<u64>,
    },
    /// The torn end of the log was moved to another file.
    #[error("{line} at the end was not an entry: moved to {}", .path.display())]
    Torn {
        /// First line that was moved; its length covers everything moved.
        line: LinePosition,
        /// File that holds it now.
        path: PathBuf,
    },
    /// The messages that a boundary preserves are not on its branch.
    #[error(
        "the messages {head} to {tail} that boundary {boundary} keeps are not in the log: only its summary remains"
    )]
    LostPreserved {
        /// Id of the boundary.
        boundary: EntryId,
        /// First preserved message.
        head: EntryId,
        /// Last preserved message.
        tail: EntryId,
    },
    /// The prefix in force at a boundary is missing.
    #[error(
        "the prefix {prefix} that was in force at boundary {boundary} is not in the log: it is rendered again"
    )]
    LostPrefix {
        /// Id of the boundary.
        boundary: EntryId,
        /// Id of the prefix.
        prefix: EntryId,
    },
}

impl LogProblem {
    /// Damaged line; none if something is missing altogether.
    pub fn line(&self) -> Option<LinePosition> {
        match self {
            LogProblem::Skipped(bad) => {
                Some(LinePosition { number: bad.number, offset: bad.offset, bytes: bad.bytes })
            }
            LogProblem::Altered { line, .. }
            | LogProblem::Unsealed { line }
            | LogProblem::Merged { line, .. }
            | LogProblem::Repeated { line, .. }
            | LogProblem::Misplaced { line, .. }
            | LogProblem::Shifted { line }
            | LogProblem::Joined { line, .. }
            | LogProblem::Crlf { line, .. }
            | LogProblem::LostParent { line, .. }
            | LogProblem::Torn { line, .. } => Some(*line),
            LogProblem::LostPreserved { .. } | LogProblem::LostPrefix { .. } => None,
        }
    }

    /// Stable identifier for programs.
    pub fn name(&self) -> &'static str {
        match self {
            LogProblem::Skipped(_) => "skipped",
            LogProblem::Altered { .. } => "altered",
            LogProblem::Unsealed { .. } => "unsealed",
            LogProblem::Merged { .. } => "merged",
            LogProblem::Repeated { .. } => "repeated",
            LogProblem::Misplaced { .. } => "misplaced",
            LogProblem::Shifted { .. } => "shifted",
            LogProblem::Joined { .. } => "joined",
            LogProblem::Crlf { .. } => "crlf",
            LogProblem::LostParent { .. } => "lost_parent",
            LogProblem::Torn { .. } => "torn",
            LogProblem::LostPreserved { .. } => "lost_preserved",
            LogProblem::LostPrefix { .. } => "lost_prefix",
        }
    }
}

fn describe_use(is_used: bool) -> &'static str {
    match is_used {
        true => "its content is used as it stands",
        false => "it hides other entries, so it is not applied",
    }
}

fn count_intact(entries: usize) -> String {
    match entries {
        1 => String::from("the intact entry"),
        _ => format!("the {entries} intact entries"),
    }
}

fn count_others(lines: u64) -> String {
    match lines {
        0 | 1 => String::from("no other"),
        2 => String::from("1 other"),
        _ => format!("{} others", lines - 1),
    }
}

fn describe_continuation(before: Option<u64>) -> String {
    match before {
        Some(line) => format!("continued with line {line}, in the order of the file"),
        None => String::from("what came before is missing"),
    }
}

fn describe_holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

fn is_full(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG))
}

/// Message of the operating system without its error number.
fn message_without_code(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut plain = String::with_capacity(end);
    let mut letters = text[..end].chars();
    plain.extend(letters.next().map(|first| first.to_ascii_lowercase()));
    plain.extend(letters);
    plain
}

/// Next step for the user.
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
    fn full_disk_error_names_file_and_remedy() {
        let error = FileError::new("append to", Path::new("/x/log.jsonl"), Errno::NOSPC.into());
        assert!(error.is_full());
        assert_eq!(
            AppendError::from(error).to_string(),
            "cannot append to /x/log.jsonl: no space left on device; free space on the disk that holds \
             /x/log.jsonl and try again; nothing was lost"
        );
    }
}
