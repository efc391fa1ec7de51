//! Permission questions and their answers.

use std::sync::{Arc, Mutex};

use pal_agent_testkit::{AgentWorld, ProviderSetup, TestAgent, calls, says};
use pal_events::{PermissionAnswer, PermissionQuestion, PromptEnd, QuestionAnswer};
use pal_permissions::PermissionMode;
use serde_json::json;

use crate::{bash, caller};

type Questions = Arc<Mutex<Vec<PermissionQuestion>>>;

/// An agent whose user gives the same answer to every question, and the questions.
fn asked(world: &AgentWorld, answer: &PermissionAnswer) -> (TestAgent, Questions) {
    let questions = Questions::default();
    let (kept, answer) = (Arc::clone(&questions), answer.clone());
    let agent = world.start_with("", |options| {
        options.permissions.asker = Some(Arc::new(move |question| {
            kept.lock().unwrap().push(question.clone());
            answer.clone()
        }));
    });
    (agent, questions)
}

#[test]
fn a_call_that_is_allowed_once_asks_again() {
    let world = AgentWorld::new(caller(vec![bash("touch made.txt"), bash("touch made.txt")]));
    let (mut agent, questions) = asked(&world, &PermissionAnswer::Once);
    assert_eq!(agent.prompt("make it").denials, []);
    let questions = questions.lock().unwrap();
    assert_eq!(questions.len(), 2);
    assert_eq!((questions[0].tool.as_str(), questions[0].agent.as_deref()), ("Bash", None));
    assert_eq!(questions[0].command().as_deref(), Some("touch made.txt"));
    assert!(world.has_file("made.txt"));
}

#[test]
fn a_rule_that_is_allowed_for_the_session_asks_once() {
    let write = |content: &str| ("Write", json!({"file_path": "one.txt", "content": content}));
    let world = AgentWorld::new(caller(vec![write("x"), write("y")]));
    let (mut agent, questions) = asked(&world, &PermissionAnswer::Session);
    assert_eq!(agent.prompt("make it").denials, []);
    let questions = questions.lock().unwrap();
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!((questions[0].rule.as_str(), world.text("one.txt").as_str()), ("Edit(one.txt)", "y"));
}

#[test]
fn a_denial_with_words_reaches_the_model_and_the_result() {
    let world = AgentWorld::new(caller(vec![bash("touch made.txt")]));
    let (mut agent, _) = asked(&world, &PermissionAnswer::No(Some(String::from("Use the Write tool."))));
    let ended = agent.prompt("make it");
    assert_eq!((ended.end, ended.text.as_str()), (PromptEnd::Done, "Done."));
    assert_eq!(ended.denials.len(), 1);
    assert_eq!(ended.denials[0].tool_name, "Bash");
    assert!(ended.denials[0].rule.is_some() && !world.has_file("made.txt"));
    let sent = world.provider.heard().asked[1].text();
    assert!(sent.contains("the user did not want it. They say: Use the Write tool."), "{sent}");
}

#[test]
fn without_a_person_a_call_is_refused_with_the_rule_that_would_allow_it() {
    let steps = || vec![("Write", json!({"file_path": "new.txt", "content": "x"}))];
    let world = AgentWorld::new(caller(steps()));
    let mut agent = world.start("");
    let ended = agent.prompt("make it");
    let rule = ended.denials[0].rule.clone().unwrap();
    assert!(!world.has_file("new.txt"));
    let sent = world.provider.heard().asked[1].text();
    assert!(sent.contains(&rule) && sent.contains("permissions.allow"), "{sent}");
    // With the very rule, the call runs.
    let world = AgentWorld::new(caller(steps()));
    let mut agent = world.start(&format!("permissions.allow = [\"{rule}\"]\n"));
    assert_eq!((agent.prompt("make it").denials, world.text("new.txt").as_str()), (Vec::new(), "x"));
}

#[test]
fn a_mode_chosen_between_prompts_holds_for_the_next_one() {
    let world = AgentWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("", &[("Write", json!({"file_path": "one.txt", "content": "x"}))]),
        2 => calls("", &[("Write", json!({"file_path": "two.txt", "content": "x"}))]),
        _ => says("Done."),
    }));
    let mut agent = world.start("");
    assert_eq!(agent.prompt("write").denials.len(), 1);
    agent.agent.handle().choose_mode(PermissionMode::AcceptEdits);
    assert_eq!(agent.prompt("again").denials, []);
    assert_eq!((world.text("one.txt").as_str(), world.text("two.txt").as_str()), ("", "x"));
    let sent = world.provider.heard().asked[2].text();
    assert!(sent.contains("Reading and changing files inside the project is allowed"), "{sent}");
}

#[test]
fn plan_mode_is_read_only() {
    let world = AgentWorld::new(caller(vec![
        ("Read", json!({"file_path": "src/lib.rs"})),
        ("Write", json!({"file_path": "new.txt", "content": "x"})),
        bash("touch made.txt"),
    ]));
    let mut agent = world.start("permissions.mode = \"plan\"\n");
    assert_eq!(agent.prompt("make it").denials.len(), 2);
    assert!(world.provider.heard().asked[1].text().contains("pub fn add"));
    assert!(!world.has_file("new.txt") && !world.has_file("made.txt"));
}

/// A call that asks the user one question.
fn question() -> (&'static str, serde_json::Value) {
    let options = json!([{"label": "SQLite", "description": "One file."}, {"label": "Postgres", "description": "A server."}]);
    let input =
        json!({"questions": [{"question": "Which database?", "header": "Database", "options": options}]});
    ("AskUserQuestion", input)
}

#[test]
fn questions_of_the_model_go_to_the_user_in_every_mode_and_the_answers_back() {
    for mode in ["default", "bypass", "plan"] {
        let world = AgentWorld::new(caller(vec![question()]));
        let answer = QuestionAnswer {
            question: String::from("Which database?"),
            answers: vec![String::from("Postgres"), String::from("version 18")],
        };
        let (mut agent, questions) = asked(&world, &PermissionAnswer::Answered(vec![answer]));
        agent.agent.handle().choose_mode(mode.parse().unwrap());
        assert_eq!(agent.prompt("set it up").denials, []);
        let questions = questions.lock().unwrap();
        assert_eq!(questions.len(), 1, "{mode}");
        assert_eq!(questions[0].user_questions().unwrap()[0].options[1].label, "Postgres");
        let sent = world.provider.heard().asked[1].text();
        assert!(sent.contains("Which database?\\n→ Postgres; version 18"), "{mode}: {sent}");
    }
}

#[test]
fn questions_that_cannot_be_answered_are_refused_with_a_reason() {
    let refused = |answer: Option<PermissionAnswer>| {
        let world = AgentWorld::new(caller(vec![question()]));
        let mut agent = match &answer {
            Some(answer) => asked(&world, answer).0,
            None => world.start("permissions.mode = \"bypass\"\n"),
        };
        let ended = agent.prompt("set it up");
        assert_eq!((ended.end, ended.denials.len()), (PromptEnd::Done, 1), "{answer:?}");
        world.provider.heard().asked[1].text()
    };
    let sent = refused(None);
    assert!(sent.contains("no user is available to answer. Decide yourself"), "{sent}");
    let sent = refused(Some(PermissionAnswer::No(Some(String::from("you choose")))));
    assert!(sent.contains("The user says instead: you choose"), "{sent}");
    // A yes is no answer.
    let sent = refused(Some(PermissionAnswer::Once));
    assert!(sent.contains("cannot show questions with options"), "{sent}");
}
