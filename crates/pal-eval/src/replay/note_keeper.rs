//! Session notes in a replay (§7.1–7.2): updated by a fork or by the agent itself, and charged like any request.
//!
//! The text comes from the conversation ([`ExtractiveNotes`]). The engine decides when notes are written, with which directive, what the
//! fork sees and how a compaction uses them. A fork is assumed to write 60 tokens per second, so notes may arrive too late for a
//! compaction, which waits 15 seconds.

mod extractive_notes;

use std::time::Duration;

use pal_context::{
    Compaction as Machine, CompactionRequest, CompactionStep as Next, INLINE_NOTES_DIRECTIVE,
    NOTES_DIRECTIVE, NotesCadence, NotesCoverage, SessionNotes, SummaryMethod, notes_directive,
};
use pal_engine::{Session, SessionConfig};
use pal_model::{
    Boundary, ContentBlock, EntryBody, EntryDraft, LogEntry, MessageOrigin, ModelCard, ResponseId,
    SharedText, Timestamp, blocks_to_json, escape_into,
};
use pal_sim::{ModelOutput, OutputBlock};
use pal_view::{Estimator, View};

use crate::replay::ReplayError;
use crate::replay::notes_report::{NotesAudit, NotesReport};
use crate::replay::replay_options::{ReplayNoteWriter, ReplayNotes};
use crate::replay::replay_provider::ReplayProvider;
use crate::replay::replay_totals::ReplayTotals;
use extractive_notes::ExtractiveNotes;

/// Where the notes would be: the same wherever the replay keeps its files.
const PATH: &str = "session/notes/notes.md";
/// Most tokens of an answer of a fork, as the agent has it.
const OUTPUT_TOKENS: u64 = 8_000;
/// Duration of a fork: until it begins, and for each token of its answer.
const BEGINS_AFTER_MS: u64 = 2_000;
const TOKENS_PER_SECOND: u64 = 60;
/// Maximum wait of a compaction for it.
const WAIT: Duration = Duration::from_secs(15);
/// As the calls of the agent that write notes are named.
const CALL: &str = "toolu_notes_";

/// Keeps notes in a replay.
pub(crate) struct ReplayNoteKeeper {
    taking: ReplayNotes,
    cadence: NotesCadence,
    written: ExtractiveNotes,
    noted: Option<NotesCoverage>,
    begun: Option<u64>,
    /// A running fork: its end, the entries it covers, and the text it writes.
    running: Option<(Timestamp, NotesCoverage, ExtractiveNotes)>,
    /// State at the last reminder of the agent.
    reminded: Option<NotesCoverage>,
    is_asked: bool,
    /// Edits that the agent makes with its next answer.
    passing: Option<Vec<ContentBlock>>,
    pub(crate) taken: NotesReport,
}

impl ReplayNoteKeeper {
    pub(crate) fn new(taking: ReplayNotes, engine: &SessionConfig) -> ReplayNoteKeeper {
        let by = match taking.by {
            ReplayNoteWriter::Fork => "fork",
            ReplayNoteWriter::Main => "main",
        };
        ReplayNoteKeeper {
            cadence: taking.cadence.within(&engine.limits),
            taking,
            written: ExtractiveNotes::default(),
            noted: None,
            begun: None,
            running: None,
            reminded: None,
            is_asked: false,
            passing: None,
            taken: NotesReport { by, ..NotesReport::default() },
        }
    }

    fn is_due(&mut self, session: &Session) -> bool {
        let begun = *self.begun.get_or_insert_with(|| session.view().size().tokens);
        self.cadence.is_due(session.view(), self.noted.as_ref(), begun)
    }

    /// An answer is in the log: a fork begins if notes are due.
    pub(crate) fn answered(
        &mut self,
        session: &Session,
        engine: &SessionConfig,
        card: &ModelCard,
        provider: &mut ReplayProvider,
        now: Timestamp,
    ) -> Option<ReplayTotals> {
        self.apply_finished_notes(now);
        if self.taking.by != ReplayNoteWriter::Fork || !self.is_due(session) || self.running.is_some() {
            return None;
        }
        let mut fork = session.fork(engine, now);
        let covers = NotesCoverage { last: fork.newest()?, tokens: session.view().size().tokens };
        let estimator = session.view().estimator();
        let directive = notes_directive(NOTES_DIRECTIVE, PATH, &self.written.text(), estimator);
        let stretch = stretch(session.view(), self.noted, covers);
        let (next, edits) = self.written.grown(&stretch, estimator, self.taking.writes_whole);
        fork.push_user_text(&directive);
        let request = fork.request(OUTPUT_TOKENS.min(card.max_output));
        let call = provider.call(&request, fork.betas(), card);
        let body = call.body.to_joined_string();
        let blocks = edits.iter().map(|input| edit_block(None, input, self.taking.writes_whole)).collect();
        let replied = provider.ask(now, &call, &body, Some(ModelOutput { blocks, stop: None }));
        let exchange = replied.exchange?;
        let mut took = ReplayTotals::default();
        took.add(&exchange.usage, exchange.cost);
        self.taken.forks.absorb(&took);
        self.taken.written_tokens += exchange.usage.output_tokens;
        let takes = BEGINS_AFTER_MS + exchange.usage.output_tokens * 1_000 / TOKENS_PER_SECOND;
        self.running = Some((now.after(Duration::from_millis(takes)), covers, next));
        Some(took)
    }

