//! Loops and their brakes: whatever repeats without end, the run slows down and ends at a limit.

use std::time::Duration;

use pal_model::{Block, Content, Text};
use pal_session::{
    Answer, Broken, Call, End, Input, Output, ProgressLimits, Record, Returned, Ruling, Run, RunSettings,
};

use crate::{answer, call, returned};

/// What a run came to.
#[derive(Debug)]
struct Outcome {
    end: End,
    asked: u64,
    waited: Duration,
    notes: Vec<String>,
}

/// What becomes of a call.
type CallResult = Box<dyn FnMut(&Call, u64) -> Returned>;

/// The world around a run; each function gets the number of the request.
struct World {
    reply: Box<dyn FnMut(u64) -> Input>,
    judge: Box<dyn FnMut(&Call) -> Ruling>,
    result: CallResult,
    stop: Box<dyn FnMut(u64) -> Input>,
}

impl World {
    fn new(reply: impl FnMut(u64) -> Input + 'static) -> World {
        World {
            reply: Box::new(reply),
            judge: Box::new(|_| Ruling::Allowed { input: None }),
            result: Box::new(|call, _| returned(&call.id)),
            stop: Box::new(|_| Input::StopPassed),
        }
    }

    /// Obeys the run until it ends; a thousand requests are a loop without a brake.
    fn run(mut self, settings: RunSettings) -> Outcome {
        let mut run = Run::new(settings);
        run.handle(Input::Prompt(Content::of_text("go")));
        self.obey(&mut run)
    }

    fn obey(&mut self, run: &mut Run) -> Outcome {
        let (mut asked, mut waited, mut notes) = (0, Duration::ZERO, Vec::new());
        while let Some(output) = run.poll() {
            match output {
                Output::CheckPrompt(_) => run.handle(Input::PromptPassed),
                Output::Ask { .. } => {
                    asked += 1;
                    assert!(asked < 1_000, "nothing stops the loop");
                    run.handle((self.reply)(asked));
                }
                Output::BackOff { wait, .. } => waited += wait,
                Output::Judge(call) => {
                    let ruling = (self.judge)(&call);
                    run.handle(Input::Judged(call.id, ruling));
                }
                Output::Carry(call) => {
                    let result = (self.result)(&call, asked);
                    run.handle(Input::Returned(result));
                }
                Output::CheckStop { .. } => run.handle((self.stop)(asked)),
                Output::Record(Record::Note { what, .. }) => notes.push(what.to_owned()),
                Output::Record(_) | Output::Void | Output::Cancel => {}
                Output::Ended(end) => return Outcome { end, asked, waited, notes },
            }
        }
        panic!("the run waits for nothing");
    }
}

fn limited(stalled: u64, fruitless: u64) -> RunSettings {
    let progress = ProgressLimits { stalled_turns_max: stalled, fruitless_turns_max: fruitless };
    RunSettings { progress, ..RunSettings::plain(8, 64) }
}

/// A call with a new id and this input.
fn calling(at: u64, input: &str) -> Call {
    Call { input: Text::from(format!("{{\"a\":\"{input}\"}}")), ..call(&format!("t{at}"), false) }
}

fn calls(at: u64, text: &str, input: &str) -> Input {
    Input::Answered(answer(text, vec![calling(at, input)], "tool_use"))
}

fn result(call: &Call, text: &str, is_error: bool) -> Returned {
    Returned::plain(&call.id, vec![Block::text(text)], is_error)
}

