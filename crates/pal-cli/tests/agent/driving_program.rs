//! A program that drives the agent through control messages, as Agent SDKs do: custom tools, permission and hook callbacks,
//! changes of mode and model, structured output. The messages have the shapes that the SDKs for Python and Node send.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::test_world::{PATIENCE, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, says};

/// Arguments that the SDKs give. There is no `--print`, and an empty system prompt stands for none.
const ARGUMENTS: [&str; 7] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--system-prompt", ""];

/// A driving program with one MCP server (`calc`, with the tool `add`), callbacks and a record of requests.
struct DrivingProgram {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Subtypes of the requests that pal made.
    requests: BTreeSet<String>,
}

impl DrivingProgram {
    fn begin(world: &TestWorld, arguments: &[&str], setup: Value) -> DrivingProgram {
        let mut command = world.command(&[&ARGUMENTS[..], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        let input = child.stdin.take();
        let mut program = DrivingProgram { child, input, lines, requests: BTreeSet::new() };
        let mut request = setup;
        request["subtype"] = json!("initialize");
        program.send(&json!({"type": "control_request", "request_id": "init", "request": request}));
        let reply = program.until(|line| line["type"] == "control_response");
        assert_eq!(
            (&reply["response"]["subtype"], &reply["response"]["request_id"]),
            (&json!("success"), &json!("init"))
        );
        program
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads up to the line that fits and answers requests on the way.
    fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line comes");
            if line["type"] == "control_request" {
                self.requests.insert(line["request"]["subtype"].as_str().unwrap().to_owned());
                let reply = answer(&line["request"]);
                let response =
                    json!({"subtype": "success", "request_id": line["request_id"], "response": reply});
                self.send(&json!({"type": "control_response", "response": response}));
            }
            if fits(&line) {
                return line;
            }
        }
    }

    fn request(&mut self, request: &Value) -> Value {
        self.send(&json!({"type": "control_request", "request_id": "req", "request": request}));
        self.until(|line| line["response"]["request_id"] == "req")["response"].clone()
    }

    fn prompt(&mut self, text: &str) -> Value {
        let message = json!({"role": "user", "content": text});
        self.send(
            &json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": "default"}),
        );
        self.until(|line| line["type"] == "result")
    }

    fn end(mut self) -> i32 {
        drop(self.input.take());
        finish(self.child).code
    }
}

/// Reply of the driving program to a request.
fn answer(request: &Value) -> Value {
    match request["subtype"].as_str().unwrap() {
        "mcp_message" => {
            let message = &request["message"];
            let result = match message["method"].as_str().unwrap() {
                "initialize" => json!({
                    "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "calc", "version": "1.0.0"},
                }),
                "tools/list" => json!({"tools": [{
                    "name": "add", "description": "Adds.",
                    "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
                }]}),
                "tools/call" => {
                    let sum = message["params"]["arguments"]["a"].as_f64().unwrap()
                        + message["params"]["arguments"]["b"].as_f64().unwrap();
                    json!({"content": [{"type": "text", "text": format!("sum {sum}")}]})
                }
                // Notifications have no reply of their own.
                _ => return json!({"mcp_response": {"jsonrpc": "2.0", "result": {}}}),
            };
            json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}})
        }
        "can_use_tool" => match request["input"]["command"].as_str().unwrap_or_default() {
            "touch asked.txt" => {
                json!({"behavior": "allow", "updatedInput": {"command": "touch changed.txt"}})
            }
            "touch secret.txt" => json!({"behavior": "allow", "updatedInput": {"command": "rm README.md"}}),
            _ => json!({"behavior": "deny", "message": "not today"}),
        },
        "hook_callback" => match request["input"]["tool_input"]["command"].as_str() {
            Some("git push") => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "guarded",
            }}),
            _ => json!({}),
        },
        other => panic!("{other}"),
    }
}

/// Runs the command of the newest prompt (`run: COMMAND`), or repeats the last result.
fn obedient() -> ProviderSetup {
    ProviderSetup::answers(|_, request| {
        let last = request.messages.last().unwrap().blocks.concat();
        // An interrupted call is in the same message.
        if last.contains("hello") {
            return says(&format!("{} heard it", request.model));
        }
        if last.contains("tool_result") {
            return says(&format!("result: {last}"));
        }
        match last.split("run: ").nth(1).and_then(|rest| rest.split('"').next()) {
            Some("add") => calls("", &[("mcp__calc__add", json!({"a": 2, "b": 40}))]),
            Some(command) => calls("", &[("Bash", json!({"command": command}))]),
            None => says("What?"),
        }
    })
}

