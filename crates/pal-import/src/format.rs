//! Which agent wrote a source, told from its content.

use std::fmt;

use crate::lines::{self, Line};
use crate::pick::pick;

/// The agents whose sessions are known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Format {
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
    /// A log of our own.
    Palimpsest,
}

impl Format {
    /// The name that a session entry gives to the program.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Format::Claude => "claude-code",
            Format::Codex => "codex",
            Format::Pi => "pi",
            Format::Copilot => "copilot-cli",
            Format::Gemini => "gemini-cli",
            Format::MiniSweAgent => "mini-swe-agent",
            Format::Palimpsest => "palimpsest",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Format::Claude => "Claude Code",
            Format::Codex => "Codex",
            Format::Pi => "pi",
            Format::Copilot => "Copilot CLI",
            Format::Gemini => "Gemini CLI",
            Format::MiniSweAgent => "mini-swe-agent",
            Format::Palimpsest => "Palimpsest",
        })
    }
}

/// Which agent wrote this, if any known one did. Looks past lines that tell nothing.
pub fn detect(source: &[u8]) -> Option<Format> {
    // A source that is one object, pretty-printed or not, has no line that tells, or the whole of it does.
    let by_line = lines::read(source, &NAMES, |_, line| match line {
        Line::Record { fields, .. } => of_record(&fields).map_or(Ok(()), Err),
        Line::Bad(..) => Ok(()),
    });
    by_line.err().or_else(|| of_record(&pick(whole(source)?, &NAMES).ok()?))
}

/// The text of a source that is one object.
pub(crate) fn whole(source: &[u8]) -> Option<&str> {
    let source = source.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source).trim_ascii();
    if !source.starts_with(b"{") || !source.ends_with(b"}") || lines::is_too_deep(source) {
        return None;
    }
    std::str::from_utf8(source).ok()
}

/// What a source that is not recognised looks like.
pub(crate) fn seen(source: &[u8]) -> String {
    if source.trim_ascii().is_empty() {
        return "it is empty".into();
    }
    let mut records = 0u64;
    let mut bad = None;
    let mut keys = None;
    let _ = lines::read(source, &[], |number, line| -> Result<(), ()> {
        match line {
            Line::Record { text, .. } => {
                records += 1;
                keys = keys.take().or_else(|| pal_model::fields(text).ok());
            }
            Line::Bad(_, problem) => bad = bad.take().or(Some((number, problem))),
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

/// Whose record this is, if it tells.
fn of_record(fields: &[Option<&str>; NAMES.len()]) -> Option<Format> {
    let has =
        |name: &str| NAMES.iter().position(|known| *known == name).is_some_and(|at| fields[at].is_some());
    let kind = fields[0].and_then(pal_model::unescape).unwrap_or_default();
    if has("v") && has("kind") && has("id") && has("at") {
        return Some(Format::Palimpsest);
    }
    if has("messages") && (has("trajectory_format") || has("info")) {
        return Some(Format::MiniSweAgent);
    }
    if has("projectHash") && has("sessionId") {
        return Some(Format::Gemini);
    }
    if has("payload") && has("timestamp") && !kind.is_empty() {
        return Some(Format::Codex);
    }
    if has("data") && has("id") && has("timestamp") && (has("parentId") || kind.starts_with("session.")) {
        return Some(Format::Copilot);
    }
    let is_claude = match kind.as_ref() {
        "summary" => has("leafUuid"),
        "file-history-snapshot" => has("snapshot"),
        "" => false,
        _ => has("sessionId"),
    };
    if is_claude {
        return Some(Format::Claude);
    }
    let is_pi = match kind.as_ref() {
        "session" => has("id") && has("timestamp") && has("cwd"),
        "message" => has("message") && has("timestamp"),
        _ => false,
    };
    is_pi.then_some(Format::Pi)
}
