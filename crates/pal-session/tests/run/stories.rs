//! What a run does, story by story.

use pal_model::{Content, Origin, ToolUseId, Totals};
use pal_session::{Answer, Broken, Input, Ruling, Run, RunSettings, Said};

use crate::{answer, call, returned, wants};

fn prompted(settings: RunSettings) -> Run {
    let mut run = Run::new(settings);
    run.handle(Input::Prompt(Content::of_text("go")));
    run.handle(Input::PromptPassed);
    assert_eq!(wants(&mut run)[..2], ["check", "person go"]);
    run
}

fn plain() -> RunSettings {
    RunSettings::plain(8, 64)
}

fn allow(run: &mut Run, id: &str) {
    run.handle(Input::Judged(ToolUseId::from(id), Ruling::Allowed { input: None }));
}

#[test]
fn those_that_look_go_together_and_the_others_alone_and_in_order() {
    let mut run = prompted(plain());
    let calls = vec![call("a", true), call("b", true), call("c", false), call("d", false), call("e", true)];
    run.handle(Input::Answered(answer("", calls, "tool_use")));
    assert_eq!(wants(&mut run), ["answer", "judge a", "judge b"]);
    allow(&mut run, "a");
    allow(&mut run, "b");
    assert_eq!(wants(&mut run), ["carry a", "carry b"]);
    run.handle(Input::Returned(returned(&"b".into())));
    assert_eq!(wants(&mut run), ["result b"], "c waits for a");
    run.handle(Input::Returned(returned(&"a".into())));
    assert_eq!(wants(&mut run), ["result a", "judge c"]);
    run.handle(Input::Judged("c".into(), Ruling::Refused("no".into())));
    assert_eq!(wants(&mut run), ["not run c", "judge d"]);
    allow(&mut run, "d");
    run.handle(Input::Returned(returned(&"d".into())));
    assert_eq!(wants(&mut run), ["carry d", "result d", "judge e"]);
    allow(&mut run, "e");
    run.handle(Input::Returned(returned(&"e".into())));
    assert_eq!(wants(&mut run), ["carry e", "result e", "ask 8"]);
    run.handle(Input::Answered(answer("done", vec![], "end_turn")));
    assert_eq!(wants(&mut run), ["answer", "stop? false"]);
    run.handle(Input::StopPassed);
    assert_eq!(wants(&mut run), ["end Done"]);
    assert_eq!((run.turns(), run.last_words(), run.is_working()), (2, "done", false));
}

#[test]
fn what_is_said_meanwhile_goes_along_with_the_next_results() {
    let mut run = prompted(plain());
    run.handle(Input::Answered(answer("", vec![call("a", false)], "tool_use")));
    run.handle(Input::Prompt(Content::of_text("wait")));
    allow(&mut run, "a");
    run.handle(Input::Returned(returned(&"a".into())));
    assert_eq!(wants(&mut run), ["answer", "judge a", "carry a", "result a", "check"], "hooks hear it first");
    run.handle(Input::PromptPassed);
    assert_eq!(wants(&mut run), ["person wait", "ask 8"]);
    run.handle(Input::Prompt(Content::of_text("more")));
    run.handle(Input::Prompt(Content::of_text("a key")));
    run.handle(Input::Answered(answer("done", vec![], "end_turn")));
    run.handle(Input::PromptPassed);
    run.handle(Input::PromptBlocked("no keys".into()));
    assert_eq!(wants(&mut run), ["answer", "check", "person more", "check", "ask 8"]);
    run.handle(Input::Answered(answer("done", vec![], "end_turn")));
    run.handle(Input::StopPassed);
    run.handle(Input::Prompt(Content::of_text("too late")));
    assert_eq!(wants(&mut run), ["answer", "stop? false", "end Done"], "the end that was said stands");
    let late = Said { origin: Origin::Person, content: Content::of_text("too late") };
    assert_eq!(run.take_unheard(), [late]);
}

