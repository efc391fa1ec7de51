//! Writes steps as a log: session, prefix, and an entry per step, each following the previous one.

use std::collections::BTreeSet;

use pal_model::{
    Content, EntryDraft, EntryId, EntryRef, IdSource, MessageOrigin, PreservedRange, PriorUserMessage,
    PromptPrefix, RequestRecord, RequestSource, ResponseId, ResponseRecord, SessionSnapshot, SharedText,
    Timestamp, TokenEstimator, Usage, UsageBasis,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ImportedSession;
use crate::content_blocks::{self, quoted, text_block, tool_name};
use crate::import_report::ImportReport;
use crate::import_step::{BoundaryDraft, ImportStep, ParsedSession, StepAction};
use crate::internal_records::InternalRecord;
use crate::session_format::SessionFormat;

/// Writes the log of a session; its ids follow from `seed`.
pub(crate) fn write(
    source: &[u8],
    seed: u64,
    format: SessionFormat,
    session: &ParsedSession<'_>,
    measure: &dyn TokenEstimator,
) -> ImportedSession {
    let tools = tools(&session.steps);
    let unseen_tokens = unseen_tokens(session, measure);
    let first = session.steps.iter().find_map(|step| step.at).unwrap_or_default();
    let mut writer = ImportWriter::new((source.len(), seed), format, session, first);
    writer.report.unseen_tokens = unseen_tokens;
    writer.push("session", EntryDraft::session(&session.about));
    let system = content_blocks::list(
        session
            .system
            .iter()
            .map(|text| text_block(&quoted(text)))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str),
    );
    let prefix = PromptPrefix {
        system: SharedText::from(system),
        tools: SharedText::from(tool_schemas(&tools)),
        context: Content::default(),
        unseen_tokens,
        notes: Default::default(),
    };
    let place = writer.push("prefix", EntryDraft::prefix(&prefix));
    writer.snapshot.prefix = Some(EntryRef { id: place.0, offset: Some(place.1) });
    let answers = estimate_answers(session, measure);
    for step in &session.steps {
        writer.step(step, &answers);
    }
    ImportedSession { log: writer.log, report: writer.report }
}

/// Id and byte offset of an entry.
type EntryPosition = (EntryId, u64);

struct ImportWriter {
    log: String,
    report: ImportReport,
    ids: IdSource,
    last: Option<EntryId>,
    /// Time of the current step, or of the last one with a time.
    at: Timestamp,
    /// Newest time so far; ids are never dated earlier, so that they sort.
    newest: Timestamp,
    /// Position of each step's entry.
    places: Vec<Option<EntryPosition>>,
    snapshot: SessionSnapshot,
}

impl ImportWriter {
    fn new(
        (bytes, seed): (usize, u64),
        format: SessionFormat,
        session: &ParsedSession<'_>,
        at: Timestamp,
    ) -> ImportWriter {
        let seen = &session.counts;
        let report = ImportReport {
            format,
            foreign_id: session.about.foreign_id.clone(),
            title: session.about.title.clone(),
            lines: seen.lines,
            records: seen.records,
            mended_lines: seen.mended,
            entries: Default::default(),
            messages: 0,
            user_messages: 0,
            tool_calls: 0,
            tool_results: 0,
            responses: 0,
            boundaries: 0,
            rewinds: seen.rewinds,
            withdrawn: seen.withdrawn,
            models: Default::default(),
            usage: Default::default(),
            unseen_tokens: 0,
            estimated_outputs: 0,
            internal_records: Vec::new(),
        };
        ImportWriter {
            log: String::with_capacity(bytes + session.steps.len() * 192 + 4096),
            report,
            ids: IdSource::seeded(seed),
            last: None,
            at,
            newest: at,
            places: Vec::with_capacity(session.steps.len()),
            snapshot: SessionSnapshot { title: session.about.title.clone(), ..SessionSnapshot::default() },
        }
    }

    fn push(&mut self, kind: &'static str, draft: EntryDraft) -> EntryPosition {
        self.newest = self.newest.max(self.at);
        let id = self.ids.next_id(self.newest);
        let offset = self.log.len() as u64;
        self.log.push_str(&draft.into_line(id, self.last, self.at, None));
        self.log.push('\n');
        self.last = Some(id);
        *self.report.entries.entry(kind).or_default() += 1;
        (id, offset)
    }

