//! The machine.

use std::collections::VecDeque;
use std::time::Duration;

use pal_model::{Block, BlockType, Content, Origin, ToolUseId, Totals};

use crate::calls::Calls;
use crate::data::{Answer, Broken, Call, End, Input, Output, Record, Returned, Ruling, RunSettings, Said};
use crate::progress::{ProgressDetector, ProgressVerdict};
use crate::words;

/// How often in a row an answer that reached its limit is gone on with.
const GO_ON_MAX: u32 = 3;
/// How often in a row an answer that broke off is gone on with.
const BROKEN_MAX: u32 = 3;
/// How often in a row somebody may forbid the end.
const STOP_BLOCKED_MAX: u32 = 10;

/// The run of an agent.
#[derive(Clone, Debug)]
pub struct Run {
    settings: RunSettings,
    state: State,
    outputs: VecDeque<Output>,
    /// What people and other agents said meanwhile.
    said: VecDeque<Said>,
    /// Answers since the prompt.
    turns: u64,
    /// What the session had taken when the prompt came; none until the first answer tells.
    spent_before: Totals,
    spent: Totals,
    /// Whether the longer answer has been asked for.
    asks_long: bool,
    gone_on: u32,
    broken: u32,
    stop_blocked: u32,
    /// Whether somebody wants it to stop.
    is_interrupted: bool,
    /// Why it shall stop once what is under way has ended.
    stops: Option<String>,
    /// What the model said last; an answer that broke off and the one that goes on from there are one.
    last_words: String,
    /// Whether the next answer goes on where the last one broke off.
    goes_on: bool,
    progress: ProgressDetector,
}

/// What it waits for.
#[derive(Clone, Debug)]
enum State {
    Idle,
    /// Whether something that a person said is to be worked on; said meanwhile, or as the prompt.
    PromptCheck {
        content: Content,
        is_meanwhile: bool,
    },
    Answer,
    Calls(Calls),
    StopCheck,
}

impl Run {
    /// A run that waits for its first prompt.
    pub fn new(settings: RunSettings) -> Run {
        Run {
            progress: ProgressDetector::new(settings.progress),
            settings,
            state: State::Idle,
            outputs: VecDeque::new(),
            said: VecDeque::new(),
            turns: 0,
            spent_before: Totals::default(),
            spent: Totals::default(),
            asks_long: false,
            gone_on: 0,
            broken: 0,
            stop_blocked: 0,
            is_interrupted: false,
            stops: None,
            last_words: String::new(),
            goes_on: false,
        }
    }

    /// What the session has taken before this run, so that limits count from here.
    pub fn with_spent(mut self, spent: Totals) -> Run {
        self.spent = spent;
        self
    }

    /// Whether it works on a prompt.
    pub fn is_working(&self) -> bool {
        !matches!(self.state, State::Idle) || !self.outputs.is_empty()
    }

    /// Answers since the prompt.
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// What the model said last, since the prompt.
    pub fn last_words(&self) -> &str {
        &self.last_words
    }

    /// What was said too late for the prompt that it worked on: the next things to be worked on.
    pub fn take_unheard(&mut self) -> Vec<Said> {
        self.said.drain(..).collect()
    }

    /// The next thing to do; none while it waits for something to happen.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes in what happened. What cannot happen now is ignored: a result that comes late is none.
    pub fn handle(&mut self, input: Input) {
        match (input, std::mem::replace(&mut self.state, State::Idle)) {
            (Input::Prompt(content), state) => self.said(Said { origin: Origin::Person, content }, state),
            (Input::Message(content), state) => self.said(Said { origin: Origin::Agent, content }, state),
            (Input::Interrupt, state) => self.interrupt(state),
            (Input::PromptPassed, State::PromptCheck { content, .. }) => {
                self.progress.reset();
                self.record(Record::Said(Said { origin: Origin::Person, content }));
                self.go_on();
            }
            (Input::PromptBlocked(_), State::PromptCheck { is_meanwhile: true, .. }) => self.go_on(),
            (Input::PromptBlocked(why), State::PromptCheck { .. }) => self.end(End::Failed(why)),
            (Input::Answered(answer), State::Answer) => self.answered(answer),
            (Input::Broke(broken), State::Answer) => self.broke(broken),
            (Input::Failed(_), State::Answer) if self.is_interrupted => self.interrupted(),
            (Input::Failed(why), State::Answer) => self.end(End::Failed(why)),
            (Input::Judged(id, ruling), State::Calls(calls)) => self.judged(&id, ruling, calls),
            (Input::Returned(returned), State::Calls(calls)) => self.returned(returned, calls),
            (Input::StopPassed, State::StopCheck) => self.stop(),
            (Input::StopBlocked(why), State::StopCheck) => self.stop_blocked(why),
            (_, state) => self.state = state,
        }
    }

