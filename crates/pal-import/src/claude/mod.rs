//! Transcripts of Claude Code.
//!
//! The order of the file is the order of the log; parents only reveal rewinds. Records become steps one by one;
//! what is known only later (the end of a response, the summary behind a boundary, how a queued message ended)
//! is filled in when the file is read.

mod attachment;
mod person;
mod queue;

use std::borrow::Cow;

use pal_model::{
    BlockType, Cost, Decision, DecisionKind, Origin, Placement, Timestamp, array_items, unescape,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ImportError;
use crate::aside::Reason;
use crate::blocks;
use crate::format::Format;
use crate::pick::{count, is_true, pick_or_none, string};
use crate::records::{self, Record as Found};
use crate::responses::{Counted, Reported, Responses};
use crate::step::{Act, Boundary, Seen, Session, Step};
use queue::Queue;

/// What Claude Code writes in the place of a result that it cleared.
const CLEARED: &str = "[Old tool result content cleared]";

/// Reads a transcript.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<Session<'_>, ImportError> {
    let mut reader = Reader::default();
    reader.session.about.program = Format::Claude.program().into();
    let seen = records::each(source, &NAMES, strict, |found| reader.line(found))?;
    reader.session.seen =
        Seen { lines: seen.lines, records: seen.records, mended: seen.mended, ..reader.session.seen };
    Ok(reader.finish())
}

macro_rules! envelope {
    ($($field:ident = $name:literal,)*) => {
        const NAMES: [&str; [$($name),*].len()] = [$($name),*];

        /// The fields of a record that matter, raw.
        #[derive(Clone, Copy)]
        struct Envelope<'a> {
            $($field: Option<&'a str>,)*
        }

        impl<'a> Envelope<'a> {
            fn new(fields: [Option<&'a str>; NAMES.len()]) -> Envelope<'a> {
                let [$($field),*] = fields;
                Envelope { $($field),* }
            }
        }
    };
}

envelope! {
    kind = "type",
    subtype = "subtype",
    uuid = "uuid",
    parent = "parentUuid",
    timestamp = "timestamp",
    session = "sessionId",
    cwd = "cwd",
    version = "version",
    message = "message",
    is_sidechain = "isSidechain",
    is_meta = "isMeta",
    is_summary = "isCompactSummary",
    is_error = "isApiErrorMessage",
    is_shown_only = "isVisibleInTranscriptOnly",
    request = "requestId",
    origin = "origin",
    prompt_source = "promptSource",
    attachment = "attachment",
    compact = "compactMetadata",
    microcompact = "microcompactMetadata",
    operation = "operation",
    content = "content",
    ai_title = "aiTitle",
    custom_title = "customTitle",
}

/// One record with its place.
#[derive(Clone, Copy)]
struct Record<'a> {
    line: u64,
    at: Option<Timestamp>,
    text: &'a str,
    envelope: Envelope<'a>,
}

#[derive(Default)]
struct Reader<'a> {
    session: Session<'a>,
    /// Step of each record, by its raw id: first and last.
    steps_of: FxHashMap<&'a str, (usize, usize)>,
    responses: Responses<'a>,
    queue: Queue<'a>,
    /// Parents of typed prompts, raw.
    prompt_parents: FxHashSet<&'a str>,
    /// A boundary that waits for its summary: the step held for it, and its metadata.
    waiting: Option<Waiting<'a>>,
    boundaries: Vec<Waiting<'a>>,
    custom_title: Option<String>,
    /// Titles that name a record, raw, as the end of what they stand for.
    summaries: Vec<(&'a str, Cow<'a, str>)>,
}

