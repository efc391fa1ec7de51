//! A run, driven: the machine of `pal-session` says what comes next, the session keeps it, [`Hands`] do it.

use std::time::Duration;

use pal_model::{Block, CacheBreak, Content, Draft, Entry, Origin, Timestamp, Totals, Usage, raw_list};
use pal_session::{Answer, Broken, Call, End, Input, Output, Record, Returned, Ruling, Run};

use crate::session::result;
use crate::{Answered, Engine, EngineError, Errands, Sent, Session};

/// What is done for a run outside of its session.
pub trait Hands: Errands {
    /// Whether a prompt is to be worked on, or why not.
    fn check_prompt(&mut self, session: &mut Session, prompt: &Content) -> Result<(), String>;

    /// Appends what the model is to know before the next request: changes around the session, what hooks said.
    fn before_request(&mut self, session: &mut Session, now: Timestamp) -> Result<(), EngineError>;

    /// Whether the model asked for a compaction, and what it is to dwell on.
    fn wants_compaction(&mut self) -> Option<Option<String>>;

    /// Sets what may change from request to request: what is switched off.
    fn adjust(&mut self, engine: &mut Engine);

    /// The calls among the blocks of an answer, in order.
    fn calls(&mut self, blocks: &[Block]) -> Vec<Call>;

    /// Whether a call may be carried out.
    fn judge(&mut self, session: &mut Session, call: &Call) -> Ruling;

    /// Starts a call; its result comes out of [`Hands::wait`].
    fn carry(&mut self, session: &mut Session, engine: &Engine, call: Call);

    /// Waits until something happens: a call returns, somebody says something or wants it to stop.
    fn wait(&mut self) -> Input;

    /// Waits before the next request of a run that makes no progress; what happens first ends the wait.
    fn back_off(&mut self, wait: Duration) -> Option<Input>;

    /// What happened meanwhile, without waiting.
    fn meanwhile(&mut self) -> Option<Input>;

    /// Stops whatever is under way.
    fn cancel(&mut self);

    /// Whether the agent may stop, or why it shall go on.
    fn check_stop(&mut self, session: &mut Session, last: &str, is_repeated: bool) -> Result<(), String>;

    /// Hears what happened.
    fn hear(&mut self, heard: Heard<'_>);
}

/// Something that happened in a run, for whoever shows it.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// A message is in the log: what a person said, what tools returned.
    Message(&'a Entry),
    /// An answer of the model is in the log.
    Answer(&'a Entry, &'a Usage, Option<f64>),
    /// What was shown of the answer does not count.
    Void,
    /// Reads from the provider's cache fell.
    CacheBroke(&'a CacheBreak),
}

/// Works on whatever the run was told, until it has ended.
pub fn drive(
    session: &mut Session,
    engine: &mut Engine,
    run: &mut Run,
    hands: &mut dyn Hands,
) -> Result<End, EngineError> {
    let mut driver = Driver { session, engine, hands, answer: None };
    let driven = driver.drive(run);
    if driven.is_err() {
        driver.hands.cancel();
    }
    driven
}

struct Driver<'a> {
    session: &'a mut Session,
    engine: &'a mut Engine,
    hands: &'a mut dyn Hands,
    /// The answer that the run was told of and has not recorded yet.
    answer: Option<(Answered, Option<CacheBreak>)>,
}

impl Driver<'_> {
    fn drive(&mut self, run: &mut Run) -> Result<End, EngineError> {
        loop {
            self.heed(run);
            let Some(output) = run.poll() else {
                let input = self.hands.wait();
                run.handle(input);
                continue;
            };
            match output {
                Output::CheckPrompt(prompt) => {
                    let checked = self.hands.check_prompt(self.session, &prompt);
                    self.heed(run);
                    run.handle(match checked {
                        Ok(()) => Input::PromptPassed,
                        Err(why) => Input::PromptBlocked(why),
                    });
                }
                Output::Record(record) => self.record(record)?,
                Output::Ask { max_tokens } => {
                    let input = self.ask(max_tokens)?;
                    self.heed(run);
                    run.handle(input);
                }
                Output::BackOff { wait, reason } => {
                    self.hands.notice(&format!("{reason}; the next request waits {} s", wait.as_secs()));
                    if let Some(input) = self.hands.back_off(wait) {
                        run.handle(input);
                    }
                }
                Output::Void => self.hands.hear(Heard::Void),
                Output::Judge(call) => {
                    let ruling = self.hands.judge(self.session, &call);
                    self.heed(run);
                    run.handle(Input::Judged(call.id, ruling));
                }
                Output::Carry(call) => {
                    // After a loss of power the log must know of every call that may have had an effect. All calls of an
                    // answer, and what was recorded since, share one sync; a call that only reads needs none.
                    if !call.only_looks && !self.session.is_synced() {
                        self.session.sync()?;
                    }
                    self.hands.carry(self.session, self.engine, call);
                }
                Output::Cancel => self.hands.cancel(),
                Output::CheckStop { last, is_repeated } => {
                    let checked = self.hands.check_stop(self.session, &last, is_repeated);
                    self.heed(run);
                    run.handle(match checked {
                        Ok(()) => Input::StopPassed,
                        Err(why) => Input::StopBlocked(why),
                    });
                }
                Output::Ended(end) => {
                    self.session.sync()?;
                    return Ok(end);
                }
            }
        }
    }