    fn step(&mut self, step: &ImportStep<'_>, answers: &FxHashMap<&str, u64>) {
        self.at = step.at.unwrap_or(self.at);
        let foreign = |draft: EntryDraft| match step.foreign {
            Some(id) => draft.with_field("foreign", id),
            None => draft,
        };
        let place = match &step.act {
            StepAction::Reserved => None,
            StepAction::User { origin, content, results } => {
                self.report.messages += 1;
                self.report.user_messages += u64::from(*origin == MessageOrigin::Person);
                self.report.tool_results += results;
                let place = self.push("user", foreign(EntryDraft::user(*origin, content)));
                if *origin == MessageOrigin::Person {
                    self.keep_user_text(place.0, content);
                }
                Some(place)
            }
            StepAction::Assistant { response, model, content, calls } => {
                self.report.messages += 1;
                self.report.tool_calls += calls.len() as u64;
                let response = ResponseId::from(response.as_ref());
                let model = (!model.is_empty()).then_some(model.as_ref());
                Some(self.push("assistant", foreign(EntryDraft::assistant(Some(&response), model, content))))
            }
            StepAction::Attachment { what, content, raw } => {
                let draft = foreign(EntryDraft::attachment(what, content));
                let draft = match raw {
                    Some(raw) => draft.with_field("raw", raw),
                    None => draft,
                };
                Some(self.push("attachment", draft))
            }
            StepAction::Shown { content } => {
                Some(self.push("virtual", foreign(EntryDraft::user_only(content))))
            }
            StepAction::Internal { what, raw, reason, detail } => {
                let mut draft = EntryDraft::internal(what, raw);
                if let Some(detail) = detail {
                    draft = draft
                        .with_field("line", &step.line.to_string())
                        .with_field("reason", &quoted(detail));
                }
                self.report.internal_records.push(InternalRecord {
                    line: step.line,
                    what: what.to_string(),
                    reason: *reason,
                    detail: detail.clone(),
                });
                Some(self.push("internal", draft))
            }
            StepAction::Request { model } => {
                let request = RequestRecord::new(RequestSource::main(), self.last, model.as_ref().into());
                Some(self.push("request", EntryDraft::request(&request)))
            }
            StepAction::Response { response, model, usage, stop_reason } => {
                self.report.responses += 1;
                *self.report.models.entry(model.to_string()).or_default() += 1;
                let estimated = answers.get(response.as_ref()).copied().unwrap_or(0);
                let usage = &completed_usage(usage, stop_reason.is_some(), estimated);
                self.report.estimated_outputs += u64::from(usage.basis == UsageBasis::Estimated);
                self.snapshot.totals.add(usage, None);
                self.report.usage = self.snapshot.totals;
                self.snapshot.model = Some(model.as_ref().into());
                let response = ResponseRecord {
                    source: RequestSource::main(),
                    response: response.as_ref().into(),
                    model: model.as_ref().into(),
                    usage: usage.clone(),
                    stop_reason: stop_reason.as_deref().map(Into::into),
                    cost: None,
                    cache_break: None,
                };
                Some(self.push("response", EntryDraft::response(&response)))
            }
            StepAction::Boundary(boundary) => Some(self.boundary(boundary, foreign)),
            StepAction::Decision(decision) => Some(self.push("decision", EntryDraft::decision(decision))),
        };
        self.places.push(place);
    }

    /// Keeps user text for later boundaries, newest first, up to a byte limit.
    fn keep_user_text(&mut self, entry: EntryId, content: &str) {
        const BYTES_MAX: usize = 48_000;
        let content = Content::parse(&SharedText::from(content));
        let texts: Vec<_> = content.blocks().iter().filter_map(|block| block.string("text")).collect();
        let text = texts.join("\n").trim().to_owned();
        if text.is_empty() {
            return;
        }
        let carried = &mut self.snapshot.user_messages;
        carried.messages.push(PriorUserMessage { entry, text });
        let mut bytes: usize = carried.messages.iter().map(|words| words.text.len()).sum();
        while bytes > BYTES_MAX {
            bytes -= carried.messages.remove(0).text.len();
            carried.omitted += 1;
        }
    }