/// A boundary record.
struct Waiting<'a> {
    step: usize,
    uuid: Option<&'a str>,
    metadata: Option<&'a str>,
    line: u64,
    at: Option<Timestamp>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, found: Result<Found<'a, { NAMES.len() }>, Step<'a>>) {
        match found {
            Ok(Found { line, text, fields }) => {
                let envelope = Envelope::new(fields);
                let at = string(envelope.timestamp).and_then(|at| at.parse().ok());
                self.record(Record { line, at, text, envelope });
            }
            Err(bad) => self.session.steps.push(bad),
        }
    }

    fn record(&mut self, record: Record<'a>) {
        let envelope = &record.envelope;
        self.about(envelope);
        let kind = string(envelope.kind).unwrap_or_default();
        let is_said = matches!(kind.as_ref(), "user" | "assistant" | "attachment" | "system");
        if is_true(envelope.is_sidechain) && is_said {
            return self.aside(record, "sidechain", Reason::Sidechain);
        }
        let first = self.session.steps.len();
        if let Some(uuid) = envelope.uuid
            && self.steps_of.contains_key(uuid)
        {
            return self.aside(record, "replayed", Reason::Replayed);
        }
        match (kind.as_ref(), envelope.message) {
            ("user", Some(message)) => self.user(record, message),
            ("assistant", Some(message)) => self.assistant(record, message),
            ("attachment", _) => self.attachment(record),
            ("system", _) => self.system(record),
            ("queue-operation", _) => self.queue_operation(record),
            ("summary", _) => {
                let [summary, leaf] = pick_or_none(record.text, &["summary", "leafUuid"]);
                self.summaries.push((leaf.unwrap_or_default(), string(summary).unwrap_or_default()));
                self.aside(record, kind, Reason::Bookkeeping);
            }
            (
                "progress"
                | "file-history-snapshot"
                | "file-history-delta"
                | "mode"
                | "permission-mode"
                | "last-prompt"
                | "ai-title"
                | "custom-title"
                | "agent-name"
                | "agent-color"
                | "pr-link"
                | "cost-state"
                | "tag",
                _,
            ) => self.aside(record, kind, Reason::Bookkeeping),
            _ => self.aside(record, kind, Reason::UnknownRecord),
        }
        if let Some(uuid) = envelope.uuid {
            let last = self.session.steps.len().saturating_sub(1).max(first);
            self.steps_of.insert(uuid, (first, last));
        }
    }

    /// What the envelope tells about the session as a whole.
    fn about(&mut self, envelope: &Envelope<'a>) {
        let about = &mut self.session.about;
        let keep = |slot: &mut Option<String>, raw| {
            if slot.is_none() {
                *slot = string(raw).map(Cow::into_owned);
            }
        };
        keep(&mut about.foreign_id, envelope.session);
        keep(&mut about.cwd, envelope.cwd);
        keep(&mut about.version, envelope.version);
        if let Some(title) = string(envelope.ai_title) {
            about.title = Some(title.into_owned());
        }
        if let Some(title) = string(envelope.custom_title) {
            self.custom_title = Some(title.into_owned());
        }
    }

    fn push(&mut self, record: Record<'a>, act: Act<'a>) {
        let foreign = record.envelope.uuid;
        self.session.steps.push(Step { line: record.line, at: record.at, foreign, act });
    }

    fn aside(&mut self, record: Record<'a>, what: impl Into<Cow<'a, str>>, reason: Reason) {
        self.session.steps.push(Step::aside(record.line, record.at, what, record.text, reason));
    }

    fn user(&mut self, record: Record<'a>, message: &'a str) {
        let [content] = pick_or_none(message, &["content"]);
        let Some(content) = content else {
            return self.aside(record, "user", Reason::NothingForTheModel);
        };
        if is_true(record.envelope.is_summary) {
            return self.summary(record, content);
        }
        if is_true(record.envelope.is_shown_only) {
            return self.push(record, Act::Shown { content: content.into() });
        }
        let blocks = blocks::scan(content);
        if blocks.is_empty() {
            return self.aside(record, "user", Reason::NothingForTheModel);
        }
        let results = blocks.iter().filter(|block| block.kind == BlockType::ToolResult).count() as u64;
        let may_be_typed = !is_true(record.envelope.is_meta) && person::may_have_typed(&record.envelope);
        let is_typed = |block: &blocks::Block<'_>| match block.kind {
            BlockType::Text => block.text.and_then(unescape).is_some_and(|text| person::is_typed(&text)),
            BlockType::Image | BlockType::Document => true,
            _ => false,
        };
        let has_typed = may_be_typed && blocks.iter().any(is_typed);
        if has_typed {
            for text in blocks.iter().filter_map(|block| block.text) {
                self.queue.delivered(self.session.steps.len(), text);
            }
            if results == 0
                && let Some(parent) = record.envelope.parent.filter(|parent| *parent != "null")
                && !self.prompt_parents.insert(parent)
            {
                self.session.seen.rewinds += 1;
            }
        }
        match (results > 0, has_typed) {
            (false, typed) => {
                let origin = if typed { Origin::Person } else { Origin::Agent };
                self.push(record, Act::User { origin, content: content.into(), results });
            }
            (true, false) => {
                self.push(record, Act::User { origin: Origin::Tool, content: content.into(), results });
            }
            // What a person typed beside a result is a message of its own.
            (true, true) => {
                let raw = blocks::raw_blocks(content);
                let (typed, rest): (Vec<_>, Vec<_>) =
                    blocks.iter().zip(raw).partition(|(block, _)| is_typed(block));
                let rest = blocks::list(rest.into_iter().map(|(_, raw)| raw));
                let typed = blocks::list(typed.into_iter().map(|(_, raw)| raw));
                self.push(record, Act::User { origin: Origin::Tool, content: rest.into(), results });
                self.push(record, Act::User { origin: Origin::Person, content: typed.into(), results: 0 });
            }
        }
    }

    fn assistant(&mut self, record: Record<'a>, message: &'a str) {
        let [content, id, model, usage, stop_reason] =
            pick_or_none(message, &["content", "id", "model", "usage", "stop_reason"]);
        let Some(content) = content else {
            return self.aside(record, "assistant", Reason::NothingForTheModel);
        };
        let model = string(model).unwrap_or_default();
        if is_true(record.envelope.is_error) || model == "<synthetic>" {
            return self.push(record, Act::Shown { content: content.into() });
        }
        // A boundary is followed by its summary; once the model speaks, none comes any more.
        self.waiting = None;
        let step = self.session.steps.len();
        let usage = usage.filter(|usage| usage.starts_with('{')).map_or(Counted::Nothing, Counted::Raw);
        let reported = Reported { model: model.clone(), usage, stop_reason: string(stop_reason) };
        let response = self.responses.record(step, id.or(record.envelope.request), reported);
        let calls = blocks::calls(content);
        self.push(record, Act::Assistant { response, model, content: content.into(), calls });
    }

    fn attachment(&mut self, record: Record<'a>) {
        let raw = record.envelope.attachment.unwrap_or("{}");
        let [kind, prompt, mode] = pick_or_none(raw, &["type", "prompt", "commandMode"]);
        let kind = string(kind).unwrap_or("attachment".into());
        if kind == "queued_command"
            && let Some(prompt) = prompt
            && string(mode).is_none_or(|mode| mode == "prompt")
        {
            self.queue.delivered(self.session.steps.len(), prompt);
            let origin = if person::typed_in_queue(prompt, raw) { Origin::Person } else { Origin::Agent };
            return self.push(record, Act::User { origin, content: prompt.into(), results: 0 });
        }
        match attachment::content(&kind, raw) {
            Some(content) => {
                self.push(record, Act::Attachment { what: kind, content: content.into(), raw: Some(raw) });
            }
            None => self.aside(record, kind, Reason::NothingForTheModel),
        }
    }

    fn system(&mut self, record: Record<'a>) {
        let subtype = string(record.envelope.subtype).unwrap_or("system".into());
        match subtype.as_ref() {
            "compact_boundary" => {
                self.aside(record, subtype, Reason::Beside);
                let waiting = Waiting {
                    step: self.session.steps.len(),
                    uuid: record.envelope.uuid,
                    metadata: record.envelope.compact,
                    line: record.line,
                    at: record.at,
                };
                self.push(record, Act::Nothing);
                self.waiting = Some(waiting);
            }
            "microcompact_boundary" => {
                self.aside(record, subtype, Reason::Beside);
                self.microcompact(record);
            }
            "local_command" if person::is_command(record.envelope.content) => {
                let content = record.envelope.content.unwrap_or_default().into();
                self.push(record, Act::User { origin: Origin::Person, content, results: 0 });
            }
            _ => self.aside(record, subtype, Reason::Bookkeeping),
        }
    }

    fn microcompact(&mut self, record: Record<'a>) {
        let names = ["compactedToolIds", "tokensSaved", "trigger"];
        let [ids, saved, trigger] = pick_or_none(record.envelope.microcompact.unwrap_or("{}"), &names);
        let ids = ids.and_then(|ids| array_items(ids).ok()).unwrap_or_default();
        let tool_use_ids: Vec<_> =
            ids.into_iter().filter_map(unescape).map(|id| id.as_ref().into()).collect();
        if tool_use_ids.is_empty() {
            return;
        }
        let trigger = string(trigger).unwrap_or("auto".into());
        let reason = format!("cleared by Claude Code ({trigger}): {} old tool results", tool_use_ids.len());
        let cost = Cost { tokens_freed: count(saved).unwrap_or(0), ..Cost::default() };
        let kind = DecisionKind::Clear { tool_use_ids, text: CLEARED.into() };
        self.push(record, Act::Decision(Box::new(Decision { kind, reason, cost })));
    }

    /// The summary completes the boundary before it; without one, it is a boundary by itself.
    fn summary(&mut self, record: Record<'a>, content: &'a str) {
        let waiting = match self.waiting.take() {
            Some(waiting) => waiting,
            None => {
                let step = self.session.steps.len();
                self.push(record, Act::Nothing);
                Waiting { step, uuid: None, metadata: None, line: record.line, at: record.at }
            }
        };
        let names =
            ["trigger", "preTokens", "postTokens", "messagesSummarized", "userContext", "customInstructions"];
        let [trigger, before, after, summarised, context, instructions] =
            pick_or_none(waiting.metadata.unwrap_or("{}"), &names);
        let boundary = Boundary {
            trigger: string(trigger).unwrap_or("auto".into()),
            summary: content.into(),
            tokens_before: count(before),
            tokens_after: count(after),
            messages_summarised: count(summarised),
            instructions: string(context).or(string(instructions)).map(Cow::into_owned),
            preserved: None,
        };
        self.session.steps[waiting.step] = Step {
            line: waiting.line,
            at: waiting.at.or(record.at),
            foreign: record.envelope.uuid,
            act: Act::Boundary(Box::new(boundary)),
        };
        self.boundaries.push(waiting);
    }

    fn queue_operation(&mut self, record: Record<'a>) {
        let operation = string(record.envelope.operation).unwrap_or_default();
        self.aside(record, "queue-operation", Reason::Bookkeeping);
        // A step is held in case the message comes no other way.
        let step = self.session.steps.len();
        self.push(record, Act::Nothing);
        self.session.seen.withdrawn += self.queue.operation(step, &operation, record.envelope.content);
    }

    fn finish(mut self) -> Session<'a> {
        if self.custom_title.is_some() {
            self.session.about.title = self.custom_title.take();
        }
        if self.session.about.title.is_none() {
            // Such titles may be those of other sessions: only one that ends in this file is its own.
            let own = self.summaries.iter().rev().find(|(leaf, _)| self.steps_of.contains_key(leaf));
            self.session.about.title = own.map(|(_, title)| title.to_string());
        }
        self.deliver_queued();
        self.report_boundaries_without_summary();
        let mut session = self.session;
        // The responses before a boundary that its preserved stretch brings after it: they were given before.
        let mut early = Vec::new();
        for waiting in &self.boundaries {
            let stretch = preserved_steps(waiting, &self.steps_of);
            early.extend(
                stretch.iter().filter(|step| **step > waiting.step).map(|step| (*step, waiting.step)),
            );
            let placement = placement(waiting);
            if let Act::Boundary(boundary) = &mut session.steps[waiting.step].act {
                let before = || stretch.iter().copied().filter(|step| *step < waiting.step);
                boundary.preserved =
                    before().min().zip(before().max()).map(|(head, tail)| (head, tail, placement));
            }
        }
        let bounds: Vec<usize> = self.boundaries.iter().map(|waiting| waiting.step).collect();
        session.steps = self.responses.insert_into(session.steps, &bounds, &early);
        session
    }

    /// Queued messages that were neither delivered by another record nor taken back.
    fn deliver_queued(&mut self) {
        for (step, content) in self.queue.undelivered() {
            let act = Act::User { origin: Origin::Person, content: content.into(), results: 0 };
            self.session.steps[step].act = act;
        }
    }

    fn report_boundaries_without_summary(&mut self) {
        for step in 1..self.session.steps.len() {
            let is_empty = matches!(self.session.steps[step].act, Act::Nothing);
            if let Act::Internal { what, reason, .. } = &mut self.session.steps[step - 1].act
                && is_empty
                && what == "compact_boundary"
            {
                *reason = Reason::NoSummary;
            }
        }
    }
}

