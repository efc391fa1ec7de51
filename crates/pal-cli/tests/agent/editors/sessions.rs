//! Sessions of an editor: several at once, listed, loaded, left; what can be chosen for them; and what is no message.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, ContentBlock, EnvVariable, ListSessionsRequest, LoadSessionRequest, McpServer,
    McpServerStdio, NewSessionRequest, ResumeSessionRequest, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionModeRequest, StopReason, ToolCallStatus, ToolKind,
};
use serde_json::{Value, json};

use super::bash;
use super::client::{EditorConsent, TestEditor, edit, edit_as, edit_with};
use crate::test_world::{PATIENCE, TestWorld, finish};
use pal_agent_testkit::{ProviderSetup, calls, cut_off, says};

#[test]
fn a_disconnect_ends_all_processes_and_the_session_can_be_resumed() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I wait.", &[bash("sleep 30; touch late.txt")]),
        _ => says("Here I am."),
    }));
    let mut id = String::new();
    edit_as(&world, EditorConsent::Once, async |editor: TestEditor| {
        let session = editor.session().await;
        id = session.to_string();
        drop(editor.start(&session, "wait for it"));
        editor.until(|update| format!("{update:?}").contains("InProgress")).await;
    });
    assert!(!world.repository().join("late.txt").exists());
    let said = world.run(&["--resume", &id, "are you there?"]);
    assert_eq!((said.code, said.out.trim()), (0, "Here I am."), "{}", said.err);
}

#[test]
fn a_session_is_listed_and_loaded_with_its_messages() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I look.", &[("Read", json!({"file_path": "README.md"}))]),
        1 => says("It is a scratch."),
        _ => says("Once more."),
    }));
    let mut id = None;
    edit(&world, async |editor: TestEditor| {
        let session = editor.session().await;
        editor.prompt(&session, "what is this?").await.unwrap();
        id = Some(session);
    });
    let session = id.unwrap();
    edit(&world, async |editor: TestEditor| {
        let request = ListSessionsRequest::new().cwd(world.repository());
        let listed = editor.connection.send_request(request).block_task().await.unwrap().sessions;
        assert_eq!(listed.len(), 1);
        assert_eq!((&listed[0].session_id, listed[0].title.as_deref()), (&session, Some("what is this?")));
        editor.load(&session).await;
        let said = editor.all(&session, |update| match update {
            SessionUpdate::UserMessageChunk(chunk) => Some(chunk.content.clone()),
            _ => None,
        });
        assert_eq!(said, [ContentBlock::from("what is this?")]);
        assert_eq!(editor.words(&session), "I look.It is a scratch.");
        let calls = editor.calls(&session);
        assert_eq!((calls[0].kind, calls[0].status), (ToolKind::Read, ToolCallStatus::Completed));
        assert!(format!("{:?}", calls[0].content).contains("Scratch"));
        editor.prompt(&session, "and now?").await.unwrap();
        assert!(editor.words(&session).ends_with("Once more."));
    });
    // Resuming tells nothing again; and what is not there is refused with what to do.
    edit(&world, async |editor: TestEditor| {
        let request = ResumeSessionRequest::new(session.clone(), world.repository());
        editor.connection.send_request(request).block_task().await.unwrap();
        assert_eq!(editor.words(&session), "");
        assert_eq!(editor.prompt(&session, "go on").await.unwrap(), StopReason::EndTurn);
        let request = LoadSessionRequest::new("0199", world.repository());
        let error = editor.connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.message.contains("pal sessions"), "{error:?}");
        let request = CloseSessionRequest::new(session.clone());
        editor.connection.send_request(request).block_task().await.unwrap();
        let error = editor.prompt(&session, "hello?").await.unwrap_err();
        assert!(error.message.contains("session/load"), "{error:?}");
        editor.load(&session).await;
    });
    let heard = world.provider.heard();
    let last = heard.asked.last().unwrap();
    assert!(last.text().contains("what is this?") && last.departs_from(&heard.asked[0]).is_none());
}

