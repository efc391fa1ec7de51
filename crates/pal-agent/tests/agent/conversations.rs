//! Prompts, tools, interrupts, queued messages, resumed sessions.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use pal_agent::SessionOrigin;
use pal_agent_testkit::{AgentWorld, ProviderSetup, TestAgent, calls, cut_off, says};
use pal_events::{AgentEvent, PromptEnd};
use pal_model::{
    Content, EntryDraft, IdSource, MessageOrigin, PromptPrefix, SessionStart, SharedText, Timestamp,
};
use pal_sim::{ModelOutput, OutputBlock, ReplyPace, StopOverride};
use serde_json::json;

use crate::{BYPASS, bash, caller, talker};

#[test]
fn a_prompt_is_answered_and_recorded() {
    let world = AgentWorld::new(ProviderSetup::answers(|_, _| says("Two and two are four.")));
    let mut agent = world.start("");
    let ended = agent.prompt("What is 2 + 2?");
    assert_eq!((ended.end, ended.text.as_str(), ended.turns), (PromptEnd::Done, "Two and two are four.", 1));
    assert!(ended.spent.cost > 0.0, "{:?}", ended.spent);
    let text = agent.events(|event| match event {
        AgentEvent::Text(text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(text.concat(), "Two and two are four.");
    assert!(agent.log_of_kind("user")[0].to_string().contains("What is 2 + 2?"));
    assert!(agent.log_of_kind("assistant")[0].to_string().contains("Two and two are four."));
    assert_eq!(agent.log_of_kind("response")[0]["source"], "main");
    let started = agent.events(|event| match event {
        AgentEvent::SessionStarted(info) => Some(info.as_ref().clone()),
        _ => None,
    });
    assert_eq!(started.len(), 1);
    assert!(!started[0].is_resumed && started[0].transcript_path == agent.log_path().display().to_string());
}

#[test]
fn a_tool_runs_and_its_result_is_recorded_and_sent() {
    let world = AgentWorld::new(caller(vec![
        ("Write", json!({"file_path": "new.txt", "content": "hello\n"})),
        bash("cat new.txt; exit 3"),
    ]));
    let mut agent = world.start(BYPASS);
    assert_eq!((agent.prompt("go").turns, world.text("new.txt").as_str()), (3, "hello\n"));
    let ended = agent.events(|event| match event {
        AgentEvent::ToolEnded { name, is_error, .. } => Some((name.to_string(), *is_error)),
        _ => None,
    });
    assert_eq!(ended, [("Write".to_owned(), false), ("Bash".to_owned(), true)]);
    let results = agent.log_of_kind("user");
    assert_eq!(results.len(), 3, "the prompt and two results");
    let sent = world.provider.heard().asked[2].text();
    assert!(sent.contains("hello") && sent.contains("\"is_error\":true"), "{sent}");
}

#[test]
fn read_only_calls_overlap_and_others_do_not() {
    let world = AgentWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls(
            "",
            &["one.pipe", "two.pipe"]
                .map(|pipe| ("Bash", json!({"command": format!("cat {pipe}"), "timeout": 30_000}))),
        ),
        1 => calls("", &[bash("touch a.txt"), bash("touch b.txt")]),
        _ => says("Done."),
    }));
    let pipes = ["one.pipe", "two.pipe"].map(|name| world.project().join(name));
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    // Opening a pipe waits for its reader, and nothing is written before both are open.
    let writer = std::thread::spawn(move || {
        let mut open = pipes.map(|pipe| OpenOptions::new().write(true).open(pipe).unwrap());
        open.iter_mut().for_each(|pipe| pipe.write_all(b"both were open\n").unwrap());
    });
    let mut agent = world.start(BYPASS);
    assert_eq!(agent.prompt("look").end, PromptEnd::Done);
    assert_eq!(world.provider.heard().asked[1].text().matches("both were open").count(), 2);
    writer.join().unwrap();
    let order = agent.events(|event| match event {
        AgentEvent::ToolStarted { .. } => Some('s'),
        AgentEvent::ToolEnded { .. } => Some('e'),
        _ => None,
    });
    assert_eq!(order.iter().collect::<String>(), "sseesese");
}

