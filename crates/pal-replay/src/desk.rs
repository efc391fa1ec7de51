//! Errands of the engine in a replay: the simulator is the provider, the recording is the disk.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use pal_context::{Call, FileRead, FileWanted, How, Order, Question, Reply};
use pal_engine::{Answered, Asked, BeforeCompaction, Engine, Errands, Outcome, Outgoing};
use pal_model::{
    Block, BlockType, Body, Boundary, Card, Entry, ResponseId, Timestamp, ToolKind, ToolUseId, unescape,
};
use pal_sim::{Answer, Said};
use pal_view::{Request, View};
use smol_str::SmolStr;

use crate::notes::{Keeper, full_summary};
use crate::options::CompactWith;
use crate::provider::{Provider, Read, Replied};
use crate::recorded::{Called, Recorded, texts};

/// Messages whose ends the recorded clients mark.
pub(crate) const MARKED_MESSAGES: usize = 2;

/// Whoever runs the errands of one request.
pub(crate) struct Desk<'a> {
    pub(crate) provider: &'a mut Provider,
    pub(crate) card: &'a Card,
    pub(crate) recorded: &'a Recorded,
    /// Where in the recording the request stands.
    pub(crate) at: usize,
    pub(crate) called: &'a Called,
    pub(crate) compact_with: CompactWith,
    pub(crate) engine: &'a Engine,
    /// Notes of the session; none if nobody keeps any.
    pub(crate) keeper: Option<&'a mut Keeper>,
    /// When the request leaves.
    pub(crate) now: Timestamp,
    /// What whole summaries of the stretches would be that notes stand for.
    pub(crate) full: Vec<Boundary>,
    /// What left, in order.
    pub(crate) exchanges: Vec<Sending>,
    /// What the user would have been told.
    pub(crate) notices: Vec<String>,
    /// Time that the provider took.
    pub(crate) waited: Duration,
}

/// A request that left, and what came back.
pub(crate) struct Sending {
    pub(crate) body: String,
    pub(crate) replied: Replied,
}

impl Desk<'_> {
    fn exchange(
        &mut self,
        now: Timestamp,
        request: &Request,
        betas: &[SmolStr],
        answer: Option<Answer>,
    ) -> (Replied, Read) {
        let call = self.provider.call(request, betas, self.card);
        let body = call.body.joined();
        let start = Instant::now();
        let (replied, read) = self.provider.ask_and_read(now, &call, &body, answer);
        self.waited += start.elapsed();
        self.exchanges.push(Sending { body, replied: replied.clone() });
        (replied, read)
    }

    /// The summary that the recording has next, or had last.
    fn recorded_summary(&self) -> Option<String> {
        let summary = |entry: &pal_model::Entry| match &entry.body {
            Body::Boundary(boundary) if boundary.stands() => Some(texts(&boundary.summary).join("\n")),
            _ => None,
        };
        let (before, after) = self.recorded.entries().split_at(self.at);
        after.iter().find_map(summary).or_else(|| before.iter().rev().find_map(summary))
    }
}

impl Errands for Desk<'_> {
    fn send(&mut self, outgoing: &Outgoing<'_>) -> Outcome {
        let request = self.provider.asking_why(outgoing.request.clone(), self.card);
        let answer = Some(self.called.answer.clone());
        let (replied, read) = self.exchange(outgoing.now, &request, outgoing.betas, answer);
        replied.exchange.iter().for_each(|exchange| self.provider.answered(exchange));
        match replied.exchange {
            Some(exchange) => Outcome::Answered(Answered {
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
                Some((have, limit)) => {
                    Outcome::TooLong { have, limit, message: replied.refusal.unwrap_or_default() }
                }
                None => Outcome::Failed(replied.refusal.unwrap_or_default()),
            },
        }
    }

    fn ask(&mut self, question: &Question, betas: &[SmolStr], now: Timestamp) -> Asked {
        let answer = match self.compact_with {
            CompactWith::Extractive => None,
            CompactWith::Recorded => self.recorded_summary().map(|text| {
                let text = match question.how {
                    How::Provider => text,
                    _ => format!("<summary>\n{text}\n</summary>"),
                };
                Answer { blocks: vec![Said::Text(text)], stop: None }
            }),
        };
        let (replied, read) = self.exchange(now, &question.request, betas, answer);
        let Some(exchange) = replied.exchange else {
            let message = replied.refusal.unwrap_or_default();
            let reply = match replied.too_long {
                Some((have, limit)) => Reply::TooLong { have, limit },
                None => Reply::Failed(message),
            };
            return Asked { reply, answered: None };
        };
        let reply = Reply::of_answer(read.blocks, Some(exchange.stop_reason.as_str()));
        let answered = Some((ResponseId::from(exchange.response.as_str()), exchange.usage, exchange.cost));
        Asked { reply, answered }
    }

    /// The newest text of the file that the recording had shown or written by then.
    fn read_file(&mut self, wanted: &FileWanted) -> FileRead {
        let entries = &self.recorded.entries()[..self.at];
        let text = entries.iter().enumerate().rev().find_map(|(at, entry)| {
            let Body::Assistant(assistant) = &entry.body else { return None };
            let calls = assistant.content.blocks().iter().rev();
            calls.filter(|block| block.kind() == BlockType::ToolUse).find_map(|block| {
                let call = Call::read(block)?;
                if call.path()? != wanted.path {
                    return None;
                }
                match call.kind? {
                    ToolKind::Read => result(&entries[at..], block.tool_use_id()?),
                    ToolKind::Write => call.member("content").and_then(unescape).map(Cow::into_owned),
                    _ => None,
                }
            })
        });
        let text = text.map(|text| text[..text.floor_char_boundary(wanted.bytes_max)].to_owned());
        FileRead { path: wanted.path.clone(), text, seen: None }
    }

    fn notice(&mut self, line: &str) {
        self.notices.push(line.to_owned());
    }

    fn before_compaction(&mut self, order: &Order, view: &View) -> BeforeCompaction {
        let now = self.now;
        let notes = self.keeper.as_mut().and_then(|keeper| keeper.for_compaction(now));
        if notes.is_some() {
            self.full.extend(full_summary(order, view, self.engine));
        }
        BeforeCompaction { notes, ..BeforeCompaction::default() }
    }
}

/// The text of the result of a call, if it has any.
fn result(entries: &[Entry], id: &ToolUseId) -> Option<String> {
    let results = entries.iter().filter_map(|entry| match &entry.body {
        Body::User(user) => Some(user.content.blocks()),
        _ => None,
    });
    let is_result = |block: &&Block| block.kind() == BlockType::ToolResult && block.tool_use_id() == Some(id);
    let text = texts(&results.flatten().find(is_result)?.content()).join("\n");
    (!text.is_empty()).then_some(text)
}
