//! The responses of a session: which records belong to each, and where its request and its end stand.

use std::borrow::Cow;

use pal_model::{Usage, unescape};
use rustc_hash::FxHashMap;

use crate::step::{Act, Step};

#[derive(Default)]
pub(crate) struct Responses<'a> {
    by_id: FxHashMap<&'a str, usize>,
    all: Vec<Response<'a>>,
}

struct Response<'a> {
    id: Cow<'a, str>,
    first: usize,
    last: usize,
    reported: Reported<'a>,
}

/// What a record reports of its response; of several records the last has the final figures.
#[derive(Default)]
pub(crate) struct Reported<'a> {
    pub(crate) model: Cow<'a, str>,
    pub(crate) usage: Counted<'a>,
    pub(crate) stop_reason: Option<Cow<'a, str>>,
}

/// A usage, read only when it is the final one.
#[derive(Default)]
pub(crate) enum Counted<'a> {
    #[default]
    Nothing,
    Raw(&'a str),
    Known(Usage),
}

impl Counted<'_> {
    fn into_usage(self) -> Usage {
        match self {
            Counted::Nothing => Usage::default(),
            Counted::Raw(usage) => serde_json::from_str(usage).unwrap_or_default(),
            Counted::Known(usage) => usage,
        }
    }
}

impl<'a> Responses<'a> {
    /// Notes that the record at `step` belongs to the response with this raw id, and what it reports; returns
    /// the id.
    pub(crate) fn record(
        &mut self,
        step: usize,
        id: Option<&'a str>,
        reported: Reported<'a>,
    ) -> Cow<'a, str> {
        let at = match id.and_then(|id| self.by_id.get(id)) {
            Some(at) => *at,
            None => {
                let named = id.and_then(unescape).filter(|id| !id.is_empty());
                let name = named.unwrap_or_else(|| format!("response-{}", self.all.len() + 1).into());
                let at = self.open(name, step);
                if let Some(id) = id {
                    self.by_id.insert(id, at);
                }
                at
            }
        };
        self.extend(at, step, reported);
        self.all[at].id.clone()
    }

    /// Begins a response with a name of our own; returns its number.
    pub(crate) fn open(&mut self, id: Cow<'a, str>, step: usize) -> usize {
        self.all.push(Response { id, first: step, last: step, reported: Reported::default() });
        self.all.len() - 1
    }

    /// The record at `step` belongs to the response with this number, too.
    pub(crate) fn extend(&mut self, at: usize, step: usize, reported: Reported<'a>) {
        let response = &mut self.all[at];
        response.last = step;
        let newest = &mut response.reported;
        newest.model = reported.model;
        newest.stop_reason = reported.stop_reason.or(newest.stop_reason.take());
        if !matches!(reported.usage, Counted::Nothing) {
            newest.usage = reported.usage;
        }
    }

    /// What the response with this number took.
    pub(crate) fn took(&mut self, at: usize, usage: Usage) {
        self.all[at].reported.usage = Counted::Known(usage);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Puts a request before the first record of each response and its end behind the last.
    ///
    /// A response was given before the boundaries that follow its first record, so it ends before them; and one
    /// whose records a boundary brings after itself (`early`: step and boundary) was asked for before it, too.
    pub(crate) fn insert_into(
        self,
        steps: Vec<Step<'a>>,
        boundaries: &[usize],
        early: &[(usize, usize)],
    ) -> Vec<Step<'a>> {
        let early: FxHashMap<usize, usize> = early.iter().copied().collect();
        // Before which step, and in which order there: ends come before the requests of others.
        let mut inserted: Vec<((usize, usize), Step<'a>)> = Vec::with_capacity(self.all.len() * 2);
        for response in self.all {
            let (mut request, mut end) = ((response.first, 1), (response.last + 1, 0));
            if let Some(boundary) = early.get(&response.first) {
                (request, end) = ((*boundary, 0), (*boundary, 0));
            } else if let Some(boundary) =
                boundaries.iter().find(|at| response.first < **at && **at < response.last)
            {
                end = (*boundary, 0);
            }
            let (asked, given) = (&steps[response.first], &steps[response.last]);
            let act = Act::Request { model: response.reported.model.clone() };
            let (request_line, asked_at) = (asked.line, asked.at);
            let (end_line, given_at) = (given.line, given.at);
            inserted.push((request, Step { line: request_line, at: asked_at, foreign: None, act }));
            let act = Act::Response {
                response: response.id,
                model: response.reported.model,
                usage: response.reported.usage.into_usage(),
                stop_reason: response.reported.stop_reason,
            };
            inserted.push((end, Step { line: end_line, at: given_at, foreign: None, act }));
        }
        inserted.sort_by_key(|(place, _)| *place);
        merge(steps, inserted)
    }
}

/// Puts each insertion before the step that it names. Steps that boundaries refer to move, so those follow.
fn merge<'a>(steps: Vec<Step<'a>>, inserted: Vec<((usize, usize), Step<'a>)>) -> Vec<Step<'a>> {
    let mut moved = Vec::with_capacity(steps.len());
    let mut merged = Vec::with_capacity(steps.len() + inserted.len());
    let mut inserted = inserted.into_iter().peekable();
    for (at, step) in steps.into_iter().enumerate() {
        while let Some((_, insertion)) = inserted.next_if(|((before, _), _)| *before <= at) {
            merged.push(insertion);
        }
        moved.push(merged.len());
        merged.push(step);
    }
    merged.extend(inserted.map(|(_, insertion)| insertion));
    for step in &mut merged {
        if let Act::Boundary(boundary) = &mut step.act
            && let Some((head, tail, _)) = &mut boundary.preserved
        {
            (*head, *tail) = (moved[*head], moved[*tail]);
        }
    }
    merged
}