    /// Applies the notes of a fork that has finished by now.
    fn apply_finished_notes(&mut self, now: Timestamp) {
        if let Some((_, covers, written)) = self.running.take_if(|(until, ..)| *until <= now) {
            self.keep(covers, written);
        }
    }

    fn keep(&mut self, covers: NotesCoverage, written: ExtractiveNotes) {
        self.taken.updates += 1;
        self.noted = Some(covers);
        self.written = written;
    }

    /// A request is about to leave: the agent is reminded if it is to write notes itself, and writes them with an answer that
    /// makes calls anyway.
    pub(crate) fn answer_request(
        &mut self,
        session: &mut Session,
        answer: &mut ModelOutput,
        now: Timestamp,
    ) -> Result<(), ReplayError> {
        if self.passing.take().is_some() {
            // The answer that was to write them never came.
            self.running = None;
        }
        self.apply_finished_notes(now);
        if self.taking.by != ReplayNoteWriter::Main {
            return Ok(());
        }
        let tokens = session.view().size().tokens;
        let cadence = self.cadence;
        let was_told = self.reminded.is_some_and(|reminded| !cadence.has_grown(session.view(), &reminded));
        if self.is_due(session) && !was_told {
            let notes = if self.noted.is_none() { self.written.text() } else { String::new() };
            let reminder = notes_directive(INLINE_NOTES_DIRECTIVE, PATH, &notes, session.view().estimator());
            let estimator = session.view().estimator();
            self.taken.reminder_tokens += estimator.total(estimator.text(&reminder));
            session.attach("notes", &reminder, now)?;
            self.reminded = session.view().newest_id().map(|last| NotesCoverage { last, tokens });
            self.is_asked = true;
        }
        let makes_calls = answer.blocks.iter().any(|block| matches!(block, OutputBlock::ToolUse { .. }));
        if self.is_asked && makes_calls {
            self.is_asked = false;
            let estimator = session.view().estimator();
            let last =
                session.view().branch().iter().rev().find(|entry| is_said(entry)).map(|entry| entry.id);
            let Some(last) = last else { return Ok(()) };
            let covers = NotesCoverage { last, tokens };
            let stretch = stretch(session.view(), self.noted, covers);
            let (next, edits) = self.written.grown(&stretch, estimator, self.taking.writes_whole);
            let number = self.taken.updates;
            let mut blocks = Vec::new();
            for (at, input) in edits.iter().enumerate() {
                let id = format!("{CALL}{number}_{at}");
                self.taken.written_tokens += estimator.total(estimator.text(input.as_str()));
                let name = tool(self.taking.writes_whole);
                blocks.push(ContentBlock::parse(SharedText::from(format!(
                    r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#
                ))));
                answer.blocks.push(edit_block(Some(id), input, self.taking.writes_whole));
            }
            self.passing = Some(blocks);
            self.running = Some((now, covers, next));
        }
        Ok(())
    }

    /// The calls that the agent made for notes with the answer that is being recorded: as an entry of it.
    pub(crate) fn calls(&self, response: &ResponseId, model: &str) -> Option<EntryDraft> {
        let blocks = self.passing.as_ref()?;
        Some(EntryDraft::assistant(Some(response), Some(model), &blocks_to_json(blocks)))
    }