#[test]
fn messages_of_other_agents_are_heard_alike_and_no_hook_is_asked() {
    let mut run = Run::new(plain());
    run.handle(Input::Message(Content::of_text("begin")));
    assert_eq!(wants(&mut run), ["agent begin", "ask 8"]);
    run.handle(Input::Answered(answer("", vec![call("a", false)], "tool_use")));
    run.handle(Input::Message(Content::of_text("wait")));
    run.handle(Input::Prompt(Content::of_text("no, go on")));
    allow(&mut run, "a");
    run.handle(Input::Returned(returned(&"a".into())));
    let heard = ["answer", "judge a", "carry a", "result a", "agent wait", "check"];
    assert_eq!(wants(&mut run), heard, "in the order in which they came");
}

#[test]
fn an_answer_that_is_too_long_is_asked_for_again_and_then_gone_on_with() {
    let mut run = prompted(plain());
    run.handle(Input::Answered(answer("half", vec![call("a", false)], "max_tokens")));
    assert_eq!(wants(&mut run), ["shown", "void", "ask 64"], "the first half does not count");
    assert_eq!(run.turns(), 0);
    for _ in 0..3 {
        run.handle(Input::Answered(answer("half", vec![call("b", false)], "max_tokens")));
        assert_eq!(wants(&mut run), ["answer", "not run b", "note output_limit", "ask 64"]);
    }
    run.handle(Input::Answered(answer("half", vec![], "max_tokens")));
    let end = wants(&mut run);
    assert!(end[1].starts_with("end Limit") && end[1].contains("max_output_tokens"), "{end:?}");
    assert_eq!(run.last_words(), "halfhalfhalfhalf", "one answer in pieces");
    let mut run = prompted(RunSettings::plain(64, 64));
    run.handle(Input::Answered(answer("half", vec![], "max_tokens")));
    assert_eq!(
        wants(&mut run),
        ["answer", "note output_limit", "ask 64"],
        "there is nothing longer to ask for"
    );
    run.handle(Input::Answered(answer("rest", vec![], "end_turn")));
    run.handle(Input::StopPassed);
    assert_eq!(wants(&mut run), ["answer", "stop? false", "end Done"]);
}

#[test]
fn an_answer_that_breaks_off_is_kept_and_gone_on_with() {
    let mut run = prompted(plain());
    let half = |words| Broken { answer: answer(words, vec![], "x"), why: "cut".into() };
    for _ in 0..3 {
        run.handle(Input::Broke(half("half")));
        assert_eq!(wants(&mut run), ["answer", "note broken_answer", "ask 8"]);
    }
    run.handle(Input::Broke(half("half")));
    assert_eq!(wants(&mut run), ["answer", "end Failed(\"cut\")"]);
    assert_eq!(run.last_words(), "halfhalfhalfhalf", "all of it is the answer");
    let mut run = prompted(plain());
    run.handle(Input::Broke(half("")));
    assert_eq!(
        wants(&mut run),
        ["end Failed(\"cut\")"],
        "nothing arrived: the provider was asked often enough"
    );
    let mut run = prompted(plain());
    let calls = vec![call("a", false)];
    run.handle(Input::Broke(Broken { answer: answer("half", calls, "x"), why: "cut".into() }));
    assert_eq!(wants(&mut run), ["answer", "not run a", "note broken_answer", "ask 8"]);
}

#[test]
fn an_interrupt_leaves_no_call_without_an_answer() {
    let mut run = prompted(plain());
    run.handle(Input::Interrupt);
    run.handle(Input::Interrupt);
    assert_eq!(wants(&mut run), ["cancel"]);
    let calls = vec![call("a", false)];
    run.handle(Input::Broke(Broken { answer: answer("half", calls, "x"), why: "stopped".into() }));
    assert_eq!(wants(&mut run), ["answer", "not run a", "note interrupted", "end Interrupted"]);

    let mut run = prompted(plain());
    let calls = vec![call("a", true), call("b", true), call("c", false)];
    run.handle(Input::Answered(answer("", calls, "tool_use")));
    allow(&mut run, "a");
    run.handle(Input::Interrupt);
    allow(&mut run, "b");
    run.handle(Input::Prompt(Content::of_text("stop it")));
    run.handle(Input::Returned(returned(&"a".into())));
    let wanted = wants(&mut run);
    assert_eq!(wanted[..6], ["answer", "judge a", "judge b", "carry a", "cancel", "not run b"]);
    assert_eq!(wanted[6..], ["result a", "not run c", "note interrupted", "end Interrupted"]);
    let unheard = Said { origin: Origin::Person, content: Content::of_text("stop it") };
    assert_eq!(run.take_unheard(), [unheard], "what was said is not lost");
    run.handle(Input::Interrupt);
    assert!(wants(&mut run).is_empty(), "who rests cannot be interrupted");
}

