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
        let dialect = model.connection.endpoint().dialect();
        let encoder = RequestEncoder::new(&model.card, dialect, self.fork.cache_key());
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
mod tests;
