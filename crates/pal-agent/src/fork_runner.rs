//! Background forks: their own small agent loop, with few tools, enforced access and bounded turns.
//!
//! It is not the run machine of `pal-run`: a fork must not continue truncated answers, append notes or retry,
//! and it keeps no log, so that its requests stay exactly the conversation plus its own turns. The tool list in
//! its requests is the conversation's, since another one would be another prefix; access is enforced here for
//! every call on real paths.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pal_engine::ConversationFork;
use pal_events::summarize_call;
use pal_model::{BlockType, ContentBlock, ModelCard, RequestSource, SharedText, ToolUseId};
use pal_permissions::{Confinement, SandboxLevel, ToolAccess};
use pal_process::CancelToken;
use pal_run::{ProgressDetector, ProgressLimits, ProgressVerdict};
use pal_tools::{ToolContext, ToolHandler, ToolInput, ToolOutput, Workspace};

use crate::agent_handle::AgentHandle;
use crate::background_budget::BackgroundBudget;
use crate::clock::Clock;
use crate::provider_connection::{ExchangeEnd, ProviderConnection, ProviderExchange};
use crate::request_encoder::RequestEncoder;
use crate::timed_exchange::TimedExchange;

/// Maximum tokens of an answer.
const OUTPUT_TOKENS: u64 = 8_000;

/// Checks one access of a call; the error is text for the model.
pub(crate) type AccessCheck = Box<dyn Fn(&ToolAccess, &Workspace) -> Result<(), String> + Send>;

/// Callback for each turn.
pub(crate) type TurnListener = Box<dyn Fn(ForkTurn) + Send>;

/// Model and accounting of a fork.
#[derive(Clone)]
pub(crate) struct ForkModel {
    pub(crate) connection: Arc<ProviderConnection>,
    pub(crate) card: ModelCard,
    /// Source of its requests.
    pub(crate) source: RequestSource,
    /// Receiver of its usage.
    pub(crate) handle: AgentHandle,
    pub(crate) budget: Arc<BackgroundBudget>,
    pub(crate) clock: Clock,
}

/// Limits of a fork.
#[derive(Clone, Copy)]
pub(crate) struct ForkLimits {
    pub(crate) turns_max: usize,
    /// Limits on turns without progress.
    pub(crate) progress: ProgressLimits,
    /// Whether it ends after the first answer whose calls all succeeded and changed something.
    pub(crate) ends_when_written: bool,
    /// Maximum price in US dollars, if prices are known; no further request above it.
    pub(crate) cost_max: Option<f64>,
}

/// Runs one fork.
pub(crate) struct ForkRunner {
    pub(crate) fork: ConversationFork,
    pub(crate) model: ForkModel,
    pub(crate) limits: ForkLimits,
    pub(crate) tools: Vec<Box<dyn ToolHandler>>,
    pub(crate) workspace: Workspace,
    pub(crate) access: AccessCheck,
    pub(crate) on_turn: TurnListener,
    pub(crate) cancel: CancelToken,
}

/// One turn of a fork.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForkTurn {
    /// Text of the answer.
    pub(crate) words: String,
    /// Calls in short, and whether they succeeded.
    pub(crate) calls: Vec<(String, bool)>,
}

/// Result of a fork.
#[derive(Debug, Default)]
pub(crate) struct ForkReport {
    /// Number of calls that changed something.
    pub(crate) changes: usize,
    /// Calls outside of its access.
    pub(crate) refused: Vec<String>,
    /// Responses, their tokens, and their price as far as known.
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    pub(crate) cost: f64,
}

/// Cancels after a time limit unless dropped before.
pub(crate) struct RunDeadline(#[allow(dead_code, reason = "dropping it is what it is for")] Sender<()>);

impl RunDeadline {
    /// Starts the time limit.
    pub(crate) fn after(limit: Duration, cancel: &CancelToken) -> std::io::Result<RunDeadline> {
        let (kept, dropped) = channel::<()>();
        let cancel = cancel.clone();
        let wait = move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                cancel.cancel();
            }
        };
        std::thread::Builder::new().name("pal-deadline".into()).spawn(wait)?;
        Ok(RunDeadline(kept))
    }
}

