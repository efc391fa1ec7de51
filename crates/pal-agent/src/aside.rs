//! Forks that work aside: on a thread of their own, with a few tools whose reach we enforce, bounded in turns.
//!
//! The list of tools in their requests is the conversation's, because another would be another beginning; what they may do
//! with it is decided here, call by call, on real paths, and not by what they are told.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pal_engine::Aside;
use pal_model::{Block, BlockType, Card, Source, Text, ToolUseId};
use pal_permissions::{Confinement, Need, SandboxLevel};
use pal_process::Cancel;
use pal_session::{ProgressDetector, ProgressLimits, ProgressVerdict};
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
    /// Limits on turns without progress.
    pub(crate) progress: ProgressLimits,
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
        let mut progress = ProgressDetector::new(self.progress);
        self.aside.say(directive);
        for _ in 0..self.turns_most {
            let blocks = self.ask(&mut voice, done)?;
            let mut turn = Turn { words: words(&blocks), calls: Vec::new() };
            let calls: Vec<&Block> =
                blocks.iter().filter(|block| block.kind() == BlockType::ToolUse).collect();
            let mut has_failed = false;
            progress.note_answer(&blocks, calls.iter().filter_map(|call| call_parts(call)), None);
            for (call, id, output) in self.workbench().carry_out(&calls, done) {
                has_failed |= output.is_error;
                let name = call.string("name").unwrap_or_default();
                turn.calls.push((in_short(&name, call.field("input").unwrap_or("{}")), !output.is_error));
                let text: String = output.content.iter().map(|block| block.raw().as_str()).collect();
                progress.note_result(id, &text, output.is_error, Duration::ZERO);
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
            match progress.judge_turn() {
                ProgressVerdict::GoOn => {}
                ProgressVerdict::BackOff { wait, .. } => wait_unless_cancelled(wait, &self.cancel),
                ProgressVerdict::Stop(why) => return Err(why),
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

    fn workbench(&self) -> Workbench<'_> {
        let Worker { tools, workspace, reach, cancel, .. } = self;
        Workbench { tools, workspace, reach, cancel }
    }
}

/// What calls are carried out with.
struct Workbench<'a> {
    tools: &'a [Box<dyn Tool>],
    workspace: &'a Workspace,
    reach: &'a Reach,
    cancel: &'a Cancel,
}

impl<'b> Workbench<'b> {
    /// Carries out the calls of one answer: those that only look side by side, those that change something one after the other, each
    /// when all before it are done. Their results in order.
    fn carry_out<'a>(&self, calls: &[&'a Block], done: &mut Done) -> Vec<(&'a Block, &'a ToolUseId, Output)> {
        let mut carried = Vec::new();
        for batch in calls.chunk_by(|one, next| self.only_looks(one) && self.only_looks(next)) {
            let ids = batch.iter().filter_map(|call| Some((*call, call.tool_use_id()?)));
            let batch: Vec<_> = ids.map(|(call, id)| (call, id, self.judge(call, done))).collect();
            let Workbench { workspace, cancel, .. } = *self;
            let outputs = std::thread::scope(|scope| {
                let running: Vec<_> = batch
                    .iter()
                    .map(|(_, id, judged)| match judged {
                        Ok(granted) => Ok(scope.spawn(move || granted.run(id, workspace, cancel))),
                        Err(why) => Err(why),
                    })
                    .collect();
                let broke = |_| Output::error("The tool broke down.");
                let ended = running.into_iter().map(|one| match one {
                    Ok(running) => running.join().unwrap_or_else(broke),
                    Err(why) => Output::error(why),
                });
                ended.collect::<Vec<Output>>()
            });
            for ((call, id, judged), output) in batch.into_iter().zip(outputs) {
                let changes = judged.is_ok_and(|granted| granted.changes());
                done.changes += usize::from(changes && !output.is_error);
                carried.push((call, id, output));
            }
        }
        carried
    }

    fn only_looks(&self, call: &Block) -> bool {
        let tool = call.string("name").and_then(|name| pal_tools::find(self.tools, &name));
        tool.is_some_and(|tool| tool.only_looks(&input(call)))
    }

    /// Whether a call is within reach; else what the model reads instead of a result.
    fn judge(&self, call: &Block, done: &mut Done) -> Result<Granted<'b>, String> {
        let name = call.string("name").unwrap_or_default();
        let input = input(call);
        let Some(tool) = pal_tools::find(self.tools, &name) else {
            done.refused.push(name.to_string());
            return Err(String::from("This tool is not to be had here."));
        };
        let judged = tool.needs(&input, self.workspace).and_then(|needs| match needs.is_empty() {
            // Of what a tool does that needs nothing, nobody can say that it is within reach.
            true => Err(String::from("this tool is not to be had here.")),
            false => needs.iter().try_for_each(|need| (self.reach)(need, self.workspace)).map(|()| needs),
        });
        match judged {
            Ok(needs) => Ok(Granted { tool, input, needs }),
            Err(why) => {
                done.refused.push(format!("{name}: {why}"));
                Err(format!("Not carried out: {why}"))
            }
        }
    }
}

