//! Hook answers and their effect.

use pal_hooks::{HookBlock, HookEvent, HookOutcome, HookPermission};
use serde_json::json;

use crate::{HookFixture, before_call, call, failures, printing, prompt, stop};

#[test]
fn exit_2_blocks_with_stderr_as_reason() {
    let session = HookFixture::new();
    let command = "echo ignored; echo 'not this one' >&2; exit 2";
    for event in
        [before_call(), prompt(), stop(), HookEvent::PreCompact { trigger: "auto", instructions: "" }]
    {
        let outcome = session.run(&event, &[command]);
        let blocked = HookBlock { reason: "not this one".into(), hook: command.into() };
        assert_eq!(outcome, HookOutcome { blocked: Some(blocked), ..HookOutcome::default() }, "{event:?}");
    }
    let outcome = session.run(&before_call(), &["exit 2"]);
    assert!(!outcome.blocked.unwrap().reason.is_empty(), "there is always a reason");
    let ended = HookEvent::PostCompact { trigger: "auto", summary: "s" };
    let outcome = session.run(&ended, &[command]);
    assert_eq!(outcome.blocked, None, "what has happened cannot be blocked");
    assert_eq!(failures(&outcome), ["it exited with 2: not this one"]);
}

#[test]
fn exit_2_counts_more_than_json() {
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": {"command": "ls"}}, "systemMessage": "seen"});
    let command = format!("{}\necho no >&2\nexit 2", printing(&allow));
    let outcome = HookFixture::new().run(&before_call(), &[&command]);
    assert_eq!(outcome.blocked.unwrap().reason, "no");
    assert_eq!((outcome.permission, outcome.updated_input), (None, None));
    assert_eq!(outcome.system_messages, ["seen"], "the rest of the JSON is read");
}

#[test]
fn json_decides_about_a_call() {
    let session = HookFixture::new();
    let cases = [
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": "r"}}),
            Some((HookPermission::Deny, "r".to_owned())),
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "ask"}}),
            Some((HookPermission::Ask, String::new())),
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "allow"}}),
            Some((HookPermission::Allow, String::new())),
        ),
        (json!({"hookSpecificOutput": {"permissionDecision": "defer"}}), None),
        (json!({"decision": "block", "reason": "old"}), Some((HookPermission::Deny, "old".to_owned()))),
        (json!({"decision": "approve"}), Some((HookPermission::Allow, String::new()))),
        (json!({}), None),
    ];
    for (output, wanted) in cases {
        let outcome = session.run(&before_call(), &[&printing(&output)]);
        assert_eq!(outcome, HookOutcome { permission: wanted, ..HookOutcome::default() }, "{output}");
    }
}

#[test]
fn deny_beats_ask_beats_allow() {
    let decision = |word: &str| {
        printing(
            &json!({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": word}}),
        )
    };
    let [allow, ask, deny] = ["allow", "ask", "deny"].map(decision);
    let session = HookFixture::new();
    let outcome =
        |commands: &[&str]| session.run(&before_call(), commands).permission.map(|(_, reason)| reason);
    assert_eq!(outcome(&[&allow, &deny, &ask]).as_deref(), Some("deny"));
    assert_eq!(outcome(&[&deny, &allow]).as_deref(), Some("deny"));
    assert_eq!(outcome(&[&ask, &allow]).as_deref(), Some("ask"));
    assert_eq!(outcome(&["true", &allow]).as_deref(), Some("allow"));
}

#[test]
fn hooks_change_input_and_output() {
    let session = HookFixture::new();
    let output = json!({"hookSpecificOutput": {"updatedInput": {"command": "ls"}, "additionalContext": "c"}});
    let outcome = session.run(&before_call(), &[&printing(&output)]);
    assert_eq!(outcome.updated_input, Some(json!({"command": "ls"})));
    assert_eq!(outcome.context, ["c"]);
    let output =
        json!({"hookSpecificOutput": {"updatedToolOutput": "short"}, "decision": "block", "reason": "look"});
    let response = json!("long");
    let after = HookEvent::PostToolUse { call: call(), response: &response, took: std::time::Duration::ZERO };
    let outcome = session.run(&after, &[&printing(&output)]);
    assert_eq!(outcome.updated_output, Some(json!("short")));
    assert_eq!(outcome.blocked.unwrap().reason, "look");
}

#[test]
fn hooks_stop_name_and_inform_a_session() {
    let output = json!({"continue": false, "stopReason": "enough", "systemMessage": "hello",
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "sessionTitle": "Mending", "additionalContext": "x"}});
    let outcome = HookFixture::new().run(&prompt(), &[&printing(&output), "echo plain text"]);
    let wanted = HookOutcome {
        stop: Some("enough".into()),
        title: Some("Mending".into()),
        system_messages: vec!["hello".into()],
        context: vec!["x".into(), "plain text".into()],
        ..HookOutcome::default()
    };
    assert_eq!(outcome, wanted);
}

#[test]
fn plain_text_is_for_the_model_where_the_contract_says_so() {
    let session = HookFixture::new();
    let start = HookEvent::SessionStart {
        source: "startup",
        model: None,
        title: None,
        context_tokens: None,
        since_last_response: None,
    };
    let compact = HookEvent::PreCompact { trigger: "manual", instructions: "" };
    for event in [start, prompt(), compact] {
        assert_eq!(session.run(&event, &["echo heed this"]).context, ["heed this"], "{event:?}");
        let failed = session.run(&event, &["echo heed this; exit 1"]);
        assert!(failed.context.is_empty() && failed.failures.len() == 1, "not if the hook failed");
    }
    for event in [before_call(), stop()] {
        assert_eq!(session.run(&event, &["echo heed this"]), HookOutcome::default(), "{event:?}");
    }
}

#[test]
fn json_output_is_read_for_any_exit_code() {
    let output = json!({"systemMessage": "still here"});
    let outcome = HookFixture::new().run(&stop(), &[&format!("{}\nexit 7", printing(&output))]);
    assert_eq!(outcome.system_messages, ["still here"]);
    assert_eq!(failures(&outcome), ["it exited with 7"]);
}

#[test]
fn a_long_context_goes_to_a_file() {
    let session = HookFixture::new();
    let short = session.run(&prompt(), &["printf 'é%.0s' $(seq 10000)"]);
    assert_eq!(short.context[0].chars().count(), 10_000, "up to here it is shown whole");
    for number in 1..3 {
        let outcome = session.run(&prompt(), &["printf 'é%.0s' $(seq 10001)"]);
        let path = session.folder.path().join(format!("hooks/UserPromptSubmit-{number}.txt"));
        let shown = &outcome.context[0];
        assert!(shown.contains(path.to_str().unwrap()) && shown.chars().count() < 2_500, "{shown}");
        assert!(shown.ends_with("éé"), "the beginning is shown");
        assert_eq!(std::fs::read_to_string(&path).unwrap().chars().count(), 10_001);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
