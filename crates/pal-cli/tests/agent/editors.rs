//! `pal acp` as an editor uses it: the real program, driven by the client's side of the protocol's own crate.

mod client;
mod sessions;

use agent_client_protocol::v1::schema::{CompactionStatus, SessionUpdate, StopReason, ToolCallStatus};
use pal_sim::{ExtractiveModel, SimulatedModel};
use serde_json::{Value, json};

use crate::test_world::TestWorld;
use client::{EditorConsent, TestEditor, edit, edit_as};
use pal_agent_testkit::{ProviderSetup, calls, is_summary, says};

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
