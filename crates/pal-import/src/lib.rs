//! Imports sessions of other coding agents as Palimpsest logs.
//!
//! Bytes go in; log lines and a report come out. The crate is pure: no files, clock, environment or randomness. Ids
//! follow from the session's identity and times from its records, so one source always gives the same log, byte for byte.
//!
//! Nothing is dropped: conversation content becomes entries with raw content, and every other record, including bad
//! lines, becomes an `internal` entry and is listed in the report.
//!
//! ```
//! use pal_import::{ImportOptions, import};
//! use pal_model::TokenEstimator;
//! struct Thirds;
//! impl TokenEstimator for Thirds {
//!     fn text(&self, _model: &str, text: &str) -> f64 { text.len() as f64 / 3.0 }
//!     fn json(&self, _model: &str, json: &str) -> f64 { json.len() as f64 / 3.0 }
//! }
//! let source = br#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-11-15T09:00:00.000Z","message":{"role":"user","content":"fix it"}}"#;
//! let imported = import(source, &ImportOptions { measure: &Thirds, strict: false }).unwrap();
//! assert_eq!(imported.report.user_messages, 1);
//! assert_eq!(imported.log.lines().count(), 3, "session, prefix, user");
//! ```

mod claude;
mod codex;
mod content_blocks;
mod copilot;
mod gemini;
mod import_report;
mod import_step;
mod import_writer;
mod internal_records;
mod mini_swe_agent;
mod pi;
mod raw_fields;
mod response_tracker;
mod session_builder;
mod session_format;
mod session_seed;
mod source_lines;
mod source_records;
mod usage_scan;

pub use import_report::ImportReport;
pub use internal_records::{InternalReason, InternalRecord};
pub use session_format::{SessionFormat, detect};
pub use source_lines::LineProblem;
pub use usage_scan::{RECORDED_CAUSES, ScanProgress, UsageFlags, UsageRow, UsageScan};

use pal_model::TokenEstimator;

/// Import options.
pub struct ImportOptions<'a> {
    /// Token estimator, used only for content before the first response.
    pub measure: &'a dyn TokenEstimator,
    /// Fail at the first bad line instead of storing it.
    pub strict: bool,
}

/// An imported session.
#[derive(Clone, Debug)]
pub struct ImportedSession {
    /// Log: one entry per line, each with a line end.
    pub log: String,
    /// Counts of what was read and written.
    pub report: ImportReport,
}

/// Reason why a source was not imported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ImportError {
    /// No line looks like a session of a known agent.
    #[error("not recognised as a session of a known agent: {seen}")]
    NotRecognised {
        /// Description of the source.
        seen: String,
    },
    /// It is already a Palimpsest log.
    #[error("this is already a Palimpsest log; there is nothing to import")]
    AlreadyOurs,
    /// A bad line, with [`ImportOptions::strict`].
    #[error("line {line}: {reason}")]
    Strict {
        /// Line, counted from 1.
        line: u64,
        /// Defect of the line.
        reason: LineProblem,
    },
}

/// Imports a session of another agent as a log. Its ids follow from the session's identity: a file that grew gives the
/// same ids again, and more.
pub fn import(source: &[u8], options: &ImportOptions<'_>) -> Result<ImportedSession, ImportError> {
    let (format, session) = parse(source, options)?;
    let seed = session_seed::session_seed(source, format, session.about.foreign_id.as_deref());
    Ok(import_writer::write(source, seed, format, &session, options.measure))
}

/// Imports a session as a log with ids of its own, beside another copy of the same session.
pub fn import_copy(source: &[u8], options: &ImportOptions<'_>) -> Result<ImportedSession, ImportError> {
    let (format, session) = parse(source, options)?;
    let seed = session_seed::fingerprint(source);
    Ok(import_writer::write(source, seed, format, &session, options.measure))
}

fn parse<'s>(
    source: &'s [u8],
    options: &ImportOptions<'_>,
) -> Result<(SessionFormat, import_step::ParsedSession<'s>), ImportError> {
    let Some(format) = detect(source) else {
        return Err(ImportError::NotRecognised { seen: session_format::describe_source(source) });
    };
    let session = match format {
        SessionFormat::Claude => claude::read(source, options.strict)?,
        SessionFormat::Codex => codex::read(source, options.strict)?,
        SessionFormat::Palimpsest => return Err(ImportError::AlreadyOurs),
        SessionFormat::Pi => pi::read(source, options.strict)?,
        SessionFormat::Copilot => copilot::read(source, options.strict)?,
        SessionFormat::Gemini => gemini::read(source, options.strict)?,
        SessionFormat::MiniSweAgent => mini_swe_agent::read(source),
    };
    Ok((format, session))
}
