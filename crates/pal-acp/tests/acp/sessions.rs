//! Sessions: opened, listed, loaded, closed, several at once; modes and models; invalid parameters.

use std::sync::Arc;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, CompactionStatus, ContentBlock, ListSessionsRequest, LoadSessionRequest,
    NewSessionRequest, PromptRequest, ResumeSessionRequest, SessionId, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason, ToolCallStatus, ToolKind,
};
use pal_agent_testkit::{AgentWorld, ProviderSetup, calls, is_summary, log_lines, says};
use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::json;

use crate::test_editor::{TestEditor, UserConsent, edit};

const BYPASS: &str = "permissions.mode = \"bypass\"\n";

fn world(setup: ProviderSetup) -> Arc<AgentWorld> {
    Arc::new(AgentWorld::new(setup))
}

#[test]
fn initialize_names_the_program_and_its_capabilities() {
    let world = world(ProviderSetup::answers(|_, _| says("Hello.")));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let capabilities = &editor.initialized.agent_capabilities;
        assert!(capabilities.load_session && capabilities.prompt_capabilities.image);
        assert!(capabilities.session_capabilities.list.is_some());
        let program = editor.initialized.agent_info.clone().unwrap();
        assert_eq!((program.name.as_str(), program.version.as_str()), ("pal", "1.2.3"));
    });
    assert!(world.provider.heard().asked.is_empty());
}

#[test]
fn a_new_session_has_modes_and_models() {
    let world = world(ProviderSetup::answers(|_, _| says("Hello.")));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let request = NewSessionRequest::new(world.project());
        let opened = editor.connection.send_request(request).block_task().await.unwrap();
        let modes = opened.modes.unwrap();
        assert_eq!((&*modes.current_mode_id.0, modes.available_modes.len()), ("default", 4));
        let options = serde_json::to_string(&opened.config_options).unwrap();
        assert!(options.contains("claude-opus-5-5") && options.contains("\"claude-opus-5\""), "{options}");
        assert_ne!(opened.session_id, editor.open().await);
    });
}

#[test]
fn a_loaded_session_replays_its_messages_and_calls() {
    let world = world(ProviderSetup::answers(|at, _| match at {
        0 => calls("I look.", &[("Read", json!({"file_path": "README.md"}))]),
        1 => says("It is a scratch."),
        _ => says("Once more."),
    }));
    let mut id = None;
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        editor.prompt(&session, "what is this?").await;
        id = Some(session);
    });
    let session = id.unwrap();
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let request = ListSessionsRequest::new().cwd(world.project());
        let listed = editor.connection.send_request(request).block_task().await.unwrap().sessions;
        assert_eq!(listed.iter().map(|session| &session.session_id).collect::<Vec<_>>(), [&session]);
        editor.load(&session).await;
        let said = editor.updates(&session, |update| match update {
            SessionUpdate::UserMessageChunk(chunk) => Some(chunk.content.clone()),
            _ => None,
        });
        assert_eq!(said, [ContentBlock::from("what is this?")]);
        assert_eq!(editor.text(&session), "I look.It is a scratch.");
        let calls = editor.calls(&session);
        assert_eq!((calls[0].kind, calls[0].status), (ToolKind::Read, ToolCallStatus::Completed));
        assert!(format!("{:?}", calls[0].content).contains("Scratch"));
        editor.prompt(&session, "and now?").await;
        assert!(editor.text(&session).ends_with("Once more."));
    });
    // A resumed session replays nothing.
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let request = ResumeSessionRequest::new(session.clone(), world.project());
        editor.connection.send_request(request).block_task().await.unwrap();
        assert_eq!(editor.text(&session), "");
        assert_eq!(editor.prompt(&session, "go on").await, StopReason::EndTurn);
    });
    let heard = world.provider.heard();
    let last = heard.asked.last().unwrap();
    assert_eq!(last.departs_from(&heard.asked[0]), None);
}

#[test]
fn a_compacted_session_replays_everything_before_its_compaction() {
    let mut at = 0;
    let world = world(ProviderSetup::answers(move |_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        at += 1;
        says(&format!("Answer {at}.{}", " It is a long one.".repeat(100)))
    }));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        for prompt in ["one", "two", "/compact", "three"] {
            assert_eq!(editor.prompt(&session, prompt).await, StopReason::EndTurn);
        }
        editor.forget();
        editor.load(&session).await;
        let text = editor.text(&session);
        assert!(text.contains("Answer 1.") && text.contains("Answer 3."), "{text}");
        let states = editor.updates(&session, |update| match update {
            SessionUpdate::CompactionUpdate(update) => Some(update.status.clone()),
            _ => None,
        });
        assert_eq!(states, [CompactionStatus::Completed]);
    });
}