/// Waits; a wish to stop ends the wait.
fn wait_unless_cancelled(wait: Duration, cancel: &Cancel) {
    let (sender, told) = channel();
    let _watch = cancel.watch(move || {
        // Nobody waits any more once the time is over.
        let _ = sender.send(());
    });
    let _ = told.recv_timeout(wait);
}

/// Id, name and input of a call; none without an id.
fn call_parts(call: &Block) -> Option<(&ToolUseId, String, &str)> {
    let name = call.string("name").unwrap_or_default().into_owned();
    Some((call.tool_use_id()?, name, call.field("input").unwrap_or("{}")))
}

fn input(call: &Block) -> Input {
    Input(Text::from(call.field("input").unwrap_or("{}")))
}

/// A call that is within reach.
struct Granted<'a> {
    tool: &'a dyn Tool,
    input: Input,
    needs: Vec<Need>,
}

impl Granted<'_> {
    fn changes(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, Need::Write(_)))
    }

    fn run(&self, call: &ToolUseId, workspace: &Workspace, cancel: &Cancel) -> Output {
        // Nobody is asked about what a fork does.
        let confinement = &Confinement::whole(SandboxLevel::ReadOnly);
        let running =
            Running { workspace, granted: &self.needs, confinement, call, cancel, progress: &|_| {} };
        self.tool.run(&self.input, &running)
    }
}

/// What an answer says in words.
fn words(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    texts.filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use pal_model::Content;
    use pal_permissions::Target;
    use pal_tools::Abilities;

    use super::*;

    /// A tool whose calls look or change, and say how many of them were under way at once.
    struct Slow {
        name: &'static str,
        looks: bool,
        under_way: Arc<AtomicUsize>,
        began: Arc<Mutex<Vec<String>>>,
    }

    impl Tool for Slow {
        fn name(&self) -> &str {
            self.name
        }

        fn only_looks(&self, _: &Input) -> bool {
            self.looks
        }

        fn needs(&self, _: &Input, _: &Workspace) -> Result<Vec<Need>, String> {
            let file = Target { named: String::from("a"), real: PathBuf::from("/a") };
            Ok(vec![if self.looks { Need::Read(file) } else { Need::Write(file) }])
        }

        fn run(&self, _: &Input, running: &Running<'_>) -> Output {
            self.began.lock().unwrap().push(running.call.to_string());
            self.under_way.fetch_add(1, Ordering::SeqCst);
            // Whoever runs beside another one sees it within that time.
            let until = Instant::now() + Duration::from_millis(if self.looks { 2_000 } else { 100 });
            let mut most = 0;
            while most < 2 && Instant::now() < until {
                most = most.max(self.under_way.load(Ordering::SeqCst));
                std::thread::sleep(Duration::from_millis(1));
            }
            self.under_way.fetch_sub(usize::from(!self.looks), Ordering::SeqCst);
            Output::text(&most.to_string())
        }
    }

    #[test]
    fn what_only_looks_runs_side_by_side_and_what_changes_alone() {
        let (looking, changing, began) = (Arc::default(), Arc::default(), Arc::default());
        let slow = |name, looks, under_way: &Arc<AtomicUsize>| -> Box<dyn Tool> {
            Box::new(Slow { name, looks, under_way: Arc::clone(under_way), began: Arc::clone(&began) })
        };
        let tools = vec![slow("Look", true, &looking), slow("Change", false, &changing)];
        let call = |id: &str, name: &str| {
            format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#)
        };
        let calls = [("a", "Look"), ("b", "Look"), ("c", "Change"), ("d", "Change"), ("e", "Other")];
        let calls = calls.map(|(id, name)| call(id, name)).join(",");
        let answer = Content::parse(&Text::from(format!("[{calls}]")));
        let calls: Vec<&Block> = answer.blocks().iter().collect();
        let root = PathBuf::from("/");
        let workspace =
            Workspace::new(vec![root.clone()], root, None, Abilities::default(), Default::default());
        let reach: Reach = Box::new(|_, _| Ok(()));
        let cancel = Cancel::new();
        let bench = Workbench { tools: &tools, workspace: &workspace, reach: &reach, cancel: &cancel };
        let mut done = Done::default();
        let carried = bench.carry_out(&calls, &mut done);
        let said = |output: &Output| output.content[0].string("text").unwrap_or_default().into_owned();
        let said: Vec<(&str, String)> =
            carried.iter().map(|(_, id, output)| (id.as_str(), said(output))).collect();
        let said: Vec<(&str, &str)> = said.iter().map(|(id, said)| (*id, said.as_str())).collect();
        let missing = "This tool is not to be had here.";
        assert_eq!(said, [("a", "2"), ("b", "2"), ("c", "1"), ("d", "1"), ("e", missing)]);
        assert_eq!((done.changes, done.refused), (2, vec![String::from("Other")]));
        assert_eq!(began.lock().unwrap()[2..], ["c", "d"]);
    }
}
