//! Notes in a replay (§7.1–7.2): kept as the agent would keep them, by a fork of the conversation or by the agent in passing,
//! and paid for.
//!
//! What is written is drawn from what was said ([`Written`]); when, what whoever writes is told, what a fork sees and what a
//! compaction makes of it is the engine's own. A fork is taken to write sixty tokens a second, so that notes may come too late
//! for a compaction, which waits for fifteen seconds.

mod written;

use std::time::Duration;

use pal_context::{
    Compaction as Machine, DIRECTIVE, How, Noted, Notes, NotesCadence, Order, PASSING, Step as Next,
    notes_directive,
};
use pal_engine::{Engine, Session};
use pal_model::{
    Block, Body, Boundary, Card, Draft, Entry, Origin, ResponseId, Text, Timestamp, escape_into, raw_list,
};
use pal_sim::{Answer, Said};
use pal_view::{Estimator, View};
use serde::Serialize;

use crate::ReplayError;
use crate::options::{NoteTaking, NotesBy};
use crate::provider::Provider;
use crate::recorded::texts;
use crate::report::Measured;
use written::Written;

/// Where the notes would be: the same wherever the replay keeps its files.
const PATH: &str = "session/notes/notes.md";
/// Most tokens of an answer of a fork, as the agent has it.
const OUTPUT_TOKENS: u64 = 8_000;
/// How long a fork takes: until it begins, and for each token of its answer.
const BEGINS_AFTER_MS: u64 = 2_000;
const TOKENS_PER_SECOND: u64 = 60;
/// How long a compaction waits for it.
const WAIT: Duration = Duration::from_secs(15);
/// As the calls of the agent that write notes are named.
const CALL: &str = "toolu_notes_";

/// What notes came to in a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NotesTaken {
    /// Who wrote them.
    pub by: &'static str,
    /// How often they were written.
    pub updates: u64,
    /// What forks took. The agent itself makes no requests for them.
    pub forks: Measured,
    /// Tokens that were written for them, in edits or whole.
    pub written_tokens: u64,
    /// Tokens of the reminders that the agent got.
    pub reminder_tokens: u64,
    /// Tokens of the notes at their longest.
    pub longest: u64,
    /// Forks that were not done when a compaction had waited for them.
    pub late: u64,
    /// What the notes had of what must survive, where a compaction took them, before anything was repaired.
    pub kept: Kept,
    /// What a whole summary of the same stretches has of it.
    pub full: Kept,
}

/// What summaries had of what must survive (§4.13), before anything was repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// How many summaries.
    pub summaries: u64,
    /// Tokens of all of them, with what was repaired.
    pub tokens: u64,
    /// Messages of people, and those of them that stand there word for word.
    pub user_messages: u64,
    /// Those that stand there.
    pub user_messages_verbatim: u64,
    /// Paths that were edited.
    pub paths: u64,
    /// Those that are named.
    pub paths_kept: u64,
    /// Open tasks.
    pub todos: u64,
    /// Those that are named.
    pub todos_kept: u64,
    /// Stretches that ended with an error.
    pub errors: u64,
    /// Those whose error is named.
    pub errors_kept: u64,
    /// Paths that nobody ever mentioned.
    pub invented: u64,
}

impl Kept {
    /// Adds what others had.
    pub fn absorb(&mut self, other: &Kept) {
        self.summaries += other.summaries;
        self.tokens += other.tokens;
        self.user_messages += other.user_messages;
        self.user_messages_verbatim += other.user_messages_verbatim;
        self.paths += other.paths;
        self.paths_kept += other.paths_kept;
        self.todos += other.todos;
        self.todos_kept += other.todos_kept;
        self.errors += other.errors;
        self.errors_kept += other.errors_kept;
        self.invented += other.invented;
    }

    fn of(boundary: &Boundary, estimator: Estimator) -> Kept {
        let audit = boundary.audit.clone().unwrap_or_default();
        let summary = texts(&boundary.summary).join("\n");
        Kept {
            summaries: 1,
            tokens: estimator.total(estimator.text(&summary)),
            user_messages: audit.user_messages,
            user_messages_verbatim: audit.user_messages_verbatim,
            paths: audit.paths,
            paths_kept: audit.paths_kept,
            todos: audit.todos,
            todos_kept: audit.todos_kept,
            errors: u64::from(audit.error_kept.is_some()),
            errors_kept: u64::from(audit.error_kept == Some(true)),
            invented: audit.invented.len() as u64,
        }
    }
}

