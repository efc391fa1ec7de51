//! Forks that work aside: on a thread of their own, with a few tools whose reach we enforce, bounded in turns.
//!
//! The list of tools in their requests is the conversation's, because another would be another beginning; what they may do
//! with it is decided here, call by call, on real paths, and not by what they are told.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pal_engine::Aside;
use pal_model::{Block, BlockType, Card, Source, Text, ToolUseId};
use pal_permissions::Need;
use pal_process::Cancel;
use pal_tools::{Input, Output, Running, Tool, Workspace};

use crate::allowance::Allowance;
use crate::clock::Clock;
use crate::event::in_short;
use crate::handle::Handle;
use crate::line::{Exchange, ExchangeEnd, Line};
use crate::timing::Timed;
use crate::voice::Voice;

/// Most tokens of one of its answers.
const OUTPUT_TOKENS: u64 = 8_000;

/// Whether something that a call would do is within the reach of a fork; else why not, in words for the model.
pub(crate) type Reach = Box<dyn Fn(&Need, &Workspace) -> Result<(), String> + Send>;

/// Who is told of each of its turns.
pub(crate) type Telling = Box<dyn Fn(Turn) + Send>;

/// What works aside.
pub(crate) struct Worker {
    pub(crate) aside: Aside,
    pub(crate) line: Arc<Line>,
    pub(crate) card: Card,
    /// As what it is booked.
    pub(crate) source: Source,
    /// Who books it.
    pub(crate) handle: Handle,
    pub(crate) tools: Vec<Box<dyn Tool>>,
    pub(crate) workspace: Workspace,
    pub(crate) reach: Reach,
    pub(crate) turns_most: usize,
    /// Whether it is done with the first answer whose calls all came about and changed something.
    pub(crate) ends_when_written: bool,
    /// Most US dollars, where prices are known: over it, no further request is made.
    pub(crate) cost_most: Option<f64>,
    pub(crate) told: Telling,
    pub(crate) cancel: Cancel,
    /// Who books what it takes for the day's limit, and by which clock.
    pub(crate) allowance: Arc<Allowance>,
    pub(crate) clock: Clock,
}

/// One answer, and what came of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    /// What it said.
    pub(crate) words: String,
    /// Its calls in a few words each, with whether they came about.
    pub(crate) calls: Vec<(String, bool)>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// How many of its calls changed something.
    pub(crate) changes: usize,
    /// Calls that were out of its reach.
    pub(crate) refused: Vec<String>,
    /// Requests that were answered, their tokens, and their price as far as it is known.
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
}

/// Wants an end when the time is over, unless it is dropped before.
pub(crate) struct Deadline(#[allow(dead_code, reason = "dropping it is what it is for")] Sender<()>);

impl Deadline {
    /// Cancels after a while.
    pub(crate) fn after(limit: Duration, cancel: &Cancel) -> std::io::Result<Deadline> {
        let (kept, dropped) = channel::<()>();
        let cancel = cancel.clone();
        let wait = move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                cancel.cancel();
            }
        };
        std::thread::Builder::new().name("pal-deadline".into()).spawn(wait)?;
        Ok(Deadline(kept))
    }
}

impl Worker {
    /// Works on a directive until it has nothing left to do, or may not go on.
    pub(crate) fn work(self, directive: &str) -> Result<Done, String> {
        let mut done = Done::default();
        self.work_on(directive, &mut done).map(|()| done)
    }

    /// The same; what was done is known even if it ends badly.
    pub(crate) fn work_on(mut self, directive: &str, done: &mut Done) -> Result<(), String> {
        let mut voice = Voice::new(&self.card, self.line.endpoint().dialect(), None);
        self.aside.say(directive);
        for _ in 0..self.turns_most {
            let blocks = self.ask(&mut voice, done)?;
            let mut turn = Turn { words: words(&blocks), calls: Vec::new() };
            let calls: Vec<&Block> =
                blocks.iter().filter(|block| block.kind() == BlockType::ToolUse).collect();
            let mut has_failed = false;
            for call in &calls {
                let Some(id) = call.tool_use_id() else { continue };
                let output = self.carry_out(id, call, done);
                has_failed |= output.is_error;
                let name = call.string("name").unwrap_or_default();
                turn.calls.push((in_short(&name, call.field("input").unwrap_or("{}")), !output.is_error));
                self.aside.returned(id, &output.content, output.is_error);
            }
            (self.told)(turn);
            // Nobody reads its last words: once everything is written, asking for them would be paid for nothing.
            if calls.is_empty() || (self.ends_when_written && !has_failed && done.changes > 0) {
                return Ok(());
            }
            if self.cancel.is_cancelled() {
                return Err(String::from("it was stopped"));
            }
            if let Some(most) = self.cost_most.filter(|most| done.cost >= *most) {
                return Err(format!("it cost more than {most} US dollars"));
            }
        }
        Ok(())
    }

    fn ask(&mut self, voice: &mut Voice, done: &mut Done) -> Result<Vec<Block>, String> {
        let request = self.aside.request(OUTPUT_TOKENS.min(self.card.max_output));
        let call = voice.call(&request, self.aside.betas());
        let dialect = self.line.endpoint().dialect();
        let timed = Timed::begin(self.source.clone(), &self.card, dialect, request.max_tokens());
        let exchange = timed.exchange_aside(&self.line, call, &self.card, &self.cancel, &self.handle);
        if let Some(usage) = exchange.usage() {
            self.allowance.took(&self.source, usage, self.card.cost(usage), self.clock.now());
        }
        let Exchange { blocks, end, .. } = exchange;
        match end {
            ExchangeEnd::Finished(finished) => {
                done.requests += 1;
                done.tokens += finished.usage.prompt_tokens() + finished.usage.output_tokens;
                done.cost += self.card.cost(&finished.usage).unwrap_or_default();
                self.aside.answered(&finished.response, &finished.model, &blocks);
                Ok(blocks)
            }
            ExchangeEnd::Failed(failure) => Err(failure.message),
            ExchangeEnd::Cancelled => Err(String::from("it was stopped")),
        }
    }

    fn carry_out(&self, id: &ToolUseId, call: &Block, done: &mut Done) -> Output {
        let name = call.string("name").unwrap_or_default();
        let input = Input(Text::from(call.field("input").unwrap_or("{}")));
        let Some(tool) = pal_tools::find(&self.tools, &name) else {
            done.refused.push(name.to_string());
            return Output::error("This tool is not to be had here.");
        };
        let judged = tool.needs(&input, &self.workspace).and_then(|needs| match needs.is_empty() {
            // Of what a tool does that needs nothing, nobody can say that it is within reach.
            true => Err(String::from("this tool is not to be had here.")),
            false => needs.iter().try_for_each(|need| (self.reach)(need, &self.workspace)).map(|()| needs),
        });
        let granted = match judged {
            Ok(granted) => granted,
            Err(why) => {
                done.refused.push(format!("{name}: {why}"));
                return Output::error(&format!("Not carried out: {why}"));
            }
        };
        let running = Running {
            workspace: &self.workspace,
            granted: &granted,
            call: id,
            cancel: &self.cancel,
            progress: &|_| {},
        };
        let output = tool.run(&input, &running);
        let changes = granted.iter().any(|need| matches!(need, Need::Write(_)));
        done.changes += usize::from(changes && !output.is_error);
        output
    }
}

/// What an answer says in words.
fn words(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    texts.filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n").trim().to_owned()
}
