//! What a reader of a format hands to the writer of the log: a session as a list of steps, in the order of the
//! log, without ids. Content is raw JSON, borrowed from the source wherever it is copied unchanged.

use std::borrow::Cow;

use pal_model::{Decision, Origin, Placement, Timestamp, Usage};

use crate::aside::Reason;

/// A session as read from another agent's file.
#[derive(Default)]
pub(crate) struct Session<'a> {
    pub(crate) about: pal_model::Session,
    /// System prompts, where the source holds them.
    pub(crate) system: Vec<Cow<'a, str>>,
    pub(crate) steps: Vec<Step<'a>>,
    pub(crate) seen: Seen,
}

/// What a reader counts beside its steps.
#[derive(Clone, Default)]
pub(crate) struct Seen {
    /// Lines of the source, blank ones included.
    pub(crate) lines: u64,
    /// Records among them.
    pub(crate) records: u64,
    /// Lines with several objects that were cut.
    pub(crate) mended: u64,
    /// Prompts typed anew under the parent of an earlier one.
    pub(crate) rewinds: u64,
    /// Queued messages that the person took back.
    pub(crate) withdrawn: u64,
}

/// One entry to be.
pub(crate) struct Step<'a> {
    /// The line of the source that it comes from.
    pub(crate) line: u64,
    /// When, where the record says so.
    pub(crate) at: Option<Timestamp>,
    /// The raw id of the record that it comes from.
    pub(crate) foreign: Option<&'a str>,
    pub(crate) act: Act<'a>,
}

/// What an entry to be says.
pub(crate) enum Act<'a> {
    User {
        origin: Origin,
        content: Cow<'a, str>,
        results: u64,
    },
    Assistant {
        response: Cow<'a, str>,
        model: Cow<'a, str>,
        content: Cow<'a, str>,
        calls: Vec<Cow<'a, str>>,
    },
    /// `raw` is the record that the content was made from.
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
        reason: Reason,
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
    Boundary(Box<Boundary<'a>>),
    Decision(Box<Decision>),
    /// A place that was held for something that did not come; no entry.
    Nothing,
}

/// A boundary to be. Steps are named by their index.
#[derive(Default)]
pub(crate) struct Boundary<'a> {
    pub(crate) trigger: Cow<'a, str>,
    /// Raw content.
    pub(crate) summary: Cow<'a, str>,
    pub(crate) tokens_before: Option<u64>,
    pub(crate) tokens_after: Option<u64>,
    pub(crate) messages_summarised: Option<u64>,
    pub(crate) instructions: Option<String>,
    pub(crate) preserved: Option<(usize, usize, Placement)>,
}

impl<'a> Step<'a> {
    /// A record kept aside.
    pub(crate) fn aside(
        line: u64,
        at: Option<Timestamp>,
        what: impl Into<Cow<'a, str>>,
        raw: impl Into<Cow<'a, str>>,
        reason: Reason,
    ) -> Step<'a> {
        let act = Act::Internal { what: what.into(), raw: raw.into(), reason, detail: None };
        Step { line, at, foreign: None, act }
    }

    /// A line that is no record: its text as a JSON string, or in base64 where it is no text.
    pub(crate) fn bad(line: u64, bytes: &[u8], problem: &crate::lines::Problem) -> Step<'a> {
        let mut raw = String::new();
        match std::str::from_utf8(bytes) {
            Ok(text) => pal_model::escape_into(&mut raw, text),
            Err(_) => {
                raw.push_str(r#"{"base64":""#);
                base64_into(&mut raw, bytes);
                raw.push_str("\"}");
            }
        }
        let act = Act::Internal {
            what: "bad_line".into(),
            raw: raw.into(),
            reason: Reason::BadLine,
            detail: Some(problem.to_string()),
        };
        Step { line, at: None, foreign: None, act }
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
