//! Failing hooks: the session continues, and the failure is reported.

use std::time::{Duration, Instant};

use pal_hooks::{HookContext, HookEvent, HookOutcome};
use pal_process::CancelToken;
use serde_json::json;

use crate::{HookFixture, before_call, failures, prompt, stop};

#[test]
fn another_exit_code_blocks_nothing() {
    let outcome = HookFixture::new()
        .run(&before_call(), &["echo broken >&2; exit 1", "kill -9 $$", "no-such-program-here"]);
    assert_eq!((outcome.blocked.is_none(), outcome.permission.is_none()), (true, true));
    let told = failures(&outcome);
    assert_eq!(told[..2], ["it exited with 1: broken", "it was ended by signal 9"]);
    assert!(told[2].contains("127") && told[2].contains("no-such-program-here"), "{told:?}");
    assert_eq!(outcome.failures[0].hook, "echo broken >&2; exit 1", "the hook is named");
}

#[test]
fn a_missing_program_is_reported() {
    let session = HookFixture::new();
    let config =
        json!({"Stop": [{"hooks": [{"type": "command", "command": "/no/such/program", "args": []}]}]});
    let outcome =
        session.hooks(&config).run(&stop(), &HookContext::new(&session.project()), &CancelToken::new());
    assert!(failures(&outcome)[0].contains("could not be started"), "{outcome:?}");
}

#[test]
fn a_hook_that_takes_too_long_is_ended() {
    let session = HookFixture::new();
    let config = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "echo '{\"decision\": \"block\"}'; sleep 60", "timeout": 0.3},
        {"type": "command", "command": "exit 2"},
    ]}]});
    let began = Instant::now();
    let outcome = session.hooks(&config).run(
        &before_call(),
        &HookContext::new(&session.project()),
        &CancelToken::new(),
    );
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(failures(&outcome)[0].contains("longer than its limit"), "{outcome:?}");
    assert!(outcome.permission.is_none(), "what it said before does not count");
    assert!(outcome.blocked.is_some(), "the others count");
}

#[test]
fn session_end_hooks_are_cut_short() {
    let session = HookFixture::new();
    let hook = |command: &str| json!({"type": "command", "command": command, "timeout": 30});
    let config = json!({"SessionEnd": [{"hooks": [hook("sleep 40"), hook("sleep 41"), hook("touch left")]}]});
    let began = Instant::now();
    let end = HookEvent::SessionEnd { reason: "other" };
    let outcome =
        session.hooks(&config).run(&end, &HookContext::new(&session.project()), &CancelToken::new());
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(outcome.failures.len(), 2);
    assert!(session.project().join("left").exists());
}

#[test]
fn an_interrupt_ends_all_hooks() {
    let session = HookFixture::new();
    let config = json!({"Stop": [{"hooks": [{"type": "command", "command": "sleep 50"}]}]});
    let (hooks, cancel) = (session.hooks(&config), CancelToken::new());
    let began = Instant::now();
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| hooks.run(&stop(), &HookContext::new(&session.project()), &cancel));
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        running.join().unwrap()
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(failures(&outcome), ["it was interrupted"]);
}

#[test]
fn hooks_that_do_not_read_their_input_do_no_harm() {
    let session = HookFixture::new();
    let long = "x".repeat(4 << 20);
    let event = HookEvent::UserPromptSubmit { prompt: &long, title: None };
    let outcome = session.run(&event, &["exec <&-; echo one", "head -c 5 >/dev/null; echo two", "exit 0"]);
    assert_eq!((outcome.context, outcome.failures), (vec!["one".to_owned(), "two".to_owned()], vec![]));
}

#[test]
fn invalid_output_is_reported_and_ignored() {
    let session = HookFixture::new();
    let cases = [
        ("echo '{not json'", "starts like JSON but is invalid"),
        ("echo '{\"a\": 1} and more'", "starts like JSON but is invalid"),
        ("echo '{\"decision\": 5}'", "decision is not a string"),
        ("echo '{\"decision\": \"blok\"}'", "has no decision \"blok\""),
        ("echo '{\"hookSpecificOutput\": []}'", "hookSpecificOutput is not a JSON object"),
        (
            "echo '{\"hookSpecificOutput\": {\"permissionDecision\": \"alow\"}}'",
            "unknown permissionDecision \"alow\"",
        ),
        ("echo '{\"hookSpecificOutput\": {\"updatedInput\": \"ls\"}}'", "updatedInput is not a JSON object"),
        (
            "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"permissionDecision\": \"allow\"}}'",
            "it answered Stop to the event PreToolUse",
        ),
    ];
    for (command, wanted) in cases {
        let outcome = session.run(&before_call(), &[command]);
        let [failure] = failures(&outcome)[..] else { panic!("{command}: {outcome:?}") };
        assert!(failure.contains(wanted), "{command}: {failure}");
        assert_eq!(
            HookOutcome { failures: vec![], ..outcome },
            HookOutcome::default(),
            "{command}: nothing else follows"
        );
    }
    let bytes = session.run(&before_call(), &["head -c 5000 /dev/urandom | tr '{' 'x'"]);
    assert_eq!(bytes, HookOutcome::default());
    let outcome = session.run(&prompt(), &["printf 'a\\xffb'"]);
    assert_eq!(outcome.context, ["a\u{fffd}b"]);
}

#[test]
fn endless_output_is_bounded() {
    let session = HookFixture::new();
    let outcome = session.run(&prompt(), &["yes | head -c 50000000"]);
    assert!(outcome.context[0].chars().count() < 2_500, "{}", outcome.context[0].len());
    let kept = std::fs::metadata(session.folder.path().join("hooks/UserPromptSubmit-1.txt")).unwrap().len();
    assert!(kept <= 1 << 20, "{kept}");
    assert_eq!(failures(&outcome), ["its output is too long; only the beginning counts"]);
    let json = "printf '{\"systemMessage\": \"'; yes | tr -d '\\n' | head -c 3000000; printf '\"}'";
    let outcome = session.run(&prompt(), &[json]);
    assert_eq!(failures(&outcome), ["its JSON output is too long and is ignored"]);
    let outcome = session.run(&stop(), &["yes error | head -c 9000000 >&2; exit 2"]);
    assert!(outcome.blocked.unwrap().reason.chars().count() <= 2_001);
}

#[test]
fn a_hook_that_leaves_something_behind_is_not_waited_for() {
    let began = Instant::now();
    let outcome = HookFixture::new().run(&prompt(), &["sleep 30 & echo done"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(outcome.context, ["done"]);
}

#[test]
fn a_directory_that_is_gone_does_not_switch_hooks_off() {
    let session = HookFixture::new();
    let config = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]});
    let gone = session.project().join("gone");
    let outcome = session.hooks(&config).run(&before_call(), &HookContext::new(&gone), &CancelToken::new());
    assert!(outcome.blocked.is_some(), "{outcome:?}");
}
