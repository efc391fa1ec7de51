//! A test client with JSON bodies and a model with queued answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pal_model::{SharedText, Timestamp, Usage};
use pal_sim::{
    HttpReply, HttpRequest, ModelExchange, ModelOutput, ModelPrompt, OutputBlock, SimSettings,
    SimulatedModel, SimulatedProvider, StopOverride,
};
use serde_json::{Value, json};

/// Returns queued answers, then `Fine.`; records the prompts it sees.
#[derive(Clone, Default)]
pub(crate) struct QueuedModel {
    pub(crate) answers: Arc<Mutex<VecDeque<ModelOutput>>>,
    pub(crate) asked: Arc<Mutex<Vec<SeenPrompt>>>,
}

/// A prompt as the model saw it.
#[derive(Clone, Debug)]
pub(crate) struct SeenPrompt {
    pub(crate) messages: Vec<(String, Vec<String>)>,
    pub(crate) compaction: Option<String>,
}

impl SimulatedModel for QueuedModel {
    fn answer(&mut self, ask: &ModelPrompt<'_>) -> ModelOutput {
        let messages = ask.messages.iter().map(|message| {
            (message.role.name().to_owned(), message.blocks.iter().map(|block| block.to_string()).collect())
        });
        self.asked.lock().unwrap().push(SeenPrompt {
            messages: messages.collect(),
            compaction: ask.compaction.as_ref().map(|text| text.to_string()),
        });
        let next = self.answers.lock().unwrap().pop_front();
        next.unwrap_or(ModelOutput { blocks: vec![OutputBlock::Text("Fine.".into())], stop: None })
    }
}

pub(crate) struct TestClient {
    pub(crate) simulator: SimulatedProvider,
    pub(crate) model: QueuedModel,
    pub(crate) now: i64,
    pub(crate) key: String,
    pub(crate) betas: String,
    pub(crate) version: &'static str,
}

impl TestClient {
    pub(crate) fn new() -> TestClient {
        TestClient::with(SimSettings::plain())
    }

    pub(crate) fn with(settings: SimSettings) -> TestClient {
        let model = QueuedModel::default();
        TestClient {
            simulator: SimulatedProvider::new(settings, Box::new(model.clone())),
            model,
            now: 1_800_000_000_000,
            key: "key-one".into(),
            betas: String::new(),
            version: "2026-10-21",
        }
    }

    pub(crate) fn say(&self, blocks: Vec<OutputBlock>) {
        self.model.answers.lock().unwrap().push_back(ModelOutput { blocks, stop: None });
    }

    pub(crate) fn stop(&self, blocks: Vec<OutputBlock>, stop: StopOverride) {
        self.model.answers.lock().unwrap().push_back(ModelOutput { blocks, stop: Some(stop) });
    }

    pub(crate) fn heard(&self) -> SeenPrompt {
        self.model.asked.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += seconds * 1_000;
    }

    pub(crate) fn request(&mut self, method: &str, path: &str, body: &[u8]) -> HttpReply {
        let mut headers = vec![
            ("anthropic-version".to_owned(), self.version.to_owned()),
            ("x-api-key".to_owned(), self.key.clone()),
        ];
        if !self.betas.is_empty() {
            headers.push(("anthropic-beta".to_owned(), self.betas.clone()));
        }
        let request = HttpRequest { method, path, headers: &headers, body };
        self.simulator.handle(Timestamp::from_milliseconds(self.now), &request)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> (u16, Value) {
        let reply = self.request("POST", path, body.to_string().as_bytes());
        (reply.status, serde_json::from_slice(&reply.body()).unwrap())
    }

    /// Answer to a request that must succeed.
    pub(crate) fn ask(&mut self, body: &Value) -> Value {
        let (status, answer) = self.post("/v1/messages", body);
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Error of a request that must be refused.
    pub(crate) fn refused(&mut self, body: &Value) -> Value {
        let (status, answer) = self.post("/v1/messages", body);
        assert_eq!(status, 400, "{answer}");
        answer["error"].clone()
    }

    pub(crate) fn usage(&mut self, body: &Value) -> UsageCounts {
        let before = self.count(body);
        self.ask(body);
        let exchange: &ModelExchange = self.simulator.ledger().last().unwrap();
        let counts = UsageCounts::of(&exchange.usage);
        assert_eq!(counts.read + counts.written_5m + counts.written_1h + counts.uncached, before);
        counts
    }

    pub(crate) fn count(&mut self, body: &Value) -> u64 {
        let mut body = body.clone();
        let fields = body.as_object_mut().unwrap();
        fields.shift_remove("max_tokens");
        fields.shift_remove("stream");
        let (status, answer) = self.post("/v1/messages/count_tokens", &body);
        assert_eq!(status, 200, "{answer}");
        answer["input_tokens"].as_u64().unwrap()
    }
}

/// Prompt counts of a usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UsageCounts {
    pub(crate) read: u64,
    pub(crate) written_5m: u64,
    pub(crate) written_1h: u64,
    pub(crate) uncached: u64,
}

impl UsageCounts {
    pub(crate) fn of(usage: &Usage) -> UsageCounts {
        let created = usage.cache_creation.unwrap();
        UsageCounts {
            read: usage.cache_read_input_tokens,
            written_5m: created.ephemeral_5m_input_tokens,
            written_1h: created.ephemeral_1h_input_tokens,
            uncached: usage.input_tokens,
        }
    }

    pub(crate) fn written(self) -> u64 {
        self.written_5m + self.written_1h
    }
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn marked(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral"});
    block
}

pub(crate) fn marked_1h(mut block: Value) -> Value {
    block["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    block
}

/// Text of about `hundreds` × 100 tokens.
pub(crate) fn long(seed: &str, hundreds: usize) -> String {
    (0..hundreds * 12).map(|line| format!("{seed} line {line} of something\n")).collect()
}

pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}"), "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}})
}

pub(crate) fn call(id: &str, name: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": {"path": "a", "deep": {"x": 1}}})
}

pub(crate) fn result(id: &str, content: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

pub(crate) fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

pub(crate) fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

/// A request with tools, a system prompt and messages.
pub(crate) fn request(messages: Value) -> Value {
    json!({
        "model": "claude-opus-5-5",
        "max_tokens": 1000,
        "system": [text(&long("system", 8))],
        "tools": [tool("Read"), tool("Bash")],
        "messages": messages,
    })
}

pub(crate) fn call_said(id: &str, name: &str) -> OutputBlock {
    let input = SharedText::from(r#"{"path":"a","deep":{"x":1}}"#);
    OutputBlock::ToolUse { id: Some(id.into()), name: name.into(), input }
}
