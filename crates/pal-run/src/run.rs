//! The run state machine.

use std::collections::VecDeque;
use std::time::Duration;

use pal_model::text::group_digits;
use pal_model::{BlockType, Content, ContentBlock, MessageOrigin, ToolUseId, UsageTotals};

use crate::call_queue::CallQueue;
use crate::model_texts;
use crate::progress_detector::{ProgressDetector, ProgressVerdict};
use crate::run_events::{
    BrokenAnswer, CallRuling, DayBudget, IncomingMessage, ModelAnswer, RunEnd, RunInput, RunOutput,
    RunRecord, RunSettings, ToolCall, ToolCallResult,
};

/// Maximum consecutive continuations after `max_tokens`.
const CONTINUATIONS_MAX: u32 = 3;
/// Maximum consecutive continuations after a broken answer.
const BROKEN_ANSWERS_MAX: u32 = 3;
/// Maximum consecutive times that hooks may block the end.
const BLOCKED_STOPS_MAX: u32 = 10;

/// Run of an agent.
#[derive(Clone, Debug)]
pub struct Run {
    settings: RunSettings,
    state: RunState,
    outputs: VecDeque<RunOutput>,
    /// Messages that arrived while the agent worked.
    queued: VecDeque<IncomingMessage>,
    /// Answers since the prompt.
    turns: u64,
    /// Usage of the session when the prompt arrived.
    spent_before: UsageTotals,
    spent: UsageTotals,
    /// The next request uses the longer limit.
    uses_long_limit: bool,
    counts: RetryCounts,
    /// The user asked to stop.
    is_interrupted: bool,
    /// Reason to end the run once all running calls have ended.
    stop_reason: Option<String>,
    /// Last text of the model; an interrupted answer and its continuation count as one.
    last_words: String,
    /// The next answer continues the last one.
    continues_last: bool,
    progress: ProgressDetector,
}

/// Consecutive attempts, each with its own limit.
#[derive(Clone, Copy, Debug, Default)]
struct RetryCounts {
    continuations: u32,
    broken_answers: u32,
    blocked_stops: u32,
}

/// Event that the run waits for.
#[derive(Clone, Debug)]
enum RunState {
    Idle,
    /// Result of the prompt check; `is_meanwhile` if the message arrived while the agent worked.
    PromptCheck {
        content: Content,
        is_meanwhile: bool,
    },
    Answer,
    Calls(CallQueue),
    StopCheck,
}

impl Run {
    /// Creates a run that waits for its first prompt.
    pub fn new(settings: RunSettings) -> Run {
        Run {
            progress: ProgressDetector::new(settings.progress),
            settings,
            state: RunState::Idle,
            outputs: VecDeque::new(),
            queued: VecDeque::new(),
            turns: 0,
            spent_before: UsageTotals::default(),
            spent: UsageTotals::default(),
            uses_long_limit: false,
            counts: RetryCounts::default(),
            is_interrupted: false,
            stop_reason: None,
            last_words: String::new(),
            continues_last: false,
        }
    }

    /// Sets the usage before this run, so that limits count from here.
    pub fn with_spent(mut self, spent: UsageTotals) -> Run {
        self.spent = spent;
        self
    }

    /// Sets the budget of the day for the next prompt.
    pub fn limit_day(&mut self, day: Option<DayBudget>) {
        self.settings.day = day;
    }

    /// Reports whether a prompt is being worked on.
    pub fn is_working(&self) -> bool {
        !matches!(self.state, RunState::Idle) || !self.outputs.is_empty()
    }

    /// Answers since the prompt.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Last text of the model since the prompt.
    pub fn last_text(&self) -> &str {
        &self.last_words
    }

    /// Takes the messages that arrived too late for the last prompt.
    pub fn take_queued_messages(&mut self) -> Vec<IncomingMessage> {
        self.queued.drain(..).collect()
    }

    /// Returns the next instruction; none while the run waits for an event.
    pub fn poll(&mut self) -> Option<RunOutput> {
        self.outputs.pop_front()
    }