impl ForkRunner {
    /// Runs a directive to its end.
    pub(crate) fn run(self, directive: &str) -> Result<ForkReport, String> {
        let mut done = ForkReport::default();
        self.run_with_report(directive, &mut done).map(|()| done)
    }

    /// Like [`ForkRunner::run`]; `done` is valid even after a failure.
    pub(crate) fn run_with_report(mut self, directive: &str, done: &mut ForkReport) -> Result<(), String> {
        let mut voice =
            RequestEncoder::new(&self.model.card, self.model.connection.endpoint().dialect(), None);
        let mut progress = ProgressDetector::new(self.limits.progress);
        self.fork.push_user_message(directive);
        for _ in 0..self.limits.turns_max {
            let blocks = self.ask(&mut voice, done)?;
            let mut turn = ForkTurn { words: words(&blocks), calls: Vec::new() };
            let calls: Vec<&ContentBlock> =
                blocks.iter().filter(|block| block.kind() == BlockType::ToolUse).collect();
            let mut has_failed = false;
            progress.note_answer(&blocks, calls.iter().filter_map(|call| call_parts(call)), None);
            for (call, id, output) in self.workbench().carry_out(&calls, done) {
                has_failed |= output.is_error;
                let name = call.string("name").unwrap_or_default();
                turn.calls
                    .push((summarize_call(&name, call.field("input").unwrap_or("{}")), !output.is_error));
                let text: String = output.content.iter().map(|block| block.raw().as_str()).collect();
                progress.note_result(id, &text, output.is_error, Duration::ZERO);
                self.fork.push_tool_result(id, &output.content, output.is_error);
            }
            (self.on_turn)(turn);
            // Its last text is not needed: once everything is written, another request would be wasted.
            if calls.is_empty() || (self.limits.ends_when_written && !has_failed && done.changes > 0) {
                return Ok(());
            }
            if self.cancel.is_cancelled() {
                return Err(String::from("it was stopped"));
            }
            if let Some(most) = self.limits.cost_max.filter(|most| done.cost >= *most) {
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

    fn ask(
        &mut self,
        voice: &mut RequestEncoder,
        done: &mut ForkReport,
    ) -> Result<Vec<ContentBlock>, String> {
        let request = self.fork.request(OUTPUT_TOKENS.min(self.model.card.max_output));
        let call = voice.encode(&request, self.fork.betas());
        let dialect = self.model.connection.endpoint().dialect();
        let timed =
            TimedExchange::begin(self.model.source.clone(), &self.model.card, dialect, request.max_tokens());
        let exchange = timed.exchange_aside(
            &self.model.connection,
            call,
            &self.model.card,
            &self.cancel,
            &self.model.handle,
        );
        if let Some(usage) = exchange.usage() {
            self.model.budget.record_usage(
                &self.model.source,
                usage,
                self.model.card.cost(usage),
                self.model.clock.now(),
            );
        }
        let ProviderExchange { blocks, end, .. } = exchange;
        match end {
            ExchangeEnd::Finished(finished) => {
                done.requests += 1;
                done.tokens += finished.usage.prompt_tokens() + finished.usage.output_tokens;
                done.cost += self.model.card.cost(&finished.usage).unwrap_or_default();
                self.fork.push_answer(&finished.response, &finished.model, &blocks);
                Ok(blocks)
            }
            ExchangeEnd::Failed(failure) => Err(failure.message),
            ExchangeEnd::Cancelled => Err(String::from("it was stopped")),
        }
    }

    fn workbench(&self) -> ForkTools<'_> {
        let ForkRunner { tools, workspace, access, cancel, .. } = self;
        ForkTools { tools, workspace, reach: access, cancel }
    }
}

/// Tools and access of a fork.
struct ForkTools<'a> {
    tools: &'a [Box<dyn ToolHandler>],
    workspace: &'a Workspace,
    reach: &'a AccessCheck,
    cancel: &'a CancelToken,
}

impl<'b> ForkTools<'b> {
    /// Executes the calls of one answer: consecutive read-only calls in parallel, others one after the other.
    /// Returns their results in order.
    fn carry_out<'a>(
        &self,
        calls: &[&'a ContentBlock],
        done: &mut ForkReport,
    ) -> Vec<(&'a ContentBlock, &'a ToolUseId, ToolOutput)> {
        let mut carried = Vec::new();
        for batch in calls.chunk_by(|one, next| self.only_looks(one) && self.only_looks(next)) {
            let ids = batch.iter().filter_map(|call| Some((*call, call.tool_use_id()?)));
            let batch: Vec<_> = ids.map(|(call, id)| (call, id, self.judge(call, done))).collect();
            let ForkTools { workspace, cancel, .. } = *self;
            let outputs = std::thread::scope(|scope| {
                let running: Vec<_> = batch
                    .iter()
                    .map(|(_, id, judged)| match judged {
                        Ok(granted) => Ok(scope.spawn(move || granted.run(id, workspace, cancel))),
                        Err(why) => Err(why),
                    })
                    .collect();
                let broke = |_| ToolOutput::error("The tool broke down.");
                let ended = running.into_iter().map(|one| match one {
                    Ok(running) => running.join().unwrap_or_else(broke),
                    Err(why) => ToolOutput::error(why),
                });
                ended.collect::<Vec<ToolOutput>>()
            });
            for ((call, id, judged), output) in batch.into_iter().zip(outputs) {
                let changes = judged.is_ok_and(|granted| granted.changes());
                done.changes += usize::from(changes && !output.is_error);
                carried.push((call, id, output));
            }
        }
        carried
    }

