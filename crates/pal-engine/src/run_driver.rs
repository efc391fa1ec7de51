//! The driver of a run: the state machine of `pal-run` says what comes next, the session keeps it, a [`RunHost`] does it.

use pal_model::{CacheBreak, EntryDraft, MessageOrigin, Timestamp, UsageTotals, blocks_to_json};
use pal_run::{BrokenAnswer, ModelAnswer, Run, RunEnd, RunInput, RunOutput, RunRecord, ToolCallResult};

use crate::run_host::{RunEvent, RunHost};
use crate::session::tool_result_json;
use crate::{EngineError, ModelResponse, RequestResult, Session, SessionConfig};

/// Drives a run until it ends.
pub fn drive(
    session: &mut Session,
    config: &mut SessionConfig,
    run: &mut Run,
    host: &mut dyn RunHost,
) -> Result<RunEnd, EngineError> {
    let mut driver = RunDriver { session, config, host, answer: None };
    let driven = driver.drive(run);
    if driven.is_err() {
        driver.host.cancel();
    }
    driven
}

struct RunDriver<'a> {
    session: &'a mut Session,
    config: &'a mut SessionConfig,
    host: &'a mut dyn RunHost,
    /// Response that the run knows of and has not recorded yet.
    answer: Option<(ModelResponse, Option<CacheBreak>)>,
}

