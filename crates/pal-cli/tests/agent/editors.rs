//! `pal acp` as an editor uses it: the real program, driven by the client's side of the protocol's own crate.

mod client;
mod sessions;

use std::time::Duration;

use agent_client_protocol::v1::schema::{
    CompactionStatus, PlanEntryStatus, SessionUpdate, StopReason, ToolCallContent, ToolCallStatus, ToolKind,
};
use pal_sim::{ExtractiveModel, ReplyPace, SimulatedModel};
use serde_json::{Value, json};

use crate::test_provider::{ProviderSetup, calls, is_summary, says};
use crate::test_world::TestWorld;
use client::{EditorConsent, TestEditor, edit, edit_as};

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command}))
}

#[test]
fn a_prompt_is_answered_in_chunks_with_usage() {
    let world = TestWorld::new(ProviderSetup::answers(|_, _| says("Two and two are four.")));
    world.file(".claude/commands/sum.md", "---\ndescription: Adds up\n---\nAdd $ARGUMENTS.\n");
    edit(&world, async |editor: TestEditor| {
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
fn a_tool_call_asks_for_permission_and_shows_its_result() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I write.", &[("Write", json!({"file_path": "new.txt", "content": "hello\n"}))]),
        1 => calls("I run.", &[bash("touch ran.txt; echo ran")]),
        _ => says("Done."),
    }));
    edit_as(&world, EditorConsent::Once, async |editor: TestEditor| {
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
fn a_permission_request_contains_the_whole_command() {
    let lines = "echo fine\n".repeat(400);
    let command = format!("bash <<'END'\n{lines}rm -rf ~/important\u{202e}\nEND");
    let asked = command.clone();
    let world = TestWorld::new(ProviderSetup::answers(move |at, _| match at {
        0 => calls("I run.", &[bash(&asked)]),
        _ => says("Over."),
    }));
    edit_as(&world, EditorConsent::Reject, async |editor: TestEditor| {
        let session = editor.session().await;
        editor.prompt(&session, "go").await.unwrap();
        let questions = editor.questions();
        let fields = &questions[0].tool_call.fields;
        assert_eq!(fields.raw_input.as_ref().unwrap()["command"], command.as_str());
        let shown = command.replace('\u{202e}', "⟨U+202E⟩");
        assert_eq!(fields.title.as_deref(), Some(format!("`{shown}`").as_str()));
        let content = serde_json::to_string(fields.content.as_ref().unwrap()).unwrap();
        assert!(
            content.contains(&serde_json::to_string(&shown).unwrap().trim_matches('"').to_owned()),
            "{content}"
        );
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
fn rejected_calls_do_not_run_and_always_allowed_ones_ask_once() {
    let made = || {
        ProviderSetup::answers(|at, _| match at % 2 {
            0 => calls("I run.", &[bash("touch ran.txt")]),
            _ => says("Over."),
        })
    };
    let world = TestWorld::new(made());
    edit_as(&world, EditorConsent::Reject, async |editor: TestEditor| {
        let session = editor.session().await;
        assert_eq!(editor.prompt(&session, "go").await.unwrap(), StopReason::EndTurn);
        assert_eq!(editor.calls(&session)[0].status, ToolCallStatus::Failed);
    });
    assert!(!world.repository().join("ran.txt").exists());
    let world = TestWorld::new(made());
    let mut offered = String::new();
    edit_as(&world, EditorConsent::Always, async |editor: TestEditor| {
        for _ in 0..2 {
            let session = editor.session().await;
            editor.prompt(&session, "go").await.unwrap();
            editor.prompt(&session, "again").await.unwrap();
        }
        let questions = editor.questions();
        assert_eq!(questions.len(), 1, "a rule that is kept holds in later sessions, too");
        offered = questions[0].options[1].name.clone();
    });
    assert!(world.repository().join("ran.txt").exists());
    let kept = std::fs::read_dir(world.pal().join("projects")).unwrap().flatten();
    let kept: Vec<_> = kept.map(|project| project.path().join("allowed.toml")).collect();
    let rule = offered.strip_prefix("Always allow ").unwrap().strip_suffix(" in this project").unwrap();
    let text = std::fs::read_to_string(&kept[0]).unwrap();
    assert!(text.contains(rule), "{rule}\n{text}");
}

#[test]
fn the_todo_list_is_sent_as_the_plan() {
    let list = |first: &str, second: &str| {
        let item = |content: &str, status: &str| json!({"content": content, "status": status});
        ("Todo", json!({"todos": [item("look", first), item("write", second)]}))
    };
    let world = TestWorld::new(ProviderSetup::answers(move |at, _| match at {
        0 => calls("A plan.", &[list("in_progress", "pending")]),
        1 => calls("Next.", &[list("completed", "in_progress")]),
        _ => says("Done."),
    }));
    edit(&world, async |editor: TestEditor| {
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
fn a_compaction_reports_its_start_and_end() {
    let mut at = 0;
    let world = TestWorld::new(ProviderSetup::answers(move |_, ask| {
        if is_summary(ask) {
            return ExtractiveModel.answer(ask);
        }
        at += 1;
        says(&format!("Answer {at}. {}", "It is a long one. ".repeat(200)))
    }));
    edit(&world, async |editor: TestEditor| {
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
fn a_cancel_stops_a_stream_and_the_next_prompt_works() {
    let mut made = ProviderSetup::answers(|at, _| match at {
        0 => says(&"A long story that nobody wants to hear to its end. ".repeat(100)),
        _ => says("Shorter now."),
    });
    made.pace = ReplyPace { per_1k_output: Duration::from_secs(20), ..ReplyPace::none() };
    let world = TestWorld::new(made);
    edit(&world, async |editor: TestEditor| {
        let session = editor.session().await;
        let told = editor.start(&session, "tell a story");
        editor.until(|update| matches!(update, SessionUpdate::AgentMessageChunk(_))).await;
        editor.cancel(&session);
        assert_eq!(told.await.unwrap(), StopReason::Cancelled);
        // A late cancel has no effect.
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
fn a_cancel_ends_an_open_permission_request() {
    let world = TestWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I run.", &[bash("touch ran.txt"), bash("touch other.txt")]),
        _ => says("Still here."),
    }));
    edit_as(&world, EditorConsent::Silence, async |editor: TestEditor| {
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