    fn only_looks(&self, call: &ContentBlock) -> bool {
        let tool = call.string("name").and_then(|name| pal_tools::find_tool(self.tools, &name));
        tool.is_some_and(|tool| tool.is_read_only(&input(call)))
    }

    /// Authorizes a call; the error is text for the model.
    fn judge(&self, call: &ContentBlock, done: &mut ForkReport) -> Result<GrantedCall<'b>, String> {
        let name = call.string("name").unwrap_or_default();
        let input = input(call);
        let Some(tool) = pal_tools::find_tool(self.tools, &name) else {
            done.refused.push(name.to_string());
            return Err(String::from("This tool is not to be had here."));
        };
        let judged = tool.required_access(&input, self.workspace).and_then(|needs| match needs.is_empty() {
            // A tool that declares no access cannot be checked.
            true => Err(String::from("this tool is not to be had here.")),
            false => needs.iter().try_for_each(|need| (self.reach)(need, self.workspace)).map(|()| needs),
        });
        match judged {
            Ok(needs) => Ok(GrantedCall { tool, input, needs }),
            Err(why) => {
                done.refused.push(format!("{name}: {why}"));
                Err(format!("Not carried out: {why}"))
            }
        }
    }
}

/// Waits unless cancelled.
fn wait_unless_cancelled(wait: Duration, cancel: &CancelToken) {
    let (sender, told) = channel();
    let _watch = cancel.watch(move || {
        // The receiver is gone after the timeout.
        let _ = sender.send(());
    });
    let _ = told.recv_timeout(wait);
}

/// Id, name and input of a call; none without an id.
fn call_parts(call: &ContentBlock) -> Option<(&ToolUseId, String, &str)> {
    let name = call.string("name").unwrap_or_default().into_owned();
    Some((call.tool_use_id()?, name, call.field("input").unwrap_or("{}")))
}

fn input(call: &ContentBlock) -> ToolInput {
    ToolInput(SharedText::from(call.field("input").unwrap_or("{}")))
}

/// An authorized call.
struct GrantedCall<'a> {
    tool: &'a dyn ToolHandler,
    input: ToolInput,
    needs: Vec<ToolAccess>,
}

