//! Hook input, recorded by a hook and compared with the contract.

use std::path::Path;
use std::time::Duration;

use pal_hooks::{HookContext, HookEvent, HookSubagent, HookToolCall};
use pal_process::CancelToken;
use serde_json::{Value, json};

use crate::{HookFixture, call};

/// Runs a hook that stores its input and environment; returns both.
fn recorded(session: &HookFixture, event: &HookEvent<'_>, context: &HookContext<'_>) -> (String, String) {
    let command = "cat > ../input; echo \"$PAL_PROJECT_DIR|$CLAUDE_PROJECT_DIR|$PWD\" > ../around";
    let config = json!({event.event_name().name(): [{"hooks": [{"type": "command", "command": command}]}]});
    let outcome = session.hooks(&config).run(event, context, &CancelToken::new());
    assert!(outcome.failures.is_empty(), "{outcome:?}");
    let read = |name: &str| std::fs::read_to_string(session.folder.path().join(name)).unwrap();
    (read("input"), read("around"))
}

#[test]
fn every_event_reads_as_the_contract_says() {
    let session = HookFixture::new();
    let project = session.project();
    let log = session.folder.path().join("log.jsonl");
    let context = HookContext { permission_mode: Some("acceptEdits"), ..HookContext::new(&project) };
    let response = json!({"content": "gone"});
    let globs = ["*.rs".to_owned()];
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "rm -r build", "timeout": 5}, "tool_use_id": "toolu_1"});
    let joined = |more: Value| {
        let mut value = tool.clone();
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    let cases: Vec<(HookEvent<'_>, &str, Value)> = vec![
        (
            HookEvent::SessionStart {
                source: "resume",
                model: Some("m"),
                title: Some("T"),
                context_tokens: Some(12),
                since_last_response: Some(Duration::from_millis(61_500)),
            },
            "SessionStart",
            json!({"source": "resume", "model": "m", "session_title": "T", "context_tokens": 12, "seconds_since_last_response": 61}),
        ),
        (
            HookEvent::UserPromptSubmit { prompt: "fix \"it\"\n✓", title: None },
            "UserPromptSubmit",
            json!({"prompt": "fix \"it\"\n✓"}),
        ),
        (HookEvent::PreToolUse(call()), "PreToolUse", tool.clone()),
        (
            HookEvent::PreToolUse(HookToolCall { mcp_server: Some("disk"), ..call() }),
            "PreToolUse",
            joined(json!({"mcp_server": "disk"})),
        ),
        (
            HookEvent::PostToolUse { call: call(), response: &response, took: Duration::from_millis(1_234) },
            "PostToolUse",
            joined(json!({"tool_response": {"content": "gone"}, "duration_ms": 1_234})),
        ),
        (
            HookEvent::PostToolUseFailure { call: call(), error: "no", is_interrupt: false },
            "PostToolUseFailure",
            joined(json!({"error": "no", "is_interrupt": false})),
        ),
        (
            HookEvent::PreCompact { trigger: "manual", instructions: "keep names" },
            "PreCompact",
            json!({"trigger": "manual", "custom_instructions": "keep names"}),
        ),
        (
            HookEvent::PostCompact { trigger: "auto", summary: "s" },
            "PostCompact",
            json!({"trigger": "auto", "compact_summary": "s"}),
        ),
        (
            HookEvent::Stop { is_hook_active: true, last_message: Some("done") },
            "Stop",
            json!({"stop_hook_active": true, "last_assistant_message": "done"}),
        ),
        (
            HookEvent::InstructionsLoaded {
                file_path: Path::new("/p/CLAUDE.md"),
                memory_type: "Project",
                load_reason: "path_glob_match",
                globs: &globs,
            },
            "InstructionsLoaded",
            json!({"file_path": "/p/CLAUDE.md", "memory_type": "Project", "load_reason": "path_glob_match", "globs": ["*.rs"]}),
        ),
        (HookEvent::SessionEnd { reason: "other" }, "SessionEnd", json!({"reason": "other"})),
    ];
    for (event, name, extras) in cases {
        let (input, around) = recorded(&session, &event, &context);
        assert!(input.ends_with('\n') && input.trim_end().lines().count() == 1, "one line: {input}");
        let mut wanted = json!({"session_id": "s-1", "transcript_path": log, "cwd": project,
            "permission_mode": "acceptEdits", "hook_event_name": name});
        wanted.as_object_mut().unwrap().extend(extras.as_object().unwrap().clone());
        assert_eq!(serde_json::from_str::<Value>(&input).unwrap(), wanted, "{name}");
        let (path, real) = (project.display(), project.canonicalize().unwrap());
        assert_eq!(around.trim_end(), format!("{path}|{path}|{}", real.display()));
    }
}

#[test]
fn optional_fields_are_sent_when_known() {
    let session = HookFixture::new();
    let project = session.project();
    let context = HookContext {
        prompt_id: Some("p-1"),
        agent: Some(HookSubagent { id: "a-1", kind: "explorer" }),
        effort: Some("high"),
        ..HookContext::new(&project)
    };
    let agent_log = session.folder.path().join("agent.jsonl");
    let event =
        HookEvent::SubagentStop { is_hook_active: false, last_message: None, transcript_path: &agent_log };
    let input: Value = serde_json::from_str(&recorded(&session, &event, &context).0).unwrap();
    let wanted = json!({"session_id": "s-1", "transcript_path": session.folder.path().join("log.jsonl"), "cwd": project,
        "prompt_id": "p-1", "agent_id": "a-1", "agent_type": "explorer", "effort": {"level": "high"},
        "hook_event_name": "SubagentStop", "stop_hook_active": false, "agent_transcript_path": agent_log});
    assert_eq!(input, wanted);
}

#[test]
fn an_existing_claude_code_script_works() {
    let session = HookFixture::new();
    // The usual way to guard commands: match the input, answer by exit code.
    let script = r#"input=$(cat)
case "$input" in
  *'"tool_name":"Bash"'*'rm -r'*) echo "Removing folders is not allowed in $CLAUDE_PROJECT_DIR" >&2; exit 2 ;;
esac
exit 0"#;
    let outcome = session.run(&HookEvent::PreToolUse(call()), &[script]);
    let wanted = format!("Removing folders is not allowed in {}", session.project().display());
    assert_eq!(outcome.blocked.unwrap().reason, wanted);
    let harmless = HookToolCall { input: r#"{"command":"ls"}"#, ..call() };
    assert_eq!(session.run(&HookEvent::PreToolUse(harmless), &[script]).blocked, None);
}
