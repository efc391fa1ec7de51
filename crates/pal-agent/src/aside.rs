//! Forks that work aside: on a thread of their own, with a few tools whose reach we enforce, bounded in turns.
//!
//! The list of tools in their requests is the conversation's, because another would be another beginning; what they may do
//! with it is decided here, call by call, on real paths, and not by what they are told.

use std::sync::Arc;

use pal_engine::Aside;
use pal_model::{Block, BlockType, Card, Source, Text, ToolUseId};
use pal_permissions::Need;
use pal_process::Cancel;
use pal_tools::{Input, Output, Running, Tool, Workspace};

use crate::allowance::Allowance;
use crate::clock::Clock;
use crate::handle::Handle;
use crate::line::{Exchange, ExchangeEnd, Line};
use crate::timing::Timed;
use crate::voice::Voice;

/// Most tokens of one of its answers.
const OUTPUT_TOKENS: u64 = 8_000;

/// Whether something that a call would do is within the reach of a fork; else why not, in words for the model.
pub(crate) type Reach = Box<dyn Fn(&Need) -> Result<(), String> + Send>;

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
    pub(crate) cancel: Cancel,
    /// Who books what it takes for the day's limit, and by which clock.
    pub(crate) allowance: Arc<Allowance>,
    pub(crate) clock: Clock,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// How many of its calls changed something.
    pub(crate) changes: usize,
    /// Calls that were out of its reach.
    pub(crate) refused: Vec<String>,
}

impl Worker {
    /// Works on a directive until it has nothing left to do, or may not go on.
    pub(crate) fn work(mut self, directive: &str) -> Result<Done, String> {
        let mut voice = Voice::new(&self.card, self.line.endpoint().dialect(), None);
        let mut done = Done::default();
        self.aside.say(directive);
        for _ in 0..self.turns_most {
            let blocks = self.ask(&mut voice)?;
            let calls: Vec<&Block> =
                blocks.iter().filter(|block| block.kind() == BlockType::ToolUse).collect();
            if calls.is_empty() {
                break;
            }
            let mut has_failed = false;
            for call in calls {
                let Some(id) = call.tool_use_id() else { continue };
                let output = self.carry_out(id, call, &mut done);
                has_failed |= output.is_error;
                self.aside.returned(id, &output.content, output.is_error);
            }
            // Nobody reads its last words: once everything is written, asking for them would be paid for nothing.
            if self.ends_when_written && !has_failed && done.changes > 0 {
                break;
            }
            if self.cancel.is_cancelled() {
                return Err(String::from("it was stopped"));
            }
        }
        Ok(done)
    }

    fn ask(&mut self, voice: &mut Voice) -> Result<Vec<Block>, String> {
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
            false => needs.iter().try_for_each(|need| (self.reach)(need)).map(|()| needs),
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
