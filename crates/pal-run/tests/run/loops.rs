//! Loops: the run slows down and ends at a limit.

use std::time::Duration;

use pal_model::{Content, ContentBlock, SharedText};
use pal_run::{
    BrokenAnswer, CallRuling, ModelAnswer, ProgressLimits, Run, RunEnd, RunInput, RunOutput, RunRecord,
    RunSettings, ToolCall, ToolCallResult,
};

use crate::{answer, call, returned};

/// Outcome of a run.
#[derive(Debug)]
struct RunOutcome {
    end: RunEnd,
    asked: u64,
    waited: Duration,
    notes: Vec<String>,
}

/// Result of a call, by request number.
type ResultScript = Box<dyn FnMut(&ToolCall, u64) -> ToolCallResult>;

/// Scripted driver of a run; each function gets the number of the request.
struct ScriptedWorld {
    reply: Box<dyn FnMut(u64) -> RunInput>,
    judge: Box<dyn FnMut(&ToolCall) -> CallRuling>,
    result: ResultScript,
    stop: Box<dyn FnMut(u64) -> RunInput>,
}

impl ScriptedWorld {
    fn new(reply: impl FnMut(u64) -> RunInput + 'static) -> ScriptedWorld {
        ScriptedWorld {
            reply: Box::new(reply),
            judge: Box::new(|_| CallRuling::Allowed { input: None }),
            result: Box::new(|call, _| returned(&call.id)),
            stop: Box::new(|_| RunInput::StopPassed),
        }
    }

    /// Drives the run until it ends; a thousand requests count as an endless loop.
    fn run(mut self, settings: RunSettings) -> RunOutcome {
        let mut run = Run::new(settings);
        run.handle(RunInput::Prompt(Content::from_text("go")));
        self.obey(&mut run)
    }