    /// Handles an event. Ignores events that cannot happen in the current state, such as late results.
    pub fn handle(&mut self, input: RunInput) {
        match (input, std::mem::replace(&mut self.state, RunState::Idle)) {
            (RunInput::Prompt(content), state) => {
                self.receive(IncomingMessage { origin: MessageOrigin::Person, content }, state)
            }
            (RunInput::Message(content), state) => {
                self.receive(IncomingMessage { origin: MessageOrigin::Agent, content }, state)
            }
            (RunInput::Interrupt, state) => self.interrupt(state),
            (RunInput::PromptPassed, RunState::PromptCheck { content, .. }) => {
                self.progress.reset();
                self.record(RunRecord::Message(IncomingMessage { origin: MessageOrigin::Person, content }));
                self.continue_or_stop();
            }
            (RunInput::PromptBlocked(_), RunState::PromptCheck { is_meanwhile: true, .. }) => {
                self.continue_or_stop()
            }
            (RunInput::PromptBlocked(why), RunState::PromptCheck { .. }) => self.end(RunEnd::Failed(why)),
            (RunInput::Answered(answer), RunState::Answer) => self.handle_answer(answer),
            (RunInput::AnswerBroke(broken), RunState::Answer) => self.handle_broken_answer(broken),
            (RunInput::Failed(_), RunState::Answer) if self.is_interrupted => self.end_interrupted(),
            (RunInput::Failed(why), RunState::Answer) => self.end(RunEnd::Failed(why)),
            (RunInput::CallJudged(id, ruling), RunState::Calls(calls)) => {
                self.handle_ruling(&id, ruling, calls)
            }
            (RunInput::CallReturned(returned), RunState::Calls(calls)) => self.handle_result(returned, calls),
            (RunInput::StopPassed, RunState::StopCheck) => self.finish(),
            (RunInput::StopBlocked(why), RunState::StopCheck) => self.handle_blocked_stop(why),
            (_, state) => self.state = state,
        }
    }

    /// Starts working on a message, or queues it.
    fn receive(&mut self, message: IncomingMessage, state: RunState) {
        if matches!(state, RunState::Idle) && self.outputs.is_empty() {
            return self.start_prompt(message);
        }
        self.queued.push_back(message);
        self.state = state;
    }

    fn start_prompt(&mut self, message: IncomingMessage) {
        self.turns = 0;
        self.spent_before = self.spent;
        self.counts = RetryCounts::default();
        self.uses_long_limit = false;
        self.is_interrupted = false;
        self.stop_reason = None;
        self.last_words.clear();
        self.continues_last = false;
        self.check_message(message, false);
    }

    fn check_message(&mut self, message: IncomingMessage, is_meanwhile: bool) {
        if message.origin != MessageOrigin::Person {
            self.progress.note_message(&message.content.to_json());
            self.record(RunRecord::Message(message));
            return self.continue_or_stop();
        }
        let content = message.content;
        self.outputs.push_back(RunOutput::CheckPrompt(content.clone()));
        self.state = RunState::PromptCheck { content, is_meanwhile };
    }

    fn continue_or_stop(&mut self) {
        if self.is_interrupted { self.end_interrupted() } else { self.request_model() }
    }

    /// Sends the next request, unless a limit is reached. Queued messages go first, one at a time.
    fn request_model(&mut self) {
        if let Some(message) = self.queued.pop_front() {
            return self.check_message(message, true);
        }
        if let Some(limit) = self.limit_reached() {
            return self.end(RunEnd::Limit(limit));
        }
        match self.progress.judge_turn() {
            ProgressVerdict::GoOn => {}
            ProgressVerdict::BackOff { wait, reason, advice } => {
                if let Some(text) = advice.filter(|_| self.settings.adds_notes) {
                    self.record(RunRecord::Note { what: "no_progress", text });
                }
                self.outputs.push_back(RunOutput::BackOff { wait, reason });
            }
            ProgressVerdict::Stop(why) => return self.end(RunEnd::Limit(why)),
        }
        let max_tokens =
            if self.uses_long_limit { self.settings.output_tokens_max } else { self.settings.output_tokens };
        self.outputs.push_back(RunOutput::RequestModel { max_tokens });
        self.state = RunState::Answer;
    }