#[test]
fn two_sessions_run_at_once_and_a_prompt_meanwhile_steers() {
    let world = world(ProviderSetup::answers(|_, ask| {
        let text: String = ask.messages.iter().map(|message| message.blocks.concat()).collect();
        match (text.contains("wait for me"), text.contains("waited")) {
            (true, false) => calls("I wait.", &[("Bash", json!({"command": "cat pipe"}))]),
            (true, true) => says("I waited."),
            _ => says("At once."),
        }
    }));
    let pipe = world.project().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    edit(&world, BYPASS, UserConsent::Silence, async |editor: TestEditor| {
        let (slow, fast) = (editor.open().await, editor.open().await);
        let waiting = editor.start(&slow, "wait for me");
        editor.until(|update| format!("{update:?}").contains("InProgress")).await;
        assert_eq!(editor.prompt(&fast, "now").await, StopReason::EndTurn);
        assert_eq!(editor.text(&fast), "At once.");
        let steering = editor.start(&slow, "and be kind");
        // The answer to a later request shows that the server has read the prompt before it.
        let request = SetSessionModeRequest::new(fast.clone(), "bypass");
        editor.connection.send_request(request).block_task().await.unwrap();
        tokio::task::spawn_blocking(move || std::fs::write(pipe, "waited\n")).await.unwrap().unwrap();
        assert_eq!(waiting.await.unwrap(), StopReason::EndTurn);
        assert_eq!(steering.await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.text(&slow), "I wait.I waited.");
    });
    let heard = world.provider.heard();
    assert_eq!(heard.asked.len(), 3, "the message came with the results");
    assert!(heard.asked[2].text().contains("and be kind"));
}

#[test]
fn modes_and_models_can_be_set() {
    let world = world(ProviderSetup::answers(|at, _| match at % 2 {
        0 => calls("I write.", &[("Write", json!({"file_path": format!("{at}.txt"), "content": "x"}))]),
        _ => says("Over."),
    }));
    let mut id = None;
    edit(&world, "", UserConsent::Reject, async |editor: TestEditor| {
        let session = editor.open().await;
        let set_mode = async |mode: &'static str| {
            let request = SetSessionModeRequest::new(session.clone(), mode);
            editor.connection.send_request(request).block_task().await
        };
        editor.prompt(&session, "write").await;
        assert_eq!((editor.questions().len(), world.has_file("0.txt")), (1, false));
        set_mode("accept-edits").await.unwrap();
        editor.prompt(&session, "write").await;
        assert_eq!((editor.questions().len(), world.text("2.txt").as_str()), (1, "x"));
        let modes = editor.updates(&session, |update| match update {
            SessionUpdate::CurrentModeUpdate(update) => Some(update.current_mode_id.to_string()),
            _ => None,
        });
        assert_eq!(modes, ["accept-edits"]);
        let error = set_mode("boss").await.unwrap_err();
        assert!(error.code == Error::invalid_params().code && error.message.contains("accept-edits"));
        set_mode("bypass").await.unwrap();
        set_mode("default").await.unwrap();
        editor.prompt(&session, "write").await;
        assert_eq!(editor.questions().len(), 2);
        let request = SetSessionConfigOptionRequest::new(session.clone(), "model", "claude-opus-5");
        editor.connection.send_request(request).block_task().await.unwrap();
        editor.prompt(&session, "write").await;
        id = Some(session.to_string());
    });
    let sessions = std::fs::read_dir(world.pal_home().join("projects")).unwrap().flatten().next().unwrap();
    let log = sessions.path().join("sessions").join(id.unwrap()).join("log.jsonl");
    let requests: Vec<_> = log_lines(&log).into_iter().filter(|line| line["kind"] == "request").collect();
    assert_eq!(requests[0]["model"], "claude-opus-5-5");
    assert_eq!(requests.last().unwrap()["model"], "claude-opus-5");
}

