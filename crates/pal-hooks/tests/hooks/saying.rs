//! What hooks say, and what becomes of it.

use pal_hooks::{Blocked, Happening, Permission, Said};
use serde_json::json;

use crate::{Session, before_call, call, failures, printing, prompt, stop};

#[test]
fn exit_2_blocks_with_what_stands_on_the_error_output() {
    let session = Session::new();
    let command = "echo ignored; echo 'not this one' >&2; exit 2";
    for happening in
        [before_call(), prompt(), stop(), Happening::PreCompact { trigger: "auto", instructions: "" }]
    {
        let said = session.run(&happening, &[command]);
        let blocked = Blocked { reason: "not this one".into(), hook: command.into() };
        assert_eq!(said, Said { blocked: Some(blocked), ..Said::default() }, "{happening:?}");
    }
    let said = session.run(&before_call(), &["exit 2"]);
    assert!(!said.blocked.unwrap().reason.is_empty(), "there is always a reason");
    let ended = Happening::PostCompact { trigger: "auto", summary: "s" };
    let said = session.run(&ended, &[command]);
    assert_eq!(said.blocked, None, "what has happened cannot be blocked");
    assert_eq!(failures(&said), ["it exited with 2: not this one"]);
}

#[test]
fn exit_2_counts_more_than_json() {
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": {"command": "ls"}}, "systemMessage": "seen"});
    let command = format!("{}\necho no >&2\nexit 2", printing(&allow));
    let said = Session::new().run(&before_call(), &[&command]);
    assert_eq!(said.blocked.unwrap().reason, "no");
    assert_eq!((said.permission, said.updated_input), (None, None));
    assert_eq!(said.system_messages, ["seen"], "the rest of the JSON is read");
}

#[test]
fn json_decides_about_a_call() {
    let session = Session::new();
    let cases = [
        (
            json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": "r"}}),
            Some((Permission::Deny, "r".to_owned())),
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "ask"}}),
            Some((Permission::Ask, String::new())),
        ),
        (
            json!({"hookSpecificOutput": {"permissionDecision": "allow"}}),
            Some((Permission::Allow, String::new())),
        ),
        (json!({"hookSpecificOutput": {"permissionDecision": "defer"}}), None),
        (json!({"decision": "block", "reason": "old"}), Some((Permission::Deny, "old".to_owned()))),
        (json!({"decision": "approve"}), Some((Permission::Allow, String::new()))),
        (json!({}), None),
    ];
    for (output, wanted) in cases {
        let said = session.run(&before_call(), &[&printing(&output)]);
        assert_eq!(said, Said { permission: wanted, ..Said::default() }, "{output}");
    }
}

#[test]
fn a_refusal_counts_more_than_a_question_and_that_more_than_an_assent() {
    let decision = |word: &str| {
        printing(
            &json!({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": word}}),
        )
    };
    let [allow, ask, deny] = ["allow", "ask", "deny"].map(decision);
    let session = Session::new();
    let said = |commands: &[&str]| session.run(&before_call(), commands).permission.map(|(_, reason)| reason);
    assert_eq!(said(&[&allow, &deny, &ask]).as_deref(), Some("deny"));
    assert_eq!(said(&[&deny, &allow]).as_deref(), Some("deny"));
    assert_eq!(said(&[&ask, &allow]).as_deref(), Some("ask"));
    assert_eq!(said(&["true", &allow]).as_deref(), Some("allow"));
}

#[test]
fn hooks_change_what_goes_in_and_what_comes_out() {
    let session = Session::new();
    let output = json!({"hookSpecificOutput": {"updatedInput": {"command": "ls"}, "additionalContext": "c"}});
    let said = session.run(&before_call(), &[&printing(&output)]);
    assert_eq!(said.updated_input, Some(json!({"command": "ls"})));
    assert_eq!(said.context, ["c"]);
    let output =
        json!({"hookSpecificOutput": {"updatedToolOutput": "short"}, "decision": "block", "reason": "look"});
    let response = json!("long");
    let after = Happening::PostToolUse { call: call(), response: &response, took: std::time::Duration::ZERO };
    let said = session.run(&after, &[&printing(&output)]);
    assert_eq!(said.updated_output, Some(json!("short")));
    assert_eq!(said.blocked.unwrap().reason, "look");
}

#[test]
fn a_session_can_be_stopped_named_and_told() {
    let output = json!({"continue": false, "stopReason": "enough", "systemMessage": "hello",
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "sessionTitle": "Mending", "additionalContext": "x"}});
    let said = Session::new().run(&prompt(), &[&printing(&output), "echo plain text"]);
    let wanted = Said {
        stop: Some("enough".into()),
        title: Some("Mending".into()),
        system_messages: vec!["hello".into()],
        context: vec!["x".into(), "plain text".into()],
        ..Said::default()
    };
    assert_eq!(said, wanted);
}

#[test]
fn plain_text_is_for_the_model_where_the_contract_says_so() {
    let session = Session::new();
    let start = Happening::SessionStart {
        source: "startup",
        model: None,
        title: None,
        context_tokens: None,
        since_last_response: None,
    };
    let compact = Happening::PreCompact { trigger: "manual", instructions: "" };
    for happening in [start, prompt(), compact] {
        assert_eq!(session.run(&happening, &["echo heed this"]).context, ["heed this"], "{happening:?}");
        let failed = session.run(&happening, &["echo heed this; exit 1"]);
        assert!(failed.context.is_empty() && failed.failures.len() == 1, "not if the hook failed");
    }
    for happening in [before_call(), stop()] {
        assert_eq!(session.run(&happening, &["echo heed this"]), Said::default(), "{happening:?}");
    }
}

#[test]
fn json_is_read_whatever_the_exit_code() {
    let output = json!({"systemMessage": "still here"});
    let said = Session::new().run(&stop(), &[&format!("{}\nexit 7", printing(&output))]);
    assert_eq!(said.system_messages, ["still here"]);
    assert_eq!(failures(&said), ["it exited with 7"]);
}

#[test]
fn a_long_context_goes_to_a_file() {
    let session = Session::new();
    let short = session.run(&prompt(), &["printf 'é%.0s' $(seq 10000)"]);
    assert_eq!(short.context[0].chars().count(), 10_000, "up to here it is shown whole");
    for number in 1..3 {
        let said = session.run(&prompt(), &["printf 'é%.0s' $(seq 10001)"]);
        let path = session.folder.path().join(format!("hooks/UserPromptSubmit-{number}.txt"));
        let shown = &said.context[0];
        assert!(shown.contains(path.to_str().unwrap()) && shown.chars().count() < 2_500, "{shown}");
        assert!(shown.ends_with("éé"), "the beginning is shown");
        assert_eq!(std::fs::read_to_string(&path).unwrap().chars().count(), 10_001);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
