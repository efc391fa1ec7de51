//! Laws that hold whatever happens.

use std::collections::BTreeMap;

use pal_model::{Content, ToolUseId};
use pal_session::{Broken, Input, Output, Record, Ruling, Run, RunSettings};
use proptest::prelude::*;

use crate::{answer, call, returned};

/// What the world does next, as numbers that choose among what is possible.
fn world() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..120)
}

/// What became of a call.
#[derive(Default, Debug)]
struct Fate {
    carried: u32,
    answered: u32,
}

/// A driver that obeys the machine and answers by chance.
struct Driver {
    run: Run,
    fates: BTreeMap<ToolUseId, Fate>,
    /// What is still owed an answer, by the machine's own words.
    owed: Vec<Output>,
    next: u32,
    prompts: u32,
    said: u32,
    ended: u32,
}

impl Driver {
    fn obey(&mut self) {
        while let Some(output) = self.run.poll() {
            match &output {
                Output::Carry(call) => {
                    self.fates.entry(call.id.clone()).or_default().carried += 1;
                    self.owed.push(output);
                }
                Output::CheckPrompt(_) | Output::Ask { .. } | Output::Judge(_) | Output::CheckStop { .. } => {
                    self.owed.push(output)
                }
                Output::Record(Record::Answer(answer)) => {
                    // An answer that breaks off keeps its calls, too.
                    for call in &answer.calls {
                        self.fates.entry(call.id.clone()).or_default();
                    }
                }
                Output::Record(Record::Result(returned)) => {
                    self.fates.get_mut(&returned.call).unwrap().answered += 1;
                }
                Output::Record(Record::NotRun { call, .. }) => {
                    self.fates.get_mut(call).unwrap().answered += 1;
                }
                Output::Record(Record::Said(_)) => self.said += 1,
                Output::Ended(_) => {
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
                self.run.handle(Input::Prompt(Content::of_text("x")));
            }
            1 => self.run.handle(Input::Interrupt),
            2 => {
                self.prompts += 1;
                self.run.handle(Input::Message(Content::of_text("y")));
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

    fn answer(&mut self, output: &Output, chance: u8) {
        let choice = chance / 32;
        let input = match output {
            Output::CheckPrompt(_) if choice == 7 => {
                // What was blocked is not said.
                self.prompts -= 1;
                Input::PromptBlocked("no".into())
            }
            Output::CheckPrompt(_) => Input::PromptPassed,
            Output::Judge(call) => Input::Judged(
                call.id.clone(),
                match choice {
                    0 => Ruling::Refused("no".into()),
                    1 => Ruling::Stop("no".into()),
                    _ => Ruling::Allowed { input: None },
                },
            ),
            Output::Carry(call) => Input::Returned(returned(&call.id)),
            Output::CheckStop { .. } if choice == 7 => Input::StopBlocked("go on".into()),
            Output::CheckStop { .. } => Input::StopPassed,
            _ => self.reply(choice),
        };
        self.run.handle(input);
    }

    fn reply(&mut self, choice: u8) -> Input {
        let calls = (0..choice % 4).map(|at| {
            self.next += 1;
            // Now and then an answer makes a call twice.
            let number = if at > 0 && self.next.is_multiple_of(7) { self.next - 1 } else { self.next };
            let mut call = call(&format!("t{number}"), !self.next.is_multiple_of(3));
            call.problem = self.next.is_multiple_of(5).then(|| "bad".into());
            call
        });
        let calls = calls.collect();
        match choice {
            0 => Input::Answered(answer("done", calls, "end_turn")),
            1 => Input::Broke(Broken { answer: answer("half", calls, "x"), why: "cut".into() }),
            2 => Input::Answered(answer("half", calls, "max_tokens")),
            3 => Input::Answered(answer("on", calls, "tool_use")),
            4 => Input::Failed("no answer".into()),
            5 => Input::Answered(answer("on", calls, "tool_use")),
            6 => Input::Answered(answer("on", calls, "pause_turn")),
            _ => Input::Answered(answer("no", Vec::new(), "refusal")),
        }
    }

    /// Lets everything come to its end.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.owed.is_empty() {
                break;
            }
            let output = self.owed.remove(0);
            let input = match &output {
                Output::Ask { .. } => Input::Answered(answer("done", Vec::new(), "end_turn")),
                Output::Judge(call) => Input::Judged(call.id.clone(), Ruling::Allowed { input: None }),
                Output::Carry(call) => Input::Returned(returned(&call.id)),
                Output::CheckPrompt(_) => Input::PromptPassed,
                _ => Input::StopPassed,
            };
            self.run.handle(input);
            self.obey();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn every_call_is_answered_once_and_carried_out_at_most_once(chances in world()) {
        let run = Run::new(RunSettings { turns_max: Some(20), ..RunSettings::plain(8, 64) });
        let mut driver =
            Driver { run, fates: BTreeMap::new(), owed: Vec::new(), next: 0, prompts: 1, said: 0, ended: 0 };
        driver.run.handle(Input::Prompt(Content::of_text("x")));
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
        let unheard = driver.run.take_unheard().len() as u32;
        prop_assert_eq!(driver.said + unheard, driver.prompts, "nothing that a person said is lost");
    }
}
