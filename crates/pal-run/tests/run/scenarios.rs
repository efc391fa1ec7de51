//! Behavior of a run, scenario by scenario.

use pal_model::{Content, MessageOrigin, ToolUseId, UsageTotals};
use pal_run::{BrokenAnswer, CallRuling, IncomingMessage, ModelAnswer, Run, RunInput, RunSettings};

use crate::{answer, call, returned, wants};

fn prompted(settings: RunSettings) -> Run {
    let mut run = Run::new(settings);
    run.handle(RunInput::Prompt(Content::from_text("go")));
    run.handle(RunInput::PromptPassed);
    assert_eq!(wants(&mut run)[..2], ["check", "person go"]);
    run
}

fn plain() -> RunSettings {
    RunSettings::plain(8, 64)
}

/// Settings of a fork.
fn without_notes() -> RunSettings {
    RunSettings { adds_notes: false, ..plain() }
}

fn allow(run: &mut Run, id: &str) {
    run.handle(RunInput::CallJudged(ToolUseId::from(id), CallRuling::Allowed { input: None }));
}

#[test]
fn read_only_calls_run_in_parallel_and_others_in_order() {
    let mut run = prompted(plain());
    let calls = vec![call("a", true), call("b", true), call("c", false), call("d", false), call("e", true)];
    run.handle(RunInput::Answered(answer("", calls, "tool_use")));
    assert_eq!(wants(&mut run), ["answer", "authorize a", "authorize b"]);
    allow(&mut run, "a");
    allow(&mut run, "b");
    assert_eq!(wants(&mut run), ["execute a", "execute b"]);
    run.handle(RunInput::CallReturned(returned(&"b".into())));
    assert_eq!(wants(&mut run), ["result b"], "c waits for a");
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    assert_eq!(wants(&mut run), ["result a", "authorize c"]);
    run.handle(RunInput::CallJudged("c".into(), CallRuling::Refused("no".into())));
    assert_eq!(wants(&mut run), ["not run c", "authorize d"]);
    allow(&mut run, "d");
    run.handle(RunInput::CallReturned(returned(&"d".into())));
    assert_eq!(wants(&mut run), ["execute d", "result d", "authorize e"]);
    allow(&mut run, "e");
    run.handle(RunInput::CallReturned(returned(&"e".into())));
    assert_eq!(wants(&mut run), ["execute e", "result e", "ask 8"]);
    run.handle(RunInput::Answered(answer("done", vec![], "end_turn")));
    assert_eq!(wants(&mut run), ["answer", "stop? false"]);
    run.handle(RunInput::StopPassed);
    assert_eq!(wants(&mut run), ["end Done"]);
    assert_eq!((run.turns(), run.last_text(), run.is_working()), (2, "done", false));
}

#[test]
fn messages_during_work_follow_the_next_results() {
    let mut run = prompted(plain());
    run.handle(RunInput::Answered(answer("", vec![call("a", false)], "tool_use")));
    run.handle(RunInput::Prompt(Content::from_text("wait")));
    allow(&mut run, "a");
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    assert_eq!(
        wants(&mut run),
        ["answer", "authorize a", "execute a", "result a", "check"],
        "hooks hear it first"
    );
    run.handle(RunInput::PromptPassed);
    assert_eq!(wants(&mut run), ["person wait", "ask 8"]);
    run.handle(RunInput::Prompt(Content::from_text("more")));
    run.handle(RunInput::Prompt(Content::from_text("a key")));
    run.handle(RunInput::Answered(answer("done", vec![], "end_turn")));
    run.handle(RunInput::PromptPassed);
    run.handle(RunInput::PromptBlocked("no keys".into()));
    assert_eq!(wants(&mut run), ["answer", "check", "person more", "check", "ask 8"]);
    run.handle(RunInput::Answered(answer("done", vec![], "end_turn")));
    run.handle(RunInput::StopPassed);
    run.handle(RunInput::Prompt(Content::from_text("too late")));
    assert_eq!(wants(&mut run), ["answer", "stop? false", "end Done"], "the end that was said stands");
    let late = IncomingMessage { origin: MessageOrigin::Person, content: Content::from_text("too late") };
    assert_eq!(run.take_queued_messages(), [late]);
}

#[test]
fn agent_messages_skip_the_prompt_check() {
    let mut run = Run::new(plain());
    run.handle(RunInput::Message(Content::from_text("begin")));
    assert_eq!(wants(&mut run), ["agent begin", "ask 8"]);
    run.handle(RunInput::Answered(answer("", vec![call("a", false)], "tool_use")));
    run.handle(RunInput::Message(Content::from_text("wait")));
    run.handle(RunInput::Prompt(Content::from_text("no, go on")));
    allow(&mut run, "a");
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    let heard = ["answer", "authorize a", "execute a", "result a", "agent wait", "check"];
    assert_eq!(wants(&mut run), heard, "in the order in which they came");
}