#[test]
fn invalid_parameters_are_refused_with_the_next_step() {
    let world = world(ProviderSetup::answers(|_, _| says("Hello.")));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let invalid = Error::invalid_params().code;
        let connection = &editor.connection;
        let error = connection.send_request(NewSessionRequest::new("somewhere/else")).block_task().await;
        let error = error.unwrap_err();
        assert!(error.code == invalid && error.message.contains("absolute"), "{error:?}");
        let request = NewSessionRequest::new(world.project().join("README.md"));
        let error = connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.code == invalid && error.message.contains("not a directory"), "{error:?}");
        let request = LoadSessionRequest::new("0199", world.project());
        let error = connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.message.contains("What to do: look at the list"), "{error:?}");
        let request = PromptRequest::new("0199", vec![ContentBlock::from("hello?")]);
        let error = connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.code == invalid && error.message.contains("session/load"), "{error:?}");
        let session = editor.open().await;
        let request = SetSessionConfigOptionRequest::new(session.clone(), "colour", "red");
        let error = connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.code == invalid && error.message.contains("colour"), "{error:?}");
        connection.send_request(CloseSessionRequest::new(session.clone())).block_task().await.unwrap();
        let error = editor.start(&session, "hello?").await.unwrap_err();
        assert!(error.message.contains("session/load"), "{error:?}");
        // The connection and other sessions go on.
        let session = editor.open().await;
        assert_eq!(editor.prompt(&session, "hello").await, StopReason::EndTurn);
    });
}

#[test]
fn a_client_that_leaves_ends_a_running_prompt() {
    let world =
        world(ProviderSetup::answers(|_, _| calls("I wait.", &[("Bash", json!({"command": "sleep 50"}))])));
    let begun = std::time::Instant::now();
    edit(&world, BYPASS, UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        drop(editor.start(&session, "wait for it"));
        editor.until(|update| format!("{update:?}").contains("InProgress")).await;
    });
    assert!(begun.elapsed().as_secs() < 40, "the command is not waited for: {:?}", begun.elapsed());
}

/// Id of a session with about 110,000 tokens.
fn large_session(world: &AgentWorld) -> SessionId {
    let mut agent = world.start("model = \"claude-opus-4-6\"\npolicy = \"cost-aware\"\n");
    for number in 0..3 {
        agent.prompt(&format!("Part {number}. {}", "some words of a story ".repeat(8_500)));
    }
    let id = SessionId::new(agent.agent.id());
    agent.finish();
    id
}

fn talker() -> ProviderSetup {
    ProviderSetup::answers(|at, ask| match is_summary(ask) {
        true => ExtractiveModel.answer(ask),
        false => says(&format!("Answer {at}.")),
    })
}

#[test]
fn an_idle_session_compacts_before_its_cache_expires() {
    let world = world(talker());
    let id = large_session(&world);
    let settings = "model = \"claude-opus-4-6\"\npolicy = \"cost-aware\"\nclock_offset_s = 269\n";
    edit(&world, settings, UserConsent::Silence, async |editor: TestEditor| {
        editor.load(&id).await;
        editor.until(|update| matches!(update, SessionUpdate::CompactionUpdate(_))).await;
        let states = editor.updates(&id, |update| match update {
            SessionUpdate::CompactionUpdate(update) => Some(update.status.clone()),
            _ => None,
        });
        assert_eq!(states, [CompactionStatus::Completed]);
        assert_eq!(editor.prompt(&id, "go on").await, StopReason::EndTurn);
    });
    let heard = world.provider.heard();
    assert!(heard.asked.iter().any(|asked| asked.is_summary));
    assert!(heard.asked.last().unwrap().text().len() < 200_000, "the summary is sent instead");
}

#[test]
fn a_prompt_into_an_expired_cache_is_priced() {
    let world = world(talker());
    let id = large_session(&world);
    let settings = "model = \"claude-opus-4-6\"\npolicy = \"cost-aware\"\nclock_offset_s = 4000\n";
    edit(&world, settings, UserConsent::Silence, async |editor: TestEditor| {
        editor.load(&id).await;
        assert_eq!(editor.prompt(&id, "go on").await, StopReason::EndTurn);
        let notices = editor.updates(&id, |update| match update {
            SessionUpdate::Notice(notice) => {
                serde_json::to_value(notice).ok().map(|notice| notice.to_string())
            }
            _ => None,
        });
        let notices = notices.join("\n");
        assert!(notices.contains("cache expired 61 min ago: this turn writes "), "{notices}");
    });
}
