//! `pal acp` as an editor uses it: the real program, driven by the client's side of the protocol's own crate.

mod client;

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CloseSessionRequest, CompactionStatus, ContentBlock, ListSessionsRequest, LoadSessionRequest, McpServer,
    McpServerStdio, NewSessionRequest, PlanEntryStatus, ResumeSessionRequest, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest, StopReason, ToolCallContent, ToolCallStatus,
    ToolKind,
};
use pal_sim::{Extractive, Model, Pace};
use serde_json::{Value, json};

use crate::provider::{Made, calls, cut_off, is_summary, says};
use crate::world::{PATIENCE, World, finish, reader};
use client::{Consent, Editor, edit, edit_as};

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

#[test]
fn a_prompt_is_answered_in_pieces_and_its_use_is_told() {
    let mut made = Made::answers(|_, _| says("Two and two are four."));
    made.pace = Pace::none();
    let world = World::new(made);
    world.file(".claude/commands/sum.md", "---\ndescription: Adds up\n---\nAdd $ARGUMENTS.\n");
    edit(&world, async |editor: Editor| {
        let about = editor.begun.clone();
        assert!(about.agent_capabilities.load_session);
        assert!(about.agent_capabilities.prompt_capabilities.image);
        assert_eq!(about.agent_info.unwrap().name, "pal");
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "What is 2 + 2?").await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.words(&session), "Two and two are four.");
        let used = editor.last(&session, |update| match update {
            SessionUpdate::UsageUpdate(usage) => Some(usage.clone()),
            _ => None,
        });
        assert!(used.used > 1_000 && used.size == 1_000_000 && used.cost.unwrap().amount > 0.0);
        let commands = editor.last(&session, |update| match update {
            SessionUpdate::AvailableCommandsUpdate(commands) => Some(commands.available_commands.clone()),
            _ => None,
        });
        let named: Vec<(&str, &str)> =
            commands.iter().map(|command| (command.name.as_str(), command.description.as_str())).collect();
        assert!(named.contains(&("sum", "Adds up")) && named.iter().any(|(name, _)| *name == "compact"));
        assert_eq!(editor.prompt(&session, "/sum 2 and 3").await.unwrap(), StopReason::EndTurn);
    });
    assert!(world.provider.heard().asked[1].text().contains("Add 2 and 3."));
}

#[test]
fn a_call_is_asked_about_and_shown_from_wish_to_result() {
    let world = World::new(Made::answers(|at, _| match at {
        0 => calls("I write.", &[("Write", json!({"file_path": "new.txt", "content": "hello\n"}))]),
        1 => calls("I run.", &[bash("touch ran.txt; echo ran")]),
        _ => says("Done."),
    }));
    edit_as(&world, Consent::Once, async |editor: Editor| {
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::EndTurn);
        let questions = editor.questions();
        assert_eq!(questions.len(), 2);
        let asked = &questions[0].tool_call;
        let diff = asked.fields.content.as_ref().unwrap().iter().find_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff.clone()),
            _ => None,
        });
        let diff = diff.unwrap();
        assert!(diff.path.ends_with("new.txt") && diff.new_text == "hello\n" && diff.old_text.is_none());
        let options: Vec<&str> = questions[1].options.iter().map(|option| option.name.as_str()).collect();
        assert!(options.len() == 3 && options[1].contains("in this project"), "{options:?}");
        let calls = editor.calls(&session);
        assert_eq!(calls.len(), 2, "{calls:?}");
        assert_eq!((calls[0].kind, calls[0].status), (ToolKind::Edit, ToolCallStatus::Completed));
        assert_eq!((calls[1].kind, calls[1].status), (ToolKind::Execute, ToolCallStatus::Completed));
        assert_eq!(asked.tool_call_id, calls[0].tool_call_id);
        assert_eq!(calls[1].title, "`touch ran.txt; echo ran`");
        assert!(format!("{:?}", calls[1].content).contains("ran"));
        assert!(calls[1].raw_input.is_some() && calls[1].raw_output.is_some());
        assert!(!calls[0].locations.is_empty());
    });
    assert_eq!(world.text("new.txt"), "hello\n");
    assert!(world.repository().join("ran.txt").exists());
}

