//! Hooks as real shell scripts.

#![allow(clippy::unwrap_used)]

mod hook_contract;
mod hook_decisions;
mod hook_failures;
mod hook_selection;

use std::path::PathBuf;

use pal_hooks::{HookConfig, HookContext, HookEvent, HookOutcome, HookSession, HookToolCall, SessionHooks};
use pal_process::CancelToken;
use serde_json::{Value, json};

/// Session in a scratch folder.
struct HookFixture {
    folder: tempfile::TempDir,
}

impl HookFixture {
    fn new() -> HookFixture {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        HookFixture { folder }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn hooks(&self, config: &Value) -> SessionHooks {
        let place = HookSession {
            session_id: "s-1".into(),
            transcript_path: self.folder.path().join("log.jsonl"),
            project: self.project(),
            folder: self.folder.path().to_owned(),
        };
        SessionHooks::new(vec![HookConfig::parse(config).unwrap()], place)
    }

    /// Runs command lines as hooks of an event.
    fn run(&self, event: &HookEvent<'_>, commands: &[&str]) -> HookOutcome {
        let hooks: Vec<Value> = commands
            .iter()
            .map(|command| json!({"type": "command", "command": command, "timeout": 20}))
            .collect();
        let config = json!({ event.event_name().name(): [{ "hooks": hooks }] });
        self.hooks(&config).run(event, &HookContext::new(&self.project()), &CancelToken::new())
    }
}

/// Tool call of Bash.
fn call() -> HookToolCall<'static> {
    HookToolCall {
        tool_name: "Bash",
        input: r#"{"command":"rm -r build","timeout":5}"#,
        tool_use_id: "toolu_1",
        mcp_server: None,
    }
}

fn before_call() -> HookEvent<'static> {
    HookEvent::PreToolUse(call())
}

fn prompt() -> HookEvent<'static> {
    HookEvent::UserPromptSubmit { prompt: "fix it", title: None }
}

fn stop() -> HookEvent<'static> {
    HookEvent::Stop { is_hook_active: false, last_message: None }
}

/// Command that prints JSON.
fn printing(value: &Value) -> String {
    format!("cat <<'END'\n{value}\nEND")
}

/// Failures of all hooks.
fn failures(outcome: &HookOutcome) -> Vec<&str> {
    outcome.failures.iter().map(|failure| failure.reason.as_str()).collect()
}
