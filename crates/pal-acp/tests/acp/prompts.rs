//! Prompts: streamed answers, tool calls, permission requests, cancellation, slash commands.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, PlanEntryStatus, SessionUpdate, StopReason, ToolCallContent, ToolCallStatus,
    ToolKind,
};
use pal_agent_testkit::{AgentWorld, ProviderSetup, calls, is_summary, says};
use pal_sim::{ExtractiveModel, ReplyPace, SimulatedModel};
use serde_json::{Value, json};

use crate::test_editor::{TestEditor, UserConsent, edit};

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

fn world(setup: ProviderSetup) -> Arc<AgentWorld> {
    Arc::new(AgentWorld::new(setup))
}

#[test]
fn a_prompt_is_answered_in_chunks_with_usage() {
    let answer = "Two and two are four, and that has been so for a very long time. ".repeat(20);
    let said = answer.clone();
    let world = world(ProviderSetup::answers(move |_, _| says(&said)));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        assert_eq!(editor.prompt(&session, "What is 2 + 2?").await, StopReason::EndTurn);
        assert_eq!(editor.text(&session), answer);
        assert!(editor.chunks(&session).len() > 1, "it is streamed");
        let usage = editor.updates(&session, |update| match update {
            SessionUpdate::UsageUpdate(usage) => Some(usage.clone()),
            _ => None,
        });
        let usage = usage.last().unwrap().clone();
        assert!(usage.used > 1_000 && usage.size == 1_000_000 && usage.cost.unwrap().amount > 0.0);
    });
    assert!(world.provider.heard().asked[0].text().contains("What is 2 + 2?"));
}

#[test]
fn tool_calls_ask_for_permission_and_show_diff_and_output() {
    let world = world(ProviderSetup::answers(|at, _| match at {
        0 => calls("I read.", &[("Read", json!({"file_path": "README.md"}))]),
        1 => calls(
            "I edit.",
            &[("Edit", json!({"file_path": "README.md", "old_string": "few", "new_string": "lot of"}))],
        ),
        2 => calls("I run.", &[bash("touch ran.txt; echo ran")]),
        _ => says("Done."),
    }));
    edit(&world, "", UserConsent::Once, async |editor: TestEditor| {
        let session = editor.open().await;
        assert_eq!(editor.prompt(&session, "go").await, StopReason::EndTurn);
        let questions = editor.questions();
        assert_eq!(questions.len(), 2, "reading asks nothing");
        let content = questions[0].tool_call.fields.content.clone().unwrap();
        let diff = content.iter().find_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff.clone()),
            _ => None,
        });
        let diff = diff.unwrap();
        assert!(diff.path.ends_with("README.md") && diff.new_text.contains("lot of"), "{diff:?}");
        assert!(diff.old_text.as_deref().is_some_and(|text| text.contains("few")), "{diff:?}");
        let kinds: Vec<PermissionOptionKind> =
            questions[1].options.iter().map(|option| option.kind).collect();
        assert!(kinds.contains(&PermissionOptionKind::AllowOnce), "{kinds:?}");
        assert!(kinds.contains(&PermissionOptionKind::RejectOnce), "{kinds:?}");
        let calls = editor.calls(&session);
        let seen: Vec<_> = calls.iter().map(|call| (call.kind, call.status)).collect();
        let done = ToolCallStatus::Completed;
        assert_eq!(seen, [(ToolKind::Read, done), (ToolKind::Edit, done), (ToolKind::Execute, done)]);
        assert_eq!(questions[0].tool_call.tool_call_id, calls[1].tool_call_id);
        assert!(calls[1].content.iter().any(|content| matches!(content, ToolCallContent::Diff(_))));
        assert_eq!(calls[2].title, "`touch ran.txt; echo ran`");
        assert!(format!("{:?}", calls[2].content).contains("ran"));
        assert!(calls[2].raw_input.is_some() && calls[2].raw_output.is_some());
        assert!(!calls[1].locations.is_empty());
    });
    assert!(world.text("README.md").contains("lot of") && world.has_file("ran.txt"));
}

#[test]
fn a_rejected_call_does_not_run() {
    let world = world(ProviderSetup::answers(|at, _| match at {
        0 => calls("I run.", &[bash("touch ran.txt")]),
        _ => says("Over."),
    }));
    edit(&world, "", UserConsent::Reject, async |editor: TestEditor| {
        let session = editor.open().await;
        assert_eq!(editor.prompt(&session, "go").await, StopReason::EndTurn);
        assert_eq!(editor.calls(&session)[0].status, ToolCallStatus::Failed);
        assert_eq!(editor.text(&session), "I run.Over.");
    });
    assert!(!world.has_file("ran.txt"));
    assert!(world.provider.heard().asked[1].text().contains("the user did not want it"));
}

