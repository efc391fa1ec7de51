//! Background forks: drives the run machine of `pal-run` with few tools, enforced access and bounded turns.
//!
//! The machine is the conversation's; a fork keeps no log and lets the run add no notes, so that its requests stay
//! exactly the conversation plus its own turns. The tool list in its requests is the conversation's, since another
//! one would be another prefix; access is enforced here for every call on real paths.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use pal_engine::ConversationFork;
use pal_events::summarize_call;
use pal_model::text::{first_chars, group_digits};
use pal_model::{
    BlockType, Content, ContentBlock, ModelCard, RequestSource, ResponseId, ToolUseId, UsageTotals,
};
use pal_process::CancelToken;
use pal_provider::{ExchangeEnd, ProviderConnection, ProviderExchange, RequestEncoder};
use pal_run::{
    BrokenAnswer, CallRuling, ModelAnswer, ProgressLimits, Run, RunEnd, RunInput, RunOutput, RunRecord,
    RunSettings, ToolCall, ToolCallResult,
};
use pal_tools::{ToolHandler, Workspace};
use smol_str::SmolStr;

use crate::background_budget::BackgroundBudget;
use crate::clock::Clock;
use crate::fork_tools::{AccessCheck, CallRefusal, ForkTools, GrantedCall};
use crate::timed_exchange::{ExchangeListener, TimedExchange};

/// Maximum tokens of an answer.
const OUTPUT_TOKENS: u64 = 8_000;

/// Error of a cancelled fork.
const STOPPED: &str = "it was stopped";

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
    pub(crate) listener: Arc<dyn ExchangeListener>,
    pub(crate) budget: Arc<BackgroundBudget>,
    pub(crate) clock: Clock,
}

/// Limits of a fork.
#[derive(Clone, Copy)]
pub(crate) struct ForkLimits {
    /// Maximum answers; a fork that reaches it has ended well.
    pub(crate) turns_max: u64,
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
    pub(crate) text: String,
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
        let mut report = ForkReport::default();
        self.run_with_report(directive, &mut report).map(|()| report)
    }

    /// Like [`ForkRunner::run`]; `report` is valid even after a failure.
    pub(crate) fn run_with_report(mut self, directive: &str, report: &mut ForkReport) -> Result<(), String> {
        let model = self.model.clone();
        let encoder = RequestEncoder::new(&model.card, model.connection.endpoint().dialect(), None);
        self.drive(&mut ModelRequester { model, encoder }, directive, report)
    }

    fn run_settings(&self) -> RunSettings {
        let output_tokens = OUTPUT_TOKENS.min(self.model.card.max_output);
        RunSettings {
            turns_max: Some(self.limits.turns_max),
            cost_max: self.limits.cost_max,
            day: None,
            progress: self.limits.progress,
            adds_notes: false,
            ..RunSettings::plain(output_tokens, output_tokens)
        }
    }

    /// Drives a run on a directive until it ends.
    fn drive(
        &mut self,
        answers: &mut dyn AnswerSource,
        directive: &str,
        report: &mut ForkReport,
    ) -> Result<(), String> {
        let mut run = Run::new(self.run_settings());
        run.handle(RunInput::Prompt(Content::from_text(directive)));
        let ForkRunner { fork, model, limits, tools, workspace, access, on_turn, cancel } = self;
        let mut driver = ForkDriver {
            fork,
            answers,
            card: &model.card,
            limits: *limits,
            tools: ForkTools { tools, workspace, access, cancel },
            on_turn,
            report,
            spent: UsageTotals::default(),
            response: None,
            turn: None,
            calls: PermittedCalls::default(),
        };
        driver.drive(&mut run)
    }
}

/// Answers the requests of a fork.
trait AnswerSource {
    /// Requests the next answer.
    fn request(&mut self, fork: &ConversationFork, max_tokens: u64, cancel: &CancelToken)
    -> ProviderExchange;
}

/// Requests answers from the model, and accounts for them.
struct ModelRequester {
    model: ForkModel,
    encoder: RequestEncoder,
}