#[test]
fn what_is_rejected_is_not_done_and_what_is_always_allowed_is_asked_once() {
    let made = || {
        Made::answers(|at, _| match at % 2 {
            0 => calls("I run.", &[bash("touch ran.txt")]),
            _ => says("Over."),
        })
    };
    let world = World::new(made());
    edit_as(&world, Consent::Reject, async |editor: Editor| {
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.calls(&session)[0].status, ToolCallStatus::Failed);
    });
    assert!(!world.repository().join("ran.txt").exists());
    let world = World::new(made());
    edit_as(&world, Consent::Always, async |editor: Editor| {
        for _ in 0..2 {
            let session = editor.session().await;
            editor.prompt(&session, "go").await.unwrap();
            editor.prompt(&session, "again").await.unwrap();
        }
        assert_eq!(editor.questions().len(), 1, "a rule that is kept holds in later sessions, too");
    });
    assert!(world.repository().join("ran.txt").exists());
    let kept = std::fs::read_dir(world.pal().join("projects")).unwrap().flatten();
    let kept: Vec<_> = kept.map(|project| project.path().join("allowed.toml")).collect();
    assert!(std::fs::read_to_string(&kept[0]).unwrap().contains("Bash("), "{kept:?}");
}

#[test]
fn the_list_of_what_is_to_do_is_the_plan() {
    let list = |first: &str, second: &str| {
        let item = |content: &str, status: &str| json!({"content": content, "status": status});
        ("Todo", json!({"todos": [item("look", first), item("write", second)]}))
    };
    let world = World::new(Made::answers(move |at, _| match at {
        0 => calls("A plan.", &[list("in_progress", "pending")]),
        1 => calls("Next.", &[list("completed", "in_progress")]),
        _ => says("Done."),
    }));
    edit(&world, async |editor: Editor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        let plans = editor.all(&session, |update| match update {
            SessionUpdate::Plan(plan) => Some(plan.clone()),
            _ => None,
        });
        assert_eq!(plans.len(), 2);
        let last: Vec<_> = plans[1].entries.iter().map(|entry| (&*entry.content, &entry.status)).collect();
        assert_eq!(last, [("look", &PlanEntryStatus::Completed), ("write", &PlanEntryStatus::InProgress)]);
        assert!(editor.calls(&session).is_empty(), "the plan says it all");
    });
}

#[test]
fn a_compaction_is_told_when_it_begins_and_when_it_ends() {
    let mut at = 0;
    let world = World::new(Made::answers(move |_, ask| {
        if is_summary(ask) {
            return Extractive.answer(ask);
        }
        at += 1;
        says(&format!("Answer {at}. {}", "It is a long one. ".repeat(200)))
    }));
    edit(&world, async |editor: Editor| {
        let session = editor.session().await;
        for prompt in ["one", "two", "three"] {
            editor.prompt(&session, prompt).await.unwrap();
        }
        assert_eq!(editor.prompt(&session, "/compact the numbers").await.unwrap(), StopReason::EndTurn);
        let told = editor.all(&session, |update| match update {
            SessionUpdate::CompactionUpdate(update) => Some(serde_json::to_value(update).unwrap()),
            _ => None,
        });
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!((&told[0]["status"], &told[1]["status"]), (&json!("in_progress"), &json!("completed")));
        assert_eq!(told[0]["compactionId"], told[1]["compactionId"]);
        let sizes = &told[1]["_meta"]["palimpsest"];
        assert!(sizes["tokensBefore"].as_u64() > sizes["tokensAfter"].as_u64(), "{sizes}");
        assert!(!told[1]["summary"][0]["text"].as_str().unwrap().is_empty());
        assert_eq!(editor.prompt(&session, "four").await.unwrap(), StopReason::EndTurn);
        // Who loads it sees all that was said before, and where it was compacted.
        editor.forget();
        editor.load(&session).await;
        assert!(editor.words(&session).contains("Answer 1.") && editor.words(&session).contains("Answer 4."));
        let again = editor.all(&session, |update| match update {
            SessionUpdate::CompactionUpdate(update) => Some(update.status.clone()),
            _ => None,
        });
        assert_eq!(again, [CompactionStatus::Completed]);
    });
}

