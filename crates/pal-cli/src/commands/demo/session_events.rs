//! Events of the demo session, collected from the output of the program and from its log.

use std::fs;
use std::path::PathBuf;

use pal_model::{Boundary, DecisionKind, EntryBody, LogEntry, SharedText};
use serde_json::Value;

use super::request_prefix::CommonPrefix;
use crate::failure::Failure;

/// Signal that no process can catch.
pub(super) const SIGKILL: i32 = 9;

/// A tool result spilled to disk.
pub(super) struct SpillEvent {
    /// Characters of the whole result.
    pub(super) whole: usize,
    /// Characters that the model reads.
    pub(super) shown: usize,
    /// The result was condensed instead of truncated.
    pub(super) is_condensed: bool,
    /// Tokens that this freed.
    pub(super) tokens_freed: u64,
    /// Reason in the log.
    pub(super) reason: String,
}

/// Old tool results that were cleared together.
pub(super) struct ClearEvent {
    /// Number of results.
    pub(super) results: usize,
    /// Tokens that this freed.
    pub(super) tokens_freed: u64,
    /// Reason in the log.
    pub(super) reason: String,
}

/// An executed tool call.
pub(super) struct CallEvent {
    /// Name of the tool.
    pub(super) name: String,
    /// The call failed.
    pub(super) is_error: bool,
}

/// A kill and the resume after it.
pub(super) struct KillEvent {
    /// Signal that ended the process.
    pub(super) signal: Option<i32>,
    /// Common prefix of the last request before the kill and the first one after it.
    pub(super) shared: CommonPrefix,
    /// Number of runs of the tool.
    pub(super) runs: usize,
    /// Tokens of that request that were read from the cache.
    pub(super) read: u64,
}

/// Events of the demo session so far.
#[derive(Default)]
pub(super) struct SessionEvents {
    /// Id of the session.
    pub(super) session: String,
    /// Path of its log.
    pub(super) log: PathBuf,
    /// Bytes of the log that were read.
    offset: usize,
    pub(super) calls: Vec<CallEvent>,
    pub(super) spills: Vec<SpillEvent>,
    pub(super) clears: Vec<ClearEvent>,
    pub(super) boundary: Option<Box<Boundary>>,
    /// Last summary request: tokens read from the cache, and all prompt tokens.
    pub(super) summary: Option<(u64, u64)>,
    /// Reported cache-read drops: tokens, reason.
    pub(super) falls: Vec<(u64, String)>,
    /// Pause of the session, in seconds.
    pub(super) rested_s: u64,
    /// Tokens read from the cache by the first request after the pause.
    pub(super) read_after_rest: Option<u64>,
    pub(super) killed: Option<KillEvent>,
    /// Requests that start with all of the previous one, and all requests that have a previous one.
    pub(super) extending: (usize, usize),
    /// The test failed before the fix and passed after it.
    pub(super) is_mended: bool,
}

/// A decision about the context.
pub(super) enum ContextDecision {
    /// A result was spilled.
    Spilled,
    /// Results were cleared.
    Cleared,
    /// The conversation was compacted.
    Compacted,
}

impl SessionEvents {
    /// Reads the new entries of the log.
    pub(super) fn read_new_entries(&mut self) -> Result<Vec<ContextDecision>, Failure> {
        let bytes = match self.log.as_os_str().is_empty() {
            true => Vec::new(),
            false => fs::read(&self.log).map_err(|error| Failure::of_file(&self.log, &error))?,
        };
        let fresh = bytes.get(self.offset..).unwrap_or_default();
        // The last line may be incomplete.
        let end = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut decided = Vec::new();
        for line in fresh[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let entry = LogEntry::parse(SharedText::from(String::from_utf8_lossy(line).into_owned()));
            decided.extend(entry.ok().and_then(|entry| self.add_entry(&entry)));
        }
        self.offset += end;
        Ok(decided)
    }

    fn add_entry(&mut self, entry: &LogEntry) -> Option<ContextDecision> {
        let decision = match &entry.body {
            EntryBody::Decision(decision) => decision,
            EntryBody::Response(response) if !response.source.is_conversation() => {
                let usage = &response.usage;
                let read = usage.cache_read_input_tokens;
                let all = read + usage.cache_creation_input_tokens + usage.input_tokens;
                self.summary = Some((read, all));
                return None;
            }
            EntryBody::Boundary(boundary) => {
                self.boundary = Some(boundary.clone());
                return Some(ContextDecision::Compacted);
            }
            _ => return None,
        };
        let (reason, tokens_freed) = (decision.reason.clone(), decision.cost.tokens_freed);
        match &decision.kind {
            DecisionKind::Spill { path, text, .. } => {
                let file = self.log.parent().map(|folder| folder.join(path));
                let whole = file.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
                self.spills.push(SpillEvent {
                    whole: whole.chars().count(),
                    shown: text.chars().count(),
                    is_condensed: reason.ends_with("is condensed"),
                    tokens_freed,
                    reason,
                });
                Some(ContextDecision::Spilled)
            }
            DecisionKind::Clear { tool_use_ids, .. } => {
                self.clears.push(ClearEvent { results: tool_use_ids.len(), tokens_freed, reason });
                Some(ContextDecision::Cleared)
            }
            _ => None,
        }
    }

    /// Reads the init line of the program.
    pub(super) fn read_init(&mut self, line: &Value) {
        let string = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        self.session = string("session_id");
        self.log = PathBuf::from(string("transcript_path"));
    }

    /// Lists the files that the compaction restored, by their paths in the project.
    pub(super) fn restored(&self) -> Vec<String> {
        let Some(boundary) = &self.boundary else { return Vec::new() };
        let texts = boundary.restored.blocks().iter().filter_map(|block| block.string("text"));
        let path = |text: &str| Some(text.strip_prefix("[File `")?.split_once('`')?.0.to_owned());
        let name =
            |path: String| path.split_once("/tidebook/").map_or(path.clone(), |(_, name)| name.to_owned());
        texts.filter_map(|text| path(&text)).map(name).collect()
    }

    /// Lists the promises that were not seen.
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