#[test]
fn a_program_offers_tools_and_decides_about_calls() {
    let world = TestWorld::new(obedient());
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]});
    let setup = json!({"hooks": hooks, "sdkMcpServers": ["calc"], "agents": null});
    let arguments = [
        "--permission-prompt-tool",
        "stdio",
        "--allowedTools",
        "mcp__calc__add",
        "--disallowedTools",
        "Bash(rm:*)",
    ];
    let mut program = DrivingProgram::begin(&world, &arguments, setup);
    let result = program.prompt("run: add");
    assert!(result["result"].as_str().unwrap().contains("sum 42"), "{result}");
    let head = world.provider.heard().asked[0].head.concat();
    assert!(head.contains("mcp__calc__add"), "the first request lists the tool");
    let result = program.prompt("run: touch asked.txt");
    assert!(world.repository().join("changed.txt").exists(), "{result}");
    assert!(!world.repository().join("asked.txt").exists());
    let result = program.prompt("run: touch other.txt");
    assert!(result["result"].as_str().unwrap().contains("not today"), "{result}");
    assert_eq!(result["permission_denials"][0]["tool_input"], json!({"command": "touch other.txt"}));
    let result = program.prompt("run: touch secret.txt");
    assert!(world.repository().join("README.md").exists(), "deny rules hold for a changed input: {result}");
    let result = program.prompt("run: git push");
    assert!(result["result"].as_str().unwrap().contains("guarded"), "{result}");
    let requests: Vec<&str> = program.requests.iter().map(String::as_str).collect();
    assert_eq!(requests, ["can_use_tool", "hook_callback", "mcp_message"]);
    assert_eq!(program.end(), 0);
    // A person is behind a program that answers questions: the pauses before all prompts but the first are counted.
    let counts = std::fs::read_to_string(world.pal().join("learned-pauses.json")).unwrap();
    let counts: Value = serde_json::from_str(&counts).unwrap();
    let hours = counts["projects"][0]["hours"].as_object().unwrap();
    assert_eq!(hours.values().map(|row| row[0].as_f64().unwrap()).sum::<f64>(), 4.0, "{counts}");
}

#[test]
fn an_interrupt_withdraws_a_question_and_modes_and_models_change() {
    let world = TestWorld::new(obedient());
    let mut program =
        DrivingProgram::begin(&world, &["--permission-prompt-tool", "stdio"], json!({"hooks": null}));
    let message = json!({"role": "user", "content": "run: touch asked.txt"});
    program.send(&json!({"type": "user", "message": message}));
    // The question stays open until the interrupt.
    let asked = loop {
        let line = program.lines.recv_timeout(PATIENCE).unwrap();
        if line["request"]["subtype"] == "can_use_tool" {
            break line;
        }
    };
    program
        .send(&json!({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}}));
    let withdrawn = program.until(|line| line["type"] == "control_cancel_request");
    assert_eq!(withdrawn["request_id"], asked["request_id"]);
    program.until(|line| line["response"]["request_id"] == "stop");
    let result = program.until(|line| line["type"] == "result");
    assert_eq!(
        (&result["subtype"], &result["errors"]),
        (&json!("error_interrupted"), &json!(["interrupted"]))
    );

    let set = program.request(&json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
    assert_eq!(set["response"]["mode"], "acceptEdits");
    let refused = program.request(&json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}));
    assert_eq!(refused["subtype"], "error");
    assert_eq!(program.request(&json!({"subtype": "get_usage"}))["subtype"], "error");
    let set = program.request(&json!({"subtype": "set_model", "model": "claude-haiku-4-5"}));
    assert_eq!(set["subtype"], "success");
    let again = program.until(|line| line["subtype"] == "init");
    assert_eq!((&again["model"], &again["is_resumed"]), (&json!("claude-haiku-4-5"), &json!(true)));
    let result = program.prompt("hello");
    assert_eq!(result["result"], "claude-haiku-4-5 heard it");
    assert_eq!(result["session_id"], again["session_id"]);
    assert_eq!(program.end(), 0);
    let session = again["session_id"].as_str().unwrap();
    let mut resumed =
        DrivingProgram::begin(&world, &[&format!("--resume={session}")], json!({"systemPrompt": [""]}));
    assert!(resumed.prompt("hello again")["result"].as_str().unwrap().contains("heard it"));
    assert_eq!(resumed.end(), 0);
}

