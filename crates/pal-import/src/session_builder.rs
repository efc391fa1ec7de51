//! Session builder shared by the formats that log one message per record.

use std::borrow::Cow;

use pal_model::{Decision, DecisionCost, DecisionKind, MessageOrigin, Timestamp, Usage};

use rustc_hash::FxHashMap;

use crate::content_blocks::{self, text_block};
use crate::import_step::{BoundaryDraft, ImportStep, ParsedSession, StepAction};
use crate::internal_records::InternalReason;
use crate::response_tracker::{ResponseReport, ResponseTracker, UsageFigure};
use crate::session_format::SessionFormat;

/// A session under construction.
pub(crate) struct SessionBuilder<'a> {
    pub(crate) session: ParsedSession<'a>,
    responses: ResponseTracker<'a>,
    /// Response numbers by id; records with equal ids belong together.
    number_of: FxHashMap<Cow<'a, str>, usize>,
    boundaries: Vec<usize>,
    name: &'static str,
}

/// Position and raw text of the current record.
#[derive(Clone, Copy)]
pub(crate) struct RecordContext<'a> {
    pub(crate) line: u64,
    pub(crate) at: Option<Timestamp>,
    /// Raw id, if any.
    pub(crate) foreign: Option<&'a str>,
    /// Raw record.
    pub(crate) text: &'a str,
}

/// One assistant message.
pub(crate) struct ImportedMessage<'a> {
    /// Response id; generated if `None`.
    pub(crate) response: Option<Cow<'a, str>>,
    pub(crate) model: Cow<'a, str>,
    /// Raw blocks.
    pub(crate) blocks: Vec<String>,
    pub(crate) calls: Vec<Cow<'a, str>>,
    pub(crate) usage: Usage,
    pub(crate) stop_reason: Option<Cow<'a, str>>,
}

impl<'a> SessionBuilder<'a> {
    pub(crate) fn new(format: SessionFormat) -> SessionBuilder<'a> {
        let mut session = ParsedSession::default();
        session.about.program = format.program().into();
        let name = match format {
            SessionFormat::Copilot => "copilot",
            SessionFormat::Gemini => "gemini",
            SessionFormat::MiniSweAgent => "mini",
            _ => "pi",
        };
        SessionBuilder {
            session,
            responses: ResponseTracker::default(),
            number_of: FxHashMap::default(),
            boundaries: Vec::new(),
            name,
        }
    }

    /// Index of the next step.
    pub(crate) fn next_step(&self) -> usize {
        self.session.steps.len()
    }

    pub(crate) fn push(&mut self, place: RecordContext<'a>, act: StepAction<'a>) {
        self.session.steps.push(ImportStep { line: place.line, at: place.at, foreign: place.foreign, act });
    }

    /// Stores the whole record as an internal entry.
    pub(crate) fn push_internal(
        &mut self,
        place: RecordContext<'a>,
        what: impl Into<Cow<'a, str>>,
        reason: InternalReason,
    ) {
        self.push_internal_part(place, what, place.text, reason);
    }

    /// Stores a part of the record as an internal entry.
    pub(crate) fn push_internal_part(
        &mut self,
        place: RecordContext<'a>,
        what: impl Into<Cow<'a, str>>,
        raw: &'a str,
        reason: InternalReason,
    ) {
        self.session.steps.push(ImportStep::internal(place.line, place.at, what, raw, reason));
    }

    /// Adds user content; without blocks, an internal entry.
    pub(crate) fn user(&mut self, place: RecordContext<'a>, origin: MessageOrigin, blocks: &[String]) {
        if blocks.is_empty() {
            return self.push_internal(place, "user", InternalReason::NothingForTheModel);
        }
        let content = content_blocks::list(blocks.iter().map(String::as_str)).into();
        self.push(place, StepAction::User { origin, content, results: 0 });
    }

    /// Adds tool results.
    pub(crate) fn results(&mut self, place: RecordContext<'a>, results: &[String]) {
        let content = content_blocks::list(results.iter().map(String::as_str)).into();
        self.push(
            place,
            StepAction::User { origin: MessageOrigin::Tool, content, results: results.len() as u64 },
        );
    }

    /// Adds an attachment from a raw string of another agent, with our tags escaped.
    pub(crate) fn attachment(
        &mut self,
        place: RecordContext<'a>,
        what: impl Into<Cow<'a, str>>,
        literal: &str,
    ) {
        let content =
            content_blocks::list([text_block(&pal_model::escape_tags_in_json(literal)).as_str()]).into();
        self.push(place, StepAction::Attachment { what: what.into(), content, raw: None });
    }

    /// Adds an assistant message.
    pub(crate) fn assistant(&mut self, place: RecordContext<'a>, said: ImportedMessage<'a>) {
        let step = self.next_step();
        let id =
            said.response.unwrap_or_else(|| format!("{}-{}", self.name, self.responses.len() + 1).into());
        let number = match self.number_of.get(&id) {
            Some(number) => *number,
            None => {
                let number = self.responses.open(id.clone(), step);
                self.number_of.insert(id.clone(), number);
                number
            }
        };
        let reported = ResponseReport {
            model: said.model.clone(),
            usage: if said.usage.context_tokens() == 0 {
                UsageFigure::Nothing
            } else {
                UsageFigure::Known(said.usage)
            },
            stop_reason: said.stop_reason,
        };
        self.responses.extend(number, step, reported);
        let content = content_blocks::list(said.blocks.iter().map(String::as_str)).into();
        self.push(
            place,
            StepAction::Assistant { response: id, model: said.model, content, calls: said.calls },
        );
    }

    /// Adds a boundary, after an internal entry with the record.
    pub(crate) fn boundary(
        &mut self,
        place: RecordContext<'a>,
        what: &'static str,
        boundary: BoundaryDraft<'a>,
    ) {
        self.push_internal(place, what, InternalReason::CarriedByNeighbour);
        self.boundaries.push(self.next_step());
        self.push(place, StepAction::Boundary(Box::new(boundary)));
    }

    /// Adds a model change, after an internal entry with the record.
    pub(crate) fn model_change(&mut self, place: RecordContext<'a>, what: &'static str, model: &str) {
        self.push_internal(place, what, InternalReason::CarriedByNeighbour);
        let kind = DecisionKind::Model { model: model.into() };
        let decision =
            Decision { kind, reason: "chosen in the imported session".into(), cost: DecisionCost::default() };
        self.push(place, StepAction::Decision(Box::new(decision)));
    }

    pub(crate) fn finish(self) -> ParsedSession<'a> {
        let mut session = self.session;
        session.steps = self.responses.insert_into(session.steps, &self.boundaries, &[]);
        session
    }
}
