//! Reader of Claude Code transcripts.
//!
//! The log keeps the order of the file; parents only reveal rewinds. Values known only later (the end of a
//! response, a boundary's summary, the fate of a queued message) are filled in as the file is read.

mod attachment;
mod prompt_queue;
mod typed_prompts;

use std::borrow::Cow;

use pal_model::{
    BlockType, Decision, DecisionCost, DecisionKind, MessageOrigin, PreservedPlacement, Timestamp,
    array_items, unescape,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ImportError;
use crate::content_blocks;
use crate::import_step::{BoundaryDraft, ImportStep, ParsedSession, SourceCounts, StepAction};
use crate::internal_records::InternalReason;
use crate::raw_fields::{count, is_true, pick_or_none, string};
use crate::response_tracker::{ResponseReport, ResponseTracker, UsageFigure};
use crate::session_format::SessionFormat;
use crate::source_records::{self, SourceRecord as Found};
use prompt_queue::PromptQueue;

/// Claude Code's placeholder for a cleared result.
const CLEARED: &str = "[Old tool result content cleared]";

/// Parses a transcript.
pub(crate) fn read(source: &[u8], strict: bool) -> Result<ParsedSession<'_>, ImportError> {
    let mut reader = ClaudeReader::default();
    reader.session.about.program = SessionFormat::Claude.program().into();
    let seen = source_records::read_records(source, &NAMES, strict, |found| reader.line(found))?;
    reader.session.counts = SourceCounts {
        lines: seen.lines,
        records: seen.records,
        mended: seen.mended,
        ..reader.session.counts
    };
    Ok(reader.finish())
}

