//! Steps for the formats that log one message a record: what their readers share.

use std::borrow::Cow;

use pal_model::{Cost, Decision, DecisionKind, Origin, Timestamp, Usage};

use rustc_hash::FxHashMap;

use crate::aside::Reason;
use crate::blocks::{self, text_block};
use crate::format::Format;
use crate::responses::{Counted, Reported, Responses};
use crate::step::{Act, Boundary, Session, Step};

/// A session being read.
pub(crate) struct Builder<'a> {
    pub(crate) session: Session<'a>,
    responses: Responses<'a>,
    /// The responses by their ids: records with equal ones belong together.
    number_of: FxHashMap<Cow<'a, str>, usize>,
    boundaries: Vec<usize>,
    name: &'static str,
}

/// A record being read.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) line: u64,
    pub(crate) at: Option<Timestamp>,
    /// Its raw id, where it has one.
    pub(crate) foreign: Option<&'a str>,
    /// The record as it stands.
    pub(crate) text: &'a str,
}

/// One message of the model.
pub(crate) struct Said<'a> {
    /// Its id; none to get one of our own.
    pub(crate) response: Option<Cow<'a, str>>,
    pub(crate) model: Cow<'a, str>,
    /// Raw blocks.
    pub(crate) blocks: Vec<String>,
    pub(crate) calls: Vec<Cow<'a, str>>,
    pub(crate) usage: Usage,
    pub(crate) stop_reason: Option<Cow<'a, str>>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(format: Format) -> Builder<'a> {
        let mut session = Session::default();
        session.about.program = format.program().into();
        let name = match format {
            Format::Copilot => "copilot",
            Format::Gemini => "gemini",
            Format::MiniSweAgent => "mini",
            _ => "pi",
        };
        Builder {
            session,
            responses: Responses::default(),
            number_of: FxHashMap::default(),
            boundaries: Vec::new(),
            name,
        }
    }

    /// The step that comes next.
    pub(crate) fn next_step(&self) -> usize {
        self.session.steps.len()
    }

    pub(crate) fn push(&mut self, place: Place<'a>, act: Act<'a>) {
        self.session.steps.push(Step { line: place.line, at: place.at, foreign: place.foreign, act });
    }

    /// Keeps the whole record aside.
    pub(crate) fn aside(&mut self, place: Place<'a>, what: impl Into<Cow<'a, str>>, reason: Reason) {
        self.keep(place, what, place.text, reason);
    }

    /// Keeps a part of the record aside.
    pub(crate) fn keep(
        &mut self,
        place: Place<'a>,
        what: impl Into<Cow<'a, str>>,
        raw: &'a str,
        reason: Reason,
    ) {
        self.session.steps.push(Step::aside(place.line, place.at, what, raw, reason));
    }

    /// Something said on the user's side; without blocks there is nothing in it.
    pub(crate) fn user(&mut self, place: Place<'a>, origin: Origin, blocks: &[String]) {
        if blocks.is_empty() {
            return self.aside(place, "user", Reason::NothingForTheModel);
        }
        let content = blocks::list(blocks.iter().map(String::as_str)).into();
        self.push(place, Act::User { origin, content, results: 0 });
    }

    /// Answers to calls.
    pub(crate) fn results(&mut self, place: Place<'a>, results: &[String]) {
        let content = blocks::list(results.iter().map(String::as_str)).into();
        self.push(place, Act::User { origin: Origin::Tool, content, results: results.len() as u64 });
    }

    /// Something added for the model, as raw text: words of another agent, in which no tag of ours may stand.
    pub(crate) fn attachment(&mut self, place: Place<'a>, what: impl Into<Cow<'a, str>>, literal: &str) {
        let content = blocks::list([text_block(&pal_model::defuse_json(literal)).as_str()]).into();
        self.push(place, Act::Attachment { what: what.into(), content, raw: None });
    }

    /// A whole response of the model.
    pub(crate) fn assistant(&mut self, place: Place<'a>, said: Said<'a>) {
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
        let reported = Reported {
            model: said.model.clone(),
            usage: if said.usage.context_tokens() == 0 {
                Counted::Nothing
            } else {
                Counted::Known(said.usage)
            },
            stop_reason: said.stop_reason,
        };
        self.responses.extend(number, step, reported);
        let content = blocks::list(said.blocks.iter().map(String::as_str)).into();
        self.push(place, Act::Assistant { response: id, model: said.model, content, calls: said.calls });
    }

    /// A boundary; the record is kept beside it.
    pub(crate) fn boundary(&mut self, place: Place<'a>, what: &'static str, boundary: Boundary<'a>) {
        self.aside(place, what, Reason::Beside);
        self.boundaries.push(self.next_step());
        self.push(place, Act::Boundary(Box::new(boundary)));
    }

    /// Another model from here on; the record is kept beside it.
    pub(crate) fn model_change(&mut self, place: Place<'a>, what: &'static str, model: &str) {
        self.aside(place, what, Reason::Beside);
        let kind = DecisionKind::Model { model: model.into() };
        let decision =
            Decision { kind, reason: "chosen in the imported session".into(), cost: Cost::default() };
        self.push(place, Act::Decision(Box::new(decision)));
    }

    pub(crate) fn finish(self) -> Session<'a> {
        let mut session = self.session;
        session.steps = self.responses.insert_into(session.steps, &self.boundaries, &[]);
        session
    }
}
