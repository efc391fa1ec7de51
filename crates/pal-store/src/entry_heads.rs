//! Reads entry heads from the last line to the first, without parsing their content.

use std::borrow::Cow;

use pal_model::{EntryBody, EntryId, LogEntry, SharedText};
use smol_str::SmolStr;

use crate::error::FileError;
use crate::segment::LogSource;

const CHUNK_BYTES: u64 = 4 << 20;
/// Bytes of a line that are read: enough for the envelope and origin of an entry.
const HEAD_BYTES: usize = 320;

/// Envelope of an entry, without its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryHead {
    /// Id of the entry.
    pub id: EntryId,
    /// Id of its parent.
    pub parent: Option<EntryId>,
    /// Kind as written in the log.
    pub kind: SmolStr,
    /// Origin, if it directly follows the kind.
    pub origin: Option<SmolStr>,
    /// Length of the line, without its line end.
    pub bytes: u64,
}

/// Borrowed form of [`EntryHead`].
pub(crate) struct HeadText<'a> {
    id: &'a str,
    parent: Option<&'a str>,
    pub(crate) kind: &'a str,
    pub(crate) origin: Option<&'a str>,
    pub(crate) bytes: u64,
}

impl HeadText<'_> {
    fn parse(&self) -> Option<EntryHead> {
        let parent = self.parent.map(str::parse).transpose().ok()?;
        Some(EntryHead {
            id: self.id.parse().ok()?,
            parent,
            kind: self.kind.into(),
            origin: self.origin.map(SmolStr::new),
            bytes: self.bytes,
        })
    }
}

/// A line whose head was read.
pub(crate) struct SkimmedLine<'a> {
    /// Offset of its start.
    pub(crate) offset: u64,
    /// Offset after its line end.
    end: u64,
    /// Bytes read so far; may extend past the line.
    bytes: &'a [u8],
}

impl SkimmedLine<'_> {
    /// Reads the whole line with its line end.
    pub(crate) fn read(&self, source: LogSource<'_>) -> Result<Cow<'_, [u8]>, FileError> {
        let length = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        match self.bytes.get(..length) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => source.read(self.offset, self.end).map(Cow::Owned),
        }
    }
}

type HeadVisitor<'v> = dyn FnMut(&HeadText<'_>, &SkimmedLine<'_>) -> Result<bool, FileError> + 'v;

/// Visits the ancestors of `id`, newest first, in one pass from the end of the file. An unreadable line ends
/// the branch.
pub(crate) fn skim_ancestors(
    source: LogSource<'_>,
    id: EntryId,
    visit: &mut dyn FnMut(&EntryHead),
) -> Result<(), FileError> {
    let mut is_found = false;
    skim_ancestors_of(source, id, &mut |head, _| {
        if std::mem::replace(&mut is_found, true)
            && let Some(head) = head.parse()
        {
            visit(&head);
        }
        Ok(())
    })
}

/// Visits an entry and its ancestors.
pub(crate) fn skim_ancestors_of(
    source: LogSource<'_>,
    id: EntryId,
    visit: &mut dyn FnMut(&HeadText<'_>, &SkimmedLine<'_>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    // Ids are compared as text: parsing them would take longer than the rest of the head.
    let mut wanted = id.to_string();
    skim(source, &mut |head, line| {
        if wanted != head.id {
            return Ok(true);
        }
        visit(head, line)?;
        wanted.clear();
        wanted.push_str(head.parent.unwrap_or_default());
        Ok(head.parent.is_some())
    })
}

/// Reads all lines from the last to the first until `visit` returns false.
fn skim(source: LogSource<'_>, visit: &mut HeadVisitor<'_>) -> Result<(), FileError> {
    let mut end = source.end;
    let mut line_end = source.end;
    let mut carried = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        let mut bytes = source.read(start, end)?;
        let mut to = bytes.len();
        bytes.append(&mut carried);
        while let Some(newline) = memchr::memrchr(b'\n', &bytes[..to]) {
            let offset = start + newline as u64 + 1;
            let line = SkimmedLine { offset, end: line_end, bytes: &bytes[newline + 1..] };
            if offset < line_end && !visit_line(source, &line, visit)? {
                return Ok(());
            }
            line_end = offset;
            to = newline;
        }
        bytes.truncate(HEAD_BYTES);
        carried = bytes;
        end = start;
    }
    if line_end > 0 {
        visit_line(source, &SkimmedLine { offset: 0, end: line_end, bytes: &carried }, visit)?;
    }
    Ok(())
}

fn visit_line(
    source: LogSource<'_>,
    line: &SkimmedLine<'_>,
    visit: &mut HeadVisitor<'_>,
) -> Result<bool, FileError> {
    let length = line.end - line.offset;
    let shown = line.bytes.len().min(HEAD_BYTES).min(usize::try_from(length).unwrap_or(usize::MAX));
    if let Some(head) = read_head(&line.bytes[..shown], length.saturating_sub(1)) {
        return visit(&head, line);
    }
    let Some(entry) = whole_entry(source, line)? else { return Ok(true) };
    let (id, parent, kind) = (entry.id.to_string(), entry.parent.map(|id| id.to_string()), entry.kind().0);
    let origin = match &entry.body {
        EntryBody::User(user) => Some(user.origin.name()),
        _ => None,
    };
    let bytes = entry.line.len() as u64;
    visit(&HeadText { id: &id, parent: parent.as_deref(), kind: &kind, origin, bytes }, line)
}

/// Parses the envelope in the field order of this program.
fn read_head(bytes: &[u8], length: u64) -> Option<HeadText<'_>> {
    let (id, rest) = split_at_quote(bytes.strip_prefix(b"{\"v\":1,\"id\":\"")?)?;
    let rest = rest.strip_prefix(b",\"parent\":")?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => {
            let (parent, rest) = split_at_quote(rest.strip_prefix(b"\"")?)?;
            (Some(parent), rest)
        }
    };
    let rest = match rest.strip_prefix(b",\"parent_offset\":") {
        Some(rest) => &rest[rest.iter().position(|byte| !byte.is_ascii_digit())?..],
        None => rest,
    };
    let (_, rest) = split_at_quote(rest.strip_prefix(b",\"at\":\"")?)?;
    let (kind, rest) = split_at_quote(rest.strip_prefix(b",\"kind\":\"")?)?;
    let origin = rest.strip_prefix(b",\"origin\":\"").and_then(split_at_quote).map(|(origin, _)| origin);
    Some(HeadText { id, parent, kind, origin, bytes: length })
}

/// Text up to a quote, if it has no escapes, and the rest after the quote.
fn split_at_quote(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', bytes).filter(|end| bytes[*end] == b'"')?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text, &bytes[end + 1..]))
}

/// Parses the whole line, which another program wrote.
fn whole_entry(source: LogSource<'_>, line: &SkimmedLine<'_>) -> Result<Option<LogEntry>, FileError> {
    let bytes = line.read(source)?;
    let text = std::str::from_utf8(&bytes).ok();
    Ok(text.and_then(|text| LogEntry::parse(SharedText::from(text.trim_end())).ok()))
}
