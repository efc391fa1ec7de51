//! Summary of a session for a list, read from its log in one pass.
//!
//! The whole log is scanned, because costs stand all over it, abandoned branches included. But only the lines that matter are
//! parsed as JSON; the others are only checked to start and end like entries.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use pal_model::text::one_line;
use pal_model::{
    BlockType, DecisionKind, EntryBody, EntryId, LogEntry, MessageOrigin, ModelCatalog, RequestSource,
    ResponseRecord, SessionStart, SharedText, Timestamp, UsageBasis, UsageTotals,
};
use pal_secrets::mask_secrets;
use smol_str::SmolStr;

/// Size of the read buffer.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes within which the kind of an entry appears: ids, offsets and times have a bounded length.
const HEAD_BYTES: usize = 400;
/// Prompts that are tried as a title.
const TRIED_PROMPTS_MAX: usize = 20;
/// Maximum characters of a title.
const TITLE_CHARS_MAX: usize = 200;

/// Summary of a session's log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionDigest {
    /// First entry of the session.
    pub session: Option<SessionStart>,
    /// Title, else the start of the first prompt.
    pub title: Option<String>,
    /// Time of the last entry.
    pub last: Option<Timestamp>,
    /// Entries of the log, abandoned branches included.
    pub entries: u64,
    /// Size of the log in bytes.
    pub bytes: u64,
    /// Model that answered or was chosen last.
    pub model: Option<SmolStr>,
    /// Responses of the simulator.
    pub simulated: u64,
    /// Responses whose output tokens are estimated, because their transcript has only a placeholder.
    pub estimated: u64,
    /// Simulated cost in US dollars; not part of `spent`.
    pub simulated_cost: f64,
    /// Usage and cost; the cost counts only if some price is known.
    pub spent: UsageTotals,
    /// Responses whose price is known.
    pub priced: u64,
    /// Responses that add no cost.
    pub gaps: ResponseGaps,
    /// First problem of the log.
    pub problem: Option<String>,
    /// Lines that could not be read.
    pub bad_lines: u64,
}

/// Responses whose cost is not in a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResponseGaps {
    /// Responses that reported usage but have no known price.
    pub unpriced: u64,
    /// Responses that reported no usage.
    pub unreported: u64,
    /// Responses that another session counts, because a fork starts as a copy of its log.
    pub copied: u64,
}

impl SessionDigest {
    /// Reads a log in one pass. It may be written meanwhile; a problem is noted, not returned.
    pub fn read(log: &Path, cards: &ModelCatalog) -> SessionDigest {
        SessionDigest::read_uncounted(log, cards, &mut HashSet::new())
    }

    /// Reads a log as [`SessionDigest::read`] does, and adds its responses to those counted so far. A response that is
    /// among them already adds no usage and no cost.
    pub(super) fn read_uncounted(
        log: &Path,
        cards: &ModelCatalog,
        counted: &mut HashSet<EntryId>,
    ) -> SessionDigest {
        let mut pass = LogScan {
            cards,
            counted,
            digest: SessionDigest::default(),
            prompt: None,
            prompts: 0,
            asked: HashMap::new(),
            head: Vec::new(),
        };
        if let Err(error) = pass.read(log) {
            pass.digest.problem = Some(error.to_string());
        }
        pass.finish()
    }

    /// Returns the cost in US dollars; none if no price is known.
    pub fn cost(&self) -> Option<f64> {
        (self.priced > 0).then_some(self.spent.cost)
    }

    /// Returns all tokens of prompts and responses.
    pub fn tokens(&self) -> u64 {
        self.spent.tokens()
    }
}

/// State of the pass over a log.
struct LogScan<'a> {
    cards: &'a ModelCatalog,
    /// Responses that count already.
    counted: &'a mut HashSet<EntryId>,
    digest: SessionDigest,
    /// Prompt that stands in for a missing title.
    prompt: Option<String>,
    prompts: usize,
    /// Requested models by request source: some responses do not name their model.
    asked: HashMap<RequestSource, SmolStr>,
    /// Start of the last good line.
    head: Vec<u8>,
}

