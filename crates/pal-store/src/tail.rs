//! The end of a log: where its last entry ends, and what a killed process left behind it.
//!
//! Everything behind the last entry is *torn*: it goes to `<log>.torn`, is synced there, and only then cut off the
//! log. A last entry that is whole but for its line end stays. Bad lines before the last entry are not touched.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::{FileError, LinePosition, OpenError, Problem};
use crate::file;
use crate::scan::line_number;
use crate::segment::{Bad, Cursor, Located, RawLine, Source};
use crate::writer::{WriteError, Writer};

/// Bytes that were cut off the end of a log because they are no entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The number of the first line that was cut off, from 1.
    pub number: u64,
    /// Where it started.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// The file that has them now, at its end.
    pub path: PathBuf,
}

impl Torn {
    /// The same as a problem of the log.
    pub fn into_problem(self) -> Problem {
        let Torn { number, offset, bytes, path } = self;
        Problem::Torn { line: LinePosition { number, offset, bytes }, path }
    }
}

/// How a log ends.
pub(crate) struct Tail {
    /// The last entry; none if there is no entry at all.
    pub(crate) last: Option<Located>,
    /// Just behind the last entry.
    pub(crate) end: u64,
    /// How long the file is; greater than `end` if it is torn.
    pub(crate) length: u64,
    /// The last entry is whole, but its line end is missing.
    pub(crate) lacks_line_end: bool,
    /// The first of the lines behind the last entry.
    pub(crate) bad: Option<Bad>,
}

/// Looks for the last entry of a source that reaches to the end of its file.
pub(crate) fn find_tail(source: Source<'_>) -> Result<Tail, OpenError> {
    let Source { path, end: length, .. } = source;
    let mut cursor = Cursor::new(source);
    let mut tail = Tail { last: None, end: length, length, lacks_line_end: false, bad: None };
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
                // Only line ends were lost: what stands in the line is whole and stays.
                tail.lacks_line_end =
                    tail.end == length && source.read(length - 1, length)?.as_slice() != b"\n".as_slice();
                tail.last = bad.found.pop();
                return Ok(tail);
            }
            Err(bad) => {
                let bad = bad.unless_newer(path)?;
                bad_lines += 1;
                // One bad line is a torn tail. More of them may be a file of something else, which must not be
                // searched to its start, let alone cut.
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

/// Brings the file into order: a missing line end is added, a torn tail is set aside. Afterwards the file ends
/// with its last entry, and the second value says where.
pub(crate) fn mend(file: &File, path: &Path, tail: &Tail) -> Result<(Option<Torn>, u64), OpenError> {
    if tail.lacks_line_end {
        let mut writer = Writer::new(file, tail.length);
        append(&mut writer, path, b"\n")?;
        return Ok((None, writer.length()));
    }
    if tail.end == tail.length {
        return Ok((None, tail.end));
    }
    let source = Source { file, path, end: tail.length };
    let number = line_number(source, tail.end)?;
    let torn = Torn { number, offset: tail.end, bytes: tail.length - tail.end, path: torn_path(path) };
    set_aside(source, tail.end, &torn.path)?;
    file.set_len(tail.end).map_err(|error| FileError::new("cut the torn end off", path, error))?;
    Ok((Some(torn), tail.end))
}

/// Copies what lies behind `from` to the end of the file at `to`, on lines of its own.
fn set_aside(source: Source<'_>, from: u64, to: &Path) -> Result<(), OpenError> {
    const CHUNK_BYTES: u64 = 1 << 20;
    let file = file::open_beside(to)?;
    let length = file.metadata().map_err(|error| FileError::new("read", to, error))?.len();
    let mut writer = Writer::new(&file, length);
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
    file::sync_directory(to.parent().unwrap_or(Path::new("")))?;
    Ok(())
}

fn append(writer: &mut Writer<&File>, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    writer.append(bytes).map_err(|error| match error {
        WriteError::Io(error) => FileError::new("append to", path, error),
        WriteError::Broken => FileError::new("append to", path, std::io::ErrorKind::BrokenPipe.into()),
    })
}

fn torn_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    PathBuf::from(name)
}

fn check_first_line(source: Source<'_>) -> Result<(), OpenError> {
    let first = Cursor::new(source).starting_at(0)?;
    match first.map(RawLine::parse) {
        Some(Err(bad)) if bad.found.is_empty() => {
            let Bad { why, .. } = bad.unless_newer(source.path)?;
            Err(OpenError::NotALog { path: source.path.to_owned(), why })
        }
        _ => Ok(()),
    }
}

/// Whether the file is one line without a line end that may be the beginning of a first entry, or the zeros that
/// a power cut leaves.
fn is_torn_first_line(source: Source<'_>) -> Result<bool, FileError> {
    const BEGINNING: &[u8] = b"{\"v\":";
    let bytes = source.read(0, source.end)?;
    let compared = bytes.len().min(BEGINNING.len());
    let begins = bytes[..compared] == BEGINNING[..compared];
    Ok(!bytes.contains(&b'\n') && (begins || bytes.iter().all(|byte| *byte == 0)))
}
