//! Hooks as scripts of a shell, run for real.

#![allow(clippy::unwrap_used)]

mod choosing;
mod contract;
mod failing;
mod saying;

use std::path::PathBuf;

use pal_hooks::{Call, Config, Happening, Hooks, Moment, Place, Said};
use pal_process::Cancel;
use serde_json::{Value, json};

/// A session in a scratch folder.
struct Session {
    folder: tempfile::TempDir,
}

impl Session {
    fn new() -> Session {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        Session { folder }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn hooks(&self, config: &Value) -> Hooks {
        let place = Place {
            session_id: "s-1".into(),
            transcript_path: self.folder.path().join("log.jsonl"),
            project: self.project(),
            folder: self.folder.path().to_owned(),
        };
        Hooks::new(vec![Config::parse(config).unwrap()], place)
    }

    /// Runs command lines as hooks of what happens.
    fn run(&self, happening: &Happening<'_>, commands: &[&str]) -> Said {
        let hooks: Vec<Value> = commands
            .iter()
            .map(|command| json!({"type": "command", "command": command, "timeout": 20}))
            .collect();
        let config = json!({ happening.event().name(): [{ "hooks": hooks }] });
        self.hooks(&config).run(happening, &Moment::in_directory(&self.project()), &Cancel::new())
    }
}

/// A call of Bash.
fn call() -> Call<'static> {
    Call {
        tool_name: "Bash",
        input: r#"{"command":"rm -r build","timeout":5}"#,
        tool_use_id: "toolu_1",
        mcp_server: None,
    }
}

fn before_call() -> Happening<'static> {
    Happening::PreToolUse(call())
}

fn prompt() -> Happening<'static> {
    Happening::UserPromptSubmit { prompt: "fix it", title: None }
}

fn stop() -> Happening<'static> {
    Happening::Stop { is_hook_active: false, last_message: None }
}

/// A command that prints JSON.
fn printing(value: &Value) -> String {
    format!("cat <<'END'\n{value}\nEND")
}

/// What went wrong, of all hooks.
fn failures(said: &Said) -> Vec<&str> {
    said.failures.iter().map(|failure| failure.what.as_str()).collect()
}