impl LogScan<'_> {
    fn read(&mut self, log: &Path) -> std::io::Result<()> {
        let file = File::open(log)?;
        self.digest.bytes = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut line = Vec::new();
        let mut number = 0;
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            number += 1;
            let is_whole = line.ends_with(b"\n");
            let text = line.trim_ascii_end();
            if let Err(why) = self.line(text) {
                self.digest.bad_lines += 1;
                let why = if is_whole { why } else { String::from("the last line is torn") };
                self.digest.problem.get_or_insert(format!("line {number}: {why}"));
            }
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        let head = &line[..line.len().min(HEAD_BYTES)];
        let kind = text_of(head, b"\"kind\":\"");
        let is_plain = line.starts_with(b"{\"v\":1,") && line.ends_with(b"}");
        let matters = match kind {
            Some(b"user") => self.prompts < TRIED_PROMPTS_MAX && self.prompt.is_none(),
            Some(kind) => {
                matches!(kind, b"session" | b"request" | b"response" | b"title" | b"model")
            }
            None => true,
        };
        if matters || !is_plain {
            let text = std::str::from_utf8(line).map_err(|_| String::from("not UTF-8"))?;
            self.entry(&LogEntry::parse(SharedText::from(text)).map_err(|error| error.to_string())?);
        }
        self.digest.entries += 1;
        self.head.clear();
        self.head.extend_from_slice(head);
        Ok(())
    }

    fn entry(&mut self, entry: &LogEntry) {
        match &entry.body {
            EntryBody::Session(session) => match &mut self.digest.session {
                None => {
                    self.digest.title =
                        session.title.as_deref().filter(|title| !title.trim().is_empty()).map(title_line);
                    self.digest.session = Some(session.clone());
                }
                // A fork continues the session in another directory.
                Some(first) if session.cwd.is_some() => first.cwd.clone_from(&session.cwd),
                Some(_) => {}
            },
            EntryBody::User(user) if user.origin == MessageOrigin::Person => self.prompt(entry),
            EntryBody::Request(request) => {
                self.asked.insert(request.source.clone(), request.model.clone());
                self.model(&request.source, &request.model);
            }
            EntryBody::Response(response) => {
                let is_copy = !self.counted.insert(entry.id);
                self.response(response, entry.at, is_copy);
            }
            EntryBody::Decision(decision) => match &decision.kind {
                DecisionKind::Title { title } if !title.trim().is_empty() => {
                    self.digest.title = Some(title_line(title));
                }
                DecisionKind::Model { model } => self.model(&RequestSource::main(), model),
                _ => {}
            },
            _ => {}
        }
    }

    fn model(&mut self, source: &RequestSource, model: &SmolStr) {
        if source.is_conversation() && !model.is_empty() {
            self.digest.model = Some(model.clone());
        }
    }

    /// Adds the usage and cost of a response, as the ledger counts them.
    fn response(&mut self, response: &ResponseRecord, at: Timestamp, is_copy: bool) {
        let asked = self.asked.remove(&response.source).unwrap_or_default();
        let model = if response.model.is_empty() { asked } else { response.model.clone() };
        if is_copy {
            self.digest.gaps.copied += 1;
            self.model(&response.source, &model);
            return;
        }
        let usage = &response.usage;
        let is_reported = usage.has_prompt();
        self.digest.gaps.unreported += u64::from(!is_reported);
        let cost =
            response.cost.or_else(|| self.cards.find_at(&model, at).card.cost(usage)).filter(|_| is_reported);
        if usage.basis == UsageBasis::Simulated {
            // Simulated money is shown by itself.
            self.digest.spent.add(usage, None);
            self.digest.simulated_cost += cost.unwrap_or(0.0);
            self.digest.simulated += 1;
            self.model(&response.source, &model);
            return;
        }
        self.digest.spent.add(usage, cost);
        self.digest.estimated += u64::from(usage.basis == UsageBasis::Estimated);
        self.digest.priced += u64::from(cost.is_some());
        self.digest.gaps.unpriced += u64::from(is_reported && cost.is_none());
        self.model(&response.source, &model);
    }

    /// Takes a prompt as a title, unless it starts with a tag and so was written by a program.
    fn prompt(&mut self, entry: &LogEntry) {
        let EntryBody::User(user) = &entry.body else { return };
        self.prompts += 1;
        let texts = user.content.blocks().iter().filter(|block| block.kind() == BlockType::Text);
        let text = texts.filter_map(|block| block.string("text")).find(|text| !text.trim().is_empty());
        if let Some(text) = text.filter(|text| !text.trim_start().starts_with('<')) {
            self.prompt = Some(title_line(&text));
        }
    }

    fn finish(mut self) -> SessionDigest {
        let at = text_of(&self.head, b"\"at\":\"").and_then(|at| std::str::from_utf8(at).ok());
        self.digest.last = at.and_then(|at| at.parse().ok());
        self.digest.title = self.digest.title.or(self.prompt);
        self.digest
    }
}

/// Finds the value of a JSON string member by its label, if it has no escapes.
fn text_of<'a>(head: &'a [u8], label: &[u8]) -> Option<&'a [u8]> {
    let from = memchr::memmem::find(head, label)? + label.len();
    let rest = &head[from..];
    Some(&rest[..memchr::memchr(b'"', rest)?])
}

/// Returns a title in one line of bounded length, with its secrets masked: lists of sessions are shown and pasted elsewhere.
fn title_line(text: &str) -> String {
    one_line(&mask_secrets(text).text).chars().take(TITLE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_shows_no_secret() {
        let title = title_line("connect to postgres://app:s3cr3t-Pa55@db.internal/app\nand list the tables");
        assert!(!title.contains("s3cr3t"), "{title}");
        assert!(
            title.starts_with("connect to postgres://app:[secret: ") && title.ends_with("list the tables"),
            "{title}"
        );
    }
}