#[test]
fn output_that_fits_a_schema_ends_a_prompt() {
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => says("The answer is three."),
        1 => calls("", &[("StructuredOutput", json!({"n": "three"}))]),
        2 => calls("", &[("StructuredOutput", json!({"n": 3}))]),
        _ => says("It is in the output."),
    }));
    let said = world.run(&["--output-format", "json", "--json-schema", schema, "count"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let result: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(result["structured_output"], json!({"n": 3}));
    let heard = world.provider.heard();
    assert!(heard.asked[1].text().contains("Call StructuredOutput now"), "a model that stops is reminded");
    assert!(heard.asked[2].text().contains("does not fit the schema"), "and told what is wrong");

    let silent = TestWorld::new(ProviderSetup::answers(|_, _| says("No.")));
    let said = silent.run(&["--output-format", "json", "--json-schema", schema, "count"]);
    let result: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &result["subtype"]), (1, &json!("error_max_structured_output_retries")));
    assert_eq!(silent.provider.heard().asked.len(), 6, "five reminders");
}

#[test]
fn a_denied_call_is_an_exit_code_of_its_own_if_strict() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 | 2 => calls("", &[("Bash", json!({"command": "touch made.txt"}))]),
        _ => says("I could not."),
    }));
    assert_eq!(world.run(&["make it"]).code, 0);
    assert_eq!(world.run(&["--strict", "make it"]).code, 4);
}

/// An MCP server as a shell script, whose tool decides about calls: only about `fine.txt` it says yes.
const JUDGE: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
    case "$line" in
    *'"method":"initialize"'*) reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"judge","version":"1"}}' ;;
    *'"method":"tools/list"'*) reply '{"tools":[{"name":"approve","inputSchema":{"type":"object"}}]}' ;;
    *'"tool_name":"Bash"'*fine.txt* | *fine.txt*'"tool_name":"Bash"'*)
        reply '{"content":[{"type":"text","text":"{\"behavior\":\"allow\"}"}]}' ;;
    *'"name":"approve"'*)
        reply '{"content":[{"type":"text","text":"{\"behavior\":\"deny\",\"message\":\"not that one\"}"}]}' ;;
    esac
done
"#;

#[test]
fn a_tool_of_a_server_answers_permission_questions() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("", &[("Bash", json!({"command": "touch fine.txt"}))]),
        2 => calls("", &[("Bash", json!({"command": "touch other.txt"}))]),
        4 => calls("", &[("Bash", json!({"command": "touch third.txt"}))]),
        _ => says("Done."),
    }));
    world.file("judge.sh", JUDGE);
    let servers = json!({"mcpServers": {"judge": {"command": "sh", "args": ["judge.sh"]}}}).to_string();
    let arguments = ["--mcp-config", &servers, "--permission-prompt-tool", "mcp__judge__approve", "go"];
    assert_eq!(world.run(&arguments).code, 0);
    assert!(world.repository().join("fine.txt").exists());
    assert_eq!(world.run(&arguments).code, 0);
    assert!(!world.repository().join("other.txt").exists());
    let told = world.provider.heard().asked[3].text();
    assert!(told.contains("not that one"), "{told}");
    // Without the server no call is approved.
    let missing = ["--permission-prompt-tool", "mcp__judge__approve", "--strict", "go"];
    assert_eq!(world.run(&missing).code, 4);
    assert!(!world.repository().join("third.txt").exists());
}

#[test]
fn a_program_defines_agents() {
    let world = TestWorld::new(ProviderSetup::answers(|_, ask| {
        let text: String = ask.messages.iter().map(|message| message.blocks.concat()).collect();
        let is_critic = ask.system.concat().contains("You criticize.");
        match (is_critic, text.contains("sharp words")) {
            (true, _) => says("sharp words"),
            (false, false) => calls(
                "",
                &[(
                    "Agent",
                    json!({"description": "criticize", "prompt": "Look.", "subagent_type": "critic"}),
                )],
            ),
            (false, true) => says("The critic has spoken."),
        }
    }));
    let critic = json!({
        "description": "Criticizes.", "prompt": "You criticize.", "tools": ["Read"], "futureField": 1,
    });
    let mut program = DrivingProgram::begin(&world, &[], json!({"agents": {"critic": critic}}));
    let result = program.prompt("go");
    assert_eq!(result["result"], "The critic has spoken.");
    assert_eq!(program.end(), 0);
}