    /// Their results.
    pub(crate) fn results(&mut self) -> Option<EntryDraft> {
        let blocks = self.passing.take()?;
        let mut content = String::from("[");
        for (at, id) in blocks.iter().filter_map(ContentBlock::tool_use_id).enumerate() {
            content.push_str(if at > 0 { "," } else { "" });
            content.push_str(r#"{"type":"tool_result","tool_use_id":"#);
            escape_into(&mut content, id.as_str());
            content.push_str(r#","content":"session/notes/notes.md was changed."}"#);
        }
        content.push(']');
        Some(EntryDraft::user(MessageOrigin::Tool, &content))
    }

    /// The notes as a compaction gets them.
    pub(crate) fn for_compaction(&mut self, now: Timestamp) -> Option<SessionNotes> {
        self.apply_finished_notes(now.after(WAIT));
        self.taken.late += u64::from(self.running.is_some());
        let noted = self.noted?;
        Some(SessionNotes { text: self.written.text(), path: PATH.to_owned(), last_covered: noted.last })
    }

    /// A boundary was made: by notes, and what a whole summary of the same stretch would have kept; or by another way.
    pub(crate) fn compacted(&mut self, boundary: &Boundary, full: Option<&Boundary>, view: &View) {
        let estimator = view.estimator();
        if boundary.method == SummaryMethod::Notes.name() {
            self.taken.kept.absorb(&NotesAudit::of(boundary, estimator));
            self.taken.full.absorb(&full.map(|full| NotesAudit::of(full, estimator)).unwrap_or_default());
        }
        if let Some(noted) = &mut self.noted {
            noted.tokens = view.size().tokens;
        }
        self.reminded = None;
        self.is_asked = false;
    }

    pub(crate) fn finish(mut self, estimator: Estimator) -> NotesReport {
        self.taken.longest = estimator.total(estimator.text(&self.written.text()));
        self.taken
    }
}

/// A whole summary of the same range, made without a model.
pub(crate) fn full_summary(
    order: &CompactionRequest,
    view: &View,
    engine: &SessionConfig,
) -> Option<Boundary> {
    let order =
        CompactionRequest { notes: None, methods: Some(vec![SummaryMethod::Extractive]), ..order.clone() };
    let mut machine = Machine::new(view, order, &engine.limits, &engine.policy, &engine.paths);
    loop {
        match machine.next(view) {
            Next::ReadFiles(_) => machine.receive_files(Vec::new()),
            Next::Done(done) => return Some(done.boundary),
            Next::Ask(_) | Next::Failed { .. } => return None,
        }
    }
}

/// Notes as they would be by the end of a view, updated by the default cadence whatever calls are made.
pub(crate) fn extracted_notes(view: &View) -> Option<SessionNotes> {
    let cadence = NotesCadence::default();
    let estimator = view.estimator();
    let mut written = ExtractiveNotes::default();
    let mut last_covered = None;
    let (mut visible, mut new) = (0.0_f64, 0.0_f64);
    let mut unread: Vec<LogEntry> = Vec::new();
    for entry in view.branch() {
        if matches!(&entry.body, EntryBody::Boundary(boundary) if boundary.has_summary()) {
            visible = 0.0;
        }
        if !is_said(entry) {
            continue;
        }
        let tokens = estimator.total(estimator.json(&entry.line)) as f64;
        visible += tokens;
        new += tokens;
        unread.push(entry.clone());
        let share = visible / cadence.share as f64;
        let due = match last_covered {
            None => cadence.first as f64,
            Some(_) => share.clamp(cadence.growth as f64, cadence.max_growth as f64),
        };
        if new >= due {
            (written, _) = written.grown(&unread, estimator, true);
            last_covered = Some(entry.id);
            unread.clear();
            new = 0.0;
        }
    }
    Some(SessionNotes { text: written.text(), path: PATH.to_owned(), last_covered: last_covered? })
}

/// Messages between the last notes and the end of their new coverage.
fn stretch(view: &View, noted: Option<NotesCoverage>, covers: NotesCoverage) -> Vec<LogEntry> {
    let branch = view.branch();
    let place = |id| branch.iter().rposition(|entry: &LogEntry| entry.id == id);
    let from = noted.and_then(|noted| place(noted.last)).map_or(0, |at| at + 1);
    let until = place(covers.last).map_or(branch.len(), |at| at + 1);
    branch.get(from..until).unwrap_or_default().iter().filter(|entry| is_said(entry)).cloned().collect()
}

fn is_said(entry: &LogEntry) -> bool {
    matches!(entry.body, EntryBody::User(_) | EntryBody::Assistant(_))
}

fn tool(writes_whole: bool) -> &'static str {
    if writes_whole { "Write" } else { "Edit" }
}

fn edit_block(id: Option<String>, input: &SharedText, writes_whole: bool) -> OutputBlock {
    OutputBlock::ToolUse { id, name: tool(writes_whole).to_owned(), input: input.clone() }
}
