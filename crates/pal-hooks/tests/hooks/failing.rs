//! Hooks that fail: the session goes on, and somebody is told.

use std::time::{Duration, Instant};

use pal_hooks::{Happening, Moment, Said};
use pal_process::Cancel;
use serde_json::json;

use crate::{Session, before_call, failures, prompt, stop};

#[test]
fn another_exit_code_blocks_nothing() {
    let said = Session::new()
        .run(&before_call(), &["echo broken >&2; exit 1", "kill -9 $$", "no-such-program-here"]);
    assert_eq!((said.blocked.is_none(), said.permission.is_none()), (true, true));
    let told = failures(&said);
    assert_eq!(told[..2], ["it exited with 1: broken", "it was ended by signal 9"]);
    assert!(told[2].contains("127") && told[2].contains("no-such-program-here"), "{told:?}");
    assert_eq!(said.failures[0].hook, "echo broken >&2; exit 1", "the hook is named");
}

#[test]
fn a_program_that_is_not_there_is_told_of() {
    let session = Session::new();
    let config =
        json!({"Stop": [{"hooks": [{"type": "command", "command": "/no/such/program", "args": []}]}]});
    let said = session.hooks(&config).run(&stop(), &Moment::in_directory(&session.project()), &Cancel::new());
    assert!(failures(&said)[0].contains("could not be started"), "{said:?}");
}

#[test]
fn a_hook_that_takes_too_long_is_ended() {
    let session = Session::new();
    let config = json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "echo '{\"decision\": \"block\"}'; sleep 60", "timeout": 0.3},
        {"type": "command", "command": "exit 2"},
    ]}]});
    let began = Instant::now();
    let said =
        session.hooks(&config).run(&before_call(), &Moment::in_directory(&session.project()), &Cancel::new());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(failures(&said)[0].contains("longer than its limit"), "{said:?}");
    assert!(said.permission.is_none(), "what it said before does not count");
    assert!(said.blocked.is_some(), "the others count");
}

#[test]
fn at_the_end_of_a_session_nobody_waits_long() {
    let session = Session::new();
    let hook = |command: &str| json!({"type": "command", "command": command, "timeout": 30});
    let config = json!({"SessionEnd": [{"hooks": [hook("sleep 40"), hook("sleep 41"), hook("touch left")]}]});
    let began = Instant::now();
    let end = Happening::SessionEnd { reason: "other" };
    let said = session.hooks(&config).run(&end, &Moment::in_directory(&session.project()), &Cancel::new());
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(said.failures.len(), 2);
    assert!(session.project().join("left").exists());
}

#[test]
fn an_interrupt_ends_all_hooks() {
    let session = Session::new();
    let config = json!({"Stop": [{"hooks": [{"type": "command", "command": "sleep 50"}]}]});
    let (hooks, cancel) = (session.hooks(&config), Cancel::new());
    let began = Instant::now();
    let said = std::thread::scope(|scope| {
        let running = scope.spawn(|| hooks.run(&stop(), &Moment::in_directory(&session.project()), &cancel));
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        running.join().unwrap()
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(failures(&said), ["it was interrupted"]);
}

#[test]
fn hooks_that_do_not_read_their_input_do_no_harm() {
    let session = Session::new();
    let long = "x".repeat(4 << 20);
    let happening = Happening::UserPromptSubmit { prompt: &long, title: None };
    let said = session.run(&happening, &["exec <&-; echo one", "head -c 5 >/dev/null; echo two", "exit 0"]);
    assert_eq!((said.context, said.failures), (vec!["one".to_owned(), "two".to_owned()], vec![]));
}

#[test]
fn nonsense_is_told_of_and_ignored() {
    let session = Session::new();
    let cases = [
        ("echo '{not json'", "begins like JSON and is none"),
        ("echo '{\"a\": 1} and more'", "begins like JSON and is none"),
        ("echo '{\"decision\": 5}'", "decision is no text"),
        ("echo '{\"decision\": \"blok\"}'", "knows no decision \"blok\""),
        ("echo '{\"hookSpecificOutput\": []}'", "hookSpecificOutput is no JSON object"),
        (
            "echo '{\"hookSpecificOutput\": {\"permissionDecision\": \"alow\"}}'",
            "no permissionDecision \"alow\"",
        ),
        ("echo '{\"hookSpecificOutput\": {\"updatedInput\": \"ls\"}}'", "updatedInput is no JSON object"),
        (
            "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"Stop\", \"permissionDecision\": \"allow\"}}'",
            "it answered Stop when PreToolUse happened",
        ),
    ];
    for (command, wanted) in cases {
        let said = session.run(&before_call(), &[command]);
        let [failure] = failures(&said)[..] else { panic!("{command}: {said:?}") };
        assert!(failure.contains(wanted), "{command}: {failure}");
        assert_eq!(Said { failures: vec![], ..said }, Said::default(), "{command}: nothing else follows");
    }
    let bytes = session.run(&before_call(), &["head -c 5000 /dev/urandom | tr '{' 'x'"]);
    assert_eq!(bytes, Said::default());
    let said = session.run(&prompt(), &["printf 'a\\xffb'"]);
    assert_eq!(said.context, ["a\u{fffd}b"]);
}

#[test]
fn a_flood_is_bounded() {
    let session = Session::new();
    let said = session.run(&prompt(), &["yes | head -c 50000000"]);
    assert!(said.context[0].chars().count() < 2_500, "{}", said.context[0].len());
    let kept = std::fs::metadata(session.folder.path().join("hooks/UserPromptSubmit-1.txt")).unwrap().len();
    assert!(kept <= 1 << 20, "{kept}");
    assert_eq!(failures(&said), ["it printed too much; only the beginning counts"]);
    let json = "printf '{\"systemMessage\": \"'; yes | tr -d '\\n' | head -c 3000000; printf '\"}'";
    let said = session.run(&prompt(), &[json]);
    assert_eq!(failures(&said), ["it printed too much JSON, which is ignored"]);
    let said = session.run(&stop(), &["yes error | head -c 9000000 >&2; exit 2"]);
    assert!(said.blocked.unwrap().reason.chars().count() <= 2_001);
}

#[test]
fn a_hook_that_leaves_something_behind_is_not_waited_for() {
    let began = Instant::now();
    let said = Session::new().run(&prompt(), &["sleep 30 & echo done"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(said.context, ["done"]);
}

#[test]
fn a_directory_that_is_gone_does_not_switch_hooks_off() {
    let session = Session::new();
    let config = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]});
    let gone = session.project().join("gone");
    let said = session.hooks(&config).run(&before_call(), &Moment::in_directory(&gone), &Cancel::new());
    assert!(said.blocked.is_some(), "{said:?}");
}
