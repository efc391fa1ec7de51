//! A look at the beginnings of lines, from the last to the first, without reading what they say.

use pal_model::{Entry, EntryId, Text};

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
    pub kind: String,
    /// Who said it, if the line says so right behind the kind.
    pub origin: Option<String>,
    /// Length of the line, without its line end.
    pub bytes: u64,
}

/// Visits the entries before `id` on its branch, newest first, by one pass over the file from its end. Bad lines end the
/// branch.
pub(crate) fn skim_ancestors(
    source: Source<'_>,
    id: EntryId,
    visit: &mut dyn FnMut(&EntryHead),
) -> Result<(), FileError> {
    let mut wanted = Some(id);
    let mut is_found = false;
    skim(source, &mut |head| {
        if wanted != Some(head.id) {
            return true;
        }
        if is_found {
            visit(&head);
        }
        is_found = true;
        wanted = head.parent;
        wanted.is_some()
    })
}

/// Looks at all lines from the last to the first, until `visit` says that it is enough.
fn skim(source: Source<'_>, visit: &mut dyn FnMut(EntryHead) -> bool) -> Result<(), FileError> {
    let mut end = source.end;
    let mut line_end = source.end;
    let mut carried = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        let mut bytes = source.read(start, end)?;
        let mut to = bytes.len();
        bytes.append(&mut carried);
        while let Some(newline) = memchr::memrchr(b'\n', &bytes[..to]) {
            let begin = start + newline as u64 + 1;
            if begin < line_end && !look(source, begin, line_end, &bytes[newline + 1..], visit)? {
                return Ok(());
            }
            line_end = begin;
            to = newline;
        }
        bytes.truncate(HEAD_BYTES);
        carried = bytes;
        end = start;
    }
    if line_end > 0 {
        look(source, 0, line_end, &carried, visit)?;
    }
    Ok(())
}

fn look(
    source: Source<'_>,
    begin: u64,
    end: u64,
    bytes: &[u8],
    visit: &mut dyn FnMut(EntryHead) -> bool,
) -> Result<bool, FileError> {
    let length = end - begin;
    let shown = bytes.len().min(HEAD_BYTES).min(usize::try_from(length).unwrap_or(usize::MAX));
    let head = match read_head(&bytes[..shown], length.saturating_sub(1)) {
        Some(head) => Some(head),
        None => whole_head(source, begin, end)?,
    };
    Ok(head.is_none_or(visit))
}

/// Reads the envelope in the order in which this program writes it.
fn read_head(bytes: &[u8], length: u64) -> Option<EntryHead> {
    let rest = bytes.strip_prefix(b"{\"v\":1,\"id\":\"")?;
    let (id, rest) = id(rest)?;
    let rest = rest.strip_prefix(b",\"parent\":")?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => {
            let (parent, rest) = self::id(rest.strip_prefix(b"\"")?)?;
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
    Some(EntryHead { id, parent, kind, origin, bytes: length })
}

fn id(bytes: &[u8]) -> Option<(EntryId, &[u8])> {
    let (text, rest) = word(bytes)?;
    Some((text.parse().ok()?, rest))
}

/// The text up to a quote, if it has no escapes, and what follows the quote.
fn word(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = memchr::memchr2(b'"', b'\\', bytes).filter(|end| bytes[*end] == b'"')?;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((text.to_owned(), &bytes[end + 1..]))
}

/// The same for a line that another program wrote, which has to be read whole.
fn whole_head(source: Source<'_>, begin: u64, end: u64) -> Result<Option<EntryHead>, FileError> {
    let bytes = source.read(begin, end)?;
    let Ok(text) = std::str::from_utf8(&bytes) else { return Ok(None) };
    let entry = Entry::parse(Text::from(text.trim_end())).ok();
    Ok(entry.map(|entry| EntryHead {
        id: entry.id,
        parent: entry.parent,
        kind: entry.kind().0.to_string(),
        origin: match &entry.body {
            pal_model::Body::User(user) => Some(user.origin.name().to_owned()),
            _ => None,
        },
        bytes: entry.line.len() as u64,
    }))
}