#[test]
fn an_always_allowed_call_asks_once_and_its_rule_is_stored() {
    let world = world(ProviderSetup::answers(|at, _| match at % 2 {
        0 => calls("I write.", &[("Write", json!({"file_path": "new.txt", "content": format!("{at}")}))]),
        _ => says("Over."),
    }));
    let mut offered = String::new();
    edit(&world, "", UserConsent::Always, async |editor: TestEditor| {
        let session = editor.open().await;
        editor.prompt(&session, "go").await;
        editor.prompt(&session, "again").await;
        let questions = editor.questions();
        assert_eq!(questions.len(), 1);
        offered = questions[0].options[1].name.clone();
    });
    assert_eq!(world.text("new.txt"), "2");
    let rule = offered.strip_prefix("Always allow ").unwrap().strip_suffix(" in this project").unwrap();
    let stored = std::fs::read_to_string(world.pal_home().join("allowed.toml")).unwrap();
    assert!(stored.contains(rule), "{rule}\n{stored}");
}

#[test]
fn a_permission_request_contains_the_whole_command() {
    let lines = "echo fine\n".repeat(400);
    let command = format!("bash <<'END'\n{lines}rm -rf ~/important\u{202e}\nEND");
    let asked = command.clone();
    let world = world(ProviderSetup::answers(move |at, _| match at {
        0 => calls("I run.", &[bash(&asked)]),
        _ => says("Over."),
    }));
    edit(&world, "", UserConsent::Reject, async |editor: TestEditor| {
        let session = editor.open().await;
        editor.prompt(&session, "go").await;
        let questions = editor.questions();
        let fields = &questions[0].tool_call.fields;
        assert_eq!(fields.raw_input.as_ref().unwrap()["command"], command.as_str());
        let shown = command.replace('\u{202e}', "⟨U+202E⟩");
        assert_eq!(fields.title.as_deref(), Some(format!("`{shown}`").as_str()));
        let content = serde_json::to_string(fields.content.as_ref().unwrap()).unwrap();
        assert!(content.contains(serde_json::to_string(&shown).unwrap().trim_matches('"')), "{content}");
        for mark in [
            "line 402: `rm -rf ~/important⟨U+202E⟩` deletes files",
            "is outside the project",
            "the text is run by `bash` as commands",
            "⟨U+202E⟩ is a character that cannot be seen",
        ] {
            assert!(content.contains(mark), "{mark}: {content}");
        }
        assert!(!content.contains("stores this rule"), "no rule for a script: {content}");
    });
}

#[test]
fn a_cancel_ends_an_open_permission_request() {
    let world = world(ProviderSetup::answers(|at, _| match at {
        0 => calls("I run.", &[bash("touch ran.txt"), bash("touch other.txt")]),
        _ => says("Still here."),
    }));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        let running = editor.start(&session, "go");
        editor.until_asked().await;
        editor.cancel(&session);
        assert_eq!(running.await.unwrap(), StopReason::Cancelled);
        assert!(editor.calls(&session).iter().all(|call| call.status == ToolCallStatus::Failed));
        assert_eq!(editor.prompt(&session, "there?").await, StopReason::EndTurn);
        assert_eq!(editor.questions().len(), 1);
    });
    assert!(!world.has_file("ran.txt") && !world.has_file("other.txt"));
}

#[test]
fn a_cancel_stops_a_stream_and_the_next_prompt_works() {
    let mut setup = ProviderSetup::answers(|at, _| match at {
        0 => says(&"A long story that ends far too late. ".repeat(100)),
        _ => says("Shorter now."),
    });
    setup.pace = ReplyPace { per_1k_output: Duration::from_secs(10), ..ReplyPace::none() };
    let world = world(setup);
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        let running = editor.start(&session, "tell a story");
        editor.until(|update| matches!(update, SessionUpdate::AgentMessageChunk(_))).await;
        editor.cancel(&session);
        assert_eq!(running.await.unwrap(), StopReason::Cancelled);
        // A late cancel has no effect.
        editor.cancel(&session);
        assert_eq!(editor.prompt(&session, "shorter").await, StopReason::EndTurn);
        assert!(editor.text(&session).ends_with("Shorter now."));
        // A cancel ends the prompt before it, not the one after it.
        let first = editor.start(&session, "one");
        editor.cancel(&session);
        let second = editor.start(&session, "two");
        assert_eq!(first.await.unwrap(), StopReason::Cancelled);
        assert_eq!(second.await.unwrap(), StopReason::EndTurn);
    });
}