/// The words of an end at a limit.
fn limit(outcome: &Outcome) -> &str {
    match &outcome.end {
        End::Limit(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_same_denied_call_ends_the_run_and_says_what_repeated() {
    let mut world = World::new(|at| calls(at, "I try again.", "rm"));
    world.judge = Box::new(|_| Ruling::Refused("Bash(rm) is denied".into()));
    let outcome = world.run(limited(8, 50));
    assert_eq!(outcome.asked, 9, "the first one is new");
    let why = limit(&outcome);
    for part in [
        "no progress in 8 turns",
        "Tool {\"a\":\"rm\"}",
        "9 times",
        "denied",
        "max_stalled_turns",
        "--continue",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(outcome.waited, Duration::from_secs(1 + 2 + 4 + 8 + 16), "requests are slowed down");
    assert_eq!(outcome.notes, ["no_progress"], "the model is told once");
}

#[test]
fn pauses_without_content_end_the_run() {
    for text in ["", "still searching"] {
        let world = World::new(move |_| Input::Answered(answer(text, vec![], "pause_turn")));
        let outcome = world.run(limited(8, 50));
        assert!(outcome.asked <= 9 && limit(&outcome).contains("pause_turn"), "{outcome:?}");
        assert!(outcome.notes.is_empty(), "nothing is put behind an answer that is to be continued");
    }
    let world = World::new(|at| Input::Answered(answer(&"x".repeat(at as usize), vec![], "pause_turn")));
    let outcome = world.run(limited(8, 50));
    assert_eq!(outcome.asked, 50, "ever new text is no result: {outcome:?}");
}

#[test]
fn pauses_in_which_the_providers_tools_work_go_on() {
    let world = World::new(|at| {
        let raw = format!(
            r#"{{"type":"server_tool_use","id":"s{at}","name":"web_search","input":{{"query":"q{at}"}}}}"#
        );
        let blocks = vec![Block::parse(Text::from(raw))];
        let stop = if at < 20 { "pause_turn" } else { "end_turn" };
        Input::Answered(Answer { blocks, ..answer("", vec![], stop) })
    });
    assert_eq!(world.run(limited(8, 50)).end, End::Done);
    let world = World::new(|at| {
        let raw = format!(
            r#"{{"type":"server_tool_use","id":"s{at}","name":"web_search","input":{{"query":"q"}}}}"#
        );
        let blocks = vec![Block::parse(Text::from(raw))];
        Input::Answered(Answer { blocks, ..answer("", vec![], "pause_turn") })
    });
    assert_eq!(world.run(limited(8, 50)).asked, 9, "the same search again and again is a stall");
}

#[test]
fn calls_that_cannot_be_read_end_the_run() {
    let world = World::new(|at| {
        let broken = Call { problem: Some("The input is no JSON object.".into()), ..calling(at, "") };
        Input::Answered(answer("", vec![broken], "tool_use"))
    });
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked == 9 && limit(&outcome).contains("no JSON object"), "{outcome:?}");
}

#[test]
fn the_same_failure_with_other_numbers_is_the_same_failure() {
    let mut world = World::new(|at| calls(at, &format!("Attempt {at}"), "make"));
    world.result = Box::new(|call, at| result(call, &format!("failed after {at} ms"), true));
    assert_eq!(world.run(limited(8, 50)).asked, 9);
}

#[test]
fn alternating_calls_with_the_same_results_end_the_run() {
    let mut world = World::new(|at| calls(at, "", if at % 2 == 0 { "a" } else { "b" }));
    world.result = Box::new(|call, _| result(call, "same", false));
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked == 10 && limit(&outcome).contains("same result"), "{outcome:?}");
}

#[test]
fn a_result_that_names_its_own_call_is_the_same_result() {
    let mut world = World::new(|at| calls(at, "", "a"));
    world.result = Box::new(|call, _| result(call, &format!("see tool-results/{}.txt", call.id), false));
    assert_eq!(world.run(limited(8, 50)).asked, 9);
}

#[test]
fn ever_new_calls_that_never_succeed_end_the_run_at_the_higher_limit() {
    let mut world = World::new(|at| calls(at, &format!("now {}", "x".repeat(at as usize)), &at.to_string()));
    world.judge = Box::new(|_| Ruling::Refused("no".into()));
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked == 50 && limit(&outcome).contains("max_fruitless_turns"), "{outcome:?}");
}

#[test]
fn hooks_that_forbid_the_end_are_stopped() {
    for thinks in [false, true] {
        let mut world = World::new(move |at| {
            let thought = format!(r#"{{"type":"thinking","thinking":"hm {at}","signature":"s{at}"}}"#);
            let blocks = if thinks { vec![Block::parse(Text::from(thought))] } else { Vec::new() };
            Input::Answered(Answer { blocks, ..answer("", vec![], "end_turn") })
        });
        world.stop = Box::new(|_| Input::StopBlocked("tests fail".into()));
        let outcome = world.run(limited(8, 50));
        assert_eq!(outcome.asked, 8, "empty answers and those that only think are alike: {outcome:?}");
        limit(&outcome);
    }
    let mut world = World::new(|at| Input::Answered(answer(&"x".repeat(at as usize), vec![], "end_turn")));
    world.stop = Box::new(|_| Input::StopBlocked("tests fail".into()));
    let outcome = world.run(limited(8, 50));
    assert!(limit(&outcome).contains("a Stop hook forbade the end 10 times"), "{outcome:?}");
    // A call between does not reopen the loop, if it brings nothing new.
    let mut world = World::new(|at| match at % 2 {
        0 => Input::Answered(answer("done", vec![], "end_turn")),
        _ => calls(at, "", "ls"),
    });
    world.stop = Box::new(|_| Input::StopBlocked("tests fail".into()));
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked < 12, "{outcome:?}");
    limit(&outcome);
}

#[test]
fn answers_that_break_off_between_repetitions_do_not_hide_them() {
    let world = World::new(|at| match at % 3 {
        0 => Input::Broke(Broken { answer: answer("half", vec![], "x"), why: "cut".into() }),
        _ => calls(at, "", "ls"),
    });
    assert!(world.run(limited(8, 50)).asked < 14);
}

#[test]
fn work_that_brings_something_new_is_never_stopped() {
    let mut world = World::new(|at| match at {
        400 => Input::Answered(answer("done", vec![], "end_turn")),
        _ => calls(at, "", "cargo test"),
    });
    world.result = Box::new(|call, at| result(call, &format!("{at} tests pass"), false));
    let outcome = world.run(limited(8, 50));
    assert_eq!((outcome.end, outcome.waited), (End::Done, Duration::ZERO));
}

#[test]
fn waiting_for_a_slow_command_is_no_stall() {
    let mut world = World::new(|at| match at {
        40 => Input::Answered(answer("done", vec![], "end_turn")),
        _ => calls(at, "", "sleep 60"),
    });
    world.result = Box::new(|call, _| Returned { took: Duration::from_secs(60), ..result(call, "", false) });
    assert_eq!(world.run(limited(8, 50)).end, End::Done);
    let mut world = World::new(|at| calls(at, "", "sleep 60"));
    world.result = Box::new(|call, _| Returned { took: Duration::from_secs(60), ..result(call, "", false) });
    assert_eq!(world.run(limited(8, 50)).asked, 51, "but it does not go on for ever");
}

#[test]
fn a_person_who_says_something_starts_the_count_anew_and_the_same_message_of_an_agent_does_not() {
    let mut world = World::new(|at| calls(at, "", "ls"));
    let mut run = Run::new(limited(4, 50));
    run.handle(Input::Prompt(Content::of_text("go")));
    assert_eq!(world.obey(&mut run).asked, 5);
    run.handle(Input::Prompt(Content::of_text("go on")));
    assert_eq!(world.obey(&mut run).asked, 5);
    let said = |run: &mut Run| run.handle(Input::Message(Content::of_text("ping 1")));
    let mut pong = World::new(|_| Input::Answered(answer("pong", vec![], "end_turn")));
    let mut run = Run::new(limited(4, 50));
    let ended = |run: &mut Run, pong: &mut World| -> Vec<(bool, u64)> {
        (0..6)
            .map(|_| {
                said(run);
                let outcome = pong.obey(run);
                (outcome.end == End::Done, outcome.asked)
            })
            .collect()
    };
    let stopped = [(true, 1), (true, 1), (true, 1), (true, 1), (true, 1), (false, 0)];
    assert_eq!(ended(&mut run, &mut pong), stopped, "the first answer is new, four more are not");
    assert!(ended(&mut run, &mut pong).iter().all(|end| *end == (false, 0)), "nothing is asked any more");
    run.handle(Input::Message(Content::of_text("something else")));
    assert_eq!(pong.obey(&mut run).end, End::Done, "until somebody says something new");
}