impl GrantedCall<'_> {
    fn changes(&self) -> bool {
        self.needs.iter().any(|need| matches!(need, ToolAccess::Write(_)))
    }

    fn run(&self, call: &ToolUseId, workspace: &Workspace, cancel: &CancelToken) -> ToolOutput {
        // A fork cannot ask.
        let confinement = &Confinement::whole(SandboxLevel::ReadOnly);
        let running =
            ToolContext { workspace, granted: &self.needs, confinement, call, cancel, progress: &|_| {} };
        self.tool.run(&self.input, &running)
    }
}

/// Text of an answer.
fn words(blocks: &[ContentBlock]) -> String {
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
    use pal_permissions::TargetPath;
    use pal_tools::MediaSupport;

    use super::*;

    /// A tool that reports how many of its calls ran at once.
    struct SlowTool {
        name: &'static str,
        looks: bool,
        under_way: Arc<AtomicUsize>,
        began: Arc<Mutex<Vec<String>>>,
    }

    impl ToolHandler for SlowTool {
        fn name(&self) -> &str {
            self.name
        }

        fn is_read_only(&self, _: &ToolInput) -> bool {
            self.looks
        }

        fn required_access(&self, _: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
            let file = TargetPath { named: String::from("a"), real: PathBuf::from("/a") };
            Ok(vec![if self.looks { ToolAccess::Read(file) } else { ToolAccess::Write(file) }])
        }

        fn run(&self, _: &ToolInput, running: &ToolContext<'_>) -> ToolOutput {
            self.began.lock().unwrap().push(running.call.to_string());
            self.under_way.fetch_add(1, Ordering::SeqCst);
            // Parallel calls see each other within that time.
            let until = Instant::now() + Duration::from_millis(if self.looks { 2_000 } else { 100 });
            let mut most = 0;
            while most < 2 && Instant::now() < until {
                most = most.max(self.under_way.load(Ordering::SeqCst));
                std::thread::sleep(Duration::from_millis(1));
            }
            self.under_way.fetch_sub(usize::from(!self.looks), Ordering::SeqCst);
            ToolOutput::text(&most.to_string())
        }
    }

    #[test]
    fn read_only_calls_run_in_parallel_and_others_alone() {
        let (looking, changing, began) = (Arc::default(), Arc::default(), Arc::default());
        let slow = |name, looks, under_way: &Arc<AtomicUsize>| -> Box<dyn ToolHandler> {
            Box::new(SlowTool { name, looks, under_way: Arc::clone(under_way), began: Arc::clone(&began) })
        };
        let tools = vec![slow("Look", true, &looking), slow("Change", false, &changing)];
        let call = |id: &str, name: &str| {
            format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#)
        };
        let calls = [("a", "Look"), ("b", "Look"), ("c", "Change"), ("d", "Change"), ("e", "Other")];
        let calls = calls.map(|(id, name)| call(id, name)).join(",");
        let answer = Content::parse(&SharedText::from(format!("[{calls}]")));
        let calls: Vec<&ContentBlock> = answer.blocks().iter().collect();
        let root = PathBuf::from("/");
        let workspace =
            Workspace::new(vec![root.clone()], root, None, MediaSupport::default(), Default::default());
        let reach: AccessCheck = Box::new(|_, _| Ok(()));
        let cancel = CancelToken::new();
        let bench = ForkTools { tools: &tools, workspace: &workspace, reach: &reach, cancel: &cancel };
        let mut done = ForkReport::default();
        let carried = bench.carry_out(&calls, &mut done);
        let said = |output: &ToolOutput| output.content[0].string("text").unwrap_or_default().into_owned();
        let said: Vec<(&str, String)> =
            carried.iter().map(|(_, id, output)| (id.as_str(), said(output))).collect();
        let said: Vec<(&str, &str)> = said.iter().map(|(id, said)| (*id, said.as_str())).collect();
        let missing = "This tool is not to be had here.";
        assert_eq!(said, [("a", "2"), ("b", "2"), ("c", "1"), ("d", "1"), ("e", missing)]);
        assert_eq!((done.changes, done.refused), (2, vec![String::from("Other")]));
        assert_eq!(began.lock().unwrap()[2..], ["c", "d"]);
    }
}