impl RunDriver<'_> {
    fn drive(&mut self, run: &mut Run) -> Result<RunEnd, EngineError> {
        loop {
            self.deliver_inputs(run);
            let Some(output) = run.poll() else {
                let input = self.host.wait();
                run.handle(input);
                continue;
            };
            match output {
                RunOutput::CheckPrompt(prompt) => {
                    let checked = self.host.check_prompt(self.session, &prompt);
                    self.deliver_inputs(run);
                    run.handle(match checked {
                        Ok(()) => RunInput::PromptPassed,
                        Err(why) => RunInput::PromptBlocked(why),
                    });
                }
                RunOutput::Record(record) => self.record(record)?,
                RunOutput::RequestModel { max_tokens } => {
                    let input = self.ask(max_tokens)?;
                    self.deliver_inputs(run);
                    run.handle(input);
                }
                RunOutput::BackOff { wait, reason } => {
                    self.host.notice(&format!("{reason}; the next request waits {} s", wait.as_secs()));
                    if let Some(input) = self.host.back_off(wait) {
                        run.handle(input);
                    }
                }
                RunOutput::DiscardAnswer => self.host.observe(RunEvent::Void),
                RunOutput::AuthorizeCall(call) => {
                    let ruling = self.host.authorize(self.session, &call);
                    self.deliver_inputs(run);
                    run.handle(RunInput::CallJudged(call.id, ruling));
                }
                RunOutput::ExecuteCall(call) => {
                    // After a power loss the log must contain every call that may have had an effect. One sync
                    // covers all calls of a response; read-only calls need none.
                    if !call.is_read_only && !self.session.is_synced() {
                        self.session.sync()?;
                    }
                    self.host.execute(self.session, self.config, call);
                }
                RunOutput::Cancel => self.host.cancel(),
                RunOutput::CheckStop { last, is_repeated } => {
                    let checked = self.host.check_stop(self.session, &last, is_repeated);
                    self.deliver_inputs(run);
                    run.handle(match checked {
                        Ok(()) => RunInput::StopPassed,
                        Err(why) => RunInput::StopBlocked(why),
                    });
                }
                RunOutput::Ended(end) => {
                    self.session.sync()?;
                    return Ok(end);
                }
            }
        }
    }

    /// Delivers pending inputs to the run. Called after every slow step, so that an interrupt during a hook or
    /// a response stops the run at once.
    fn deliver_inputs(&mut self, run: &mut Run) {
        while let Some(input) = self.host.try_next() {
            run.handle(input);
        }
    }

    /// Requests the next response. Provider errors go to the run; disk errors end the drive.
    fn ask(&mut self, max_tokens: u64) -> Result<RunInput, EngineError> {
        let now = self.now();
        self.host.before_request(self.session, now)?;
        self.config.max_tokens = max_tokens;
        self.host.apply_switches(self.config);
        if let Some(instructions) = self.host.take_compaction_request() {
            self.session.compact_for_model(instructions, self.config, now, self.host)?;
        }
        let sent = loop {
            match self.session.send(self.config, now, self.host) {
                Err(EngineError::Provider(_)) if self.host.fall_back(self.session, self.config) => {}
                sent => break sent,
            }
        };
        match sent {
            Ok(RequestResult { answered, cache_break, .. }) => {
                let answer = self.answer(&answered);
                self.answer = Some((answered, cache_break));
                Ok(RunInput::Answered(answer))
            }
            Err(EngineError::Broke(broke)) if broke.is_final => {
                self.answer = Some((broke.answered, None));
                let now = self.now();
                self.record_answer(true, now)?;
                self.session.answer_interrupted_calls(now)?;
                Ok(RunInput::Failed(broke.why))
            }
            Err(EngineError::Broke(broke)) => {
                let answer = self.answer(&broke.answered);
                if broke.answered.blocks.is_empty() {
                    // No content to keep, but the usage counts.
                    let now = self.now();
                    if broke.answered.usage.has_prompt() {
                        self.session.append_response(&broke.answered, None, now)?;
                    }
                } else {
                    self.answer = Some((broke.answered, None));
                }
                Ok(RunInput::AnswerBroke(BrokenAnswer { answer, why: broke.why }))
            }
            Err(error @ (EngineError::Provider(_) | EngineError::Full(_) | EngineError::TooLong { .. })) => {
                Ok(RunInput::Failed(error.to_string()))
            }
            Err(error) => Err(error),
        }
    }

    fn answer(&mut self, answered: &ModelResponse) -> ModelAnswer {
        let mut spent: UsageTotals = self.session.view().state().totals;
        spent.add(&answered.usage, answered.cost);
        ModelAnswer {
            blocks: answered.blocks.clone(),
            calls: self.host.parse_calls(&answered.blocks),
            stop_reason: answered.stop_reason.clone(),
            spent,
        }
    }

    fn record(&mut self, record: RunRecord) -> Result<(), EngineError> {
        let now = self.now();
        match record {
            RunRecord::Message(said) => {
                let entry =
                    self.session.append(EntryDraft::user(said.origin, &said.content.to_json()), now)?;
                self.host.observe(RunEvent::Message(&entry));
            }
            RunRecord::Answer(_) => self.record_answer(true, now)?,
            RunRecord::DisplayedAnswer(_) => self.record_answer(false, now)?,
            RunRecord::Result(returned) => {
                let draft = EntryDraft::tool_results(
                    &tool_result_json(&returned.call, &returned.content, returned.is_error),
                    &returned.effects,
                );
                let entry = self.session.append(draft, now)?;
                self.host.observe(RunEvent::Message(&entry));
                for (what, text) in &returned.notes {
                    self.session.attach(what, text, now)?;
                }
            }
            RunRecord::NotRun { call, why } => {
                let returned = ToolCallResult::failed(&call, &why);
                let entry = self.session.append(
                    EntryDraft::user(
                        MessageOrigin::Tool,
                        &tool_result_json(&returned.call, &returned.content, returned.is_error),
                    ),
                    now,
                )?;
                self.host.observe(RunEvent::Message(&entry));
            }
            RunRecord::Note { what, text } => {
                self.session.attach(what, &text, now)?;
            }
        }
        Ok(())
    }

    /// Appends the pending response and its usage. One that does not count is kept for display only.
    fn record_answer(&mut self, counts: bool, now: Timestamp) -> Result<(), EngineError> {
        let Some((answered, cache_break)) = self.answer.take() else { return Ok(()) };
        let entry = if counts {
            self.session.append_answer(&answered, now)?
        } else {
            Some(self.session.append(EntryDraft::user_only(&blocks_to_json(&answered.blocks)), now)?)
        };
        if let Some(found) = &cache_break {
            self.host.observe(RunEvent::CacheBroke(found));
        }
        self.session.append_response(&answered, cache_break, now)?;
        if let Some(entry) = entry.filter(|_| counts) {
            self.host.observe(RunEvent::Answer(&entry, &answered.usage, answered.cost));
        }
        Ok(())
    }

    fn now(&mut self) -> Timestamp {
        self.host.now(Timestamp::default())
    }
}