#[test]
fn truncated_answer_is_retried_then_continued() {
    let mut run = prompted(plain());
    run.handle(RunInput::Answered(answer("half", vec![call("a", false)], "max_tokens")));
    assert_eq!(wants(&mut run), ["displayed", "discard", "ask 64"], "the first half does not count");
    assert_eq!(run.turns(), 0);
    for _ in 0..3 {
        run.handle(RunInput::Answered(answer("half", vec![call("b", false)], "max_tokens")));
        assert_eq!(wants(&mut run), ["answer", "not run b", "note output_limit", "ask 64"]);
    }
    run.handle(RunInput::Answered(answer("half", vec![], "max_tokens")));
    let end = wants(&mut run);
    assert!(end[1].starts_with("end Limit") && end[1].contains("max_output_tokens"), "{end:?}");
    assert_eq!(run.last_text(), "halfhalfhalfhalf", "one answer in pieces");
    let mut run = prompted(RunSettings::plain(64, 64));
    run.handle(RunInput::Answered(answer("half", vec![], "max_tokens")));
    assert_eq!(
        wants(&mut run),
        ["answer", "note output_limit", "ask 64"],
        "there is nothing longer to ask for"
    );
    run.handle(RunInput::Answered(answer("rest", vec![], "end_turn")));
    run.handle(RunInput::StopPassed);
    assert_eq!(wants(&mut run), ["answer", "stop? false", "end Done"]);
}

#[test]
fn broken_answer_is_kept_and_continued() {
    let mut run = prompted(plain());
    let half = |words| BrokenAnswer { answer: answer(words, vec![], "x"), why: "cut".into() };
    for _ in 0..3 {
        run.handle(RunInput::AnswerBroke(half("half")));
        assert_eq!(wants(&mut run), ["answer", "note broken_answer", "ask 8"]);
    }
    run.handle(RunInput::AnswerBroke(half("half")));
    assert_eq!(wants(&mut run), ["answer", "end Failed(\"cut\")"]);
    assert_eq!(run.last_text(), "halfhalfhalfhalf", "all of it is the answer");
    let mut run = prompted(plain());
    run.handle(RunInput::AnswerBroke(half("")));
    assert_eq!(
        wants(&mut run),
        ["end Failed(\"cut\")"],
        "nothing arrived: the provider was asked often enough"
    );
    let mut run = prompted(plain());
    let calls = vec![call("a", false)];
    run.handle(RunInput::AnswerBroke(BrokenAnswer { answer: answer("half", calls, "x"), why: "cut".into() }));
    assert_eq!(wants(&mut run), ["answer", "not run a", "note broken_answer", "ask 8"]);
}

#[test]
fn truncated_answer_counts_as_complete_where_no_notes_are_added() {
    for stop in ["max_tokens", "model_context_window_exceeded"] {
        let mut run = prompted(without_notes());
        run.handle(RunInput::Answered(answer("half", vec![call("a", false)], stop)));
        assert_eq!(wants(&mut run), ["answer", "authorize a"], "its calls are executed");
        allow(&mut run, "a");
        run.handle(RunInput::CallReturned(returned(&"a".into())));
        assert_eq!(wants(&mut run), ["execute a", "result a", "ask 8"], "never with a longer limit");
        run.handle(RunInput::Answered(answer("half", vec![], stop)));
        run.handle(RunInput::StopPassed);
        assert_eq!(wants(&mut run), ["answer", "stop? false", "end Done"]);
        assert_eq!(run.turns(), 2);
    }
}

#[test]
fn broken_answer_ends_a_run_that_adds_no_notes() {
    let mut run = prompted(without_notes());
    let answer = answer("half", vec![call("a", false)], "x");
    run.handle(RunInput::AnswerBroke(BrokenAnswer { answer, why: "cut".into() }));
    assert_eq!(wants(&mut run), ["answer", "not run a", "end Failed(\"cut\")"]);
}

#[test]
fn interrupt_of_a_run_that_adds_no_notes_records_none() {
    let mut run = prompted(without_notes());
    run.handle(RunInput::Answered(answer("", vec![call("a", false), call("b", false)], "tool_use")));
    allow(&mut run, "a");
    run.handle(RunInput::Interrupt);
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    let wanted = wants(&mut run);
    assert_eq!(wanted[3..], ["cancel", "result a", "not run b", "end Interrupted"]);
}