    /// Works on what was said, or keeps it: what is still to be done of the last prompt comes first.
    fn said(&mut self, said: Said, state: State) {
        if matches!(state, State::Idle) && self.outputs.is_empty() {
            return self.begin(said);
        }
        self.said.push_back(said);
        self.state = state;
    }

    fn begin(&mut self, said: Said) {
        self.turns = 0;
        self.spent_before = self.spent;
        (self.gone_on, self.broken, self.stop_blocked) = (0, 0, 0);
        self.asks_long = false;
        self.is_interrupted = false;
        self.stops = None;
        self.last_words.clear();
        self.goes_on = false;
        self.check(said, false);
    }

    fn check(&mut self, said: Said, is_meanwhile: bool) {
        if said.origin != Origin::Person {
            self.progress.note_message(&said.content.raw());
            self.record(Record::Said(said));
            return self.go_on();
        }
        let content = said.content;
        self.outputs.push_back(Output::CheckPrompt(content.clone()));
        self.state = State::PromptCheck { content, is_meanwhile };
    }

    fn go_on(&mut self) {
        if self.is_interrupted { self.interrupted() } else { self.ask() }
    }

    /// Asks the model, if nothing speaks against it. What was said meanwhile goes along, one after the other.
    fn ask(&mut self) {
        if let Some(said) = self.said.pop_front() {
            return self.check(said, true);
        }
        if let Some(limit) = self.limit_reached() {
            return self.end(End::Limit(limit));
        }
        match self.progress.judge_turn() {
            ProgressVerdict::GoOn => {}
            ProgressVerdict::BackOff { wait, reason, advice } => {
                if let Some(text) = advice {
                    self.record(Record::Note { what: "no_progress", text });
                }
                self.outputs.push_back(Output::BackOff { wait, reason });
            }
            ProgressVerdict::Stop(why) => return self.end(End::Limit(why)),
        }
        let max_tokens =
            if self.asks_long { self.settings.output_tokens_most } else { self.settings.output_tokens };
        self.outputs.push_back(Output::Ask { max_tokens });
        self.state = State::Answer;
    }

    fn limit_reached(&self) -> Option<String> {
        let RunSettings { turns_max, tokens_max, cost_max, .. } = self.settings;
        let spent = self.spent.since(&self.spent_before);
        let (taken, paid) = (spent.tokens(), spent.cost);
        if let Some(most) = turns_max.filter(|most| self.turns >= *most) {
            return Some(format!("{most} turns were allowed, and they are used up"));
        }
        if let Some(most) = tokens_max.filter(|most| taken >= *most) {
            return Some(format!("{most} tokens were allowed, and {taken} are used up"));
        }
        cost_max
            .filter(|most| paid >= *most)
            .map(|most| format!("${most:.2} were allowed, and ${paid:.2} are spent"))
    }

    fn answered(&mut self, mut answer: Answer) {
        take_once(&mut answer.calls);
        self.take_in(&answer);
        self.broken = 0;
        match answer.stop_reason.as_deref() {
            Some("refusal") => {
                self.record(Record::Shown(answer));
                self.end(End::Refused);
            }
            Some("max_tokens") => self.reached_limit(answer),
            Some("pause_turn") if answer.calls.is_empty() => {
                self.record(Record::Answer(answer));
                self.ask();
            }
            Some("model_context_window_exceeded") => {
                self.keep_uncalled(answer, words::CALL_CUT);
                self.end(End::Failed(String::from(
                    "the context window was full before the answer ended; compact the session or go on with a model \
                     that has a larger window",
                )));
            }
            _ => self.said_whole(answer),
        }
    }