#[test]
fn slash_commands_are_listed_and_run() {
    let mut at = 0;
    let world = world(ProviderSetup::answers(move |_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        at += 1;
        says(&format!("Answer {at}.{}", " It is a long one.".repeat(200)))
    }));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        editor.until(|update| matches!(update, SessionUpdate::AvailableCommandsUpdate(_))).await;
        let commands = editor.updates(&session, |update| match update {
            SessionUpdate::AvailableCommandsUpdate(commands) => Some(commands.available_commands.clone()),
            _ => None,
        });
        let named: Vec<_> =
            commands[0].iter().map(|command| (&*command.name, &*command.description)).collect();
        assert_eq!(named, [("compact", "Compacts"), ("sum", "Adds up")]);
        assert_eq!(editor.prompt(&session, "/sum 2 and 3").await, StopReason::EndTurn);
        editor.prompt(&session, "more").await;
        editor.forget();
        assert_eq!(editor.prompt(&session, "/compact").await, StopReason::EndTurn);
        let compactions = editor.updates(&session, |update| match update {
            SessionUpdate::CompactionUpdate(update) => Some(serde_json::to_value(update).unwrap()),
            _ => None,
        });
        let states: Vec<&Value> = compactions.iter().map(|update| &update["status"]).collect();
        assert_eq!(states, [&json!("in_progress"), &json!("completed")]);
        assert_eq!(compactions[0]["compactionId"], compactions[1]["compactionId"]);
        let sizes = &compactions[1]["_meta"]["palimpsest"];
        assert!(sizes["tokensBefore"].as_u64() > sizes["tokensAfter"].as_u64(), "{sizes}");
        assert!(editor.text(&session).contains("Compacted."), "{}", editor.text(&session));
        // A line that is no command is a prompt.
        editor.prompt(&session, "/nothing of the kind").await;
    });
    let heard = world.provider.heard();
    assert!(heard.asked[0].text().contains("Add 2 and 3."));
    assert!(heard.asked.last().unwrap().text().contains("/nothing of the kind"));
}

#[test]
fn the_todo_list_is_sent_as_the_plan() {
    let list = |first: &str, second: &str| {
        let item = |content: &str, status: &str| json!({"content": content, "status": status});
        ("Todo", json!({"todos": [item("look", first), item("write", second)]}))
    };
    let world = world(ProviderSetup::answers(move |at, _| match at {
        0 => calls("A plan.", &[list("in_progress", "pending")]),
        1 => calls("Next.", &[list("completed", "in_progress")]),
        _ => says("Done."),
    }));
    edit(&world, "", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        editor.prompt(&session, "go").await;
        let plans = editor.updates(&session, |update| match update {
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
fn limits_end_a_prompt_with_a_reason() {
    let world = world(ProviderSetup::answers(|_, _| calls("", &[("Glob", json!({"pattern": "*.none"}))])));
    edit(&world, "max_stalled_turns = 3\n", UserConsent::Silence, async |editor: TestEditor| {
        let session = editor.open().await;
        assert_eq!(editor.prompt(&session, "go").await, StopReason::MaxTurnRequests);
        let text = editor.text(&session);
        assert!(text.contains("no progress in 3 turns") && text.contains("*.none"), "{text}");
    });
    assert_eq!(world.provider.heard().asked.len(), 4);
}

#[test]
fn questions_of_the_model_become_a_form_where_the_editor_has_forms() {
    let question = |text: &str, multi: bool| {
        json!({"question": text, "header": "Choice", "multiSelect": multi, "options": [
        {"label": "red", "description": "like fire"}, {"label": "blue", "description": ""}]})
    };
    let input = json!({"questions": [question("Which color?", false), question("Which others?", true)]});
    let setup = || {
        let input = input.clone();
        ProviderSetup::answers(move |at, _| match at {
            0 => calls("I ask.", &[("AskUserQuestion", input.clone())]),
            _ => says("Done."),
        })
    };
    let form = r#"{"question_1": "blue", "question_2": ["red"], "question_2_other": "and green"}"#;
    let answered = world(setup());
    edit(&answered, "", UserConsent::Form(form), async |editor: TestEditor| {
        let session = editor.open().await;
        assert_eq!(editor.prompt(&session, "go").await, StopReason::EndTurn);
        assert!(editor.questions().is_empty(), "a form asks for no permission");
        let form = serde_json::to_value(&editor.forms()[0]).unwrap();
        assert_eq!((&form["mode"], &form["sessionId"]), (&json!("form"), &json!(session.to_string())));
        let fields = &form["requestedSchema"]["properties"];
        assert_eq!(fields["question_1"]["description"], "Which color?", "{form}");
        assert_eq!(fields["question_1"]["oneOf"][0]["const"], "red", "{form}");
        assert_eq!(fields["question_2"]["type"], "array", "{form}");
    });
    let sent = answered.provider.heard().asked[1].text();
    assert!(sent.contains("Which color?\\n→ blue") && sent.contains("→ red; and green"), "{sent}");
    // An editor without forms shows nothing, and the model is told to ask in plain text.
    let refused = world(setup());
    edit(&refused, "", UserConsent::Once, async |editor: TestEditor| {
        let session = editor.open().await;
        editor.prompt(&session, "go").await;
        assert!(editor.questions().is_empty() && editor.forms().is_empty());
    });
    let sent = refused.provider.heard().asked[1].text();
    assert!(sent.contains("editor cannot show questions with options"), "{sent}");
}
