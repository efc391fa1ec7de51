//! Records of a JSONL source. Bad lines are refused or become steps here, for all formats.

use crate::ImportError;
use crate::import_step::{ImportStep, SourceCounts};
use crate::raw_fields::RawFields;
use crate::source_lines::{self, LineProblem, SourceLine};

/// One record of a JSONL source.
pub(crate) struct SourceRecord<'a, const N: usize> {
    pub(crate) line: u64,
    /// Raw record.
    pub(crate) text: &'a str,
    /// Requested raw fields.
    pub(crate) fields: RawFields<'a, N>,
}

/// Calls `read_records` with each record, or with the step that stores a bad line.
pub(crate) fn read_records<'a, const N: usize>(
    source: &'a [u8],
    names: &[&str; N],
    strict: bool,
    mut each: impl FnMut(Result<SourceRecord<'a, N>, ImportStep<'a>>),
) -> Result<SourceCounts, ImportError> {
    let mut seen = SourceCounts::default();
    let mut mended_line = 0;
    let lines = source_lines::read(source, names, |line, content| {
        match content {
            SourceLine::Bad(_, reason) if strict => return Err(ImportError::Strict { line, reason }),
            SourceLine::Record { mended: Some(count), .. } if strict => {
                return Err(ImportError::Strict { line, reason: LineProblem::SeveralObjects(count) });
            }
            SourceLine::Bad(bytes, problem) => each(Err(ImportStep::bad_line(line, bytes, &problem))),
            SourceLine::Record { text, fields, mended } => {
                seen.records += 1;
                if mended.is_some() && mended_line != line {
                    mended_line = line;
                    seen.mended += 1;
                }
                each(Ok(SourceRecord { line, text, fields }));
            }
        }
        Ok(())
    })?;
    Ok(SourceCounts { lines, ..seen })
}