macro_rules! envelope {
    ($($field:ident = $name:literal,)*) => {
        const NAMES: [&str; [$($name),*].len()] = [$($name),*];

        /// The fields of a record that matter, raw.
        #[derive(Clone, Copy)]
        struct RecordEnvelope<'a> {
            $($field: Option<&'a str>,)*
        }

        impl<'a> RecordEnvelope<'a> {
            fn new(fields: [Option<&'a str>; NAMES.len()]) -> RecordEnvelope<'a> {
                let [$($field),*] = fields;
                RecordEnvelope { $($field),* }
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

/// One record with its position.
#[derive(Clone, Copy)]
struct TranscriptRecord<'a> {
    line: u64,
    at: Option<Timestamp>,
    text: &'a str,
    envelope: RecordEnvelope<'a>,
}

#[derive(Default)]
struct ClaudeReader<'a> {
    session: ParsedSession<'a>,
    /// First and last step of each record, by raw id.
    steps_of: FxHashMap<&'a str, (usize, usize)>,
    responses: ResponseTracker<'a>,
    queue: PromptQueue<'a>,
    /// Raw parent ids of typed prompts.
    prompt_parents: FxHashSet<&'a str>,
    /// Boundary that waits for its summary.
    waiting: Option<PendingBoundary<'a>>,
    boundaries: Vec<PendingBoundary<'a>>,
    custom_title: Option<String>,
    /// Raw leaf id and title of each summary record.
    summaries: Vec<(&'a str, Cow<'a, str>)>,
}

/// A boundary record and the step reserved for it.
struct PendingBoundary<'a> {
    step: usize,
    uuid: Option<&'a str>,
    metadata: Option<&'a str>,
    line: u64,
    at: Option<Timestamp>,
}

impl<'a> ClaudeReader<'a> {
    fn line(&mut self, found: Result<Found<'a, { NAMES.len() }>, ImportStep<'a>>) {
        match found {
            Ok(Found { line, text, fields }) => {
                let envelope = RecordEnvelope::new(fields);
                let at = string(envelope.timestamp).and_then(|at| at.parse().ok());
                self.record(TranscriptRecord { line, at, text, envelope });
            }
            Err(bad) => self.session.steps.push(bad),
        }
    }

    fn record(&mut self, record: TranscriptRecord<'a>) {
        let envelope = &record.envelope;
        self.about(envelope);
        let kind = string(envelope.kind).unwrap_or_default();
        let is_said = matches!(kind.as_ref(), "user" | "assistant" | "attachment" | "system");
        if is_true(envelope.is_sidechain) && is_said {
            return self.push_internal(record, "sidechain", InternalReason::Sidechain);
        }
        let first = self.session.steps.len();
        if let Some(uuid) = envelope.uuid
            && self.steps_of.contains_key(uuid)
        {
            return self.push_internal(record, "replayed", InternalReason::Replayed);
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
                self.push_internal(record, kind, InternalReason::Bookkeeping);
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
            ) => self.push_internal(record, kind, InternalReason::Bookkeeping),
            _ => self.push_internal(record, kind, InternalReason::UnknownRecord),
        }
        if let Some(uuid) = envelope.uuid {
            let last = self.session.steps.len().saturating_sub(1).max(first);
            self.steps_of.insert(uuid, (first, last));
        }
    }

    /// Collects session data from the envelope.
    fn about(&mut self, envelope: &RecordEnvelope<'a>) {
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

    fn push(&mut self, record: TranscriptRecord<'a>, act: StepAction<'a>) {
        let foreign = record.envelope.uuid;
        self.session.steps.push(ImportStep { line: record.line, at: record.at, foreign, act });
    }

    fn push_internal(
        &mut self,
        record: TranscriptRecord<'a>,
        what: impl Into<Cow<'a, str>>,
        reason: InternalReason,
    ) {
        self.session.steps.push(ImportStep::internal(record.line, record.at, what, record.text, reason));
    }

    fn user(&mut self, record: TranscriptRecord<'a>, message: &'a str) {
        let [content] = pick_or_none(message, &["content"]);
        let Some(content) = content else {
            return self.push_internal(record, "user", InternalReason::NothingForTheModel);
        };
        if is_true(record.envelope.is_summary) {
            return self.summary(record, content);
        }
        if is_true(record.envelope.is_shown_only) {
            return self.push(record, StepAction::Shown { content: content.into() });
        }
        let blocks = content_blocks::scan(content);
        if blocks.is_empty() {
            return self.push_internal(record, "user", InternalReason::NothingForTheModel);
        }
        let results = blocks.iter().filter(|block| block.kind == BlockType::ToolResult).count() as u64;
        let may_be_typed =
            !is_true(record.envelope.is_meta) && typed_prompts::may_have_typed(&record.envelope);
        let is_typed = |block: &content_blocks::ScannedBlock<'_>| match block.kind {
            BlockType::Text => {
                block.text.and_then(unescape).is_some_and(|text| typed_prompts::is_typed(&text))
            }
            BlockType::Image | BlockType::Document => true,
            _ => false,
        };
        let has_typed = may_be_typed && blocks.iter().any(is_typed);
        if has_typed {
            for text in blocks.iter().filter_map(|block| block.text) {
                self.queue.note_delivery(self.session.steps.len(), text);
            }
            if results == 0
                && let Some(parent) = record.envelope.parent.filter(|parent| *parent != "null")
                && !self.prompt_parents.insert(parent)
            {
                self.session.counts.rewinds += 1;
            }
        }
        match (results > 0, has_typed) {
            (false, typed) => {
                let origin = if typed { MessageOrigin::Person } else { MessageOrigin::Agent };
                self.push(record, StepAction::User { origin, content: content.into(), results });
            }
            (true, false) => {
                self.push(
                    record,
                    StepAction::User { origin: MessageOrigin::Tool, content: content.into(), results },
                );
            }
            // Text typed beside a result is a message of its own.
            (true, true) => {
                let raw = content_blocks::raw_blocks(content);
                let (typed, rest): (Vec<_>, Vec<_>) =
                    blocks.iter().zip(raw).partition(|(block, _)| is_typed(block));
                let rest = content_blocks::list(rest.into_iter().map(|(_, raw)| raw));
                let typed = content_blocks::list(typed.into_iter().map(|(_, raw)| raw));
                self.push(
                    record,
                    StepAction::User { origin: MessageOrigin::Tool, content: rest.into(), results },
                );
                self.push(
                    record,
                    StepAction::User { origin: MessageOrigin::Person, content: typed.into(), results: 0 },
                );
            }
        }
    }

    fn assistant(&mut self, record: TranscriptRecord<'a>, message: &'a str) {
        let [content, id, model, usage, stop_reason] =
            pick_or_none(message, &["content", "id", "model", "usage", "stop_reason"]);
        let Some(content) = content else {
            return self.push_internal(record, "assistant", InternalReason::NothingForTheModel);
        };
        let model = string(model).unwrap_or_default();
        if is_true(record.envelope.is_error) || model == "<synthetic>" {
            return self.push(record, StepAction::Shown { content: content.into() });
        }
        // A summary follows its boundary directly; after an assistant message none can follow.
        self.waiting = None;
        let step = self.session.steps.len();
        let usage =
            usage.filter(|usage| usage.starts_with('{')).map_or(UsageFigure::Nothing, UsageFigure::Raw);
        let reported = ResponseReport { model: model.clone(), usage, stop_reason: string(stop_reason) };
        let response = self.responses.record(step, id.or(record.envelope.request), reported);
        let calls = content_blocks::calls(content);
        self.push(record, StepAction::Assistant { response, model, content: content.into(), calls });
    }

    fn attachment(&mut self, record: TranscriptRecord<'a>) {
        let raw = record.envelope.attachment.unwrap_or("{}");
        let [kind, prompt, mode] = pick_or_none(raw, &["type", "prompt", "commandMode"]);
        let kind = string(kind).unwrap_or("attachment".into());
        if kind == "queued_command"
            && let Some(prompt) = prompt
            && string(mode).is_none_or(|mode| mode == "prompt")
        {
            self.queue.note_delivery(self.session.steps.len(), prompt);
            let origin = if typed_prompts::is_typed_in_queue(prompt, raw) {
                MessageOrigin::Person
            } else {
                MessageOrigin::Agent
            };
            return self.push(record, StepAction::User { origin, content: prompt.into(), results: 0 });
        }
        match attachment::content(&kind, raw) {
            Some(content) => {
                self.push(
                    record,
                    StepAction::Attachment { what: kind, content: content.into(), raw: Some(raw) },
                );
            }
            None => self.push_internal(record, kind, InternalReason::NothingForTheModel),
        }
    }

    fn system(&mut self, record: TranscriptRecord<'a>) {
        let subtype = string(record.envelope.subtype).unwrap_or("system".into());
        match subtype.as_ref() {
            "compact_boundary" => {
                self.push_internal(record, subtype, InternalReason::CarriedByNeighbour);
                let waiting = PendingBoundary {
                    step: self.session.steps.len(),
                    uuid: record.envelope.uuid,
                    metadata: record.envelope.compact,
                    line: record.line,
                    at: record.at,
                };
                self.push(record, StepAction::Reserved);
                self.waiting = Some(waiting);
            }
            "microcompact_boundary" => {
                self.push_internal(record, subtype, InternalReason::CarriedByNeighbour);
                self.microcompact(record);
            }
            "local_command" if typed_prompts::is_command(record.envelope.content) => {
                let content = record.envelope.content.unwrap_or_default().into();
                self.push(record, StepAction::User { origin: MessageOrigin::Person, content, results: 0 });
            }
            _ => self.push_internal(record, subtype, InternalReason::Bookkeeping),
        }
    }

    fn microcompact(&mut self, record: TranscriptRecord<'a>) {
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
        let cost = DecisionCost { tokens_freed: count(saved).unwrap_or(0), ..DecisionCost::default() };
        let kind = DecisionKind::Clear { tool_use_ids, text: CLEARED.into() };
        self.push(record, StepAction::Decision(Box::new(Decision { kind, reason, cost })));
    }

    /// Completes the pending boundary; without one, the summary is its own boundary.
    fn summary(&mut self, record: TranscriptRecord<'a>, content: &'a str) {
        let waiting = match self.waiting.take() {
            Some(waiting) => waiting,
            None => {
                let step = self.session.steps.len();
                self.push(record, StepAction::Reserved);
                PendingBoundary { step, uuid: None, metadata: None, line: record.line, at: record.at }
            }
        };
        let names =
            ["trigger", "preTokens", "postTokens", "messagesSummarized", "userContext", "customInstructions"];
        let [trigger, before, after, summarised, context, instructions] =
            pick_or_none(waiting.metadata.unwrap_or("{}"), &names);
        let boundary = BoundaryDraft {
            trigger: string(trigger).unwrap_or("auto".into()),
            summary: content.into(),
            tokens_before: count(before),
            tokens_after: count(after),
            messages_summarised: count(summarised),
            instructions: string(context).or(string(instructions)).map(Cow::into_owned),
            preserved: None,
        };
        self.session.steps[waiting.step] = ImportStep {
            line: waiting.line,
            at: waiting.at.or(record.at),
            foreign: record.envelope.uuid,
            act: StepAction::Boundary(Box::new(boundary)),
        };
        self.boundaries.push(waiting);
    }

    fn queue_operation(&mut self, record: TranscriptRecord<'a>) {
        let operation = string(record.envelope.operation).unwrap_or_default();
        self.push_internal(record, "queue-operation", InternalReason::Bookkeeping);
        // Reserves a step in case the message is not delivered otherwise.
        let step = self.session.steps.len();
        self.push(record, StepAction::Reserved);
        self.session.counts.withdrawn += self.queue.operation(step, &operation, record.envelope.content);
    }

    fn finish(mut self) -> ParsedSession<'a> {
        if self.custom_title.is_some() {
            self.session.about.title = self.custom_title.take();
        }
        if self.session.about.title.is_none() {
            // Such titles may belong to other sessions; only one that ends in this file counts.
            let own = self.summaries.iter().rev().find(|(leaf, _)| self.steps_of.contains_key(leaf));
            self.session.about.title = own.map(|(_, title)| title.to_string());
        }
        self.deliver_queued();
        self.report_boundaries_without_summary();
        let mut session = self.session;
        // Responses that a boundary's preserved range moves after it; they were given before.
        let mut early = Vec::new();
        for waiting in &self.boundaries {
            let stretch = preserved_steps(waiting, &self.steps_of);
            early.extend(
                stretch.iter().filter(|step| **step > waiting.step).map(|step| (*step, waiting.step)),
            );
            let placement = placement(waiting);
            if let StepAction::Boundary(boundary) = &mut session.steps[waiting.step].act {
                let before = || stretch.iter().copied().filter(|step| *step < waiting.step);
                boundary.preserved =
                    before().min().zip(before().max()).map(|(head, tail)| (head, tail, placement));
            }
        }
        let bounds: Vec<usize> = self.boundaries.iter().map(|waiting| waiting.step).collect();
        session.steps = self.responses.insert_into(session.steps, &bounds, &early);
        session
    }

    /// Adds queued messages that were neither delivered nor taken back.
    fn deliver_queued(&mut self) {
        for (step, content) in self.queue.take_undelivered() {
            let act = StepAction::User { origin: MessageOrigin::Person, content: content.into(), results: 0 };
            self.session.steps[step].act = act;
        }
    }

    fn report_boundaries_without_summary(&mut self) {
        for step in 1..self.session.steps.len() {
            let is_empty = matches!(self.session.steps[step].act, StepAction::Reserved);
            if let StepAction::Internal { what, reason, .. } = &mut self.session.steps[step - 1].act
                && is_empty
                && what == "compact_boundary"
            {
                *reason = InternalReason::NoSummary;
            }
        }
    }
}

/// Steps of the messages that a boundary keeps.
fn preserved_steps(waiting: &PendingBoundary<'_>, steps_of: &FxHashMap<&str, (usize, usize)>) -> Vec<usize> {
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

/// Placement of the preserved range: after the summary or, if its anchor is the boundary itself, before it.
fn placement(waiting: &PendingBoundary<'_>) -> PreservedPlacement {
    let metadata = waiting.metadata.unwrap_or("{}");
    let [messages, segment] = pick_or_none(metadata, &["preservedMessages", "preservedSegment"]);
    let [anchor] = pick_or_none(messages.or(segment).unwrap_or("{}"), &["anchorUuid"]);
    if anchor.is_some() && anchor == waiting.uuid {
        PreservedPlacement::BeforeSummary
    } else {
        PreservedPlacement::AfterSummary
    }
}
