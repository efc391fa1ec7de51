//! Properties of all runs.

use std::collections::BTreeMap;

use pal_model::{Content, ToolUseId};
use pal_run::{BrokenAnswer, CallRuling, Run, RunInput, RunOutput, RunRecord, RunSettings};
use proptest::prelude::*;

use crate::{answer, call, returned};

/// Random bytes that choose among the possible events.
fn world() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..120)
}

/// Counts of a call.
#[derive(Default, Debug)]
struct CallFate {
    carried: u32,
    answered: u32,
}

/// Driver that executes outputs and answers randomly.
struct RandomDriver {
    run: Run,
    fates: BTreeMap<ToolUseId, CallFate>,
    /// Outputs that still need an answer.
    owed: Vec<RunOutput>,
    next: u32,
    prompts: u32,
    said: u32,
    ended: u32,
    /// Notes of the run itself, and answers that it requested again.
    additions: u32,
}

impl RandomDriver {
    fn obey(&mut self) {
        while let Some(output) = self.run.poll() {
            match &output {
                RunOutput::ExecuteCall(call) => {
                    self.fates.entry(call.id.clone()).or_default().carried += 1;
                    self.owed.push(output);
                }
                RunOutput::CheckPrompt(_)
                | RunOutput::RequestModel { .. }
                | RunOutput::AuthorizeCall(_)
                | RunOutput::CheckStop { .. } => self.owed.push(output),
                RunOutput::Record(RunRecord::Answer(answer)) => {
                    // A broken answer keeps its calls, too.
                    for call in &answer.calls {
                        self.fates.entry(call.id.clone()).or_default();
                    }
                }
                RunOutput::Record(RunRecord::Result(returned)) => {
                    self.fates.get_mut(&returned.call).unwrap().answered += 1;
                }
                RunOutput::Record(RunRecord::NotRun { call, .. }) => {
                    self.fates.get_mut(call).unwrap().answered += 1;
                }
                RunOutput::Record(RunRecord::Message(_)) => self.said += 1,
                RunOutput::Record(RunRecord::Note { what, .. }) => {
                    self.additions += u32::from(*what != "stop_hook");
                }
                RunOutput::DiscardAnswer => self.additions += 1,
                RunOutput::Ended(_) => {
                    self.ended += 1;
                    assert!(self.owed.is_empty(), "ended while {:?} is under way", self.owed);
                }
                _ => {}
            }
        }
    }

    fn step(&mut self, chance: u8) {
        match chance % 16 {
            0 => {
                self.prompts += 1;
                self.run.handle(RunInput::Prompt(Content::from_text("x")));
            }
            1 => self.run.handle(RunInput::Interrupt),
            2 => {
                self.prompts += 1;
                self.run.handle(RunInput::Message(Content::from_text("y")));
            }
            _ if self.owed.is_empty() => {}
            _ => {
                let at = usize::from(chance / 16) % self.owed.len();
                let output = self.owed.remove(at);
                self.answer(&output, chance);
            }
        }
        self.obey();
    }

    fn answer(&mut self, output: &RunOutput, chance: u8) {
        let choice = chance / 32;
        let input = match output {
            RunOutput::CheckPrompt(_) if choice == 7 => {
                // A blocked prompt is not recorded.
                self.prompts -= 1;
                RunInput::PromptBlocked("no".into())
            }
            RunOutput::CheckPrompt(_) => RunInput::PromptPassed,
            RunOutput::AuthorizeCall(call) => RunInput::CallJudged(
                call.id.clone(),
                match choice {
                    0 => CallRuling::Refused("no".into()),
                    1 => CallRuling::Stop("no".into()),
                    _ => CallRuling::Allowed { input: None },
                },
            ),
            RunOutput::ExecuteCall(call) => RunInput::CallReturned(returned(&call.id)),
            RunOutput::CheckStop { .. } if choice == 7 => RunInput::StopBlocked("go on".into()),
            RunOutput::CheckStop { .. } => RunInput::StopPassed,
            _ => self.reply(choice),
        };
        self.run.handle(input);
    }

    fn reply(&mut self, choice: u8) -> RunInput {
        let calls = (0..choice % 4).map(|at| {
            self.next += 1;
            // Sometimes an answer repeats a call.
            let number = if at > 0 && self.next.is_multiple_of(7) { self.next - 1 } else { self.next };
            let mut call = call(&format!("t{number}"), !self.next.is_multiple_of(3));
            call.problem = self.next.is_multiple_of(5).then(|| "bad".into());
            call
        });
        let calls = calls.collect();
        match choice {
            0 => RunInput::Answered(answer("done", calls, "end_turn")),
            1 => {
                RunInput::AnswerBroke(BrokenAnswer { answer: answer("half", calls, "x"), why: "cut".into() })
            }
            2 => RunInput::Answered(answer("half", calls, "max_tokens")),
            3 => RunInput::Answered(answer("on", calls, "tool_use")),
            4 => RunInput::Failed("no answer".into()),
            5 => RunInput::Answered(answer("on", calls, "tool_use")),
            6 => RunInput::Answered(answer("on", calls, "pause_turn")),
            _ => RunInput::Answered(answer("no", Vec::new(), "refusal")),
        }
    }

    /// Lets the run finish.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.owed.is_empty() {
                break;
            }
            let output = self.owed.remove(0);
            let input = match &output {
                RunOutput::RequestModel { .. } => RunInput::Answered(answer("done", Vec::new(), "end_turn")),
                RunOutput::AuthorizeCall(call) => {
                    RunInput::CallJudged(call.id.clone(), CallRuling::Allowed { input: None })
                }
                RunOutput::ExecuteCall(call) => RunInput::CallReturned(returned(&call.id)),
                RunOutput::CheckPrompt(_) => RunInput::PromptPassed,
                _ => RunInput::StopPassed,
            };
            self.run.handle(input);
            self.obey();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_once_and_executed_at_most_once(chances in world(), adds_notes in any::<bool>()) {
        let run = Run::new(RunSettings { turns_max: Some(20), adds_notes, ..RunSettings::plain(8, 64) });
        let mut driver = RandomDriver {
            run, fates: BTreeMap::new(), owed: Vec::new(), next: 0, prompts: 1, said: 0, ended: 0, additions: 0,
        };
        driver.run.handle(RunInput::Prompt(Content::from_text("x")));
        driver.obey();
        for chance in chances {
            driver.step(chance);
        }
        driver.settle();
        prop_assert!(!driver.run.is_working(), "{:?}", driver.run);
        prop_assert!(driver.ended > 0);
        for (call, fate) in &driver.fates {
            prop_assert!(fate.carried <= 1 && fate.answered == 1, "{call:?}: {fate:?}");
        }
        prop_assert!(adds_notes || driver.additions == 0);
        let unheard = driver.run.take_queued_messages().len() as u32;
        prop_assert_eq!(driver.said + unheard, driver.prompts, "nothing that a person said is lost");
    }
}