    fn limit_reached(&self) -> Option<String> {
        let RunSettings { turns_max, tokens_max, cost_max, day, .. } = self.settings;
        let spent = self.spent.since(&self.spent_before);
        let (taken, paid) = (spent.tokens(), spent.cost);
        if let Some(most) = turns_max.filter(|most| self.turns >= *most) {
            return Some(format!("the limit of {most} turns is reached"));
        }
        if let Some(most) = tokens_max.filter(|most| taken >= *most) {
            let (most, taken) = (group_digits(most), group_digits(taken));
            return Some(format!("the limit of {most} tokens is reached ({taken} used)"));
        }
        if let Some(DayBudget { limit, left }) = day.filter(|day| paid >= day.left) {
            return Some(format!(
                "the daily budget of ${limit:.2} is used up (${:.2} spent today); raise `max_daily_cost_usd`, or go on \
                 tomorrow (UTC)",
                limit - left + paid
            ));
        }
        cost_max
            .filter(|most| paid >= *most)
            .map(|most| format!("the limit of ${most:.2} is reached (${paid:.2} spent)"))
    }

    fn handle_answer(&mut self, mut answer: ModelAnswer) {
        drop_repeated_calls(&mut answer.calls);
        self.note_answer(&answer);
        self.counts.broken_answers = 0;
        match answer.stop_reason.as_deref() {
            Some("refusal") => {
                self.record(RunRecord::DisplayedAnswer(answer));
                self.end(RunEnd::Refused);
            }
            Some("max_tokens" | "model_context_window_exceeded") if !self.settings.adds_notes => {
                self.handle_complete_answer(answer);
            }
            Some("max_tokens") => self.handle_truncated_answer(answer),
            Some("pause_turn") if answer.calls.is_empty() => {
                self.record(RunRecord::Answer(answer));
                self.request_model();
            }
            Some("model_context_window_exceeded") => {
                self.record_uncalled(answer, model_texts::CALL_CUT);
                self.end(RunEnd::Failed(String::from(
                    "the context window was full before the answer ended; compact the session or continue with a model \
                     that has a larger window",
                )));
            }
            _ => self.handle_complete_answer(answer),
        }
    }

    fn note_answer(&mut self, answer: &ModelAnswer) {
        self.turns += 1;
        self.spent = answer.spent;
        let calls = answer.calls.iter().map(|call| (&call.id, call.name.as_str(), call.input.as_str()));
        self.progress.note_answer(&answer.blocks, calls, answer.stop_reason.as_deref());
        let texts = answer.blocks.iter().filter(|block| block.kind() == BlockType::Text);
        let words: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
        let continues = std::mem::take(&mut self.continues_last);
        if !words.is_empty() {
            if !continues {
                self.last_words.clear();
            }
            self.last_words.push_str(&words.join("\n\n"));
        }
    }

    fn handle_complete_answer(&mut self, answer: ModelAnswer) {
        self.uses_long_limit = false;
        self.counts.continuations = 0;
        let calls = answer.calls.clone();
        self.record(RunRecord::Answer(answer));
        if self.is_interrupted {
            self.record_not_run(calls, model_texts::CALL_INTERRUPTED);
            self.end_interrupted();
        } else if !calls.is_empty() {
            self.counts.blocked_stops = 0;
            self.continue_calls(CallQueue::new(calls));
        } else if !self.queued.is_empty() {
            self.request_model();
        } else {
            let is_repeated = self.counts.blocked_stops > 0;
            self.outputs.push_back(RunOutput::CheckStop { last: self.last_words.clone(), is_repeated });
            self.state = RunState::StopCheck;
        }
    }