    fn take_in(&mut self, answer: &Answer) {
        self.turns += 1;
        self.spent = answer.spent;
        let calls = answer.calls.iter().map(|call| (&call.id, call.name.as_str(), call.input.as_str()));
        self.progress.note_answer(&answer.blocks, calls, answer.stop_reason.as_deref());
        let texts = answer.blocks.iter().filter(|block| block.kind() == BlockType::Text);
        let words: Vec<_> = texts.filter_map(|block| block.string("text")).collect();
        let goes_on = std::mem::take(&mut self.goes_on);
        if !words.is_empty() {
            if !goes_on {
                self.last_words.clear();
            }
            self.last_words.push_str(&words.join("\n\n"));
        }
    }

    fn said_whole(&mut self, answer: Answer) {
        self.asks_long = false;
        self.gone_on = 0;
        let calls = answer.calls.clone();
        self.record(Record::Answer(answer));
        if self.is_interrupted {
            self.not_run(calls, words::CALL_INTERRUPTED);
            self.interrupted();
        } else if !calls.is_empty() {
            self.stop_blocked = 0;
            self.go_on_with(Calls::new(calls));
        } else if !self.said.is_empty() {
            self.ask();
        } else {
            let is_repeated = self.stop_blocked > 0;
            self.outputs.push_back(Output::CheckStop { last: self.last_words.clone(), is_repeated });
            self.state = State::StopCheck;
        }
    }

    /// The answer is longer than was asked for: a longer one is asked for once; if that is too long, too, it is gone on with.
    fn reached_limit(&mut self, answer: Answer) {
        let has_room = self.settings.output_tokens_most > self.settings.output_tokens;
        if self.is_interrupted {
            self.keep_uncalled(answer, words::CALL_INTERRUPTED);
            self.interrupted();
        } else if !self.asks_long && has_room {
            // An answer that does not count is no turn, but it was paid for.
            self.turns -= 1;
            if let Some(limit) = self.limit_reached() {
                self.turns += 1;
                self.keep_uncalled(answer, words::CALL_CUT);
                return self.end(End::Limit(limit));
            }
            self.asks_long = true;
            self.record(Record::Shown(answer));
            self.outputs.push_back(Output::Void);
            self.ask();
        } else if self.gone_on < GO_ON_MAX {
            self.gone_on += 1;
            self.goes_on = true;
            self.keep_uncalled(answer, words::CALL_CUT);
            self.record(Record::Note { what: "output_limit", text: words::GO_ON.to_owned() });
            self.ask();
        } else {
            self.keep_uncalled(answer, words::CALL_CUT);
            self.end(End::Limit(format!(
                "the answer reached the limit of {} tokens {} times in a row; ask for smaller pieces, or raise \
                 max_output_tokens",
                self.settings.output_tokens_most,
                GO_ON_MAX + 1
            )));
        }
    }

    fn broke(&mut self, broken: Broken) {
        let Broken { mut answer, why } = broken;
        take_once(&mut answer.calls);
        self.take_in(&answer);
        let has_content = !answer.blocks.is_empty();
        let words = if self.is_interrupted { words::CALL_INTERRUPTED } else { words::CALL_BROKEN };
        if has_content {
            self.keep_uncalled(answer, words);
        }
        if self.is_interrupted {
            self.interrupted();
        } else if has_content && self.broken < BROKEN_MAX {
            self.broken += 1;
            self.goes_on = true;
            self.record(Record::Note { what: "broken_answer", text: words::BROKEN.to_owned() });
            self.ask();
        } else {
            self.end(End::Failed(why));
        }
    }

    /// Keeps an answer whose calls are not carried out.
    fn keep_uncalled(&mut self, answer: Answer, why: &str) {
        let calls = answer.calls.clone();
        self.record(Record::Answer(answer));
        self.not_run(calls, why);
    }

    fn not_run(&mut self, calls: Vec<Call>, why: &str) {
        for call in calls {
            self.record(Record::NotRun { call: call.id, why: why.to_owned() });
        }
    }

