//! Scripted server: JSON lines in and out, as the script says.

use std::io::{BufRead, Write};
use std::time::Duration;

use serde_json::{Value, json};

/// Script of the server.
pub(crate) const SCRIPT: &str = "PAL_TEST_MCP_SCRIPT";
/// File in which the server records what it receives.
pub(crate) const NOTES: &str = "PAL_TEST_MCP_NOTES";

/// Runs as the server and never returns, if this process was started as one.
#[test]
fn play() {
    let Ok(script) = std::env::var(SCRIPT) else { return };
    let mut server = ScriptedServer { script, is_changed: false, line: String::new() };
    server.begin();
    while server.read() {
        let message: Value = serde_json::from_str(&server.line).unwrap_or_default();
        server.answer(&message);
    }
    std::process::exit(0);
}

struct ScriptedServer {
    script: String,
    is_changed: bool,
    line: String,
}

impl ScriptedServer {
    fn is(&self, word: &str) -> bool {
        self.script.split(' ').any(|part| part == word)
    }

    fn begin(&mut self) {
        note(&format!("pid {}", std::process::id()));
        // The test harness has already started a line.
        say_raw("\n");
        if self.is("chatty") {
            // Unsolicited output on both streams.
            std::thread::spawn(|| {
                for _ in 0..50_000 {
                    eprintln!("{}", "noise ".repeat(20));
                }
                eprintln!("the last words");
            });
            say_raw(
                "this is no JSON\n{\"neither\": \n[1,2,3]\n\"text\"\n{\"jsonrpc\":\"2.0\"}\n\u{1}\u{2}\n",
            );
        }
        if self.is("child") {
            // It outlives its parent unless both are ended, which is tested.
            #[allow(clippy::zombie_processes)]
            let child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
            note(&format!("child {}", child.id()));
        }
        if self.is("dies-at-once") {
            eprintln!("cannot find the database");
            std::process::exit(3);
        }
    }

    fn read(&mut self) -> bool {
        self.line.clear();
        std::io::stdin().lock().read_line(&mut self.line).is_ok_and(|count| count > 0)
    }

    fn answer(&mut self, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        note(&format!("got {method}"));
        match method {
            "initialize" if self.is("mute") => {}
            "initialize" if self.is("newest") => {
                say(&json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}));
            }
            "initialize" => self.reply(message, json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": true}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "scripted", "version": "1"},
                "instructions": "Ask for the echo first.\u{1b}[31m",
            })),
            "server/discover" => self.reply(message, json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"},
            })),
            "tools/list" if self.is("no-list") => {}
            "tools/list" => {
                let tools = self.tools();
                self.reply(message, json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}));
            }
            "resources/list" => self.reply(message, json!({"resources": [
                {"uri": "note://one", "name": "one", "mimeType": "text/plain"}
            ]})),
            "resources/templates/list" => self.reply(message, json!({"resourceTemplates": [
                {"uriTemplate": "note://{name}", "name": "any"}
            ]})),
            "resources/read" => {
                let uri = message["params"]["uri"].clone();
                self.reply(message, json!({"contents": [{"uri": uri, "text": "what the note says"}]}));
            }
            "prompts/list" => self.reply(message, json!({"prompts": [
                {"name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": true}]}
            ]})),
            "prompts/get" => {
                let text = format!("Greet {}.", message["params"]["arguments"]["who"].as_str().unwrap_or("nobody"));
                let content = json!({"type": "text", "text": text});
                self.reply(message, json!({"messages": [{"role": "user", "content": content}]}));
            }
            "tools/call" => self.call(message),
            "ping" => self.reply(message, json!({})),
            _ => {}
        }
    }

    fn tools(&self) -> Value {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let tool =
            |name: &str, about: &str| json!({"name": name, "description": about, "inputSchema": schema});
        let long = "x".repeat(10_000);
        let mut tools = vec![
            tool("zebra", &long),
            tool("echo", "Says it\u{0} again\u{202e}"),
            tool("die", "Dies"),
            tool("hang", "Hangs"),
            tool("huge", "Says much"),
            tool("flood", "Says more than fits"),
            tool("change", "Changes the list"),
            tool("", "Has no name"),
        ];
        tools[1]["annotations"] = json!({"readOnlyHint": true});
        if self.is_changed {
            tools.retain(|tool| tool["name"] != "zebra");
            tools.push(tool("newcomer", "Is new"));
        }
        json!(tools)
    }

    fn call(&mut self, message: &Value) {
        let arguments = &message["params"]["arguments"];
        let text =
            |text: &str| json!({"content": [{"type": "text", "text": text}], "resultType": "complete"});
        match message["params"]["name"].as_str().unwrap_or_default() {
            "echo" => self.reply(message, text(arguments["text"].as_str().unwrap_or("nothing"))),
            "die" => {
                eprintln!("out of memory");
                std::process::exit(9);
            }
            "hang" => {}
            "huge" => self.reply(message, text(&"y".repeat(5_000_000))),
            "flood" => self.reply(message, text(&"z".repeat(20_000_000))),
            "change" => {
                self.is_changed = true;
                for _ in 0..1_000 {
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                self.reply(message, text("changed"));
            }
            other => say(
                &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": format!("no tool {other}")}}),
            ),
        }
    }

    #[allow(clippy::needless_pass_by_value)]
    fn reply(&self, message: &Value, result: Value) {
        if self.is("slow") {
            std::thread::sleep(Duration::from_millis(300));
        }
        say(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
    }
}

/// Prints a message. The test harness also prints to standard output, which the client has to tolerate.
fn say(message: &Value) {
    say_raw(&format!("{message}\n"));
}

fn say_raw(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn note(text: &str) {
    if let Ok(path) = std::env::var(NOTES) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{text}"));
    }
}