#[test]
fn limits_end_a_run_between_two_requests() {
    let mut run = prompted(RunSettings { turns_max: Some(1), ..plain() });
    run.handle(Input::Answered(answer("", vec![call("a", false)], "tool_use")));
    allow(&mut run, "a");
    run.handle(Input::Returned(returned(&"a".into())));
    let wanted = wants(&mut run);
    assert!(wanted[4].starts_with("end Limit(\"1 turns"), "{wanted:?}");
    let spent = |tokens, cost| Totals { output_tokens: tokens, cost, ..Totals::default() };
    for settings in
        [RunSettings { tokens_max: Some(100), ..plain() }, RunSettings { cost_max: Some(0.5), ..plain() }]
    {
        let mut run = Run::new(settings).with_spent(spent(1_000, 7.0));
        run.handle(Input::Prompt(Content::of_text("go")));
        run.handle(Input::PromptPassed);
        let pause = |tokens, cost| Answer { spent: spent(tokens, cost), ..answer("", vec![], "pause_turn") };
        run.handle(Input::Answered(pause(1_050, 7.25)));
        assert_eq!(wants(&mut run).last().unwrap(), "ask 8", "what was spent before does not count");
        run.handle(Input::Answered(pause(1_100, 7.5)));
        assert!(wants(&mut run).last().unwrap().starts_with("end Limit"), "both limits are reached");
    }
}

#[test]
fn hooks_may_forbid_the_beginning_a_call_and_the_end() {
    let mut run = Run::new(plain());
    run.handle(Input::Prompt(Content::of_text("go")));
    run.handle(Input::PromptBlocked("not today".into()));
    assert_eq!(wants(&mut run), ["check", "end Failed(\"not today\")"], "what was blocked is not recorded");
    let mut run = prompted(plain());
    run.handle(Input::Answered(answer("done", vec![], "end_turn")));
    run.handle(Input::StopBlocked("tests fail".into()));
    run.handle(Input::Answered(answer("done", vec![], "end_turn")));
    assert_eq!(wants(&mut run), ["answer", "stop? false", "note stop_hook", "ask 8", "answer", "stop? true"]);
    let mut run = prompted(plain());
    run.handle(Input::Answered(answer("", vec![call("a", false), call("b", false)], "tool_use")));
    run.handle(Input::Judged("a".into(), Ruling::Stop("enough".into())));
    assert_eq!(wants(&mut run), ["answer", "judge a", "not run a", "not run b", "end Failed(\"enough\")"]);
}

#[test]
fn a_refusal_is_shown_and_not_reused() {
    let mut run = prompted(plain());
    run.handle(Input::Answered(answer("no", vec![], "refusal")));
    assert_eq!(wants(&mut run), ["shown", "end Refused"]);
}

#[test]
fn a_call_that_is_made_twice_is_one_call() {
    let mut run = prompted(plain());
    run.handle(Input::Answered(answer("", vec![call("a", true), call("a", false)], "tool_use")));
    allow(&mut run, "a");
    run.handle(Input::Returned(returned(&"a".into())));
    assert_eq!(wants(&mut run), ["answer", "judge a", "carry a", "result a", "ask 8"]);
}

#[test]
fn a_limit_does_not_take_the_answer_that_it_ends() {
    let mut run = prompted(RunSettings { turns_max: Some(1), ..plain() });
    run.handle(Input::Answered(answer("half", vec![], "max_tokens")));
    assert_eq!(wants(&mut run), ["shown", "void", "ask 64"], "the longer answer is the first turn");
    let mut run = prompted(RunSettings { cost_max: Some(0.5), ..plain() });
    let spent = Totals { cost: 0.75, ..Totals::default() };
    run.handle(Input::Answered(Answer { spent, ..answer("half", vec![], "max_tokens") }));
    let wanted = wants(&mut run);
    assert!(wanted[0] == "answer" && wanted[1].starts_with("end Limit"), "{wanted:?}");
}
