//! Which hooks run.

use pal_hooks::{Agent, Config, EventName, Happening, Moment};
use pal_process::Cancel;
use serde_json::{Value, json};

use crate::{Session, before_call, prompt, stop};

/// A hook that leaves its name.
fn noting(name: &str) -> Value {
    json!({"type": "command", "command": format!("echo {name} >> ran")})
}

/// The names that hooks left, in any order, and forgets them.
fn ran(session: &Session) -> Vec<String> {
    let path = session.project().join("ran");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn matchers_choose_by_what_the_event_is_about() {
    let session = Session::new();
    let group = |matcher: &str, name: &str| json!({"matcher": matcher, "hooks": [noting(name)]});
    let config = json!({
        "PreToolUse": [group("Bash", "exact"), group("Edit|Write", "other"), group("^B.*", "pattern"), group("*", "all")],
        "SessionStart": [group("compact", "compact"), group("startup|resume", "start")],
        "PreCompact": [group("auto", "auto"), group("manual", "manual")],
        "SubagentStop": [group("explorer", "explorer"), group("", "any")],
        "Stop": [group("whatever", "stop")],
        "UserPromptSubmit": [group("whatever", "prompt")],
    });
    let hooks = session.hooks(&config);
    let project = session.project();
    let moment =
        Moment { agent: Some(Agent { id: "a", kind: "explorer" }), ..Moment::in_directory(&project) };
    let start = |source| Happening::SessionStart {
        source,
        model: None,
        title: None,
        context_tokens: None,
        since_last_response: None,
    };
    let compact = Happening::PreCompact { trigger: "auto", instructions: "" };
    let subagent =
        Happening::SubagentStop { is_hook_active: false, last_message: None, transcript_path: &project };
    let cases: [(Happening<'_>, &[&str]); 7] = [
        (before_call(), &["all", "exact", "pattern"]),
        (start("compact"), &["compact"]),
        (start("resume"), &["start"]),
        (compact, &["auto"]),
        (subagent, &["any", "explorer"]),
        (stop(), &["stop"]),
        (prompt(), &["prompt"]),
    ];
    for (happening, wanted) in cases {
        let said = hooks.run(&happening, &moment, &Cancel::new());
        assert!(said.failures.is_empty(), "{said:?}");
        assert_eq!(ran(&session), wanted, "{happening:?}");
    }
    assert!(hooks.listen_to(EventName::PreToolUse) && !hooks.listen_to(EventName::PostToolUse));
}

#[test]
fn the_same_command_runs_once_for_an_event() {
    let session = Session::new();
    let with_arguments = |argument: &str| json!({"type": "command", "command": "/bin/sh", "args": ["-c", format!("echo {argument} >> ran")]});
    let config = json!({"Stop": [
        {"hooks": [noting("a"), noting("b"), with_arguments("c")]},
        {"hooks": [noting("a"), with_arguments("c"), with_arguments("d")]},
    ]});
    session.hooks(&config).run(&stop(), &Moment::in_directory(&session.project()), &Cancel::new());
    assert_eq!(ran(&session), ["a", "b", "c", "d"]);
}

#[test]
fn some_hooks_run_once_in_a_session_and_some_under_a_condition() {
    let session = Session::new();
    let with = |name: &str, field: &str, value: Value| {
        let mut hook = noting(name);
        hook[field] = value;
        hook
    };
    let config = json!({"PreToolUse": [{"hooks": [
        with("once", "once", json!(true)),
        with("git", "if", json!("Bash(git:*)")),
        with("rm", "if", json!("Bash(rm:*)")),
    ]}]});
    let hooks = session.hooks(&config);
    let project = session.project();
    let fits = |rule: &str| rule == "Bash(rm:*)";
    let moment = Moment { fits: Some(&fits), ..Moment::in_directory(&project) };
    hooks.run(&before_call(), &moment, &Cancel::new());
    assert_eq!(ran(&session), ["once", "rm"]);
    hooks.run(&before_call(), &moment, &Cancel::new());
    assert_eq!(ran(&session), ["rm"]);
    hooks.run(&before_call(), &Moment::in_directory(&project), &Cancel::new());
    assert_eq!(ran(&session), ["git", "rm"], "without a way to tell they run: a guard must not be left out");
}

#[test]
fn hooks_of_an_event_run_beside_each_other_and_count_in_their_order() {
    let session = Session::new();
    let waiting = "until [ -e second ]; do sleep 0.01; done; echo first";
    let said = session.run(&prompt(), &[waiting, "touch second; echo second"]);
    assert_eq!((said.context, said.failures), (vec!["first".to_owned(), "second".to_owned()], vec![]));
}

#[test]
fn what_cannot_run_here_is_told_of_and_what_is_wrong_refused() {
    let hook = json!({"type": "command", "command": "true", "statusMessage": "…", "unknown": 1});
    let config = Config::parse(&json!({
        "Notification": [{"hooks": [hook]}],
        "Stop": [{"hooks": [hook, {"type": "prompt", "prompt": "?"}, {"type": "command", "command": "x", "async": true}]}],
    }))
    .unwrap();
    assert_eq!(config.groups[0].commands.len(), 2);
    assert_eq!(config.notices.len(), 3, "{:?}", config.notices);
    let wrong = [
        json!([]),
        json!({"Stop": {}}),
        json!({"Stop": [[]]}),
        json!({"Sotp": []}),
        json!({"Stop": [{"hook": []}]}),
        json!({"Stop": [{"hooks": [{"command": "x"}]}]}),
        json!({"Stop": [{"hooks": [{"type": "command", "command": " "}]}]}),
        json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "args": "y"}]}]}),
        json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": 0}]}]}),
        json!({"Stop": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}),
        json!({"Stop": [{"matcher": 5, "hooks": []}]}),
        json!({"Stop": [{"matcher": "(", "hooks": []}]}),
    ];
    for config in wrong {
        assert!(Config::parse(&config).is_err(), "{config}");
    }
    let Err(typo) = Config::parse(&json!({"Sotp": []})) else { panic!("taken") };
    assert!(typo.ends_with("did you mean `Stop`?"), "{typo}");
}
