//! What happened in the session, gathered from what the program printed and from its log.

use std::fs;
use std::path::PathBuf;

use pal_model::{Body, Boundary, DecisionKind, Entry, Text};
use serde_json::Value;

use super::exact::Shared;
use crate::failure::Failure;

/// The signal that no process survives or hears of.
pub(super) const SIGKILL: i32 = 9;

/// A tool result that went to disk.
pub(super) struct Spilled {
    /// Characters of the whole.
    pub(super) whole: usize,
    /// Characters that the model reads.
    pub(super) shown: usize,
    /// Whether it was condensed, instead of cut to its beginning.
    pub(super) is_condensed: bool,
    /// Tokens that it does not take.
    pub(super) tokens_freed: u64,
    /// Why, as the log says.
    pub(super) reason: String,
}

/// Old results that were cleared.
pub(super) struct Cleared {
    /// How many.
    pub(super) results: usize,
    /// Tokens that this took out of sight.
    pub(super) tokens_freed: u64,
    /// Why, as the log says.
    pub(super) reason: String,
}

/// A call that was carried out.
pub(super) struct Called {
    /// The tool.
    pub(super) name: String,
    /// Whether it failed.
    pub(super) is_error: bool,
}

/// What was seen of a kill and of the resume behind it.
pub(super) struct Killed {
    /// The signal that ended the process.
    pub(super) signal: Option<i32>,
    /// What the first request behind the kill shares with the last one before it.
    pub(super) shared: Shared,
    /// How often the tool was run.
    pub(super) runs: usize,
    /// Tokens of that request that were read from the cache.
    pub(super) read: u64,
}

/// What happened so far.
#[derive(Default)]
pub(super) struct Happened {
    /// The session.
    pub(super) session: String,
    /// Its log.
    pub(super) log: PathBuf,
    /// Bytes of the log that were looked at.
    offset: usize,
    pub(super) calls: Vec<Called>,
    pub(super) spills: Vec<Spilled>,
    pub(super) clears: Vec<Cleared>,
    pub(super) boundary: Option<Box<Boundary>>,
    /// What the last request for a summary took: tokens read from the cache, and all of its prompt.
    pub(super) summary: Option<(u64, u64)>,
    /// Falls of the reads, as they were told: tokens, reason.
    pub(super) falls: Vec<(u64, String)>,
    /// How long the session rested before the cold return.
    pub(super) rested_s: u64,
    /// Tokens read from the cache by the first request behind the rest.
    pub(super) read_after_rest: Option<u64>,
    pub(super) killed: Option<Killed>,
    /// Requests that begin with all of the one before, and all that have one before them.
    pub(super) extending: (usize, usize),
    /// Whether both tests gave what they had to: a failure, then none.
    pub(super) is_mended: bool,
}

/// Something that was decided about what the model sees.
pub(super) enum Decided {
    /// The newest of the spilled results.
    Spilled,
    /// The newest of the cleared ones.
    Cleared,
    /// The conversation was compacted.
    Compacted,
}

impl Happened {
    /// Reads what the log has got since the last look.
    pub(super) fn look(&mut self) -> Result<Vec<Decided>, Failure> {
        let bytes = match self.log.as_os_str().is_empty() {
            true => Vec::new(),
            false => fs::read(&self.log).map_err(|error| Failure::of_file(&self.log, &error))?,
        };
        let fresh = bytes.get(self.offset..).unwrap_or_default();
        // The last line may be half written.
        let end = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut decided = Vec::new();
        for line in fresh[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry = Entry::parse(Text::from(String::from_utf8_lossy(line).into_owned()));
            decided.extend(entry.ok().and_then(|entry| self.take(&entry)));
        }
        self.offset += end;
        Ok(decided)
    }

    fn take(&mut self, entry: &Entry) -> Option<Decided> {
        let decision = match &entry.body {
            Body::Decision(decision) => decision,
            Body::Response(response) if !response.source.is_conversation() => {
                let usage = &response.usage;
                let read = usage.cache_read_input_tokens;
                let all = read + usage.cache_creation_input_tokens + usage.input_tokens;
                self.summary = Some((read, all));
                return None;
            }
            Body::Boundary(boundary) => {
                self.boundary = Some(boundary.clone());
                return Some(Decided::Compacted);
            }
            _ => return None,
        };
        let (reason, tokens_freed) = (decision.reason.clone(), decision.cost.tokens_freed);
        match &decision.kind {
            DecisionKind::Spill { path, text, .. } => {
                let file = self.log.parent().map(|folder| folder.join(path));
                let whole = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
                self.spills.push(Spilled {
                    whole: whole.chars().count(),
                    shown: text.chars().count(),
                    is_condensed: reason.ends_with("is condensed"),
                    tokens_freed,
                    reason,
                });
                Some(Decided::Spilled)
            }
            DecisionKind::Clear { tool_use_ids, .. } => {
                self.clears.push(Cleared { results: tool_use_ids.len(), tokens_freed, reason });
                Some(Decided::Cleared)
            }
            _ => None,
        }
    }

    /// Takes what the program says of itself when it begins.
    pub(super) fn began(&mut self, line: &Value) {
        let string = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        self.session = string("session_id");
        self.log = PathBuf::from(string("transcript_path"));
    }

    /// The files that the compaction put back, by their names in the project.
    pub(super) fn restored(&self) -> Vec<String> {
        let Some(boundary) = &self.boundary else { return Vec::new() };
        let texts = boundary.restored.blocks().iter().filter_map(|block| block.string("text"));
        let path = |text: &str| Some(text.strip_prefix("[File `")?.split_once('`')?.0.to_owned());
        let name =
            |path: String| path.split_once("/tidebook/").map_or(path.clone(), |(_, name)| name.to_owned());
        texts.filter_map(|text| path(&text)).map(name).collect()
    }

    /// What was promised and not seen.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let audit = self.boundary.as_ref().and_then(|boundary| boundary.audit.as_ref());
        let is_kept = audit.is_some_and(|audit| {
            let kept = audit.user_messages_verbatim + audit.user_messages_repaired;
            audit.user_messages > 0 && kept == audit.user_messages
        });
        let killed = self.killed.as_ref();
        let did_edit_on = self.calls.iter().filter(|call| call.name == "Edit" && !call.is_error).count() == 2;
        let promises = [
            ("tools that worked on real files", self.is_mended),
            ("a long result that went to disk", self.spills.iter().any(|spill| !spill.is_condensed)),
            ("a verbose result that was condensed", self.spills.iter().any(|spill| spill.is_condensed)),
            ("a cold return", self.read_after_rest == Some(0)),
            ("old results that were cleared", self.clears.iter().any(|clear| clear.results > 0)),
            ("a compaction", self.boundary.is_some()),
            ("every word of the user in its summary", is_kept),
            (
                "files that were put back, and edited without another look",
                did_edit_on && !self.restored().is_empty(),
            ),
            ("a kill in the middle of a tool", killed.is_some_and(|killed| killed.signal == Some(SIGKILL))),
            ("a resume that sends the same bytes", killed.is_some_and(|killed| killed.shared.is_exact())),
            ("a tool that was not run twice", killed.is_some_and(|killed| killed.runs == 1)),
        ];
        promises.iter().filter(|(_, is_seen)| !is_seen).map(|(what, _)| *what).collect()
    }
}