#[test]
fn an_interrupt_keeps_the_partial_answer() {
    let mut setup = ProviderSetup::answers(|at, _| match at {
        0 => says(&"A long story that ends far too late. ".repeat(100)),
        _ => says("Shorter now."),
    });
    setup.pace = ReplyPace { per_1k_output: Duration::from_secs(10), ..ReplyPace::none() };
    let world = AgentWorld::new(setup);
    let mut agent = world.start("");
    agent.on_event(|event, handle| {
        if matches!(event, AgentEvent::Text(text) if text.contains("A long")) {
            handle.interrupt();
        }
    });
    let ended = agent.prompt("tell a story");
    assert_eq!(ended.end, PromptEnd::Interrupted);
    assert!(ended.took < Duration::from_secs(20), "the rest is not waited for: {:?}", ended.took);
    agent.on_event(|_, _| {});
    assert_eq!(agent.prompt("shorter").text, "Shorter now.");
    let sent = world.provider.heard().asked[1].text();
    assert!(sent.contains("A long") && sent.matches("too late.").count() < 100, "{sent}");
}

#[test]
fn an_interrupt_ends_a_running_tool_and_the_next_prompt_works() {
    let world = AgentWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => calls("I wait.", &[bash("echo began; sleep 50; touch late.txt")]),
        _ => says("I am still here."),
    }));
    let mut agent = world.start(BYPASS);
    agent.on_event(|event, handle| {
        if matches!(event, AgentEvent::ToolPrinted { .. }) {
            handle.interrupt();
        }
    });
    let ended = agent.prompt("wait");
    assert_eq!(ended.end, PromptEnd::Interrupted);
    assert!(ended.took < Duration::from_secs(20), "{:?}", ended.took);
    assert_eq!(agent.prompt("are you there?").text, "I am still here.");
    let sent = world.provider.heard().asked[1].text();
    assert!(sent.contains("interrupted") && sent.contains("are you there?"), "{sent}");
    assert!(!world.has_file("late.txt"));
}

#[test]
fn a_message_while_working_is_sent_with_the_next_results() {
    let world = AgentWorld::new(caller(vec![bash("echo slept")]));
    let mut agent = world.start(BYPASS);
    agent.on_event(|event, handle| {
        if matches!(event, AgentEvent::ToolStarted { .. }) {
            handle.steer(Content::from_text("Leave the tests alone."));
        }
    });
    assert_eq!(agent.prompt("work").turns, 2);
    let sent = world.provider.heard().asked[1].text();
    let (result, message) = (sent.find("slept").unwrap(), sent.find("Leave the tests alone.").unwrap());
    assert!(result < message, "{sent}");
}

#[test]
fn a_message_that_came_too_late_is_run_next() {
    let world = AgentWorld::new(talker(0));
    let mut agent = world.start("");
    agent.on_event(|event, handle| {
        if matches!(event, AgentEvent::Ended(ended) if ended.text == "Answer 1.") {
            handle.steer(Content::from_text("One more thing."));
        }
    });
    assert_eq!(agent.prompt("go").text, "Answer 1.");
    assert!(agent.agent.has_queued_messages());
    assert_eq!(agent.agent.run_queued_messages().unwrap().unwrap().text, "Answer 2.");
    assert!(!agent.agent.has_queued_messages());
    assert!(world.provider.heard().asked[1].text().contains("One more thing."));
}

#[test]
fn a_resumed_session_sends_the_same_bytes_as_the_live_one() {
    let record = tempfile::tempdir().unwrap();
    let steps = vec![("Read", json!({"file_path": "src/lib.rs"})), bash("seq 1 20")];
    let world = AgentWorld::new(ProviderSetup { record: Some(record.path().to_owned()), ..caller(steps) });
    let mut live = world.start(BYPASS);
    assert_eq!(live.prompt("look").turns, 3);
    // The copy is read from the disk while the live session goes on from its memory.
    let log = live.log_path();
    let mut resumed = world.start_with(BYPASS, |options| options.origin = SessionOrigin::Forked(log, None));
    assert_eq!((live.prompt("and now?").turns, resumed.prompt("and now?").turns), (1, 1));
    let body = |number: usize| {
        let file = record.path().join(format!("{number:04}.request.json"));
        std::fs::read_to_string(file).unwrap()
    };
    assert!(body(4).contains("and now?"));
    assert_eq!(body(4), body(5));
}

