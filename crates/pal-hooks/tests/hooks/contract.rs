//! What hooks read: recorded by a hook and compared with the contract.

use std::path::Path;
use std::time::Duration;

use pal_hooks::{Agent, Call, Happening, Moment};
use pal_process::Cancel;
use serde_json::{Value, json};

use crate::{Session, call};

/// Runs a hook that keeps its input and its surroundings; what it read.
fn recorded(session: &Session, happening: &Happening<'_>, moment: &Moment<'_>) -> (String, String) {
    let command = "cat > ../input; echo \"$PAL_PROJECT_DIR|$CLAUDE_PROJECT_DIR|$PWD\" > ../around";
    let config = json!({happening.event().name(): [{"hooks": [{"type": "command", "command": command}]}]});
    let said = session.hooks(&config).run(happening, moment, &Cancel::new());
    assert!(said.failures.is_empty(), "{said:?}");
    let read = |name: &str| std::fs::read_to_string(session.folder.path().join(name)).unwrap();
    (read("input"), read("around"))
}

#[test]
fn every_event_reads_as_the_contract_says() {
    let session = Session::new();
    let project = session.project();
    let log = session.folder.path().join("log.jsonl");
    let moment = Moment { permission_mode: Some("acceptEdits"), ..Moment::in_directory(&project) };
    let response = json!({"content": "gone"});
    let globs = ["*.rs".to_owned()];
    let tool = json!({"tool_name": "Bash", "tool_input": {"command": "rm -r build", "timeout": 5}, "tool_use_id": "toolu_1"});
    let joined = |more: Value| {
        let mut value = tool.clone();
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    let cases: Vec<(Happening<'_>, &str, Value)> = vec![
        (
            Happening::SessionStart {
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
            Happening::UserPromptSubmit { prompt: "fix \"it\"\n✓", title: None },
            "UserPromptSubmit",
            json!({"prompt": "fix \"it\"\n✓"}),
        ),
        (Happening::PreToolUse(call()), "PreToolUse", tool.clone()),
        (
            Happening::PreToolUse(Call { mcp_server: Some("disk"), ..call() }),
            "PreToolUse",
            joined(json!({"mcp_server": "disk"})),
        ),
        (
            Happening::PostToolUse { call: call(), response: &response, took: Duration::from_millis(1_234) },
            "PostToolUse",
            joined(json!({"tool_response": {"content": "gone"}, "duration_ms": 1_234})),
        ),
        (
            Happening::PostToolUseFailure { call: call(), error: "no", is_interrupt: false },
            "PostToolUseFailure",
            joined(json!({"error": "no", "is_interrupt": false})),
        ),
        (
            Happening::PreCompact { trigger: "manual", instructions: "keep names" },
            "PreCompact",
            json!({"trigger": "manual", "custom_instructions": "keep names"}),
        ),
        (
            Happening::PostCompact { trigger: "auto", summary: "s" },
            "PostCompact",
            json!({"trigger": "auto", "compact_summary": "s"}),
        ),
        (
            Happening::Stop { is_hook_active: true, last_message: Some("done") },
            "Stop",
            json!({"stop_hook_active": true, "last_assistant_message": "done"}),
        ),
        (
            Happening::InstructionsLoaded {
                file_path: Path::new("/p/CLAUDE.md"),
                memory_type: "Project",
                load_reason: "path_glob_match",
                globs: &globs,
            },
            "InstructionsLoaded",
            json!({"file_path": "/p/CLAUDE.md", "memory_type": "Project", "load_reason": "path_glob_match", "globs": ["*.rs"]}),
        ),
        (Happening::SessionEnd { reason: "other" }, "SessionEnd", json!({"reason": "other"})),
    ];
    for (happening, name, extras) in cases {
        let (input, around) = recorded(&session, &happening, &moment);
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
fn what_is_known_besides_is_told_and_what_is_not_left_out() {
    let session = Session::new();
    let project = session.project();
    let moment = Moment {
        prompt_id: Some("p-1"),
        agent: Some(Agent { id: "a-1", kind: "explorer" }),
        effort: Some("high"),
        ..Moment::in_directory(&project)
    };
    let agent_log = session.folder.path().join("agent.jsonl");
    let happening =
        Happening::SubagentStop { is_hook_active: false, last_message: None, transcript_path: &agent_log };
    let input: Value = serde_json::from_str(&recorded(&session, &happening, &moment).0).unwrap();
    let wanted = json!({"session_id": "s-1", "transcript_path": session.folder.path().join("log.jsonl"), "cwd": project,
        "prompt_id": "p-1", "agent_id": "a-1", "agent_type": "explorer", "effort": {"level": "high"},
        "hook_event_name": "SubagentStop", "stop_hook_active": false, "agent_transcript_path": agent_log});
    assert_eq!(input, wanted);
}

#[test]
fn a_script_that_others_wrote_works() {
    let session = Session::new();
    // The usual way to guard commands: read a field with whatever is there, answer by exit code.
    let script = r#"input=$(cat)
case "$input" in
  *'"tool_name":"Bash"'*'rm -r'*) echo "Removing folders is not allowed in $CLAUDE_PROJECT_DIR" >&2; exit 2 ;;
esac
exit 0"#;
    let said = session.run(&Happening::PreToolUse(call()), &[script]);
    let wanted = format!("Removing folders is not allowed in {}", session.project().display());
    assert_eq!(said.blocked.unwrap().reason, wanted);
    let harmless = Call { input: r#"{"command":"ls"}"#, ..call() };
    assert_eq!(session.run(&Happening::PreToolUse(harmless), &[script]).blocked, None);
}