    /// Handles an answer that reached `max_tokens`: requests a longer one once, then continues it.
    fn handle_truncated_answer(&mut self, answer: ModelAnswer) {
        let has_room = self.settings.output_tokens_max > self.settings.output_tokens;
        if self.is_interrupted {
            self.record_uncalled(answer, model_texts::CALL_INTERRUPTED);
            self.end_interrupted();
        } else if !self.uses_long_limit && has_room {
            // A discarded answer is not a turn, but it was paid for.
            self.turns -= 1;
            if let Some(limit) = self.limit_reached() {
                self.turns += 1;
                self.record_uncalled(answer, model_texts::CALL_CUT);
                return self.end(RunEnd::Limit(limit));
            }
            self.uses_long_limit = true;
            self.record(RunRecord::DisplayedAnswer(answer));
            self.outputs.push_back(RunOutput::DiscardAnswer);
            self.request_model();
        } else if self.counts.continuations < CONTINUATIONS_MAX {
            self.counts.continuations += 1;
            self.continues_last = true;
            self.record_uncalled(answer, model_texts::CALL_CUT);
            self.record(RunRecord::Note { what: "output_limit", text: model_texts::GO_ON.to_owned() });
            self.request_model();
        } else {
            self.record_uncalled(answer, model_texts::CALL_CUT);
            self.end(RunEnd::Limit(format!(
                "the answer reached the limit of {} tokens {} times in a row; ask for smaller pieces, or raise \
                 max_output_tokens",
                self.settings.output_tokens_max,
                CONTINUATIONS_MAX + 1
            )));
        }
    }

    fn handle_broken_answer(&mut self, broken: BrokenAnswer) {
        let BrokenAnswer { mut answer, why } = broken;
        drop_repeated_calls(&mut answer.calls);
        self.note_answer(&answer);
        let has_content = !answer.blocks.is_empty();
        let words =
            if self.is_interrupted { model_texts::CALL_INTERRUPTED } else { model_texts::CALL_BROKEN };
        if has_content {
            self.record_uncalled(answer, words);
        }
        if self.is_interrupted {
            self.end_interrupted();
        } else if self.settings.adds_notes && has_content && self.counts.broken_answers < BROKEN_ANSWERS_MAX {
            self.counts.broken_answers += 1;
            self.continues_last = true;
            self.record(RunRecord::Note { what: "broken_answer", text: model_texts::BROKEN.to_owned() });
            self.request_model();
        } else {
            self.end(RunEnd::Failed(why));
        }
    }

    /// Records an answer whose calls are not executed.
    fn record_uncalled(&mut self, answer: ModelAnswer, why: &str) {
        let calls = answer.calls.clone();
        self.record(RunRecord::Answer(answer));
        self.record_not_run(calls, why);
    }

    fn record_not_run(&mut self, calls: Vec<ToolCall>, why: &str) {
        for call in calls {
            self.record(RunRecord::NotRun { call: call.id, why: why.to_owned() });
        }
    }

    /// Starts the next calls; continues with the model when all have ended.
    fn continue_calls(&mut self, mut calls: CallQueue) {
        if (self.is_interrupted || self.stop_reason.is_some()) && !calls.is_any_open() {
            let given_up = calls.give_up_waiting();
            let why =
                if self.is_interrupted { model_texts::CALL_INTERRUPTED } else { model_texts::CALL_STOPPED };
            self.record_not_run(given_up, why);
        }
        loop {
            let batch = calls.next_batch();
            if batch.is_empty() {
                break;
            }
            for call in batch {
                match &call.problem {
                    None => self.outputs.push_back(RunOutput::AuthorizeCall(call)),
                    Some(problem) => {
                        calls.close(&call.id);
                        let why = problem.clone();
                        self.record(RunRecord::NotRun { call: call.id, why });
                    }
                }
            }
        }
        if !calls.is_done() {
            self.state = RunState::Calls(calls);
        } else if self.is_interrupted {
            self.end_interrupted();
        } else if let Some(why) = self.stop_reason.take() {
            self.end(RunEnd::Failed(why));
        } else {
            self.request_model();
        }
    }