/// Whoever keeps notes in a replay.
pub(crate) struct Keeper {
    taking: NoteTaking,
    cadence: NotesCadence,
    written: Written,
    noted: Option<Noted>,
    begun: Option<u64>,
    /// A fork that is at work: until when, and what it covers and has written.
    running: Option<(Timestamp, Noted, Written)>,
    /// What there was when the agent was reminded last.
    reminded: Option<Noted>,
    is_asked: bool,
    /// Edits that the agent makes with its next answer.
    passing: Option<Vec<Block>>,
    pub(crate) taken: NotesTaken,
}

impl Keeper {
    pub(crate) fn new(taking: NoteTaking, engine: &Engine) -> Keeper {
        let by = match taking.by {
            NotesBy::Fork => "fork",
            NotesBy::Main => "main",
        };
        Keeper {
            cadence: taking.cadence.within(&engine.limits),
            taking,
            written: Written::default(),
            noted: None,
            begun: None,
            running: None,
            reminded: None,
            is_asked: false,
            passing: None,
            taken: NotesTaken { by, ..NotesTaken::default() },
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
        engine: &Engine,
        card: &Card,
        provider: &mut Provider,
        now: Timestamp,
    ) -> Option<Measured> {
        self.take_in(now);
        if self.taking.by != NotesBy::Fork || !self.is_due(session) || self.running.is_some() {
            return None;
        }
        let mut aside = session.aside(engine, now);
        let covers = Noted { last: aside.newest()?, tokens: session.view().size().tokens };
        let estimator = session.view().estimator();
        let directive = notes_directive(DIRECTIVE, PATH, &self.written.text(), estimator);
        let stretch = stretch(session.view(), self.noted, covers);
        let (next, edits) = self.written.grown(&stretch, estimator, self.taking.writes_whole);
        aside.say(&directive);
        let request = aside.request(OUTPUT_TOKENS.min(card.max_output));
        let call = provider.call(&request, aside.betas(), card);
        let body = call.body.joined();
        let blocks = edits.iter().map(|input| said(None, input, self.taking.writes_whole)).collect();
        let replied = provider.ask(now, &call, &body, Some(Answer { blocks, stop: None }));
        let exchange = replied.exchange?;
        let mut took = Measured::default();
        took.add(&exchange.usage, exchange.cost);
        self.taken.forks.absorb(&took);
        self.taken.written_tokens += exchange.usage.output_tokens;
        let takes = BEGINS_AFTER_MS + exchange.usage.output_tokens * 1_000 / TOKENS_PER_SECOND;
        self.running = Some((now.after(Duration::from_millis(takes)), covers, next));
        Some(took)
    }

    /// Takes in what a fork has written by now.
    fn take_in(&mut self, now: Timestamp) {
        if let Some((_, covers, written)) = self.running.take_if(|(until, ..)| *until <= now) {
            self.keep(covers, written);
        }
    }

    fn keep(&mut self, covers: Noted, written: Written) {
        self.taken.updates += 1;
        self.noted = Some(covers);
        self.written = written;
    }

    /// A request is about to leave: the agent is reminded if it is to write notes itself, and writes them with an answer that
    /// makes calls anyway.
    pub(crate) fn asking(
        &mut self,
        session: &mut Session,
        answer: &mut Answer,
        now: Timestamp,
    ) -> Result<(), ReplayError> {
        if self.passing.take().is_some() {
            // The answer that was to write them never came.
            self.running = None;
        }
        self.take_in(now);
        if self.taking.by != NotesBy::Main {
            return Ok(());
        }
        let tokens = session.view().size().tokens;
        let cadence = self.cadence;
        let was_told = self.reminded.is_some_and(|reminded| !cadence.has_grown(session.view(), &reminded));
        if self.is_due(session) && !was_told {
            let notes = if self.noted.is_none() { self.written.text() } else { String::new() };
            let reminder = notes_directive(PASSING, PATH, &notes, session.view().estimator());
            let estimator = session.view().estimator();
            self.taken.reminder_tokens += estimator.total(estimator.text(&reminder));
            session.attach("notes", &reminder, now)?;
            self.reminded = session.view().newest().map(|last| Noted { last, tokens });
            self.is_asked = true;
        }
        let makes_calls = answer.blocks.iter().any(|block| matches!(block, Said::ToolUse { .. }));
        if self.is_asked && makes_calls {
            self.is_asked = false;
            let estimator = session.view().estimator();
            let last =
                session.view().branch().iter().rev().find(|entry| is_said(entry)).map(|entry| entry.id);
            let Some(last) = last else { return Ok(()) };
            let covers = Noted { last, tokens };
            let stretch = stretch(session.view(), self.noted, covers);
            let (next, edits) = self.written.grown(&stretch, estimator, self.taking.writes_whole);
            let number = self.taken.updates;
            let mut blocks = Vec::new();
            for (at, input) in edits.iter().enumerate() {
                let id = format!("{CALL}{number}_{at}");
                self.taken.written_tokens += estimator.total(estimator.text(input.as_str()));
                let name = tool(self.taking.writes_whole);
                blocks.push(Block::parse(Text::from(format!(
                    r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{input}}}"#
                ))));
                answer.blocks.push(said(Some(id), input, self.taking.writes_whole));
            }
            self.passing = Some(blocks);
            self.running = Some((now, covers, next));
        }
        Ok(())
    }

    /// The calls that the agent made for notes with the answer that is being recorded: as an entry of it.
    pub(crate) fn calls(&self, response: &ResponseId, model: &str) -> Option<Draft> {
        let blocks = self.passing.as_ref()?;
        Some(Draft::assistant(Some(response), Some(model), &raw_list(blocks)))
    }

    /// What came of them.
    pub(crate) fn results(&mut self) -> Option<Draft> {
        let blocks = self.passing.take()?;
        let mut content = String::from("[");
        for (at, id) in blocks.iter().filter_map(Block::tool_use_id).enumerate() {
            content.push_str(if at > 0 { "," } else { "" });
            content.push_str(r#"{"type":"tool_result","tool_use_id":"#);
            escape_into(&mut content, id.as_str());
            content.push_str(r#","content":"session/notes/notes.md was changed."}"#);
        }
        content.push(']');
        Some(Draft::user(Origin::Tool, &content))
    }

    /// The notes as a compaction gets them.
    pub(crate) fn for_compaction(&mut self, now: Timestamp) -> Option<Notes> {
        self.take_in(now.after(WAIT));
        self.taken.late += u64::from(self.running.is_some());
        let noted = self.noted?;
        Some(Notes { text: self.written.text(), path: PATH.to_owned(), last_noted: noted.last })
    }

    /// A boundary was made: by notes, and what a whole summary of the same stretch would have kept; or by another way.
    pub(crate) fn compacted(&mut self, boundary: &Boundary, full: Option<&Boundary>, view: &View) {
        let estimator = view.estimator();
        if boundary.how == How::Notes.name() {
            self.taken.kept.absorb(&Kept::of(boundary, estimator));
            self.taken.full.absorb(&full.map(|full| Kept::of(full, estimator)).unwrap_or_default());
        }
        if let Some(noted) = &mut self.noted {
            noted.tokens = view.size().tokens;
        }
        self.reminded = None;
        self.is_asked = false;
    }

    pub(crate) fn finish(mut self, estimator: Estimator) -> NotesTaken {
        self.taken.longest = estimator.total(estimator.text(&self.written.text()));
        self.taken
    }
}

/// What a whole summary of the same stretch would be, made without a model.
pub(crate) fn full_summary(order: &Order, view: &View, engine: &Engine) -> Option<Boundary> {
    let order = Order { notes: None, only: Some(vec![How::Extractive]), ..order.clone() };
    let mut machine = Machine::new(view, order, &engine.limits, &engine.policy, &engine.place);
    loop {
        match machine.next(view) {
            Next::ReadFiles(_) => machine.files_read(Vec::new()),
            Next::Done(done) => return Some(done.boundary),
            Next::Ask(_) | Next::Failed { .. } => return None,
        }
    }
}

/// What was said since notes were written, up to what they are to cover now.
fn stretch(view: &View, noted: Option<Noted>, covers: Noted) -> Vec<Entry> {
    let branch = view.branch();
    let place = |id| branch.iter().rposition(|entry: &Entry| entry.id == id);
    let from = noted.and_then(|noted| place(noted.last)).map_or(0, |at| at + 1);
    let until = place(covers.last).map_or(branch.len(), |at| at + 1);
    branch.get(from..until).unwrap_or_default().iter().filter(|entry| is_said(entry)).cloned().collect()
}

fn is_said(entry: &Entry) -> bool {
    matches!(entry.body, Body::User(_) | Body::Assistant(_))
}

fn tool(writes_whole: bool) -> &'static str {
    if writes_whole { "Write" } else { "Edit" }
}

fn said(id: Option<String>, input: &Text, writes_whole: bool) -> Said {
    Said::ToolUse { id, name: tool(writes_whole).to_owned(), input: input.clone() }
}