impl AnswerSource for ModelRequester {
    fn request(
        &mut self,
        fork: &ConversationFork,
        max_tokens: u64,
        cancel: &CancelToken,
    ) -> ProviderExchange {
        let ForkModel { connection, card, source, listener, budget, clock } = &self.model;
        let request = fork.request(max_tokens);
        let call = self.encoder.encode(&request, fork.betas());
        let dialect = connection.endpoint().dialect();
        let timed = TimedExchange::begin(source.clone(), card, dialect, request.max_tokens());
        let exchange = timed.exchange_in_background(connection, call, card, cancel, &**listener);
        if let Some(usage) = exchange.usage() {
            budget.record_usage(source, usage, card.cost(usage), clock.now());
        }
        exchange
    }
}

/// Feeds a run and executes its outputs.
struct ForkDriver<'a> {
    fork: &'a mut ConversationFork,
    answers: &'a mut dyn AnswerSource,
    card: &'a ModelCard,
    limits: ForkLimits,
    tools: ForkTools<'a>,
    on_turn: &'a TurnListener,
    report: &'a mut ForkReport,
    spent: UsageTotals,
    /// Id and model of the complete response that the run has not recorded yet.
    response: Option<(ResponseId, SmolStr)>,
    turn: Option<OpenTurn>,
    calls: PermittedCalls<'a>,
}

/// An answer whose calls have not all ended.
struct OpenTurn {
    text: String,
    calls: Vec<ToolCall>,
    results: BTreeMap<ToolUseId, ToolCallResult>,
}

/// Calls of the answer that are authorized and not executed yet.
#[derive(Default)]
struct PermittedCalls<'a> {
    granted: BTreeMap<ToolUseId, GrantedCall<'a>>,
    /// Calls that the run wants executed in parallel, in order.
    ready: Vec<GrantedCall<'a>>,
}

