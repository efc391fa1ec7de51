//! Intermediate form between format readers and the log writer: a session as a list of steps, in log order,
//! without ids. Content is raw JSON, borrowed from the source where it is copied unchanged.

use std::borrow::Cow;

use pal_model::{Decision, MessageOrigin, PreservedPlacement, Timestamp, Usage};

use crate::internal_records::InternalReason;

/// A session as read from another agent's file.
#[derive(Default)]
pub(crate) struct ParsedSession<'a> {
    pub(crate) about: pal_model::SessionStart,
    /// System prompts, if the source has them.
    pub(crate) system: Vec<Cow<'a, str>>,
    pub(crate) steps: Vec<ImportStep<'a>>,
    pub(crate) counts: SourceCounts,
}

/// Counts of a source, besides its steps.
#[derive(Clone, Default)]
pub(crate) struct SourceCounts {
    /// Source lines, including blank ones.
    pub(crate) lines: u64,
    /// Records in the source.
    pub(crate) records: u64,
    /// Lines with several objects, split into records.
    pub(crate) mended: u64,
    /// Prompts retyped under the parent of an earlier one.
    pub(crate) rewinds: u64,
    /// Queued messages taken back.
    pub(crate) withdrawn: u64,
}

/// A future log entry.
pub(crate) struct ImportStep<'a> {
    /// Source line.
    pub(crate) line: u64,
    /// Time of the record, if known.
    pub(crate) at: Option<Timestamp>,
    /// Raw id of the source record.
    pub(crate) foreign: Option<&'a str>,
    pub(crate) act: StepAction<'a>,
}

/// Content of a future log entry.
pub(crate) enum StepAction<'a> {
    User {
        origin: MessageOrigin,
        content: Cow<'a, str>,
        results: u64,
    },
    Assistant {
        response: Cow<'a, str>,
        model: Cow<'a, str>,
        content: Cow<'a, str>,
        calls: Vec<Cow<'a, str>>,
    },
    /// `raw` is the source record.
    Attachment {
        what: Cow<'a, str>,
        content: Cow<'a, str>,
        raw: Option<&'a str>,
    },
    /// Shown to the user only.
    Shown {
        content: Cow<'a, str>,
    },
    Internal {
        what: Cow<'a, str>,
        raw: Cow<'a, str>,
        reason: InternalReason,
        detail: Option<String>,
    },
    Request {
        model: Cow<'a, str>,
    },
    Response {
        response: Cow<'a, str>,
        model: Cow<'a, str>,
        usage: Usage,
        stop_reason: Option<Cow<'a, str>>,
    },
    Boundary(Box<BoundaryDraft<'a>>),
    Decision(Box<Decision>),
    /// An unused reserved step; no entry.
    Reserved,
}

/// A future boundary entry. Steps are given by index.
#[derive(Default)]
pub(crate) struct BoundaryDraft<'a> {
    pub(crate) trigger: Cow<'a, str>,
    /// Raw content.
    pub(crate) summary: Cow<'a, str>,
    pub(crate) tokens_before: Option<u64>,
    pub(crate) tokens_after: Option<u64>,
    pub(crate) messages_summarised: Option<u64>,
    pub(crate) instructions: Option<String>,
    pub(crate) preserved: Option<(usize, usize, PreservedPlacement)>,
}

impl<'a> ImportStep<'a> {
    /// Step that stores a record as an internal entry.
    pub(crate) fn internal(
        line: u64,
        at: Option<Timestamp>,
        what: impl Into<Cow<'a, str>>,
        raw: impl Into<Cow<'a, str>>,
        reason: InternalReason,
    ) -> ImportStep<'a> {
        let act = StepAction::Internal { what: what.into(), raw: raw.into(), reason, detail: None };
        ImportStep { line, at, foreign: None, act }
    }

    /// Step that stores a bad line: its text as a JSON string, or base64 if it is not text.
    pub(crate) fn bad_line(
        line: u64,
        bytes: &[u8],
        problem: &crate::source_lines::LineProblem,
    ) -> ImportStep<'a> {
        let mut raw = String::new();
        match std::str::from_utf8(bytes) {
            Ok(text) => pal_model::escape_into(&mut raw, text),
            Err(_) => {
                raw.push_str(r#"{"base64":""#);
                base64_into(&mut raw, bytes);
                raw.push_str("\"}");
            }
        }
        let act = StepAction::Internal {
            what: "bad_line".into(),
            raw: raw.into(),
            reason: InternalReason::BadLine,
            detail: Some(problem.to_string()),
        };
        ImportStep { line, at: None, foreign: None, act }
    }
}

fn base64_into(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    out.reserve(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, &byte| group << 8 | u32::from(byte));
        let group = group << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let is_padding = digit > chunk.len();
            let index = (group >> (18 - 6 * digit)) as usize & 63;
            out.push(if is_padding { '=' } else { DIGITS[index] as char });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        for (bytes, expected) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xfe\xfdz", "//79eg=="),
        ] {
            let mut out = String::new();
            base64_into(&mut out, bytes);
            assert_eq!(out, expected);
        }
    }
}