    fn obey(&mut self, run: &mut Run) -> RunOutcome {
        let (mut asked, mut waited, mut notes) = (0, Duration::ZERO, Vec::new());
        while let Some(output) = run.poll() {
            match output {
                RunOutput::CheckPrompt(_) => run.handle(RunInput::PromptPassed),
                RunOutput::RequestModel { .. } => {
                    asked += 1;
                    assert!(asked < 1_000, "nothing stops the loop");
                    run.handle((self.reply)(asked));
                }
                RunOutput::BackOff { wait, .. } => waited += wait,
                RunOutput::AuthorizeCall(call) => {
                    let ruling = (self.judge)(&call);
                    run.handle(RunInput::CallJudged(call.id, ruling));
                }
                RunOutput::ExecuteCall(call) => {
                    let result = (self.result)(&call, asked);
                    run.handle(RunInput::CallReturned(result));
                }
                RunOutput::CheckStop { .. } => run.handle((self.stop)(asked)),
                RunOutput::Record(RunRecord::Note { what, .. }) => notes.push(what.to_owned()),
                RunOutput::Record(_) | RunOutput::DiscardAnswer | RunOutput::Cancel => {}
                RunOutput::Ended(end) => return RunOutcome { end, asked, waited, notes },
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
fn calling(at: u64, input: &str) -> ToolCall {
    ToolCall { input: SharedText::from(format!("{{\"a\":\"{input}\"}}")), ..call(&format!("t{at}"), false) }
}

fn calls(at: u64, text: &str, input: &str) -> RunInput {
    RunInput::Answered(answer(text, vec![calling(at, input)], "tool_use"))
}

fn result(call: &ToolCall, text: &str, is_error: bool) -> ToolCallResult {
    ToolCallResult::plain(&call.id, vec![ContentBlock::text(text)], is_error)
}

/// Reason of an end at a limit.
fn limit(outcome: &RunOutcome) -> &str {
    match &outcome.end {
        RunEnd::Limit(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn repeated_denied_call_ends_the_run() {
    let mut world = ScriptedWorld::new(|at| calls(at, "I try again.", "rm"));
    world.judge = Box::new(|_| CallRuling::Refused("Bash(rm) is denied".into()));
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
fn stalled_run_that_adds_no_notes_slows_down_and_ends_without_advice() {
    let world = ScriptedWorld::new(|at| calls(at, "I try again.", "ls"));
    let outcome = world.run(RunSettings { adds_notes: false, ..limited(8, 50) });
    assert!(limit(&outcome).contains("no progress in 8 turns"), "{outcome:?}");
    assert_eq!((outcome.asked, outcome.waited), (9, Duration::from_secs(1 + 2 + 4 + 8 + 16)));
    assert!(outcome.notes.is_empty(), "{outcome:?}");
}

#[test]
fn pauses_without_content_end_the_run() {
    for text in ["", "still searching"] {
        let world = ScriptedWorld::new(move |_| RunInput::Answered(answer(text, vec![], "pause_turn")));
        let outcome = world.run(limited(8, 50));
        assert!(outcome.asked <= 9 && limit(&outcome).contains("pause_turn"), "{outcome:?}");
        assert!(outcome.notes.is_empty(), "nothing is put behind an answer that is to be continued");
    }
    let world =
        ScriptedWorld::new(|at| RunInput::Answered(answer(&"x".repeat(at as usize), vec![], "pause_turn")));
    let outcome = world.run(limited(8, 50));
    assert_eq!(outcome.asked, 50, "ever new text is no result: {outcome:?}");
}

#[test]
fn pauses_with_new_server_tool_calls_continue() {
    let world = ScriptedWorld::new(|at| {
        let raw = format!(
            r#"{{"type":"server_tool_use","id":"s{at}","name":"web_search","input":{{"query":"q{at}"}}}}"#
        );
        let blocks = vec![ContentBlock::parse(SharedText::from(raw))];
        let stop = if at < 20 { "pause_turn" } else { "end_turn" };
        RunInput::Answered(ModelAnswer { blocks, ..answer("", vec![], stop) })
    });
    assert_eq!(world.run(limited(8, 50)).end, RunEnd::Done);
    let world = ScriptedWorld::new(|at| {
        let raw = format!(
            r#"{{"type":"server_tool_use","id":"s{at}","name":"web_search","input":{{"query":"q"}}}}"#
        );
        let blocks = vec![ContentBlock::parse(SharedText::from(raw))];
        RunInput::Answered(ModelAnswer { blocks, ..answer("", vec![], "pause_turn") })
    });
    assert_eq!(world.run(limited(8, 50)).asked, 9, "the same search again and again is a stall");
}

#[test]
fn unparsable_calls_end_the_run() {
    let world = ScriptedWorld::new(|at| {
        let broken = ToolCall { problem: Some("The input is no JSON object.".into()), ..calling(at, "") };
        RunInput::Answered(answer("", vec![broken], "tool_use"))
    });
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked == 9 && limit(&outcome).contains("no JSON object"), "{outcome:?}");
}

#[test]
fn failures_that_differ_in_numbers_are_the_same() {
    let mut world = ScriptedWorld::new(|at| calls(at, &format!("Attempt {at}"), "make"));
    world.result = Box::new(|call, at| result(call, &format!("failed after {at} ms"), true));
    assert_eq!(world.run(limited(8, 50)).asked, 9);
}

#[test]
fn alternating_calls_with_the_same_results_end_the_run() {
    let mut world = ScriptedWorld::new(|at| calls(at, "", if at % 2 == 0 { "a" } else { "b" }));
    world.result = Box::new(|call, _| result(call, "same", false));
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked == 10 && limit(&outcome).contains("same result"), "{outcome:?}");
}

#[test]
fn result_with_its_call_id_is_the_same_result() {
    let mut world = ScriptedWorld::new(|at| calls(at, "", "a"));
    world.result = Box::new(|call, _| result(call, &format!("see tool-results/{}.txt", call.id), false));
    assert_eq!(world.run(limited(8, 50)).asked, 9);
}

#[test]
fn new_calls_that_never_succeed_end_at_the_higher_limit() {
    let mut world =
        ScriptedWorld::new(|at| calls(at, &format!("now {}", "x".repeat(at as usize)), &at.to_string()));
    world.judge = Box::new(|_| CallRuling::Refused("no".into()));
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked == 50 && limit(&outcome).contains("max_fruitless_turns"), "{outcome:?}");
}

#[test]
fn hooks_that_block_the_end_are_limited() {
    for thinks in [false, true] {
        let mut world = ScriptedWorld::new(move |at| {
            let thought = format!(r#"{{"type":"thinking","thinking":"hm {at}","signature":"s{at}"}}"#);
            let blocks =
                if thinks { vec![ContentBlock::parse(SharedText::from(thought))] } else { Vec::new() };
            RunInput::Answered(ModelAnswer { blocks, ..answer("", vec![], "end_turn") })
        });
        world.stop = Box::new(|_| RunInput::StopBlocked("tests fail".into()));
        let outcome = world.run(limited(8, 50));
        assert_eq!(outcome.asked, 8, "empty answers and those that only think are alike: {outcome:?}");
        limit(&outcome);
    }
    let mut world =
        ScriptedWorld::new(|at| RunInput::Answered(answer(&"x".repeat(at as usize), vec![], "end_turn")));
    world.stop = Box::new(|_| RunInput::StopBlocked("tests fail".into()));
    let outcome = world.run(limited(8, 50));
    assert!(limit(&outcome).contains("a Stop hook blocked the end 10 times"), "{outcome:?}");
    // A call in between does not hide the loop if it brings nothing new.
    let mut world = ScriptedWorld::new(|at| match at % 2 {
        0 => RunInput::Answered(answer("done", vec![], "end_turn")),
        _ => calls(at, "", "ls"),
    });
    world.stop = Box::new(|_| RunInput::StopBlocked("tests fail".into()));
    let outcome = world.run(limited(8, 50));
    assert!(outcome.asked < 12, "{outcome:?}");
    limit(&outcome);
}

#[test]
fn broken_answers_do_not_hide_repetitions() {
    let world = ScriptedWorld::new(|at| match at % 3 {
        0 => RunInput::AnswerBroke(BrokenAnswer { answer: answer("half", vec![], "x"), why: "cut".into() }),
        _ => calls(at, "", "ls"),
    });
    assert!(world.run(limited(8, 50)).asked < 14);
}

#[test]
fn progress_is_never_stopped() {
    let mut world = ScriptedWorld::new(|at| match at {
        400 => RunInput::Answered(answer("done", vec![], "end_turn")),
        _ => calls(at, "", "cargo test"),
    });
    world.result = Box::new(|call, at| result(call, &format!("{at} tests pass"), false));
    let outcome = world.run(limited(8, 50));
    assert_eq!((outcome.end, outcome.waited), (RunEnd::Done, Duration::ZERO));
}

#[test]
fn waiting_for_a_slow_command_is_no_stall() {
    let mut world = ScriptedWorld::new(|at| match at {
        40 => RunInput::Answered(answer("done", vec![], "end_turn")),
        _ => calls(at, "", "sleep 60"),
    });
    world.result =
        Box::new(|call, _| ToolCallResult { took: Duration::from_secs(60), ..result(call, "", false) });
    assert_eq!(world.run(limited(8, 50)).end, RunEnd::Done);
    let mut world = ScriptedWorld::new(|at| calls(at, "", "sleep 60"));
    world.result =
        Box::new(|call, _| ToolCallResult { took: Duration::from_secs(60), ..result(call, "", false) });
    assert_eq!(world.run(limited(8, 50)).asked, 51, "but it does not go on for ever");
}

#[test]
fn user_message_resets_the_count_but_a_repeated_agent_message_does_not() {
    let mut world = ScriptedWorld::new(|at| calls(at, "", "ls"));
    let mut run = Run::new(limited(4, 50));
    run.handle(RunInput::Prompt(Content::from_text("go")));
    assert_eq!(world.obey(&mut run).asked, 5);
    run.handle(RunInput::Prompt(Content::from_text("go on")));
    assert_eq!(world.obey(&mut run).asked, 5);
    let said = |run: &mut Run| run.handle(RunInput::Message(Content::from_text("ping 1")));
    let mut pong = ScriptedWorld::new(|_| RunInput::Answered(answer("pong", vec![], "end_turn")));
    let mut run = Run::new(limited(4, 50));
    let ended = |run: &mut Run, pong: &mut ScriptedWorld| -> Vec<(bool, u64)> {
        (0..6)
            .map(|_| {
                said(run);
                let outcome = pong.obey(run);
                (outcome.end == RunEnd::Done, outcome.asked)
            })
            .collect()
    };
    let stopped = [(true, 1), (true, 1), (true, 1), (true, 1), (true, 1), (false, 0)];
    assert_eq!(ended(&mut run, &mut pong), stopped, "the first answer is new, four more are not");
    assert!(ended(&mut run, &mut pong).iter().all(|end| *end == (false, 0)), "nothing is asked any more");
    run.handle(RunInput::Message(Content::from_text("something else")));
    assert_eq!(pong.obey(&mut run).end, RunEnd::Done, "until somebody says something new");
}