#[test]
fn a_cancel_stops_a_stream_and_the_next_prompt_goes_on() {
    let mut made = Made::answers(|at, _| match at {
        0 => says(&"A long story that nobody wants to hear to its end. ".repeat(100)),
        _ => says("Shorter now."),
    });
    made.pace = Pace { per_1k_output: Duration::from_secs(20), ..Pace::none() };
    let world = World::new(made);
    edit(&world, async |editor: Editor| {
        let session = editor.session().await;
        let told = editor.start(&session, "tell a story");
        editor.until(|update| matches!(update, SessionUpdate::AgentMessageChunk(_))).await;
        editor.cancel(&session);
        assert_eq!(told.await.unwrap(), StopReason::Cancelled);
        // A cancel that comes too late means nobody.
        editor.cancel(&session);
        assert_eq!(editor.prompt(&session, "shorter").await.unwrap(), StopReason::EndTurn);
        assert!(editor.words(&session).ends_with("Shorter now."));
        // One that comes at once means the prompt before it, and not the one behind it.
        let (first, second) = {
            let first = editor.start(&session, "one");
            editor.cancel(&session);
            (first, editor.start(&session, "two"))
        };
        assert_eq!(first.await.unwrap(), StopReason::Cancelled);
        assert_eq!(second.await.unwrap(), StopReason::EndTurn);
    });
}

#[test]
fn a_cancel_ends_a_question_that_nobody_answers() {
    let world = World::new(Made::answers(|at, _| match at {
        0 => calls("I run.", &[bash("touch ran.txt"), bash("touch other.txt")]),
        _ => says("Still here."),
    }));
    edit_as(&world, Consent::Silence, async |editor: Editor| {
        let session = editor.session().await;
        let told = editor.start(&session, "go");
        editor.until_asked().await;
        editor.cancel(&session);
        assert_eq!(told.await.unwrap(), StopReason::Cancelled);
        assert!(editor.calls(&session).iter().all(|call| call.status == ToolCallStatus::Failed));
        assert_eq!(editor.prompt(&session, "there?").await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.questions().len(), 1);
    });
    assert!(!world.repository().join("ran.txt").exists() && !world.repository().join("other.txt").exists());
}