#[test]
fn modes_and_models_can_be_chosen() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at % 2 {
        0 => calls("I write.", &[("Write", json!({"file_path": format!("{at}.txt"), "content": "x"}))]),
        _ => says("Over."),
    }));
    edit_as(&world, EditorConsent::Reject, async |editor: TestEditor| {
        let request = NewSessionRequest::new(world.repository());
        let begun = editor.connection.send_request(request).block_task().await.unwrap();
        let modes = begun.modes.unwrap();
        assert_eq!((&*modes.current_mode_id.0, modes.available_modes.len()), ("default", 4));
        let session = begun.session_id;
        let mode = async |mode: &'static str| {
            let request = SetSessionModeRequest::new(session.clone(), mode);
            editor.connection.send_request(request).block_task().await
        };
        editor.prompt(&session, "write").await.unwrap();
        assert_eq!(editor.questions().len(), 1);
        mode("accept-edits").await.unwrap();
        editor.prompt(&session, "write").await.unwrap();
        assert_eq!((editor.questions().len(), world.text("2.txt").as_str()), (1, "x"));
        let current = editor.last(&session, |update| match update {
            SessionUpdate::CurrentModeUpdate(update) => Some(update.current_mode_id.to_string()),
            _ => None,
        });
        assert_eq!(current, "accept-edits");
        assert!(mode("boss").await.unwrap_err().message.contains("accept-edits"));
        mode("bypass").await.unwrap();
        mode("default").await.unwrap();
        editor.prompt(&session, "write").await.unwrap();
        assert_eq!(editor.questions().len(), 2);
        let request = SetSessionConfigOptionRequest::new(session.clone(), "model", "claude-opus-5");
        editor.connection.send_request(request).block_task().await.unwrap();
        editor.prompt(&session, "write").await.unwrap();
    });
    assert_eq!(world.text("0.txt"), "");
    let models: Vec<Value> = world.log().into_iter().filter(|entry| entry["kind"] == "request").collect();
    assert_eq!(models.last().unwrap()["model"], "claude-opus-5");
}

#[test]
fn mcp_servers_of_the_editor_are_started() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("Hello.")));
    world.file("server.sh", "echo \"$WORD\" > began.txt; cat > /dev/null");
    let server = McpServerStdio::new("mine", "sh").args(vec![String::from("server.sh")]);
    let word = EnvVariable::new("WORD", "given");
    edit(&world, async |editor: TestEditor| {
        let server = McpServer::Stdio(server.env(vec![word]));
        let request = NewSessionRequest::new(world.repository()).mcp_servers(vec![server]);
        let session = editor.connection.send_request(request).block_task().await.unwrap().session_id;
        let begun = std::time::Instant::now();
        while world.text("began.txt").is_empty() && begun.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(editor.prompt(&session, "hello").await.unwrap(), StopReason::EndTurn);
    });
    assert_eq!(world.text("began.txt"), "given\n");
}

#[test]
fn stop_reasons_are_named_and_failures_have_hints() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("More.", &[("Glob", json!({"pattern": "*"}))]),
        _ => cut_off(says("Too long.")),
    }));
    world.file(".pal/settings.toml", "max_turns = 1\n");
    std::fs::write(world.pal().join("settings.toml"), "max_turns = 1\n").unwrap();
    edit(&world, async |editor: TestEditor| {
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::MaxTurnRequests);
        assert!(editor.words(&session).contains("the limit of 1 turns is reached"));
        let request = NewSessionRequest::new("somewhere/else");
        let error = editor.connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.message.contains("absolute"), "{error:?}");
    });
    let mut command = world.command(&["acp"]);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    edit_with(command, EditorConsent::Once, async |editor: TestEditor| {
        let request = NewSessionRequest::new(world.repository());
        let error = editor.connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.message.contains("ANTHROPIC_API_KEY"), "{error:?}");
    });
}

/// The program without the protocol's crate, spoken to line by line.
struct RawClient {
    child: Child,
    input: ChildStdin,
    out: BufReader<ChildStdout>,
}

impl RawClient {
    fn start(world: &TestWorld) -> RawClient {
        let mut child = world.command(&["acp"]).stdin(Stdio::piped()).spawn().unwrap();
        let (input, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        RawClient { child, input, out: BufReader::new(out) }
    }

    /// Sends a request; its answer.
    fn ask(&mut self, id: u64, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "it has ended");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line}"));
            assert_eq!(message["jsonrpc"], "2.0");
            if message["id"] == id {
                return message;
            }
        }
    }
}

#[test]
fn malformed_messages_get_errors_and_end_nothing() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("Hello.")));
    let mut raw = RawClient::start(&world);
    let garbage = b"what?\n\xff\xfe\xfd\n[1]\n{\"jsonrpc\":\"2.0\"}\n\n";
    raw.input.write_all(garbage).unwrap();
    assert_eq!(raw.ask(7, "initialize", &json!({"protocolVersion": 1}))["result"]["protocolVersion"], 1);
    raw.input.write_all(garbage).unwrap();
    assert_eq!(raw.ask(8, "no/such", &json!({}))["error"]["code"], -32601);
    assert_eq!(raw.ask(9, "session/prompt", &json!({"sessionId": 1}))["error"]["code"], -32602);
    let RawClient { child, input, mut out } = raw;
    drop(input);
    assert_eq!(finish(child).code, 0);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_signal_ends_the_server_like_a_closed_input() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("Hello.")));
    let mut raw = RawClient::start(&world);
    raw.ask(1, "initialize", &json!({"protocolVersion": 1}));
    let params = json!({"cwd": world.repository(), "mcpServers": []});
    let session = raw.ask(2, "session/new", &params)["result"]["sessionId"].clone();
    assert!(session.is_string());
    let pid = raw.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let RawClient { child, input, .. } = raw;
    assert_eq!(finish(child).code, 0);
    drop(input);
}
