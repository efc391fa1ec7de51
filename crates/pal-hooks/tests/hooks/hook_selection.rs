//! Selection of hooks.

use pal_hooks::{HookConfig, HookContext, HookEvent, HookEventName, HookPermission, HookSubagent};
use pal_process::CancelToken;
use serde_json::{Value, json};

use crate::{HookFixture, before_call, prompt, stop};

/// Hook that appends its name to a file.
fn noting(name: &str) -> Value {
    json!({"type": "command", "command": format!("echo {name} >> ran")})
}

/// Takes the sorted names that hooks left.
fn ran(session: &HookFixture) -> Vec<String> {
    let path = session.project().join("ran");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.sort();
    names
}

#[test]
fn matchers_select_by_event_subject() {
    let session = HookFixture::new();
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
    let context =
        HookContext { agent: Some(HookSubagent { id: "a", kind: "explorer" }), ..HookContext::new(&project) };
    let start = |source| HookEvent::SessionStart {
        source,
        model: None,
        title: None,
        context_tokens: None,
        since_last_response: None,
    };
    let compact = HookEvent::PreCompact { trigger: "auto", instructions: "" };
    let subagent =
        HookEvent::SubagentStop { is_hook_active: false, last_message: None, transcript_path: &project };
    let cases: [(HookEvent<'_>, &[&str]); 7] = [
        (before_call(), &["all", "exact", "pattern"]),
        (start("compact"), &["compact"]),
        (start("resume"), &["start"]),
        (compact, &["auto"]),
        (subagent, &["any", "explorer"]),
        (stop(), &["stop"]),
        (prompt(), &["prompt"]),
    ];
    for (event, wanted) in cases {
        let outcome = hooks.run(&event, &context, &CancelToken::new());
        assert!(outcome.failures.is_empty(), "{outcome:?}");
        assert_eq!(ran(&session), wanted, "{event:?}");
    }
    assert!(
        hooks.has_hooks_for(HookEventName::PreToolUse) && !hooks.has_hooks_for(HookEventName::PostToolUse)
    );
}

#[test]
fn the_same_command_runs_once_for_an_event() {
    let session = HookFixture::new();
    let with_arguments = |argument: &str| json!({"type": "command", "command": "/bin/sh", "args": ["-c", format!("echo {argument} >> ran")]});
    let config = json!({"Stop": [
        {"hooks": [noting("a"), noting("b"), with_arguments("c")]},
        {"hooks": [noting("a"), with_arguments("c"), with_arguments("d")]},
    ]});
    session.hooks(&config).run(&stop(), &HookContext::new(&session.project()), &CancelToken::new());
    assert_eq!(ran(&session), ["a", "b", "c", "d"]);
}

#[test]
fn hooks_run_once_or_under_a_condition() {
    let session = HookFixture::new();
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
    let context = HookContext { matches_rule: Some(&fits), ..HookContext::new(&project) };
    hooks.run(&before_call(), &context, &CancelToken::new());
    assert_eq!(ran(&session), ["once", "rm"]);
    hooks.run(&before_call(), &context, &CancelToken::new());
    assert_eq!(ran(&session), ["rm"]);
    hooks.run(&before_call(), &HookContext::new(&project), &CancelToken::new());
    assert_eq!(ran(&session), ["git", "rm"], "without a way to tell they run: a guard must not be left out");
}

#[test]
fn hooks_run_in_parallel_and_count_in_order() {
    let session = HookFixture::new();
    let waiting = "until [ -e second ]; do sleep 0.01; done; echo first";
    let outcome = session.run(&prompt(), &[waiting, "touch second; echo second"]);
    assert_eq!((outcome.context, outcome.failures), (vec!["first".to_owned(), "second".to_owned()], vec![]));
}

#[test]
fn unsupported_hooks_are_noticed_and_invalid_ones_refused() {
    let hook = json!({"type": "command", "command": "true", "statusMessage": "…", "unknown": 1});
    let config = HookConfig::parse(&json!({
        "Notification": [{"hooks": [hook]}],
        "Stop": [{"hooks": [hook, {"type": "prompt", "prompt": "?"}, {"type": "command", "command": "x", "async": true}]}],
    }))
    .unwrap();
    let guards: Vec<bool> =
        config.groups[0].commands.iter().map(|command| command.unsupported.is_some()).collect();
    assert_eq!(guards, [false, true, false]);
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
        assert!(HookConfig::parse(&config).is_err(), "{config}");
    }
    let Err(typo) = HookConfig::parse(&json!({"Sotp": []})) else { panic!("taken") };
    assert!(typo.ends_with("did you mean `Stop`?"), "{typo}");
}

#[test]
fn a_hook_that_cannot_run_asks_about_calls_and_blocks_prompts() {
    let session = HookFixture::new();
    let http = json!([{"hooks": [{"type": "http", "url": "https://guard.example"}]}]);
    let hooks = session.hooks(&json!({"PreToolUse": http, "UserPromptSubmit": http, "Stop": http}));
    let project = session.project();
    let run = |event: &HookEvent<'_>| hooks.run(event, &HookContext::new(&project), &CancelToken::new());
    let call = run(&before_call());
    assert!(
        call.permission
            .is_some_and(|(permission, why)| permission == HookPermission::Ask && why.contains("http"))
    );
    assert!(run(&prompt()).blocked.is_some_and(|block| block.reason.contains("disabled")));
    let stopped = run(&stop());
    assert!(stopped.blocked.is_none() && stopped.failures.is_empty());
}