#[test]
fn a_client_that_leaves_in_the_middle_ends_everything_and_the_session_goes_on_elsewhere() {
    let world = World::new(Made::answers(|at, _| match at {
        0 => calls("I wait.", &[bash("sleep 30; touch late.txt")]),
        _ => says("Here I am."),
    }));
    let mut id = String::new();
    edit_as(&world, Consent::Once, async |editor: Editor| {
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
fn a_session_is_listed_and_loaded_with_all_that_was_said() {
    let world = World::new(Made::answers(|at, _| match at {
        0 => calls("I look.", &[("Read", json!({"file_path": "README.md"}))]),
        1 => says("It is a scratch."),
        _ => says("Once more."),
    }));
    let mut id = None;
    edit(&world, async |editor: Editor| {
        let session = editor.session().await;
        editor.prompt(&session, "what is this?").await.unwrap();
        id = Some(session);
    });
    let session = id.unwrap();
    edit(&world, async |editor: Editor| {
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
    edit(&world, async |editor: Editor| {
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
fn two_sessions_work_at_once_and_what_is_said_meanwhile_steers() {
    let world = World::new(Made::answers(|_, ask| {
        let text: String = ask.messages.iter().map(|message| message.blocks.concat()).collect();
        match (text.contains("wait for me"), text.contains("waited")) {
            (true, false) => calls("I wait.", &[bash("while [ ! -e go ]; do sleep 0.02; done; echo waited")]),
            (true, true) => says("I waited."),
            _ => says("At once."),
        }
    }));
    edit_as(&world, Consent::Once, async |editor: Editor| {
        let (slow, fast) = (editor.session().await, editor.session().await);
        assert_ne!(slow, fast);
        let waiting = editor.start(&slow, "wait for me");
        editor.until(|update| format!("{update:?}").contains("InProgress")).await;
        assert_eq!(editor.prompt(&fast, "now").await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.words(&fast), "At once.");
        let steering = editor.start(&slow, "and be kind");
        std::fs::write(world.repository().join("go"), "").unwrap();
        assert_eq!(waiting.await.unwrap(), StopReason::EndTurn);
        assert_eq!(steering.await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.words(&slow), "I wait.I waited.");
    });
    let heard = world.provider.heard();
    assert_eq!(heard.asked.len(), 3, "what steers is heard with the results");
    assert!(heard.asked[2].text().contains("and be kind"));
}

#[test]
fn modes_and_models_can_be_chosen() {
    let world = World::new(Made::answers(|at, _| match at % 2 {
        0 => calls("I write.", &[("Write", json!({"file_path": format!("{at}.txt"), "content": "x"}))]),
        _ => says("Over."),
    }));
    edit_as(&world, Consent::Reject, async |editor: Editor| {
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
fn servers_of_the_editor_are_started() {
    let world = World::new(Made::answers(|_, _| says("Hello.")));
    world.file("server.sh", "echo \"$WORD\" > began.txt; cat > /dev/null");
    let server = McpServerStdio::new("mine", "sh").args(vec![String::from("server.sh")]);
    let word = agent_client_protocol::v1::schema::EnvVariable::new("WORD", "given");
    edit(&world, async |editor: Editor| {
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
fn ends_have_names_and_failures_say_what_to_do() {
    let world = World::new(Made::answers(|at, _| match at {
        0 => calls("More.", &[("Glob", json!({"pattern": "*"}))]),
        _ => cut_off(says("Too long.")),
    }));
    world.file(".pal/settings.toml", "max_turns = 1\n");
    std::fs::write(world.pal().join("settings.toml"), "max_turns = 1\n").unwrap();
    edit(&world, async |editor: Editor| {
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::MaxTurnRequests);
        assert!(editor.words(&session).contains("1 turns were allowed"));
        let request = NewSessionRequest::new("somewhere/else");
        let error = editor.connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.message.contains("absolute"), "{error:?}");
    });
    let mut command = world.command(&["acp"]);
    command.env_remove("ANTHROPIC_API_KEY").env_remove("ANTHROPIC_BASE_URL");
    client::edit_with(command, Consent::Once, async |editor: Editor| {
        let request = NewSessionRequest::new(world.repository());
        let error = editor.connection.send_request(request).block_task().await.unwrap_err();
        assert!(error.message.contains("ANTHROPIC_API_KEY"), "{error:?}");
    });
}

#[test]
fn garbage_is_answered_and_does_not_end_anything() {
    let world = World::new(Made::answers(|_, _| says("Hello.")));
    let mut child = world.command(&["acp"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}"#;
    input.write_all(b"what?\n\xff\xfe\xfd\n[1]\n{\"jsonrpc\":\"2.0\"}\n\n").unwrap();
    writeln!(input, "{initialize}").unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":8,"method":"no/such","params":{{}}}}"#).unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":{{"sessionId":"x"}}}}"#)
        .unwrap();
    drop(input);
    let said = finish(child);
    assert_eq!(said.code, 0, "{}", said.err);
    let lines = said.lines();
    assert!(lines.iter().all(|line| line["jsonrpc"] == "2.0"), "{}", said.out);
    let answer =
        |id: u64| lines.iter().find(|line| line["id"] == id).unwrap_or_else(|| panic!("{}", said.out));
    assert_eq!(answer(7)["result"]["protocolVersion"], 1);
    assert_eq!(answer(8)["error"]["code"], -32601);
    assert!(answer(9)["error"]["code"].is_number());
}

#[test]
fn a_signal_ends_it_as_a_closed_input_does() {
    let world = World::new(Made::answers(|_, _| says("Hello.")));
    let mut child = world.command(&["acp"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let new = json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
        "params": {"cwd": world.repository(), "mcpServers": []}});
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":1}}}}"#)
        .unwrap();
    writeln!(input, "{new}").unwrap();
    let begun = std::time::Instant::now();
    while world.logs().is_empty() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    let done = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
    let said = finish(child);
    assert_eq!(said.code, 0, "{}", said.err);
    drop(input);
    drop(reader(None::<std::io::Empty>));
}
