//! End of a log: its last entry, and the remains of a killed write.
//!
//! Everything after the last entry is *torn*: it is copied to `<log>.torn` and synced before it is cut off. A
//! last entry that lacks only its line end stays. Unreadable lines before the last entry are not touched.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::append_writer::{AppendWriter, SinkError};
use crate::error::{FileError, LinePosition, LogProblem, OpenError};
use crate::located_entry::LocatedEntry;
use crate::log_open;
use crate::log_scan::line_number;
use crate::segment::{LineCursor, LogSource, RawLine, UnreadableLine};

/// Bytes cut off the end of a log because they are not an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TornTail {
    /// Number of the first line cut off, from 1.
    pub number: u64,
    /// Byte offset of its start.
    pub offset: u64,
    /// Number of bytes cut off.
    pub bytes: u64,
    /// File that holds them now, at its end.
    pub path: PathBuf,
}

impl TornTail {
    /// Converts to a problem of the log.
    pub fn into_problem(self) -> LogProblem {
        let TornTail { number, offset, bytes, path } = self;
        LogProblem::Torn { line: LinePosition { number, offset, bytes }, path }
    }
}

/// End of a log.
pub(crate) struct LogTail {
    /// Last entry; none if there is no entry at all.
    pub(crate) last: Option<LocatedEntry>,
    /// Offset after the last entry.
    pub(crate) end: u64,
    /// Length of the file; greater than `end` if the log is torn.
    pub(crate) length: u64,
    /// The last entry is complete except for its line end.
    pub(crate) lacks_line_end: bool,
    /// First line after the last entry.
    pub(crate) bad: Option<UnreadableLine>,
}

/// Finds the last entry of a source that reaches to the end of its file.
pub(crate) fn find_tail(source: LogSource<'_>) -> Result<LogTail, OpenError> {
    let LogSource { path, end: length, .. } = source;
    let mut cursor = LineCursor::new(source);
    let mut tail = LogTail { last: None, end: length, length, lacks_line_end: false, bad: None };
    let mut bad_lines = 0;
    while let Some(line) = cursor.ending_at(tail.end)? {
        let (start, is_first) = (line.offset, line.offset == 0);
        match line.parse() {
            Ok(located) => {
                tail.lacks_line_end =
                    tail.end == length && source.read(length - 1, length)?.as_slice() != b"\n".as_slice();
                tail.last = Some(located);
                return Ok(tail);
            }
            Err(mut bad) if !bad.found.is_empty() => {
                // Only line ends were lost: the entries are complete and stay.
                tail.lacks_line_end =
                    tail.end == length && source.read(length - 1, length)?.as_slice() != b"\n".as_slice();
                tail.last = bad.found.pop();
                return Ok(tail);
            }
            Err(bad) => {
                let bad = bad.unless_newer(path)?;
                bad_lines += 1;
                // One bad line is a torn tail. Several may mean that the file is not a log: do not search it
                // to its start, let alone cut it.
                if is_first && !(bad_lines == 1 && is_torn_first_line(source)?) {
                    return Err(OpenError::NotALog { path: path.to_owned(), why: bad.why });
                }
                if bad_lines == 2 {
                    check_first_line(source)?;
                }
                tail.bad = Some(bad);
                tail.end = start;
            }
        }
    }
    Ok(tail)
}

/// Adds a missing line end, or moves a torn tail away. Returns the torn tail and the new end of the file.
pub(crate) fn settle_tail(
    file: &File,
    path: &Path,
    tail: &LogTail,
) -> Result<(Option<TornTail>, u64), OpenError> {
    if tail.lacks_line_end {
        let mut writer = AppendWriter::new(file, tail.length);
        append(&mut writer, path, b"\n")?;
        return Ok((None, writer.length()));
    }
    if tail.end == tail.length {
        return Ok((None, tail.end));
    }
    let source = LogSource { file, path, end: tail.length };
    let number = line_number(source, tail.end)?;
    let torn = TornTail { number, offset: tail.end, bytes: tail.length - tail.end, path: torn_path(path) };
    set_aside(source, tail.end, &torn.path)?;
    file.set_len(tail.end).map_err(|error| FileError::new("cut the torn end off", path, error))?;
    Ok((Some(torn), tail.end))
}

/// Appends the bytes from `from` on to the file at `to`, on separate lines.
fn set_aside(source: LogSource<'_>, from: u64, to: &Path) -> Result<(), OpenError> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let file = log_open::open_beside(to)?;
    let length = file.metadata().map_err(|error| FileError::new("read", to, error))?.len();
    let mut writer = AppendWriter::new(&file, length);
    let mut at = from;
    while at < source.end {
        let next = source.end.min(at + CHUNK_BYTES);
        let mut bytes = source.read(at, next)?;
        if next == source.end && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        append(&mut writer, to, &bytes)?;
        at = next;
    }
    writer.sync().map_err(|error| FileError::new("sync", to, error))?;
    log_open::sync_directory(to.parent().unwrap_or(Path::new("")))?;
    Ok(())
}

fn append(writer: &mut AppendWriter<&File>, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    writer.append(bytes).map_err(|error| match error {
        SinkError::Io(error) => FileError::new("append to", path, error),
        SinkError::Broken => FileError::new("append to", path, std::io::ErrorKind::BrokenPipe.into()),
    })
}

fn torn_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    PathBuf::from(name)
}

fn check_first_line(source: LogSource<'_>) -> Result<(), OpenError> {
    let first = LineCursor::new(source).starting_at(0)?;
    match first.map(RawLine::parse) {
        Some(Err(bad)) if bad.found.is_empty() => {
            let UnreadableLine { why, .. } = bad.unless_newer(source.path)?;
            Err(OpenError::NotALog { path: source.path.to_owned(), why })
        }
        _ => Ok(()),
    }
}

/// Reports whether the file is a single unfinished line: the start of an entry, or the zeros that a power cut
/// leaves.
fn is_torn_first_line(source: LogSource<'_>) -> Result<bool, FileError> {
    const BEGINNING: &[u8] = b"{\"v\":";
    let bytes = source.read(0, source.end)?;
    let compared = bytes.len().min(BEGINNING.len());
    let begins = bytes[..compared] == BEGINNING[..compared];
    Ok(!bytes.contains(&b'\n') && (begins || bytes.iter().all(|byte| *byte == 0)))
}