/// The steps of the messages that a boundary says it keeps.
fn preserved_steps(waiting: &Waiting<'_>, steps_of: &FxHashMap<&str, (usize, usize)>) -> Vec<usize> {
    let metadata = waiting.metadata.unwrap_or("{}");
    let [messages, segment] = pick_or_none(metadata, &["preservedMessages", "preservedSegment"]);
    let [uuids] = pick_or_none(messages.unwrap_or("{}"), &["uuids"]);
    let [head, tail] = pick_or_none(segment.unwrap_or("{}"), &["headUuid", "tailUuid"]);
    let uuids = match uuids.and_then(|uuids| array_items(uuids).ok()) {
        Some(uuids) => uuids,
        None => [head, tail].into_iter().flatten().collect(),
    };
    let steps = uuids.into_iter().filter_map(|uuid| steps_of.get(uuid));
    steps.flat_map(|(first, last)| [*first, *last]).collect()
}

/// A stretch stands behind its anchor: the summary, or, where the oldest messages are kept, the boundary itself.
fn placement(waiting: &Waiting<'_>) -> Placement {
    let metadata = waiting.metadata.unwrap_or("{}");
    let [messages, segment] = pick_or_none(metadata, &["preservedMessages", "preservedSegment"]);
    let [anchor] = pick_or_none(messages.or(segment).unwrap_or("{}"), &["anchorUuid"]);
    if anchor.is_some() && anchor == waiting.uuid {
        Placement::BeforeSummary
    } else {
        Placement::AfterSummary
    }
}