    fn boundary(
        &mut self,
        boundary: &BoundaryDraft<'_>,
        foreign: impl Fn(EntryDraft) -> EntryDraft,
    ) -> EntryPosition {
        self.report.boundaries += 1;
        let preserved = boundary.preserved.and_then(|(head, tail, placement)| {
            let stretch = self.places.get(head..=tail)?;
            let head = stretch.iter().flatten().next()?;
            let tail = stretch.iter().flatten().next_back()?;
            Some(PreservedRange { head: head.0, tail: tail.0, placement, offset: Some(head.1) })
        });
        let written = pal_model::Boundary {
            trigger: boundary.trigger.as_ref().into(),
            method: "imported".into(),
            summary: Content::parse(&SharedText::from(boundary.summary.as_ref())),
            tokens_before: boundary.tokens_before,
            tokens_after: boundary.tokens_after,
            messages_summarised: boundary.messages_summarised,
            preserved,
            instructions: boundary.instructions.clone(),
            snapshot: self.snapshot.clone(),
            ..pal_model::Boundary::default()
        };
        self.push("boundary", foreign(EntryDraft::boundary(&written)))
    }
}

/// Names of all called tools, valid in a request.
fn tools(steps: &[ImportStep<'_>]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for step in steps {
        if let StepAction::Assistant { calls, .. } = &step.act {
            for name in calls {
                if !names.contains(name.as_ref()) {
                    names.insert(tool_name(name));
                }
            }
        }
    }
    names
}

/// Minimal schemas that make calls of these tools valid.
fn tool_schemas(names: &BTreeSet<String>) -> String {
    let schemas: Vec<String> = names
        .iter()
        .map(|name| {
            let description = quoted(&format!("The tool {name} as it occurs in the imported session."));
            format!(r#"{{"name":"{name}","description":{description},"input_schema":{{"type":"object"}}}}"#)
        })
        .collect();
    content_blocks::list(schemas.iter().map(String::as_str))
}

/// Estimated tokens of the content of each response.
fn estimate_answers<'s>(
    session: &'s ParsedSession<'_>,
    measure: &dyn TokenEstimator,
) -> FxHashMap<&'s str, u64> {
    let is_open = |step: &'s ImportStep<'_>| match &step.act {
        StepAction::Response { response, stop_reason: None, .. } => Some(response.as_ref()),
        _ => None,
    };
    let open: FxHashSet<&str> = session.steps.iter().filter_map(is_open).collect();
    let mut contents: FxHashMap<&str, f64> = FxHashMap::default();
    for step in &session.steps {
        if let StepAction::Assistant { response, model, content, .. } = &step.act
            && open.contains(response.as_ref())
        {
            *contents.entry(response).or_default() += content_blocks::estimate(content, model, measure);
        }
    }
    contents.into_iter().map(|(response, tokens)| (response, tokens.max(0.0) as u64)).collect()
}

/// Usage of a response. Transcripts of streams may hold the output count of the first event, a placeholder:
/// without a stop reason, a count below half of the estimate is replaced by it. Short texts keep theirs, since
/// estimates of them are rough.
fn completed_usage(usage: &Usage, is_complete: bool, estimated: u64) -> Usage {
    const DIFFERENCE_MIN: u64 = 50;
    let enough = usage.output_tokens.saturating_mul(2).saturating_add(DIFFERENCE_MIN);
    let is_placeholder = !is_complete && usage.has_prompt() && estimated > enough;
    match is_placeholder {
        true => Usage { output_tokens: estimated, basis: UsageBasis::Estimated, ..usage.clone() },
        false => usage.clone(),
    }
}

/// Tokens that the first response with usage reports beyond the session's visible content.
fn unseen_tokens(session: &ParsedSession<'_>, measure: &dyn TokenEstimator) -> u64 {
    let answered = session.steps.iter().enumerate().find_map(|(at, step)| match &step.act {
        StepAction::Response { response, model, usage, .. } if usage.prompt_tokens() > 0 => {
            Some((at, response, model, usage.prompt_tokens()))
        }
        _ => None,
    });
    let Some((at, response, model, prompt_tokens)) = answered else { return 0 };
    let before = &session.steps[..at];
    let start = before.iter().rposition(|step| matches!(step.act, StepAction::Boundary(_))).unwrap_or(0);
    let mut seen: f64 = session.system.iter().map(|text| measure.text(model, text)).sum();
    for step in &before[start..] {
        let content = match &step.act {
            // Content after the first record of a response was not part of its prompt.
            StepAction::Assistant { response: of, .. } if of == response => break,
            StepAction::Assistant { content, .. }
            | StepAction::User { content, .. }
            | StepAction::Attachment { content, .. } => content,
            StepAction::Boundary(boundary) => &boundary.summary,
            _ => continue,
        };
        seen += content_blocks::estimate(content, model, measure);
    }
    prompt_tokens.saturating_sub(seen.max(0.0).ceil() as u64)
}
