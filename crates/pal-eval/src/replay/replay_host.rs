//! Engine host of a replay: model calls go to the simulator, file reads to the recording.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use pal_context::{
    CompactionRequest, FileRequest, RestoredFile, SummaryMethod, SummaryQuestion, SummaryReply, VisibleCall,
};
use pal_engine::{
    CompactionInputs, CompactionObserver, FileReader, ModelClient, ModelResponse, Notifier, OutgoingRequest,
    RequestOutcome, SessionConfig, SummaryExchange, TimeSource,
};
use pal_model::{
    BlockType, Boundary, ContentBlock, EntryBody, LogEntry, ModelCard, ResponseId, Timestamp, ToolKind,
    ToolUseId, unescape,
};
use pal_sim::{ModelOutput, OutputBlock};
use pal_view::{Request, View};
use smol_str::SmolStr;

use crate::replay::note_keeper::{ReplayNoteKeeper, full_summary};
use crate::replay::recorded_session::{RecordedCall, RecordedSession, texts};
use crate::replay::replay_options::ReplaySummarizer;
use crate::replay::replay_provider::{CacheReading, ReplayProvider, ReplayResponse};

/// Messages whose ends the recorded clients mark.
pub(crate) const MARKED_MESSAGES: usize = 2;

/// Roles of the engine for one request.
pub(crate) struct ReplayHost<'a> {
    pub(crate) provider: &'a mut ReplayProvider,
    pub(crate) card: &'a ModelCard,
    pub(crate) recorded: &'a RecordedSession,
    /// Where in the recording the request stands.
    pub(crate) at: usize,
    pub(crate) called: &'a RecordedCall,
    pub(crate) compact_with: ReplaySummarizer,
    pub(crate) engine: &'a SessionConfig,
    /// Session notes; none if there are none.
    pub(crate) keeper: Option<&'a mut ReplayNoteKeeper>,
    /// When the request leaves.
    pub(crate) now: Timestamp,
    /// Full summaries of the ranges that notes replace.
    pub(crate) full: Vec<Boundary>,
    /// Sent requests, in order.
    pub(crate) exchanges: Vec<ReplayedRequest>,
    /// Notices for the user.
    pub(crate) notices: Vec<String>,
    /// Time that the provider took.
    pub(crate) waited: Duration,
}

/// A sent request and its response.
pub(crate) struct ReplayedRequest {
    pub(crate) body: String,
    pub(crate) replied: ReplayResponse,
}

impl ReplayHost<'_> {
    fn exchange(
        &mut self,
        now: Timestamp,
        request: &Request,
        betas: &[SmolStr],
        answer: Option<ModelOutput>,
    ) -> (ReplayResponse, CacheReading) {
        let call = self.provider.call(request, betas, self.card);
        let body = call.body.to_joined_string();
        let start = Instant::now();
        let (replied, read) = self.provider.ask_and_read(now, &call, &body, answer);
        self.waited += start.elapsed();
        self.exchanges.push(ReplayedRequest { body, replied: replied.clone() });
        (replied, read)
    }

    /// The summary that the recording has next, or had last.
    fn recorded_summary(&self) -> Option<String> {
        let summary = |entry: &pal_model::LogEntry| match &entry.body {
            EntryBody::Boundary(boundary) if boundary.has_summary() => {
                Some(texts(&boundary.summary).join("\n"))
            }
            _ => None,
        };
        let (before, after) = self.recorded.entries().split_at(self.at);
        after.iter().find_map(summary).or_else(|| before.iter().rev().find_map(summary))
    }
}

