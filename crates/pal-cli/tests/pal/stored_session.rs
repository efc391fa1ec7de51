//! A session of another agent, made up: some turns, each of a question, a read and an answer; and its log.

use std::path::{Path, PathBuf};

use pal_model::{Decision, DecisionKind, EntryDraft, IdSource, MessageOrigin, Timestamp};
use pal_store::Log;

use crate::program::{CommandOutput, TestHome};

/// A home with one imported session whose project is a folder in it.
pub(crate) struct ImportedSession {
    pub(crate) home: TestHome,
    pub(crate) log: PathBuf,
    pub(crate) project: PathBuf,
}

/// The question of the user in a turn.
pub(crate) fn question(turn: usize) -> String {
    format!("Question {turn}: why does part {turn} fail when the moon is \"full\"?")
}

/// A session of `turns` turns in a project, as Claude Code writes it.
pub(crate) fn foreign(project: &Path, session: &str, turns: usize) -> String {
    let mut lines = Vec::new();
    let mut parent = serde_json::Value::Null;
    for turn in 1..=turns {
        let file = project.join(format!("src/part{turn}.rs"));
        let call = format!("toolu_{session}_{turn}");
        let size = 20_000 + 1_500 * turn;
        let usage = |output: usize| {
            serde_json::json!({"input_tokens": 5, "cache_creation_input_tokens": 700,
            "cache_read_input_tokens": size, "output_tokens": output})
        };
        let said = [
            serde_json::json!({"role": "user", "content": question(turn)}),
            serde_json::json!({"id": format!("msg_{session}_{turn}a"), "type": "message", "role": "assistant",
                "model": "claude-opus-4-6", "stop_reason": "tool_use", "usage": usage(60),
                "content": [{"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": file}}]}),
            serde_json::json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call,
                "content": format!("fn part{turn}() {{ /* {} */ }}", "once upon a time ".repeat(250))}]}),
            serde_json::json!({"id": format!("msg_{session}_{turn}b"), "type": "message", "role": "assistant",
                "model": "claude-opus-4-6", "stop_reason": "end_turn", "usage": usage(20),
                "content": [{"type": "text", "text": format!("Part {turn} is fine now.")}]}),
        ];
        for (at, message) in said.into_iter().enumerate() {
            let uuid = format!("{session}-{turn}-{at}");
            let role = message["role"].as_str().unwrap().to_owned();
            let time = format!("2026-11-15T09:{turn:02}:{:02}.000Z", at * 10);
            lines.push(
                serde_json::json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": session,
                "cwd": project, "version": "2.1.0", "timestamp": time, "message": message})
                .to_string(),
            );
            parent = uuid.into();
        }
    }
    lines.join("\n") + "\n"
}

impl ImportedSession {
    pub(crate) fn new(turns: usize) -> ImportedSession {
        ImportedSession::with_call(turns, None)
    }

    /// A session that ends with a call, its result and an answer.
    pub(crate) fn with_call(turns: usize, call: Option<(&str, serde_json::Value)>) -> ImportedSession {
        let home = TestHome::new();
        let project = home.path().join("project");
        std::fs::create_dir_all(project.join("src")).unwrap();
        for turn in 1..=turns {
            std::fs::write(
                project.join(format!("src/part{turn}.rs")),
                format!("// part {turn} as it is now\n"),
            )
            .unwrap();
        }
        let mut lines = foreign(&project, "8ba1c0de", turns);
        let messages = call.into_iter().flat_map(|(name, input)| {
            [
                serde_json::json!({"id": "msg_call", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
                    "stop_reason": "tool_use", "usage": {"input_tokens": 5, "output_tokens": 5},
                    "content": [{"type": "tool_use", "id": "toolu_call", "name": name, "input": input}]}),
                serde_json::json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_call",
                    "content": "approved"}]}),
                serde_json::json!({"id": "msg_last", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
                    "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 5},
                    "content": [{"type": "text", "text": "I begin."}]}),
            ]
        });
        for (at, message) in messages.enumerate() {
            let line = serde_json::json!({"type": message["role"], "uuid": format!("call-{at}"),
                "parentUuid": if at == 0 { format!("8ba1c0de-{turns}-3") } else { format!("call-{}", at - 1) },
                "sessionId": "8ba1c0de", "cwd": project, "version": "2.1.0",
                "timestamp": format!("2026-11-15T10:00:0{at}.000Z"), "message": message});
            lines.push_str(&format!("{line}\n"));
        }
        let file = home.file("session.jsonl", lines);
        assert_eq!(home.run(&["import", &file]).code, 0);
        let log = home.written().remove(0);
        ImportedSession { home, log, project }
    }

    /// Runs a command on the log, in the project.
    pub(crate) fn run(&self, command: &str, arguments: &[&str]) -> CommandOutput {
        self.home.run_in(&self.project, &[&[command, self.log.to_str().unwrap()], arguments].concat())
    }

    /// Runs a command that must go well.
    pub(crate) fn good(&self, command: &str, arguments: &[&str]) -> String {
        let CommandOutput { code, out, err } = self.run(command, arguments);
        assert_eq!(code, 0, "{command} {arguments:?}: {err}");
        out
    }

    /// Runs a command that must be refused in these words, with a way on.
    pub(crate) fn refused(&self, command: &str, arguments: &[&str], words: &[&str]) {
        let CommandOutput { code, out, err } = self.run(command, arguments);
        assert_eq!(code, 1, "{command} {arguments:?}\n{out}\n{err}");
        for words in words.iter().chain(&["hint:"]) {
            assert!(err.contains(words), "`{words}` is not in\n{err}");
        }
    }

    /// The body of the next request, which the provider must take.
    pub(crate) fn body(&self) -> String {
        let body = self.good("render", &[]);
        // A summary by the provider comes behind the header that every such call carries.
        let beta = ["check", "--beta", "compact-2026-09-04", "-"];
        let checked = self.home.run_with_input(&beta, body.as_bytes());
        assert_eq!(checked.code, 0, "{}", checked.out);
        body
    }

    /// The texts of the next request, one after the other.
    pub(crate) fn texts(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body()).unwrap();
        let mut texts = String::new();
        for block in body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| message["content"].as_array().unwrap())
        {
            // A summary of the provider's own is a block of its own kind.
            let text = block["text"].as_str().or(block["content"].as_str());
            texts.push_str(text.unwrap_or_default());
            texts.push('\n');
        }
        texts
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.log).unwrap()
    }

    /// The log, held open as a live session does.
    pub(crate) fn held(&self) -> Log {
        Log::open(&self.log, IdSource::seeded(77)).unwrap().log
    }

    /// A person says something more.
    pub(crate) fn say(&self, text: &str) {
        let mut content = String::new();
        pal_model::escape_into(&mut content, text);
        let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
        self.held().append(EntryDraft::user(MessageOrigin::Person, &content), at).unwrap();
    }

    /// A decision is made.
    pub(crate) fn decide(&self, kind: DecisionKind, reason: &str) {
        let at = "2026-11-16T09:00:00.000Z".parse::<Timestamp>().unwrap();
        let decision = Decision { kind, reason: reason.to_owned(), cost: Default::default() };
        self.held().append(EntryDraft::decision(&decision), at).unwrap();
    }
}