    /// Tells the run what happened meanwhile. Whatever took a while comes after it: who wanted the run to stop while a hook
    /// was heard or an answer came must not see it go on.
    fn heed(&mut self, run: &mut Run) {
        while let Some(input) = self.hands.meanwhile() {
            run.handle(input);
        }
    }

    /// Asks the model. What the provider says is the run's business, what the disk says is not.
    fn ask(&mut self, max_tokens: u64) -> Result<Input, EngineError> {
        let now = self.now();
        self.hands.before_request(self.session, now)?;
        self.engine.max_tokens = max_tokens;
        self.hands.adjust(self.engine);
        if let Some(instructions) = self.hands.wants_compaction() {
            self.session.compact_by_hand(instructions, self.engine, now, self.hands)?;
        }
        match self.session.send(self.engine, now, self.hands) {
            Ok(Sent { answered, cache_break, .. }) => {
                let answer = self.answer(&answered);
                self.answer = Some((answered, cache_break));
                Ok(Input::Answered(answer))
            }
            Err(EngineError::Broke(broke)) if broke.is_final => {
                self.answer = Some((broke.answered, None));
                let now = self.now();
                self.record_answer(true, now)?;
                self.session.settle(now)?;
                Ok(Input::Failed(broke.why))
            }
            Err(EngineError::Broke(broke)) => {
                let answer = self.answer(&broke.answered);
                if broke.answered.blocks.is_empty() {
                    // Nothing to keep, but perhaps something to pay.
                    let now = self.now();
                    if broke.answered.usage.has_prompt() {
                        self.session.append_response(&broke.answered, None, now)?;
                    }
                } else {
                    self.answer = Some((broke.answered, None));
                }
                Ok(Input::Broke(Broken { answer, why: broke.why }))
            }
            Err(error @ (EngineError::Provider(_) | EngineError::Full(_) | EngineError::TooLong { .. })) => {
                Ok(Input::Failed(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    fn answer(&mut self, answered: &Answered) -> Answer {
        let mut spent: Totals = self.session.view().state().totals;
        spent.add(&answered.usage, answered.cost);
        Answer {
            blocks: answered.blocks.clone(),
            calls: self.hands.calls(&answered.blocks),
            stop_reason: answered.stop_reason.clone(),
            spent,
        }
    }

    fn record(&mut self, record: Record) -> Result<(), EngineError> {
        let now = self.now();
        match record {
            Record::Said(said) => {
                let entry = self.session.append(Draft::user(said.origin, &said.content.raw()), now)?;
                self.hands.hear(Heard::Message(&entry));
            }
            Record::Answer(_) => self.record_answer(true, now)?,
            Record::Shown(_) => self.record_answer(false, now)?,
            Record::Result(returned) => {
                let draft = Draft::results(
                    &result(&returned.call, &returned.content, returned.is_error),
                    &returned.aftermath,
                );
                let entry = self.session.append(draft, now)?;
                self.hands.hear(Heard::Message(&entry));
                for (what, text) in &returned.notes {
                    self.session.attach(what, text, now)?;
                }
            }
            Record::NotRun { call, why } => {
                let returned = Returned::failed(&call, &why);
                let entry = self.session.append(
                    Draft::user(Origin::Tool, &result(&returned.call, &returned.content, returned.is_error)),
                    now,
                )?;
                self.hands.hear(Heard::Message(&entry));
            }
            Record::Note { what, text } => {
                self.session.attach(what, &text, now)?;
            }
        }
        Ok(())
    }

    /// Appends the answer at hand and what it took. One that does not count is kept for the user's eyes.
    fn record_answer(&mut self, counts: bool, now: Timestamp) -> Result<(), EngineError> {
        let Some((answered, cache_break)) = self.answer.take() else { return Ok(()) };
        let entry = if counts {
            self.session.append_answer(&answered, now)?
        } else {
            Some(self.session.append(Draft::shown(&raw_list(&answered.blocks)), now)?)
        };
        if let Some(found) = &cache_break {
            self.hands.hear(Heard::CacheBroke(found));
        }
        self.session.append_response(&answered, cache_break, now)?;
        if let Some(entry) = entry.filter(|_| counts) {
            self.hands.hear(Heard::Answer(&entry, &answered.usage, answered.cost));
        }
        Ok(())
    }

    fn now(&mut self) -> Timestamp {
        self.hands.now(Timestamp::default())
    }
}