#[test]
fn a_session_resumes_with_its_messages() {
    let world = AgentWorld::new(talker(0));
    let mut agent = world.start("");
    agent.prompt("one");
    let log = agent.finish();
    let mut agent = world.resume("", &log);
    assert_eq!(agent.prompt("two").text, "Answer 2.");
    assert_eq!(agent.log_path(), log);
    let heard = world.provider.heard();
    assert_eq!(heard.asked[1].departs_from(&heard.asked[0]), None);
    assert!(heard.asked[1].text().contains("Answer 1."));
}

/// Log of a session that another agent made: its system prompt is not in the transcript.
fn imported_log(world: &AgentWorld) -> PathBuf {
    let schema =
        r#"[{"name":"shell","description":"The tool shell as it occurs.","input_schema":{"type":"object"}}]"#;
    let about = SessionStart { program: String::from("codex"), ..SessionStart::default() };
    let prefix = PromptPrefix {
        system: SharedText::from("[]"),
        tools: SharedText::from(schema),
        context: Content::default(),
        unseen_tokens: 30_000,
        notes: Default::default(),
    };
    let call = r#"[{"type":"tool_use","id":"call_1","name":"shell","input":{"command":"ls"}}]"#;
    let result = r#"[{"type":"tool_result","tool_use_id":"call_1","content":"main.rs"}]"#;
    let drafts = [
        EntryDraft::session(&about),
        EntryDraft::prefix(&prefix),
        EntryDraft::user(MessageOrigin::Person, "\"Look around.\""),
        EntryDraft::assistant(None, None, call),
        EntryDraft::user(MessageOrigin::Tool, result),
        EntryDraft::assistant(None, None, "\"There is one file.\""),
    ];
    let (mut ids, at, mut parent) = (IdSource::seeded(7), Timestamp::default(), None);
    let mut lines = String::new();
    for draft in drafts {
        let id = ids.next_id(at);
        lines.push_str(&draft.into_line(id, parent, at, None));
        lines.push('\n');
        parent = Some(id);
    }
    let log = world.pal_home().join("projects/other/sessions/imported/log.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, lines).unwrap();
    log
}

#[test]
fn an_imported_session_continues_with_our_prefix_and_says_so() {
    let world = AgentWorld::new(talker(0));
    let log = imported_log(&world);
    let mut agent = world.resume("", &log);
    assert_eq!(agent.prompt("go on").text, "Answer 1.");
    let warnings = |agent: &TestAgent| {
        agent.events(|event| match event {
            AgentEvent::Warning(text) => Some(text.clone()),
            _ => None,
        })
    };
    let told = warnings(&agent);
    assert!(told.len() == 1 && told[0].contains("imported from codex"), "{told:?}");
    agent.finish();
    let mut agent = world.resume("", &log);
    assert_eq!(agent.prompt("and on").text, "Answer 2.");
    assert!(warnings(&agent).is_empty(), "the prefix is known now");
    let heard = world.provider.heard();
    let (head, text) = (heard.asked[0].head.concat(), heard.asked[0].text());
    assert!(!head.contains("stands in for") && !head.contains("does not hold"), "{head}");
    assert!(head.contains(r#""name":"Bash""#) && !head.contains(r#""name":"shell""#), "{head}");
    assert!(text.contains("Look around.") && text.contains("main.rs"), "{text}");
    assert_eq!(heard.asked[1].departs_from(&heard.asked[0]), None);
}

#[test]
fn a_truncated_answer_is_retried_with_more_room_and_then_continued() {
    let world = AgentWorld::new(ProviderSetup::answers(|at, _| match at {
        0 => cut_off(says("It begins and is cut")),
        1 => cut_off(says("It begins, and the first part ends in the mid")),
        _ => says("dle of a word."),
    }));
    let mut agent = world.start("");
    assert_eq!(agent.prompt("tell").end, PromptEnd::Done);
    let heard = world.provider.heard();
    assert!(heard.asked[0].max_tokens < heard.asked[1].max_tokens, "a longer answer is asked for");
    assert_eq!(heard.asked[0].blocks, heard.asked[1].blocks, "with the same request");
    assert!(heard.asked[2].text().contains("Go on exactly where it stopped"));
    let discarded = agent.events(|event| matches!(event, AgentEvent::AnswerDiscarded { .. }).then_some(()));
    assert_eq!(discarded.len(), 1);
}

/// A todo list with an open item, and calls that do not change it.
fn list_and_rounds(rounds: usize) -> ProviderSetup {
    let item = |content: &str, status: &str| json!({"content": content, "status": status});
    let todos = json!({"todos": [item("Sweep", "completed"), item("Paint the wall", "pending")]});
    let mut steps = vec![("Todo", todos)];
    steps.extend((0..rounds).map(|round| ("Glob", json!({"pattern": format!("*.{round}")}))));
    caller(steps)
}

/// Reminders of the todo list in the newest request.
fn reminders(world: &AgentWorld) -> usize {
    let sent = world.provider.heard().asked.last().unwrap().text();
    sent.matches("Your list of things to do has not changed").count()
}

#[test]
fn an_unused_todo_list_is_reminded_of() {
    let world = AgentWorld::new(list_and_rounds(11));
    let mut agent = world.start("");
    agent.prompt("work");
    assert_eq!(reminders(&world), 0, "not yet");
    let log = agent.finish();
    let mut agent = world.resume("", &log);
    agent.prompt("and now");
    assert_eq!(reminders(&world), 1, "answers before the session was resumed count");
    assert!(world.provider.heard().asked.last().unwrap().text().contains("[ ] Paint the wall"));
}

#[test]
fn reminders_come_now_and_then_unless_they_are_switched_off() {
    for (settings, expected) in [("", 2), ("disabled = [\"reminders\"]\n", 0)] {
        let world = AgentWorld::new(list_and_rounds(30));
        let mut agent = world.start(settings);
        assert_eq!(agent.prompt("work").end, PromptEnd::Done);
        assert_eq!(reminders(&world), expected, "{settings}");
    }
}

#[test]
fn directory_instructions_are_sent_when_a_file_there_is_read() {
    let world = AgentWorld::new(caller(vec![
        ("Read", json!({"file_path": "README.md"})),
        ("Read", json!({"file_path": "deep/code.rs"})),
        ("Read", json!({"file_path": "deep/more.rs"})),
    ]));
    world.file("AGENTS.md", "Always say please.\n");
    world.file("deep/AGENTS.md", "In the deep, whisper.\n");
    world.file("deep/code.rs", "fn deep() {}\n");
    world.file("deep/more.rs", "fn more() {}\n");
    let mut agent = world.start("");
    agent.prompt("look around");
    let heard = world.provider.heard();
    let counts: Vec<usize> =
        heard.asked.iter().map(|asked| asked.text().matches("In the deep, whisper.").count()).collect();
    assert_eq!(counts, [0, 0, 1, 1]);
    assert!((heard.asked[0].text() + &heard.asked[0].head.concat()).contains("Always say please."));
}

#[test]
fn skills_are_listed_once_and_read_on_use() {
    let world = AgentWorld::new(caller(vec![
        ("Glob", json!({"pattern": "*.none"})),
        ("Skill", json!({"skill": "polish"})),
    ]));
    world.file(
        ".pal/skills/polish/SKILL.md",
        "---\nname: polish\ndescription: Makes texts shine.\n---\nRub every sentence twice.\n",
    );
    let newest = || world.provider.heard().asked.last().unwrap().text();
    let mut agent = world.start(BYPASS);
    agent.prompt("work");
    assert_eq!(newest().matches("Makes texts shine.").count(), 1);
    assert!(newest().contains("Rub every sentence twice."));
    let log = agent.finish();
    let mut agent = world.resume(BYPASS, &log);
    agent.prompt("and now");
    assert_eq!(newest().matches("Makes texts shine.").count(), 1, "a resumed session does not repeat it");
}

#[test]
fn cache_breakpoints_and_break_detection_can_be_switched_off() {
    let body = |settings: &str| {
        let record = tempfile::tempdir().unwrap();
        let setup = caller(vec![("Read", json!({"file_path": "long.txt"}))]);
        let world = AgentWorld::new(ProviderSetup { record: Some(record.path().to_owned()), ..setup });
        world.file("long.txt", &"a line like others\n".repeat(1_500));
        world.start(settings).prompt("look");
        std::fs::read_to_string(record.path().join("0002.request.json")).unwrap()
    };
    let (usual, off) = (body(""), body("disabled = [\"cache_breakpoints\", \"break_detector\"]\n"));
    assert!(usual.contains("\"cache_control\"") && usual.contains("\"previous_message_id\""), "{usual}");
    assert!(!off.contains("\"cache_control\"") && !off.contains("\"previous_message_id\""), "{off}");
}

#[test]
fn a_web_search_is_a_request_of_its_own_that_goes_on_after_a_pause() {
    let call = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"rust release"}}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"Rust blog","url":"https://blog.example/rust","encrypted_content":"SEALED==","page_age":"2 days ago"}]}"#;
    let server = |raw: &str| OutputBlock::ServerTool(SharedText::from(raw));
    let (call, found) = (server(call), server(found));
    let world = AgentWorld::new(ProviderSetup::answers(move |at, _| match at {
        0 => calls(
            "I search.",
            &[("WebSearch", json!({"query": "newest Rust", "allowed_domains": ["blog.example"]}))],
        ),
        1 => ModelOutput { blocks: vec![call.clone(), found.clone()], stop: Some(StopOverride::PauseTurn) },
        2 => says("Rust 1.99 came out on Monday."),
        _ => says("Done."),
    }));
    let mut agent = world.start("permissions.allow = [\"WebSearch\"]\n");
    let ended = agent.prompt("What is new?");
    assert_eq!((ended.denials.len(), ended.spent.responses), (0, 4), "the search counts for the session");
    let searching: f64 = agent
        .log_of_kind("response")
        .iter()
        .filter(|response| response["usage"]["server_tool_use"]["web_search_requests"] == 1)
        .filter_map(|response| response["cost"].as_f64())
        .sum();
    assert!(searching > 0.01, "the fee of the search is part of its cost: {searching}");
    let heard = world.provider.heard();
    assert!(heard.refused.is_empty(), "{:?}", heard.refused);
    let search = &heard.asked[1];
    let tools = search.head.concat();
    assert!(tools.contains(r#""type":"web_search_20260318""#) && tools.contains("blog.example"), "{tools}");
    assert!(!tools.contains(r#""name":"Bash""#) && !search.text().contains("What is new?"));
    assert!(
        heard.asked[2].text().contains("SEALED=="),
        "a paused search goes on with the provider's own blocks"
    );
    let conversation = heard.asked.last().unwrap().text();
    assert!(conversation.contains("Rust 1.99 came out on Monday."), "{conversation}");
    assert!(conversation.contains("Rust blog: https://blog.example/rust (2 days ago)"), "{conversation}");
    assert!(!conversation.contains("SEALED=="), "pages stay out of the conversation");
}

#[test]
fn without_a_provider_that_searches_there_is_no_web_search() {
    let mut setup = ProviderSetup::answers(|_, _| says("Done."));
    setup.cards = String::from("[models.claude-opus-5-5]\nweb_search = false\n");
    let world = AgentWorld::new(setup);
    let mut agent = world.start("");
    agent.prompt("hi");
    assert!(!world.provider.heard().asked[0].head.concat().contains("WebSearch"));
}
