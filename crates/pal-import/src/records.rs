//! The records of a JSONL source for its reader: bad lines are refused or become steps here, for all formats.

use crate::ImportError;
use crate::lines::{self, Line, Problem};
use crate::pick::Picked;
use crate::step::{Seen, Step};

/// One record.
pub(crate) struct Record<'a, const N: usize> {
    pub(crate) line: u64,
    /// The record as it stands.
    pub(crate) text: &'a str,
    /// The raw fields that were asked for.
    pub(crate) fields: Picked<'a, N>,
}

/// Hands each record, or the step that keeps a bad line, to `each`.
pub(crate) fn each<'a, const N: usize>(
    source: &'a [u8],
    names: &[&str; N],
    strict: bool,
    mut each: impl FnMut(Result<Record<'a, N>, Step<'a>>),
) -> Result<Seen, ImportError> {
    let mut seen = Seen::default();
    let mut mended_line = 0;
    let lines = lines::read(source, names, |line, content| {
        match content {
            Line::Bad(_, reason) if strict => return Err(ImportError::Strict { line, reason }),
            Line::Record { mended: Some(count), .. } if strict => {
                return Err(ImportError::Strict { line, reason: Problem::SeveralObjects(count) });
            }
            Line::Bad(bytes, problem) => each(Err(Step::bad(line, bytes, &problem))),
            Line::Record { text, fields, mended } => {
                seen.records += 1;
                if mended.is_some() && mended_line != line {
                    mended_line = line;
                    seen.mended += 1;
                }
                each(Ok(Record { line, text, fields }));
            }
        }
        Ok(())
    })?;
    Ok(Seen { lines, ..seen })
}
