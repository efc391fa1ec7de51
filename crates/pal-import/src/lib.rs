//! Sessions of other coding agents, read into logs of our own.
//!
//! Bytes go in; the lines of a log and a report come out. The crate is pure: no files, no clock, no environment,
//! no randomness. Ids follow from the source's bytes and times from its records, so one source always gives one
//! log, byte for byte.
//!
//! Nothing is dropped: what was said becomes an entry with its content copied raw, and every other record, broken
//! lines included, is kept whole in an `internal` entry and listed in the report.
//!
//! ```
//! use pal_import::{Measure, Options, import};
//! struct Thirds;
//! impl Measure for Thirds {
//!     fn text(&self, _model: &str, text: &str) -> f64 { text.len() as f64 / 3.0 }
//!     fn json(&self, _model: &str, json: &str) -> f64 { json.len() as f64 / 3.0 }
//! }
//! let source = br#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-11-15T09:00:00.000Z","message":{"role":"user","content":"fix it"}}"#;
//! let imported = import(source, &Options { measure: &Thirds, strict: false }).unwrap();
//! assert_eq!(imported.report.user_messages, 1);
//! assert_eq!(imported.log.lines().count(), 3, "session, prefix, user");
//! ```

mod aside;
mod blocks;
mod builder;
mod claude;
mod codex;
mod copilot;
mod format;
mod gemini;
mod lines;
mod mini;
mod pi;
mod pick;
mod records;
mod report;
mod responses;
mod step;
mod write;

pub use aside::{KeptAside, Reason};
pub use format::{Format, detect};
pub use lines::Problem;
pub use report::Report;
pub use write::Measure;

/// How to import.
pub struct Options<'a> {
    /// Estimates tokens; only asked about what stands before the first response.
    pub measure: &'a dyn Measure,
    /// Refuse the source at its first bad line instead of keeping the line aside.
    pub strict: bool,
}

/// A session, imported.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The log: one entry a line, each line with its end.
    pub log: String,
    /// What was read and what became of it.
    pub report: Report,
}

/// Why a source was not imported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// No line of it looks like a session of a known agent.
    #[error("not recognised as a session of a known agent: {seen}")]
    NotRecognised {
        /// What was found instead.
        seen: String,
    },
    /// It is a log of our own.
    #[error("this is already a log of Palimpsest; there is nothing to import")]
    AlreadyOurs,
    /// A bad line, under [`Options::strict`].
    #[error("line {line}: {reason}")]
    Strict {
        /// Where, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: Problem,
    },
}

/// Reads a session of another agent into a log.
pub fn import(source: &[u8], options: &Options<'_>) -> Result<Imported, ImportError> {
    let Some(format) = detect(source) else {
        return Err(ImportError::NotRecognised { seen: format::seen(source) });
    };
    let session = match format {
        Format::Claude => claude::read(source, options.strict)?,
        Format::Codex => codex::read(source, options.strict)?,
        Format::Palimpsest => return Err(ImportError::AlreadyOurs),
        Format::Pi => pi::read(source, options.strict)?,
        Format::Copilot => copilot::read(source, options.strict)?,
        Format::Gemini => gemini::read(source, options.strict)?,
        Format::MiniSweAgent => mini::read(source),
    };
    Ok(write::write(source, format, &session, options.measure))
}
