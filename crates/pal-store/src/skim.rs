//! A look at the beginnings of lines, from the last to the first, without reading what they say.

use std::borrow::Cow;

use pal_model::{Body, Entry, EntryId, Text};
use smol_str::SmolStr;

use crate::error::FileError;
use crate::segment::Source;

const CHUNK_BYTES: u64 = 4 << 20;
/// Bytes of a line that are looked at: more than the envelope of an entry and its origin take.
const HEAD_BYTES: usize = 320;

/// The beginning of a line: what an entry is, not what it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryHead {
    /// Its id.
    pub id: EntryId,
    /// The entry that it follows.
    pub parent: Option<EntryId>,
    /// Its kind, as it stands in the log.
    pub kind: SmolStr,
    /// Who said it, if the line says so right behind the kind.
    pub origin: Option<SmolStr>,
    /// Length of the line, without its line end.
    pub bytes: u64,
}

/// The same, in the bytes that were read.
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

/// A line that was looked at.
pub(crate) struct SkimmedLine<'a> {
    /// Where it starts.
    pub(crate) offset: u64,
    /// Just behind its line end.
    end: u64,
    /// As much of it as was read, and perhaps more.
    bytes: &'a [u8],
}

impl SkimmedLine<'_> {
    /// All of it, with its line end.
    pub(crate) fn read(&self, source: Source<'_>) -> Result<Cow<'_, [u8]>, FileError> {
        let length = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        match self.bytes.get(..length) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => source.read(self.offset, self.end).map(Cow::Owned),
        }
    }
}

type Visit<'v> = dyn FnMut(&HeadText<'_>, &SkimmedLine<'_>) -> Result<bool, FileError> + 'v;

/// Visits the entries before `id` on its branch, newest first, by one pass over the file from its end. Bad lines end the
/// branch.
pub(crate) fn skim_ancestors(
    source: Source<'_>,
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

/// Visits an entry and those before it on its branch.
pub(crate) fn skim_ancestors_of(
    source: Source<'_>,
    id: EntryId,
    visit: &mut dyn FnMut(&HeadText<'_>, &SkimmedLine<'_>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    // Ids are compared as they are written: reading them would take longer than the rest of a line's head.
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

/// Looks at all lines from the last to the first, until `visit` says that it is enough.
fn skim(source: Source<'_>, visit: &mut Visit<'_>) -> Result<(), FileError> {
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
            if offset < line_end && !look(source, &line, visit)? {
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
        look(source, &SkimmedLine { offset: 0, end: line_end, bytes: &carried }, visit)?;
    }
    Ok(())
}

fn look(source: Source<'_>, line: &SkimmedLine<'_>, visit: &mut Visit<'_>) -> Result<bool, FileError> {
    let length = line.end - line.offset;
    let shown = line.bytes.len().min(HEAD_BYTES).min(usize::try_from(length).unwrap_or(usize::MAX));
    if let Some(head) = read_head(&line.bytes[..shown], length.saturating_sub(1)) {
        return visit(&head, line);
    }
    let Some(entry) = whole_entry(source, line)? else { return Ok(true) };
    let (id, parent, kind) = (entry.id.to_string(), entry.parent.map(|id| id.to_string()), entry.kind().0);
    let origin = match &entry.body {
        Body::User(user) => Some(user.origin.name()),
        _ => None,
    };
    let bytes = entry.line.len() as u64;
    visit(&HeadText { id: &id, parent: parent.as_deref(), kind: &kind, origin, bytes }, line)
}

/// Reads the envelope in the order in which this program writes it.
fn read_head(bytes: &[u8], length: u64) -> Option<HeadText<'_>> {
    let (id, rest) = word(bytes.strip_prefix(b"{\"v\":1,\"id\":\"")?)?;
    let rest = rest.strip_prefix(b",\"parent\":")?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => {
            let (parent, rest) = word(rest.strip_prefix(b"\"")?)?;
            (Some(parent), rest)
        }
    };
    let rest = match rest.strip_prefix(b",\"parent_offset\":") {
        Some(rest) => &rest[rest.iter().position(|byte| !byte.is_ascii_digit())?..],
        None => rest,
    };
    let (_, rest) = word(rest.strip_prefix(b",\"at\":\"")?)?;
    let (kind, rest) = word(rest.strip_prefix(b",\"kind\":\"")?)?;
    let origin = rest.strip_prefix(b",\"origin\":\"").and_then(word).map(|(origin, _)| origin);
    Some(HeadText { id, parent, kind, origin, bytes: length })
}

/// The text up to a quote, if it has no escapes, and what follows the quote.
fn word(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', bytes).filter(|end| bytes[*end] == b'"')?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text, &bytes[end + 1..]))
}

/// The entry of a line that another program wrote, which has to be read whole.
fn whole_entry(source: Source<'_>, line: &SkimmedLine<'_>) -> Result<Option<Entry>, FileError> {
    let bytes = line.read(source)?;
    let text = std::str::from_utf8(&bytes).ok();
    Ok(text.and_then(|text| Entry::parse(Text::from(text.trim_end())).ok()))
}
