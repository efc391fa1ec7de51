//! A recorded session: its messages, and the answer to each request.

use pal_model::{
    BlockType, Content, ContentBlock, EntryBody, LogEntry, MessageOrigin, ResponseId, ResponseRecord,
    Timestamp, Usage,
};
use pal_sim::{ModelOutput, OutputBlock, StopOverride};
use pal_view::CacheTtl;
use rustc_hash::FxHashMap;

/// A recorded session.
#[derive(Clone, Debug)]
pub struct RecordedSession {
    name: String,
    entries: Vec<LogEntry>,
    /// The requests of the conversation, by where they stand.
    calls: FxHashMap<usize, RecordedCall>,
}

/// A recorded request of the conversation.
#[derive(Clone, Debug)]
pub(crate) struct RecordedCall {
    /// When it started.
    pub(crate) started: Timestamp,
    /// The response to it, if one came.
    pub(crate) response: Option<ResponseId>,
    /// Its usage; none if it was not recorded.
    pub(crate) usage: Option<Usage>,
    /// For how long it asked the cache to remember.
    pub(crate) lifetime: CacheTtl,
    /// Answer of the model.
    pub(crate) answer: ModelOutput,
}

impl RecordedSession {
    /// For how long the recorded client's marks last at first.
    pub(crate) fn lifetime(&self) -> CacheTtl {
        first_lifetime(&self.entries)
    }

    /// Reads the entries of one branch of a log, in order.
    pub fn new(name: impl Into<String>, entries: Vec<LogEntry>) -> RecordedSession {
        let responses = responses(&entries);
        let said = answers(&entries);
        let starts = starts(&entries);
        let mut calls = FxHashMap::default();
        let mut lifetime = first_lifetime(&entries);
        for (at, entry) in entries.iter().enumerate() {
            if !is_request(entry) {
                continue;
            }
            let response = response_to(&entries, at);
            let got = response.as_ref().and_then(|id| responses.get(id.as_str()));
            let usage = got.map(|got| got.usage.clone()).filter(Usage::has_prompt);
            lifetime = usage.as_ref().and_then(written_for).unwrap_or(lifetime);
            let blocks = response.as_ref().and_then(|id| said.get(id.as_str())).cloned().unwrap_or_default();
            let answer = ModelOutput { blocks, stop: got.and_then(|got| stop(got)) };
            let started = starts.get(&at).copied().unwrap_or(entry.at);
            calls.insert(at, RecordedCall { started, response, usage, lifetime, answer });
        }
        RecordedSession { name: name.into(), entries, calls }
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The entries.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// The newest call before a position.
    pub(crate) fn last_call_before(&self, at: usize) -> Option<&RecordedCall> {
        (0..at.min(self.entries.len())).rev().find_map(|at| self.calls.get(&at))
    }

    /// Number of requests of the conversation.
    pub(crate) fn call_count(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn call(&self, at: usize) -> Option<&RecordedCall> {
        self.calls.get(&at)
    }

    /// The blocks of a response.
    pub(crate) fn blocks_of<'a>(
        &'a self,
        response: &'a ResponseId,
    ) -> impl Iterator<Item = &'a ContentBlock> {
        let records = self.entries.iter().filter_map(move |entry| match &entry.body {
            EntryBody::Assistant(assistant) if assistant.response.as_ref() == Some(response) => {
                Some(assistant)
            }
            _ => None,
        });
        records.flat_map(|assistant| assistant.content.blocks())
    }

    /// The models that the requests ask, in order.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|entry| match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() && !request.model.is_empty() => {
                Some(request.model.as_str())
            }
            _ => None,
        })
    }

    /// Model of the newest request before a position, else of the first.
    pub(crate) fn model_before(&self, at: usize) -> Option<String> {
        let model = |entry: &LogEntry| match &entry.body {
            EntryBody::Request(request) if request.source.is_conversation() && !request.model.is_empty() => {
                Some(request.model.to_string())
            }
            _ => None,
        };
        let before = self.entries.get(..at)?.iter().rev().find_map(model);
        before.or_else(|| self.models().next().map(str::to_owned))
    }

    /// All user messages: their positions and texts.
    pub(crate) fn said_by_people(&self) -> impl Iterator<Item = (&LogEntry, Vec<String>)> {
        self.entries.iter().filter_map(|entry| match &entry.body {
            EntryBody::User(user) if user.origin == MessageOrigin::Person => {
                Some((entry, texts(&user.content)))
            }
            _ => None,
        })
    }
}