    /// Starts what can be started; goes on with the model when all calls have ended.
    fn go_on_with(&mut self, mut calls: Calls) {
        if (self.is_interrupted || self.stops.is_some()) && !calls.is_any_open() {
            let given_up = calls.give_up_waiting();
            let why = if self.is_interrupted { words::CALL_INTERRUPTED } else { words::CALL_STOPPED };
            self.not_run(given_up, why);
        }
        loop {
            let batch = calls.next_batch();
            if batch.is_empty() {
                break;
            }
            for call in batch {
                match &call.problem {
                    None => self.outputs.push_back(Output::Judge(call)),
                    Some(problem) => {
                        calls.close(&call.id);
                        let why = problem.clone();
                        self.record(Record::NotRun { call: call.id, why });
                    }
                }
            }
        }
        if !calls.is_done() {
            self.state = State::Calls(calls);
        } else if self.is_interrupted {
            self.interrupted();
        } else if let Some(why) = self.stops.take() {
            self.end(End::Failed(why));
        } else {
            self.ask();
        }
    }

    fn judged(&mut self, id: &ToolUseId, ruling: Ruling, mut calls: Calls) {
        let refused = match ruling {
            Ruling::Allowed { .. } if self.is_interrupted => words::CALL_INTERRUPTED.to_owned(),
            Ruling::Allowed { .. } if self.stops.is_some() => words::CALL_STOPPED.to_owned(),
            Ruling::Allowed { input } => {
                if let Some(call) = calls.open(id) {
                    call.input = input.unwrap_or_else(|| call.input.clone());
                    self.outputs.push_back(Output::Carry(call.clone()));
                }
                self.state = State::Calls(calls);
                return;
            }
            Ruling::Refused(why) => why,
            Ruling::Stop(why) => {
                self.stops = Some(why.clone());
                why
            }
        };
        if calls.close(id) {
            self.record(Record::NotRun { call: id.clone(), why: refused });
        }
        self.go_on_with(calls);
    }

    fn returned(&mut self, returned: Returned, mut calls: Calls) {
        if calls.close(&returned.call) {
            if let Some(why) = &returned.stop {
                self.stops = Some(why.clone());
            }
            self.record(Record::Result(returned));
        }
        self.go_on_with(calls);
    }

    fn stop(&mut self) {
        if self.is_interrupted {
            self.interrupted();
        } else if self.said.is_empty() {
            self.end(End::Done);
        } else {
            self.ask();
        }
    }

    fn stop_blocked(&mut self, why: String) {
        self.stop_blocked += 1;
        if self.is_interrupted {
            return self.interrupted();
        }
        if self.stop_blocked > STOP_BLOCKED_MAX {
            return self.end(End::Limit(format!(
                "a Stop hook forbade the end {STOP_BLOCKED_MAX} times in a row, the last time because: {why}; change \
                 the hook or do what it asks for, then go on with --continue"
            )));
        }
        self.record(Record::Note { what: "stop_hook", text: why });
        self.ask();
    }

    fn interrupt(&mut self, state: State) {
        match state {
            // Who rests has nothing to stop.
            State::Idle => {}
            state => {
                if !self.is_interrupted {
                    self.outputs.push_back(Output::Cancel);
                }
                self.is_interrupted = true;
                self.state = state;
            }
        }
    }

    /// Everything has ended that was under way when somebody wanted it to stop.
    fn interrupted(&mut self) {
        self.record(Record::Note { what: "interrupted", text: words::INTERRUPTED.to_owned() });
        self.end(End::Interrupted);
    }

    fn record(&mut self, record: Record) {
        match &record {
            Record::Result(Returned { call, content, is_error, took, .. }) => {
                self.progress.note_result(call, &raw_text(content), *is_error, *took);
            }
            Record::NotRun { call, why } => self.progress.note_result(call, why, true, Duration::ZERO),
            Record::Said(_) | Record::Answer(_) | Record::Shown(_) | Record::Note { .. } => {}
        }
        self.outputs.push_back(Output::Record(record));
    }

    fn end(&mut self, end: End) {
        self.state = State::Idle;
        self.is_interrupted = false;
        self.outputs.push_back(Output::Ended(end));
    }
}

/// The text of a result; of other blocks, their JSON.
fn raw_text(content: &[Block]) -> String {
    let texts = content.iter().map(|block| match block.string("text") {
        Some(text) if block.kind() == BlockType::Text => text.into_owned(),
        _ => block.raw().to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A call that an answer makes twice is one call: nothing is carried out twice.
fn take_once(calls: &mut Vec<Call>) {
    let mut known: Vec<ToolUseId> = Vec::new();
    calls.retain(|call| {
        let is_new = !known.contains(&call.id);
        known.push(call.id.clone());
        is_new
    });
}