    fn handle_ruling(&mut self, id: &ToolUseId, ruling: CallRuling, mut calls: CallQueue) {
        let refused = match ruling {
            CallRuling::Allowed { .. } if self.is_interrupted => model_texts::CALL_INTERRUPTED.to_owned(),
            CallRuling::Allowed { .. } if self.stop_reason.is_some() => model_texts::CALL_STOPPED.to_owned(),
            CallRuling::Allowed { input } => {
                if let Some(call) = calls.open(id) {
                    call.input = input.unwrap_or_else(|| call.input.clone());
                    self.outputs.push_back(RunOutput::ExecuteCall(call.clone()));
                }
                self.state = RunState::Calls(calls);
                return;
            }
            CallRuling::Refused(why) => why,
            CallRuling::Stop(why) => {
                self.stop_reason = Some(why.clone());
                why
            }
        };
        if calls.close(id) {
            self.record(RunRecord::NotRun { call: id.clone(), why: refused });
        }
        self.continue_calls(calls);
    }

    fn handle_result(&mut self, returned: ToolCallResult, mut calls: CallQueue) {
        if calls.close(&returned.call) {
            if let Some(why) = &returned.stop {
                self.stop_reason = Some(why.clone());
            }
            self.record(RunRecord::Result(returned));
        }
        self.continue_calls(calls);
    }

    fn finish(&mut self) {
        if self.is_interrupted {
            self.end_interrupted();
        } else if self.queued.is_empty() {
            self.end(RunEnd::Done);
        } else {
            self.request_model();
        }
    }

    fn handle_blocked_stop(&mut self, why: String) {
        self.counts.blocked_stops += 1;
        if self.is_interrupted {
            return self.end_interrupted();
        }
        if self.counts.blocked_stops > BLOCKED_STOPS_MAX {
            return self.end(RunEnd::Limit(format!(
                "a Stop hook blocked the end {BLOCKED_STOPS_MAX} times in a row, last with: {why}; change \
                 the hook or do what it asks for, then use --continue"
            )));
        }
        self.record(RunRecord::Note { what: "stop_hook", text: why });
        self.request_model();
    }

    fn interrupt(&mut self, state: RunState) {
        match state {
            // An idle run has nothing to stop.
            RunState::Idle => {}
            state => {
                if !self.is_interrupted {
                    self.outputs.push_back(RunOutput::Cancel);
                }
                self.is_interrupted = true;
                self.state = state;
            }
        }
    }

    /// Ends an interrupted run after everything has stopped.
    fn end_interrupted(&mut self) {
        if self.settings.adds_notes {
            self.record(RunRecord::Note { what: "interrupted", text: model_texts::INTERRUPTED.to_owned() });
        }
        self.end(RunEnd::Interrupted);
    }

    fn record(&mut self, record: RunRecord) {
        match &record {
            RunRecord::Result(ToolCallResult { call, content, is_error, took, .. }) => {
                self.progress.note_result(call, &raw_text(content), *is_error, *took);
            }
            RunRecord::NotRun { call, why } => self.progress.note_result(call, why, true, Duration::ZERO),
            RunRecord::Message(_)
            | RunRecord::Answer(_)
            | RunRecord::DisplayedAnswer(_)
            | RunRecord::Note { .. } => {}
        }
        self.outputs.push_back(RunOutput::Record(record));
    }

    fn end(&mut self, end: RunEnd) {
        self.state = RunState::Idle;
        self.is_interrupted = false;
        self.outputs.push_back(RunOutput::Ended(end));
    }
}

/// Text of a result; JSON of other blocks.
fn raw_text(content: &[ContentBlock]) -> String {
    let texts = content.iter().map(|block| match block.string("text") {
        Some(text) if block.kind() == BlockType::Text => text.into_owned(),
        _ => block.raw().to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Drops repeated calls of an answer, so that nothing is executed twice.
fn drop_repeated_calls(calls: &mut Vec<ToolCall>) {
    let mut known: Vec<ToolUseId> = Vec::new();
    calls.retain(|call| {
        let is_new = !known.contains(&call.id);
        known.push(call.id.clone());
        is_new
    });
}