/// The texts of a content.
pub(crate) fn texts(content: &Content) -> Vec<String> {
    let text = |block: &ContentBlock| match block.kind() {
        // The provider's own summary.
        BlockType::Compaction => block.string("content").map(|text| text.into_owned()),
        _ => block.string("text").map(|text| text.into_owned()),
    };
    content.blocks().iter().filter_map(text).collect()
}

fn is_request(entry: &LogEntry) -> bool {
    matches!(&entry.body, EntryBody::Request(request) if request.source.is_conversation())
}

fn responses(entries: &[LogEntry]) -> FxHashMap<&str, &ResponseRecord> {
    let got = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::Response(got) if got.source.is_conversation() => Some((got.response.as_str(), got)),
        _ => None,
    });
    got.collect()
}

/// Content of each response, in order.
fn answers(entries: &[LogEntry]) -> FxHashMap<&str, Vec<OutputBlock>> {
    let mut answers: FxHashMap<&str, Vec<OutputBlock>> = FxHashMap::default();
    for entry in entries {
        if let EntryBody::Assistant(assistant) = &entry.body
            && let Some(id) = &assistant.response
        {
            let blocks = assistant.content.blocks().iter().filter_map(OutputBlock::from_recorded);
            answers.entry(id.as_str()).or_default().extend(blocks);
        }
    }
    answers
}

/// When each request started. One that bears the time of its answer was imported from a file that dates answers only:
/// there the newest thing said before it tells. Never before an earlier request.
fn starts(entries: &[LogEntry]) -> FxHashMap<usize, Timestamp> {
    let mut starts = FxHashMap::default();
    let mut newest: Option<Timestamp> = None;
    let mut last: Option<Timestamp> = None;
    for (at, entry) in entries.iter().enumerate() {
        match &entry.body {
            EntryBody::User(_)
            | EntryBody::Attachment(_)
            | EntryBody::Assistant(_)
            | EntryBody::Boundary(_) => {
                newest = newest.max(Some(entry.at));
            }
            EntryBody::Request(request) if request.source.is_conversation() => {
                let is_dated_by_answer =
                    first_record(entries, at).is_some_and(|record| record.at == entry.at);
                let said = newest.filter(|_| is_dated_by_answer);
                let started = said.map_or(entry.at, |said| said.min(entry.at));
                let started = last.map_or(started, |last| last.max(started));
                last = Some(started);
                starts.insert(at, started);
            }
            _ => {}
        }
    }
    starts
}

/// First record of the answer to the request at a position, or the end of that answer if it has none.
fn first_record(entries: &[LogEntry], request: usize) -> Option<&LogEntry> {
    let following = entries.get(request + 1..)?;
    following.iter().take_while(|entry| !is_request(entry)).find(|entry| match &entry.body {
        EntryBody::Assistant(assistant) => assistant.response.is_some(),
        EntryBody::Response(got) => got.source.is_conversation(),
        _ => false,
    })
}

/// Response to the request at a position.
fn response_to(entries: &[LogEntry], request: usize) -> Option<ResponseId> {
    match &first_record(entries, request)?.body {
        EntryBody::Assistant(assistant) => assistant.response.clone(),
        EntryBody::Response(got) => Some(got.response.clone()),
        _ => None,
    }
}

/// TTL of the cache write that a response reports.
fn written_for(usage: &Usage) -> Option<CacheTtl> {
    let written = usage.cache_creation?;
    match (written.ephemeral_5m_input_tokens, written.ephemeral_1h_input_tokens) {
        (0, 0) => None,
        (short, long) if long >= short => Some(CacheTtl::Hour1),
        _ => Some(CacheTtl::Minutes5),
    }
}

/// TTL of the first requests, if they only read.
fn first_lifetime(entries: &[LogEntry]) -> CacheTtl {
    let written = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Response(got) if got.source.is_conversation() => written_for(&got.usage),
        _ => None,
    });
    written.unwrap_or_default()
}

fn stop(got: &ResponseRecord) -> Option<StopOverride> {
    match got.stop_reason.as_deref()? {
        "max_tokens" => Some(StopOverride::MaxTokens),
        "pause_turn" => Some(StopOverride::PauseTurn),
        "refusal" => Some(StopOverride::Refusal),
        "model_context_window_exceeded" => Some(StopOverride::WindowExceeded),
        _ => None,
    }
}