impl ModelClient for ReplayHost<'_> {
    fn send(&mut self, outgoing: &OutgoingRequest<'_>) -> RequestOutcome {
        let request = self.provider.asking_why(outgoing.request.clone(), self.card);
        let answer = Some(self.called.answer.clone());
        let (replied, read) = self.exchange(outgoing.now, &request, outgoing.betas, answer);
        replied.exchange.iter().for_each(|exchange| self.provider.answered(exchange));
        match replied.exchange {
            Some(exchange) => RequestOutcome::Answered(ModelResponse {
                response: ResponseId::from(exchange.response.as_str()),
                model: exchange.model.as_str().into(),
                blocks: Vec::new(),
                usage: exchange.usage,
                cost: exchange.cost,
                stop_reason: Some(exchange.stop_reason.as_str().into()),
                cleared_tokens: read.cleared_tokens,
                cache_miss: read.cache_miss,
            }),
            None => match replied.too_long {
                Some(overflow) => {
                    RequestOutcome::TooLong { overflow, message: replied.refusal.unwrap_or_default() }
                }
                None => RequestOutcome::Failed(replied.refusal.unwrap_or_default()),
            },
        }
    }

    fn ask(&mut self, question: &SummaryQuestion, betas: &[SmolStr], now: Timestamp) -> SummaryExchange {
        let answer = match self.compact_with {
            ReplaySummarizer::Extractive => None,
            ReplaySummarizer::Recorded => self.recorded_summary().map(|text| {
                let text = match question.method {
                    SummaryMethod::Provider => text,
                    _ => format!("<summary>\n{text}\n</summary>"),
                };
                ModelOutput { blocks: vec![OutputBlock::Text(text)], stop: None }
            }),
        };
        let (replied, read) = self.exchange(now, &question.request, betas, answer);
        let Some(exchange) = replied.exchange else {
            let message = replied.refusal.unwrap_or_default();
            let reply = match replied.too_long {
                Some(overflow) => SummaryReply::TooLong(overflow),
                None => SummaryReply::Failed(message),
            };
            return SummaryExchange { reply, answered: None };
        };
        let reply = SummaryReply::of_answer(read.blocks, Some(exchange.stop_reason.as_str()));
        let answered = Some((ResponseId::from(exchange.response.as_str()), exchange.usage, exchange.cost));
        SummaryExchange { reply, answered }
    }
}

impl FileReader for ReplayHost<'_> {
    fn read_file(&mut self, wanted: &FileRequest) -> RestoredFile {
        recorded_file(&self.recorded.entries()[..self.at], wanted)
    }
}

/// The newest text of a file that a recording had shown or written by the end of `entries`; of a part, if it had shown a part.
pub(crate) fn recorded_file(entries: &[LogEntry], wanted: &FileRequest) -> RestoredFile {
    let mut first_line = 1;
    let text = entries.iter().enumerate().rev().find_map(|(at, entry)| {
        let EntryBody::Assistant(assistant) = &entry.body else { return None };
        let calls = assistant.content.blocks().iter().rev();
        calls.filter(|block| block.kind() == BlockType::ToolUse).find_map(|block| {
            let call = VisibleCall::read(block)?;
            if call.path()? != wanted.path {
                return None;
            }
            match call.kind? {
                ToolKind::Read => {
                    let text = result(&entries[at..], block.tool_use_id()?)?;
                    let line = call.member("offset").and_then(|raw| raw.parse().ok());
                    first_line = line.unwrap_or(1).max(1);
                    Some(text)
                }
                ToolKind::Write => call.member("content").and_then(unescape).map(Cow::into_owned),
                _ => None,
            }
        })
    });
    let text = text.map(|text| text[..text.floor_char_boundary(wanted.bytes_max)].to_owned());
    RestoredFile { path: wanted.path.clone(), text, first_line, seen: None }
}

impl Notifier for ReplayHost<'_> {
    fn notice(&mut self, line: &str) {
        self.notices.push(line.to_owned());
    }
}

impl TimeSource for ReplayHost<'_> {}

impl CompactionObserver for ReplayHost<'_> {
    fn before_compaction(&mut self, order: &CompactionRequest, view: &View) -> CompactionInputs {
        let now = self.now;
        let notes = self.keeper.as_mut().and_then(|keeper| keeper.for_compaction(now));
        if notes.is_some() {
            self.full.extend(full_summary(order, view, self.engine));
        }
        CompactionInputs { notes, ..CompactionInputs::default() }
    }
}

/// The text of the result of a call, if it has any.
fn result(entries: &[LogEntry], id: &ToolUseId) -> Option<String> {
    let results = entries.iter().filter_map(|entry| match &entry.body {
        EntryBody::User(user) => Some(user.content.blocks()),
        _ => None,
    });
    let is_result =
        |block: &&ContentBlock| block.kind() == BlockType::ToolResult && block.tool_use_id() == Some(id);
    let text = texts(&results.flatten().find(is_result)?.content()).join("\n");
    (!text.is_empty()).then_some(text)
}
