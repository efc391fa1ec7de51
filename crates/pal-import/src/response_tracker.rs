//! Tracks the responses of a session: their records, and where request and response entries belong.

use std::borrow::Cow;

use pal_model::{Usage, unescape};
use rustc_hash::FxHashMap;

use crate::import_step::{ImportStep, StepAction};

#[derive(Default)]
pub(crate) struct ResponseTracker<'a> {
    by_id: FxHashMap<&'a str, usize>,
    all: Vec<TrackedResponse<'a>>,
}

struct TrackedResponse<'a> {
    id: Cow<'a, str>,
    first: usize,
    last: usize,
    reported: ResponseReport<'a>,
}

/// Response data reported by a record; the last record has the final figures.
#[derive(Default)]
pub(crate) struct ResponseReport<'a> {
    pub(crate) model: Cow<'a, str>,
    pub(crate) usage: UsageFigure<'a>,
    pub(crate) stop_reason: Option<Cow<'a, str>>,
}

/// Usage, parsed only when it is final.
#[derive(Default)]
pub(crate) enum UsageFigure<'a> {
    #[default]
    Nothing,
    Raw(&'a str),
    Known(Usage),
}

impl UsageFigure<'_> {
    fn into_usage(self) -> Usage {
        match self {
            UsageFigure::Nothing => Usage::default(),
            UsageFigure::Raw(usage) => serde_json::from_str(usage).unwrap_or_default(),
            UsageFigure::Known(usage) => usage,
        }
    }
}

impl<'a> ResponseTracker<'a> {
    /// Adds the record at `step` and its report to the response with this raw id. Returns the id.
    pub(crate) fn record(
        &mut self,
        step: usize,
        id: Option<&'a str>,
        reported: ResponseReport<'a>,
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

    /// Starts a response with a generated id; returns its number.
    pub(crate) fn open(&mut self, id: Cow<'a, str>, step: usize) -> usize {
        self.all.push(TrackedResponse { id, first: step, last: step, reported: ResponseReport::default() });
        self.all.len() - 1
    }

    /// Adds the record at `step` to the response with this number.
    pub(crate) fn extend(&mut self, at: usize, step: usize, reported: ResponseReport<'a>) {
        let response = &mut self.all[at];
        response.last = step;
        let newest = &mut response.reported;
        newest.model = reported.model;
        newest.stop_reason = reported.stop_reason.or(newest.stop_reason.take());
        if !matches!(reported.usage, UsageFigure::Nothing) {
            newest.usage = reported.usage;
        }
    }

    /// Sets the usage of a response.
    pub(crate) fn set_usage(&mut self, at: usize, usage: Usage) {
        self.all[at].reported.usage = UsageFigure::Known(usage);
    }

    /// Number of responses.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Inserts a request before the first record of each response and its end after the last.
    ///
    /// A response was given before the boundaries that follow its first record, so it ends before them; a
    /// response whose records a boundary moves after itself (`early`: step and boundary) was also requested
    /// before it.
    pub(crate) fn insert_into(
        self,
        steps: Vec<ImportStep<'a>>,
        boundaries: &[usize],
        early: &[(usize, usize)],
    ) -> Vec<ImportStep<'a>> {
        let early: FxHashMap<usize, usize> = early.iter().copied().collect();
        // Step to insert before, and the order there: ends precede requests.
        let mut inserted: Vec<((usize, usize), ImportStep<'a>)> = Vec::with_capacity(self.all.len() * 2);
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
            let act = StepAction::Request { model: response.reported.model.clone() };
            let (request_line, asked_at) = (asked.line, asked.at);
            let (end_line, given_at) = (given.line, given.at);
            inserted.push((request, ImportStep { line: request_line, at: asked_at, foreign: None, act }));
            let act = StepAction::Response {
                response: response.id,
                model: response.reported.model,
                usage: response.reported.usage.into_usage(),
                stop_reason: response.reported.stop_reason,
            };
            inserted.push((end, ImportStep { line: end_line, at: given_at, foreign: None, act }));
        }
        inserted.sort_by_key(|(place, _)| *place);
        merge(steps, inserted)
    }
}

/// Inserts each entry before its step and updates the step numbers in boundaries.
fn merge<'a>(
    steps: Vec<ImportStep<'a>>,
    inserted: Vec<((usize, usize), ImportStep<'a>)>,
) -> Vec<ImportStep<'a>> {
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
        if let StepAction::Boundary(boundary) = &mut step.act
            && let Some((head, tail, _)) = &mut boundary.preserved
        {
            (*head, *tail) = (moved[*head], moved[*tail]);
        }
    }
    merged
}