#[test]
fn interrupt_answers_every_call() {
    let mut run = prompted(plain());
    run.handle(RunInput::Interrupt);
    run.handle(RunInput::Interrupt);
    assert_eq!(wants(&mut run), ["cancel"]);
    let calls = vec![call("a", false)];
    run.handle(RunInput::AnswerBroke(BrokenAnswer {
        answer: answer("half", calls, "x"),
        why: "stopped".into(),
    }));
    assert_eq!(wants(&mut run), ["answer", "not run a", "note interrupted", "end Interrupted"]);

    let mut run = prompted(plain());
    let calls = vec![call("a", true), call("b", true), call("c", false)];
    run.handle(RunInput::Answered(answer("", calls, "tool_use")));
    allow(&mut run, "a");
    run.handle(RunInput::Interrupt);
    allow(&mut run, "b");
    run.handle(RunInput::Prompt(Content::from_text("stop it")));
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    let wanted = wants(&mut run);
    assert_eq!(wanted[..6], ["answer", "authorize a", "authorize b", "execute a", "cancel", "not run b"]);
    assert_eq!(wanted[6..], ["result a", "not run c", "note interrupted", "end Interrupted"]);
    let unheard = IncomingMessage { origin: MessageOrigin::Person, content: Content::from_text("stop it") };
    assert_eq!(run.take_queued_messages(), [unheard], "what was said is not lost");
    run.handle(RunInput::Interrupt);
    assert!(wants(&mut run).is_empty(), "who rests cannot be interrupted");
}

#[test]
fn limits_end_a_run_between_two_requests() {
    let mut run = prompted(RunSettings { turns_max: Some(1), ..plain() });
    run.handle(RunInput::Answered(answer("", vec![call("a", false)], "tool_use")));
    allow(&mut run, "a");
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    let wanted = wants(&mut run);
    assert!(wanted[4].starts_with("end Limit(\"the limit of 1 turns"), "{wanted:?}");
    let spent = |tokens, cost| UsageTotals { output_tokens: tokens, cost, ..UsageTotals::default() };
    for settings in
        [RunSettings { tokens_max: Some(100), ..plain() }, RunSettings { cost_max: Some(0.5), ..plain() }]
    {
        let mut run = Run::new(settings).with_spent(spent(1_000, 7.0));
        run.handle(RunInput::Prompt(Content::from_text("go")));
        run.handle(RunInput::PromptPassed);
        let pause =
            |tokens, cost| ModelAnswer { spent: spent(tokens, cost), ..answer("", vec![], "pause_turn") };
        run.handle(RunInput::Answered(pause(1_050, 7.25)));
        assert_eq!(wants(&mut run).last().unwrap(), "ask 8", "what was spent before does not count");
        run.handle(RunInput::Answered(pause(1_100, 7.5)));
        assert!(wants(&mut run).last().unwrap().starts_with("end Limit"), "both limits are reached");
    }
}

#[test]
fn hooks_can_block_prompt_call_and_end() {
    let mut run = Run::new(plain());
    run.handle(RunInput::Prompt(Content::from_text("go")));
    run.handle(RunInput::PromptBlocked("not today".into()));
    assert_eq!(wants(&mut run), ["check", "end Failed(\"not today\")"], "what was blocked is not recorded");
    let mut run = prompted(plain());
    run.handle(RunInput::Answered(answer("done", vec![], "end_turn")));
    run.handle(RunInput::StopBlocked("tests fail".into()));
    run.handle(RunInput::Answered(answer("done", vec![], "end_turn")));
    assert_eq!(wants(&mut run), ["answer", "stop? false", "note stop_hook", "ask 8", "answer", "stop? true"]);
    let mut run = prompted(plain());
    run.handle(RunInput::Answered(answer("", vec![call("a", false), call("b", false)], "tool_use")));
    run.handle(RunInput::CallJudged("a".into(), CallRuling::Stop("enough".into())));
    assert_eq!(
        wants(&mut run),
        ["answer", "authorize a", "not run a", "not run b", "end Failed(\"enough\")"]
    );
}

#[test]
fn refusal_is_shown_but_not_kept_in_the_conversation() {
    let mut run = prompted(plain());
    run.handle(RunInput::Answered(answer("no", vec![], "refusal")));
    assert_eq!(wants(&mut run), ["displayed", "end Refused"]);
}

#[test]
fn repeated_call_in_one_answer_runs_once() {
    let mut run = prompted(plain());
    run.handle(RunInput::Answered(answer("", vec![call("a", true), call("a", false)], "tool_use")));
    allow(&mut run, "a");
    run.handle(RunInput::CallReturned(returned(&"a".into())));
    assert_eq!(wants(&mut run), ["answer", "authorize a", "execute a", "result a", "ask 8"]);
}

#[test]
fn limit_keeps_the_last_answer() {
    let mut run = prompted(RunSettings { turns_max: Some(1), ..plain() });
    run.handle(RunInput::Answered(answer("half", vec![], "max_tokens")));
    assert_eq!(wants(&mut run), ["displayed", "discard", "ask 64"], "the longer answer is the first turn");
    let mut run = prompted(RunSettings { cost_max: Some(0.5), ..plain() });
    let spent = UsageTotals { cost: 0.75, ..UsageTotals::default() };
    run.handle(RunInput::Answered(ModelAnswer { spent, ..answer("half", vec![], "max_tokens") }));
    let wanted = wants(&mut run);
    assert!(wanted[0] == "answer" && wanted[1].starts_with("end Limit"), "{wanted:?}");
}