impl ForkDriver<'_> {
    fn drive(&mut self, run: &mut Run) -> Result<(), String> {
        loop {
            let Some(output) = run.poll() else {
                self.execute_ready_calls(run)?;
                continue;
            };
            let ends_turn = matches!(
                output,
                RunOutput::BackOff { .. }
                    | RunOutput::RequestModel { .. }
                    | RunOutput::CheckStop { .. }
                    | RunOutput::Ended(_)
            );
            // The last text is not needed: once everything is written, another request would be wasted.
            if ends_turn && self.finish_turn() && self.limits.ends_when_written {
                return Ok(());
            }
            match output {
                // No hooks watch a fork.
                RunOutput::CheckPrompt(_) => run.handle(RunInput::PromptPassed),
                RunOutput::CheckStop { .. } => run.handle(RunInput::StopPassed),
                RunOutput::Record(record) => self.record(record),
                RunOutput::BackOff { wait, .. } => wait_unless_cancelled(wait, self.tools.cancel),
                RunOutput::RequestModel { max_tokens } => {
                    let input = self.request_answer(max_tokens);
                    if matches!(input, RunInput::Failed(_)) {
                        self.pass_on_cancellation(run);
                    }
                    run.handle(input);
                }
                RunOutput::AuthorizeCall(call) => {
                    let ruling = self.authorize(&call);
                    run.handle(RunInput::CallJudged(call.id, ruling));
                }
                RunOutput::ExecuteCall(call) => self.calls.ready.extend(self.calls.granted.remove(&call.id)),
                // The cancel token, from which the run knows, has stopped everything already; and nothing is
                // displayed that could be discarded.
                RunOutput::Cancel | RunOutput::DiscardAnswer => {}
                RunOutput::Ended(end) => return self.outcome(end, run),
            }
        }
    }

    fn outcome(&self, end: RunEnd, run: &Run) -> Result<(), String> {
        match end {
            RunEnd::Done | RunEnd::Refused => Ok(()),
            RunEnd::Limit(_) if run.turns() >= self.limits.turns_max => Ok(()),
            RunEnd::Limit(why) | RunEnd::Failed(why) => Err(why),
            RunEnd::Interrupted => Err(String::from(STOPPED)),
        }
    }

    fn pass_on_cancellation(&self, run: &mut Run) {
        if self.tools.cancel.is_cancelled() {
            run.handle(RunInput::Interrupt);
        }
    }

    fn record(&mut self, record: RunRecord) {
        match record {
            RunRecord::Message(message) => self.fork.push_user_message(&message.content),
            RunRecord::Answer(answer) | RunRecord::DisplayedAnswer(answer) => {
                // What arrived of a broken answer is not part of the fork.
                let Some((response, model)) = self.response.take() else { return };
                self.fork.push_answer(&response, &model, &answer.blocks);
                let text = answer_text(&answer.blocks);
                self.turn = Some(OpenTurn { text, calls: answer.calls, results: BTreeMap::new() });
            }
            RunRecord::Result(result) => self.note_result(result),
            RunRecord::NotRun { call, why } => self.note_result(ToolCallResult::failed(&call, &why)),
            // A run without notes of its own, and without hooks, records none.
            RunRecord::Note { .. } => {}
        }
    }

    fn note_result(&mut self, result: ToolCallResult) {
        if let Some(turn) = &mut self.turn {
            turn.results.insert(result.call.clone(), result);
        }
    }

    /// Appends the results of the last answer in the order of its calls, and reports the turn. Returns whether
    /// all its calls succeeded and the fork has changed something.
    fn finish_turn(&mut self) -> bool {
        let Some(OpenTurn { text, calls, mut results }) = self.turn.take() else { return false };
        let mut turn = ForkTurn { text, calls: Vec::new() };
        let characters_max = self.fork.result_characters_max(results.len());
        for call in calls {
            let Some(result) = results.remove(&call.id) else { continue };
            turn.calls.push((summarize_call(&call.name, &call.input), !result.is_error));
            let content = shorten_result(&result.content, characters_max);
            self.fork.push_tool_result(&call.id, &content, result.is_error);
        }
        let has_failed = turn.calls.iter().any(|(_, has_succeeded)| !has_succeeded);
        (self.on_turn)(turn);
        !has_failed && self.report.changes > 0
    }

    /// Requests the next answer.
    fn request_answer(&mut self, max_tokens: u64) -> RunInput {
        if self.tools.cancel.is_cancelled() {
            return RunInput::Failed(String::from(STOPPED));
        }
        // What would be refused is not sent.
        let Some(max_tokens) = self.fork.answer_room(max_tokens) else {
            let window = group_digits(self.fork.window());
            return RunInput::Failed(format!(
                "it leaves no room for an answer in a window of {window} tokens"
            ));
        };
        let ProviderExchange { blocks, end, .. } =
            self.answers.request(self.fork, max_tokens, self.tools.cancel);
        match end {
            ExchangeEnd::Finished(finished) => {
                let cost = self.card.cost(&finished.usage);
                self.spent.add(&finished.usage, cost);
                self.report.requests += 1;
                self.report.tokens += finished.usage.prompt_tokens() + finished.usage.output_tokens;
                self.report.cost += cost.unwrap_or_default();
                self.response = Some((finished.response, finished.model));
                RunInput::Answered(self.answer(blocks, finished.stop_reason))
            }
            ExchangeEnd::Failed(failure) if blocks.is_empty() => RunInput::Failed(failure.message),
            ExchangeEnd::Failed(failure) => {
                let answer = self.answer(blocks, None);
                RunInput::AnswerBroke(BrokenAnswer { answer, why: failure.message })
            }
            ExchangeEnd::Cancelled => RunInput::Failed(String::from(STOPPED)),
        }
    }

    fn answer(&self, blocks: Vec<ContentBlock>, stop_reason: Option<SmolStr>) -> ModelAnswer {
        let calls = blocks.iter().filter_map(|block| self.tools.parse_call(block)).collect();
        ModelAnswer { blocks, calls, stop_reason, spent: self.spent }
    }

    fn authorize(&mut self, call: &ToolCall) -> CallRuling {
        match self.tools.authorize(call) {
            Ok(granted) => {
                self.calls.granted.insert(call.id.clone(), granted);
                CallRuling::Allowed { input: None }
            }
            Err(CallRefusal { summary, text }) => {
                self.report.refused.push(summary);
                CallRuling::Refused(text)
            }
        }
    }

    /// Executes the calls that may run in parallel, and reports their results in order.
    fn execute_ready_calls(&mut self, run: &mut Run) -> Result<(), String> {
        let calls = std::mem::take(&mut self.calls.ready);
        if calls.is_empty() {
            return Err(String::from("the run waits for nothing"));
        }
        let results = self.tools.execute(&calls);
        self.pass_on_cancellation(run);
        for (call, result) in calls.iter().zip(results) {
            self.report.changes += usize::from(call.changes_files() && !result.is_error);
            run.handle(RunInput::CallReturned(result));
        }
        Ok(())
    }
}

