//! Detection of the agent that wrote a source.

use std::fmt;

use crate::raw_fields::pick;
use crate::source_lines::{self, SourceLine};

/// Supported session formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SessionFormat {
    /// Claude Code: JSONL transcripts.
    Claude,
    /// Codex: JSONL rollouts.
    Codex,
    /// pi: JSONL sessions.
    Pi,
    /// Copilot CLI: JSONL events.
    Copilot,
    /// Gemini CLI: one object, or JSONL.
    Gemini,
    /// mini-swe-agent: one object, a trajectory.
    MiniSweAgent,
    /// Palimpsest's own log.
    Palimpsest,
}

impl SessionFormat {
    /// Program name in session entries.
    pub(crate) fn program(self) -> &'static str {
        match self {
            SessionFormat::Claude => "claude-code",
            SessionFormat::Codex => "codex",
            SessionFormat::Pi => "pi",
            SessionFormat::Copilot => "copilot-cli",
            SessionFormat::Gemini => "gemini-cli",
            SessionFormat::MiniSweAgent => "mini-swe-agent",
            SessionFormat::Palimpsest => "palimpsest",
        }
    }
}

impl fmt::Display for SessionFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            SessionFormat::Claude => "Claude Code",
            SessionFormat::Codex => "Codex",
            SessionFormat::Pi => "pi",
            SessionFormat::Copilot => "Copilot CLI",
            SessionFormat::Gemini => "Gemini CLI",
            SessionFormat::MiniSweAgent => "mini-swe-agent",
            SessionFormat::Palimpsest => "Palimpsest",
        })
    }
}

/// Detects the format of a source from its records, skipping undecided lines; `None` if unknown.
pub fn detect(source: &[u8]) -> Option<SessionFormat> {
    // A single-object source, pretty-printed or not, has no telling line, or is telling as a whole.
    let by_line = source_lines::read(source, &NAMES, |_, line| match line {
        SourceLine::Record { fields, .. } => detect_record(&fields).map_or(Ok(()), Err),
        SourceLine::Bad(..) => Ok(()),
    });
    by_line.err().or_else(|| detect_record(&pick(single_object(source)?, &NAMES).ok()?))
}

/// Text of a single-object source.
pub(crate) fn single_object(source: &[u8]) -> Option<&str> {
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source).trim_ascii();
    if !source.starts_with(b"{") || !source.ends_with(b"}") || source_lines::is_too_deep(source) {
        return None;
    }
    std::str::from_utf8(source).ok()
}

/// Describes an unrecognized source.
pub(crate) fn describe_source(source: &[u8]) -> String {
    if source.trim_ascii().is_empty() {
        return "it is empty".into();
    }
    let mut records = 0u64;
    let mut bad = None;
    let mut keys = None;
    let _ = source_lines::read(source, &[], |number, line| -> Result<(), ()> {
        match line {
            SourceLine::Record { text, .. } => {
                records += 1;
                keys = keys.take().or_else(|| pal_model::object_fields(text).ok());
            }
            SourceLine::Bad(_, problem) => bad = bad.take().or(Some((number, problem))),
        }
        Ok(())
    });
    match (bad, keys) {
        (Some((number, problem)), None) => format!("no line holds a JSON object (line {number}: {problem})"),
        (_, keys) => {
            let keys: Vec<String> =
                keys.iter().flatten().take(8).map(|(key, _)| key.chars().take(32).collect()).collect();
            format!("{records} JSON objects; the first has the keys {}", keys.join(", "))
        }
    }
}

const NAMES: [&str; 21] = [
    "type",
    "v",
    "kind",
    "id",
    "at",
    "sessionId",
    "uuid",
    "leafUuid",
    "snapshot",
    "payload",
    "timestamp",
    "cwd",
    "version",
    "message",
    "parentId",
    "data",
    "messages",
    "info",
    "projectHash",
    "trajectory_format",
    "role",
];

/// Detects the format from one record.
fn detect_record(fields: &[Option<&str>; NAMES.len()]) -> Option<SessionFormat> {
    let has =
        |name: &str| NAMES.iter().position(|known| *known == name).is_some_and(|at| fields[at].is_some());
    let kind = fields[0].and_then(pal_model::unescape).unwrap_or_default();
    if has("v") && has("kind") && has("id") && has("at") {
        return Some(SessionFormat::Palimpsest);
    }
    if has("messages") && (has("trajectory_format") || has("info")) {
        return Some(SessionFormat::MiniSweAgent);
    }
    if has("projectHash") && has("sessionId") {
        return Some(SessionFormat::Gemini);
    }
    if has("payload") && has("timestamp") && !kind.is_empty() {
        return Some(SessionFormat::Codex);
    }
    if has("data") && has("id") && has("timestamp") && (has("parentId") || kind.starts_with("session.")) {
        return Some(SessionFormat::Copilot);
    }
    let is_claude = match kind.as_ref() {
        "summary" => has("leafUuid"),
        "file-history-snapshot" => has("snapshot"),
        "" => false,
        _ => has("sessionId"),
    };
    if is_claude {
        return Some(SessionFormat::Claude);
    }
    let is_pi = match kind.as_ref() {
        "session" => has("id") && has("timestamp") && has("cwd"),
        "message" => has("message") && has("timestamp"),
        _ => false,
    };
    is_pi.then_some(SessionFormat::Pi)
}