/// Waits unless cancelled.
fn wait_unless_cancelled(wait: Duration, cancel: &CancelToken) {
    let (sender, cancelled) = channel();
    let _watch = cancel.watch(move || {
        // The receiver is gone after the timeout.
        let _ = sender.send(());
    });
    let _ = cancelled.recv_timeout(wait);
}

/// Keeps the beginning of the texts of a result that are longer than `characters_max` together. A fork reads the rest
/// in parts if it needs it.
fn shorten_result(content: &[ContentBlock], characters_max: usize) -> Vec<ContentBlock> {
    let mut left = characters_max;
    let shorten = |block: &ContentBlock| {
        let text = block.string("text").filter(|_| block.kind() == BlockType::Text);
        let Some(text) = text else { return block.clone() };
        let characters = text.chars().count();
        let kept = characters.min(left);
        left -= kept;
        if kept == characters {
            return block.clone();
        }
        ContentBlock::text(&format!(
            "{}\n[This result has {} characters and is cut here to fit the window. Read the rest in smaller parts if you \
             need it.]",
            first_chars(&text, kept),
            group_digits(characters as u64)
        ))
    };
    content.iter().map(shorten).collect()
}

fn answer_text(blocks: &[ContentBlock]) -> String {
    let texts = blocks.iter().filter(|block| block.kind() == BlockType::Text);
    texts.filter_map(|block| block.string("text")).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::path::{Path, PathBuf};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use pal_engine::CacheSettings;
    use pal_model::{EntryBody, MessageOrigin, ModelCatalog, SharedText, Timestamp, Usage};
    use pal_permissions::{TargetPath, ToolAccess};
    use pal_prompt::{PrefixInputs, assemble};
    use pal_provider::{ClientPolicy, ProviderEndpoint};
    use pal_tools::{MediaSupport, ToolContext, ToolInput, ToolOutput};
    use pal_view::{Estimator, Lens, ViewScope};
    use pal_wire::{Dialect, FailureKind, ProviderFailure, ResponseEnd};

    use std::time::Instant;

    use super::*;

    /// A tool that reports how many of its calls ran at once.
    struct SlowTool {
        name: &'static str,
        is_read_only: bool,
        running: Arc<AtomicUsize>,
        started: Arc<Mutex<Vec<String>>>,
    }

    impl ToolHandler for SlowTool {
        fn name(&self) -> &str {
            self.name
        }

        fn is_read_only(&self, _: &ToolInput) -> bool {
            self.is_read_only
        }

        fn required_access(&self, _: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
            let file = TargetPath { named: self.name.to_owned(), real: Path::new("/").join(self.name) };
            Ok(vec![if self.is_read_only { ToolAccess::Read(file) } else { ToolAccess::Write(file) }])
        }

        fn run(&self, _: &ToolInput, context: &ToolContext<'_>) -> ToolOutput {
            self.started.lock().unwrap().push(context.call.to_string());
            self.running.fetch_add(1, Ordering::SeqCst);
            // Parallel calls see each other within that time.
            let until = Instant::now() + Duration::from_millis(if self.is_read_only { 2_000 } else { 100 });
            let mut most = 0;
            while most < 2 && Instant::now() < until {
                most = most.max(self.running.load(Ordering::SeqCst));
                std::thread::sleep(Duration::from_millis(1));
            }
            self.running.fetch_sub(usize::from(!self.is_read_only), Ordering::SeqCst);
            ToolOutput::text(&most.to_string())
        }
    }

    /// Ids of the calls that were started.
    type StartedCalls = Arc<Mutex<Vec<String>>>;

    /// The tools `Look` and `Secret`, which are read-only, and `Change`; and the list of calls that they started.
    fn slow_tools() -> (Vec<Box<dyn ToolHandler>>, StartedCalls) {
        let started = StartedCalls::default();
        let tools = [("Look", true), ("Secret", true), ("Change", false)];
        let tools = tools.map(|(name, is_read_only)| -> Box<dyn ToolHandler> {
            Box::new(SlowTool { name, is_read_only, running: Arc::default(), started: Arc::clone(&started) })
        });
        (tools.into(), started)
    }

    /// A fork of one turn whose provider cannot be reached, and which must not use `Secret`.
    fn runner(home: &Path, tools: Vec<Box<dyn ToolHandler>>) -> ForkRunner {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = ProviderEndpoint::new(Dialect::Messages, "http://127.0.0.1:9", None).unwrap();
        let policy = ClientPolicy::patient();
        let connection = Arc::new(ProviderConnection::new(runtime, endpoint, policy).unwrap());
        let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
        let prefix = assemble(&PrefixInputs::for_card(&card)).prefix;
        let estimator = Estimator::shipped(card.generation);
        let lens = Lens { card: card.clone(), estimator, scope: ViewScope::Current };
        let now = Timestamp::from_milliseconds(1_800_000_000_000);
        let root = PathBuf::from("/");
        let workspace =
            Workspace::new(vec![root.clone()], root, None, MediaSupport::default(), Default::default());
        ForkRunner {
            fork: ConversationFork::fresh(lens, &prefix, &CacheSettings::default(), now),
            model: ForkModel {
                card,
                source: RequestSource::from_name("test"),
                listener: Arc::new(()),
                budget: Arc::new(BackgroundBudget::new(home, 0, "", Arc::clone(&connection))),
                connection,
                clock: Clock::default(),
            },
            limits: ForkLimits {
                turns_max: 1,
                progress: ProgressLimits::STANDARD,
                ends_when_written: false,
                cost_max: None,
            },
            tools,
            workspace,
            access: Box::new(|need, _| match need {
                ToolAccess::Read(target) if target.named == "Secret" => Err(String::from("it is secret.")),
                _ => Ok(()),
            }),
            on_turn: Box::new(|_| {}),
            cancel: CancelToken::new(),
        }
    }

    /// Scripted answers; one request too many fails.
    struct ScriptedAnswers {
        answers: VecDeque<ProviderExchange>,
        cancels: bool,
    }

    impl ScriptedAnswers {
        fn new(answers: impl IntoIterator<Item = ProviderExchange>) -> ScriptedAnswers {
            ScriptedAnswers { answers: answers.into_iter().collect(), cancels: false }
        }
    }

    impl AnswerSource for ScriptedAnswers {
        fn request(&mut self, _: &ConversationFork, _: u64, cancel: &CancelToken) -> ProviderExchange {
            if self.cancels {
                cancel.cancel();
            }
            self.answers.pop_front().expect("no further request")
        }
    }

    fn call_blocks(calls: &[(&str, &str)]) -> Vec<ContentBlock> {
        let block = |(id, name): &(&str, &str)| {
            let raw = format!(r#"{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}"#);
            ContentBlock::parse(SharedText::from(raw))
        };
        calls.iter().map(block).collect()
    }

    /// An answer with these calls, (id, tool), and 100,000 output tokens.
    fn answer(calls: &[(&str, &str)], stop_reason: &str) -> ProviderExchange {
        let end = ExchangeEnd::Finished(ResponseEnd {
            response: ResponseId::from("r"),
            model: SmolStr::new("m"),
            stop_reason: Some(stop_reason.into()),
            usage: Usage { output_tokens: 100_000, ..Usage::default() },
            extras: SharedText::from("{}"),
        });
        ProviderExchange { started: None, blocks: call_blocks(calls), end }
    }

    /// Results that a fork appended, as (id, text).
    fn results(fork: &ConversationFork) -> Vec<(String, String)> {
        let results = fork.view().branch().iter().filter_map(|entry| match &entry.body {
            EntryBody::User(user) if user.origin == MessageOrigin::Tool => user.content.blocks().first(),
            _ => None,
        });
        let text = |block: &ContentBlock| {
            let content = Content::parse(&SharedText::from(block.field("content").unwrap()));
            answer_text(content.blocks())
        };
        results.map(|block| (block.tool_use_id().unwrap().to_string(), text(block))).collect()
    }

    #[test]
    fn read_only_calls_run_in_parallel_and_others_alone() {
        let home = tempfile::tempdir().unwrap();
        let (tools, started) = slow_tools();
        let mut runner = runner(home.path(), tools);
        let calls =
            [("a", "Look"), ("s", "Secret"), ("b", "Look"), ("c", "Change"), ("d", "Change"), ("e", "Other")];
        let mut report = ForkReport::default();
        let mut answers = ScriptedAnswers::new([answer(&calls, "tool_use")]);
        runner.drive(&mut answers, "go", &mut report).unwrap();
        let results = results(&runner.fork);
        let results: Vec<(&str, &str)> = results.iter().map(|(id, text)| (&**id, &**text)).collect();
        let (secret, missing) = ("Not carried out: it is secret.", "This tool is not available here.");
        let expected = [("a", "2"), ("s", secret), ("b", "2"), ("c", "1"), ("d", "1"), ("e", missing)];
        assert_eq!(results, expected, "in the order of the calls, refused ones too");
        assert_eq!((report.changes, report.requests), (2, 1));
        assert_eq!(report.refused, ["Secret: it is secret.", "Other"]);
        assert_eq!(started.lock().unwrap()[2..], ["c", "d"]);
    }

    /// Drives a fork of at most three turns through these answers. Returns its end and its unused answers.
    fn drive_limited(
        change: impl FnOnce(&mut ForkLimits),
        answers: impl IntoIterator<Item = ProviderExchange>,
        cancels: bool,
    ) -> (Result<(), String>, usize) {
        let home = tempfile::tempdir().unwrap();
        let mut runner = runner(home.path(), slow_tools().0);
        runner.limits.turns_max = 3;
        change(&mut runner.limits);
        let mut answers = ScriptedAnswers { cancels, ..ScriptedAnswers::new(answers) };
        let end = runner.drive(&mut answers, "go", &mut ForkReport::default());
        (end, answers.answers.len())
    }

    /// A tool whose result is longer than small windows allow.
    struct LongTool;

    impl ToolHandler for LongTool {
        fn name(&self) -> &str {
            "Look"
        }

        fn is_read_only(&self, _: &ToolInput) -> bool {
            true
        }

        fn required_access(&self, _: &ToolInput, _: &Workspace) -> Result<Vec<ToolAccess>, String> {
            Ok(vec![ToolAccess::Read(TargetPath { named: "look".into(), real: PathBuf::from("/look") })])
        }

        fn run(&self, _: &ToolInput, _: &ToolContext<'_>) -> ToolOutput {
            ToolOutput::text(&"one line of the file\n".repeat(2_500))
        }
    }

    #[test]
    fn results_are_cut_for_a_small_window_and_a_fork_that_does_not_fit_is_not_sent() {
        let home = tempfile::tempdir().unwrap();
        let runs = |window: Option<u64>, answers: usize| {
            let mut runner = runner(home.path(), vec![Box::new(LongTool)]);
            runner.limits.turns_max = 9;
            runner.fork = runner.fork.clone().with_window(window.unwrap_or(1_000_000));
            let looks = (0..answers).map(|turn| answer(&[(["a", "b", "c", "d"][turn], "Look")], "tool_use"));
            let mut answers = ScriptedAnswers::new(looks.chain([answer(&[], "end_turn")]));
            let end = runner.drive(&mut answers, "go", &mut ForkReport::default());
            (end, results(&runner.fork), answers.answers.len(), runner.fork.view().size().tokens)
        };
        let (end, whole, ..) = runs(None, 1);
        assert!(end.is_ok() && whole[0].1.len() > 50_000, "{end:?}");
        let (end, cut, unused, size) = runs(Some(32_768), 3);
        assert_eq!((end, unused), (Ok(()), 0));
        let is_cut = |text: &str| text.len() < 9_000 && text.contains("52,500 characters");
        assert!(cut.len() == 3 && cut.iter().all(|(_, text)| is_cut(text)), "{cut:?}");
        assert!(size < 32_768, "{size}");
        let (end, _, unused, _) = runs(Some(4_000), 1);
        assert!(end.as_ref().is_err_and(|why| why.contains("window of 4,000")) && unused == 2, "{end:?}");
    }

    #[test]
    fn turn_limit_is_a_good_end_and_other_limits_are_failures() {
        let other = |id| answer(&[(id, "Other")], "tool_use");
        let answers = || ["call-1", "call-2", "call-3", "call-4"].map(other);
        assert_eq!(drive_limited(|_| {}, answers(), false), (Ok(()), 1));
        let (end, unused) = drive_limited(|limits| limits.cost_max = Some(0.01), answers(), false);
        assert!(end.as_ref().is_err_and(|why| why.contains("the limit of $0.01")) && unused == 3, "{end:?}");
        let stalls = |limits: &mut ForkLimits| limits.progress.stalled_turns_max = 1;
        let (end, unused) = drive_limited(stalls, answers(), false);
        assert!(end.as_ref().is_err_and(|why| why.contains("no progress")) && unused == 2, "{end:?}");
    }

    #[test]
    fn fork_that_ends_when_written_makes_no_request_after_a_successful_change() {
        let ends = |limits: &mut ForkLimits| limits.ends_when_written = true;
        let changed = || answer(&[("c", "Change")], "tool_use");
        assert_eq!(drive_limited(ends, [changed(), changed()], false), (Ok(()), 1));
        let failed = answer(&[("a", "Change"), ("b", "Other")], "tool_use");
        assert_eq!(drive_limited(ends, [failed, changed(), changed()], false), (Ok(()), 1), "it repairs");
        assert_eq!(drive_limited(ends, [changed(), changed()], true), (Ok(()), 1), "even when cancelled");
    }

    #[test]
    fn cancelled_or_broken_answer_is_a_failure_and_a_truncated_one_is_an_answer() {
        let stopped = Err(String::from("it was stopped"));
        let cancelled = ProviderExchange { end: ExchangeEnd::Cancelled, ..answer(&[], "") };
        assert_eq!(drive_limited(|_| {}, [cancelled], true), (stopped.clone(), 0));
        let changed = || answer(&[("c", "Change"), ("d", "Change")], "tool_use");
        assert_eq!(drive_limited(|_| {}, [changed(), changed()], true), (stopped, 1));
        assert_eq!(drive_limited(|_| {}, [answer(&[], "end_turn")], true), (Ok(()), 0), "it was complete");
        let failure = ProviderFailure::new(FailureKind::Cut, "cut");
        let broken = ProviderExchange { end: ExchangeEnd::Failed(failure), ..changed() };
        assert_eq!(drive_limited(|_| {}, [broken, changed()], false), (Err(String::from("cut")), 1));
        let truncated = answer(&[("c", "Change")], "max_tokens");
        let written = |limits: &mut ForkLimits| limits.ends_when_written = true;
        assert_eq!(drive_limited(written, [truncated, changed()], false), (Ok(()), 1));
    }
}
