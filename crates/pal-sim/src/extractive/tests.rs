//! Extracted answers contain only what the conversation holds, and what an agent needs to continue.

use std::borrow::Cow;

use pal_model::Role;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::PromptMessage;

const SUMMARIZE: &str = "Your task is to create a detailed summary of the conversation so far. Do not call tools. \
    Wrap your draft in <analysis> tags and the result in <summary> tags.";

fn said(role: Role, blocks: Value) -> PromptMessage<'static> {
    let blocks = match blocks {
        Value::Array(blocks) => blocks,
        text => vec![json!({"type": "text", "text": text})],
    };
    PromptMessage { role, blocks: blocks.iter().map(|block| Cow::Owned(block.to_string())).collect() }
}

fn ask(messages: Vec<PromptMessage<'static>>, tools: &[Value]) -> ModelPrompt<'static> {
    ModelPrompt {
        model: "claude-opus-5-5",
        system: vec![],
        tools: tools.iter().map(|tool| Cow::Owned(tool.to_string())).collect(),
        messages,
        max_tokens: 20_000,
        thinks: false,
        compaction: None,
    }
}

/// A session that fixed a test.
fn session() -> Vec<PromptMessage<'static>> {
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, text: &str, is_error: bool| json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
    vec![
        said(
            Role::User,
            json!([
                {"type": "text", "text": "<system-reminder>never quote me</system-reminder>"},
                {"type": "text", "text": "Fix the failing parser test in crates/parse. Always run clippy with 3 threads."},
            ]),
        ),
        said(
            Role::Assistant,
            json!([
                {"type": "text", "text": "Let me look at the parser."},
                call("t1", "Read", json!({"file_path": "crates/parse/src/lib.rs"})),
                call("t2", "Bash", json!({"command": "cargo test -p parse"})),
            ]),
        ),
        said(
            Role::User,
            json!([
                result("t1", "pub fn parse() {}", false),
                result(
                    "t2",
                    "running 12 tests\ntest parse_dates ... FAILED\nerror: test failed, to rerun pass `-p parse`",
                    false
                ),
            ]),
        ),
        said(
            Role::Assistant,
            json!([
                {"type": "text", "text": "The root cause is the leap year: 2100 is none. I'll use chrono's rule instead of ours."},
                call("t3", "Edit", json!({"file_path": "crates/parse/src/date.rs", "old_string": "y % 4 == 0", "new_string": "is_leap(y)"})),
                call("t4", "TodoWrite", json!({"todos": [
                    {"content": "fix leap years", "status": "completed"},
                    {"content": "update the changelog", "status": "in_progress"},
                    {"content": "release 0.4.2", "status": "pending"},
                ]})),
                call("t5", "Grep", json!({"pattern": "is_leap", "path": "crates/"})),
                call("t6", "shell", json!({"command": ["bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: CHANGELOG.md\nEOF"]})),
            ]),
        ),
        said(
            Role::User,
            json!([
                result("t3", "File has not been read yet", true), result("t4", "ok", false),
                result("t5", "src/date.rs:3", false), result("t6", "Success", false),
                {"type": "text", "text": "good, and mention issue 77"},
            ]),
        ),
        said(Role::Assistant, json!("All 12 tests pass now. Next, I write the changelog entry.")),
    ]
}

fn with(words: &str) -> Vec<PromptMessage<'static>> {
    let mut messages = session();
    messages.push(said(Role::User, words.into()));
    messages
}

fn answered(ask: &ModelPrompt<'_>) -> String {
    match &ExtractiveModel.answer(ask).blocks[..] {
        [OutputBlock::Text(text)] => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn directives_are_recognized_by_their_words() {
    let cases = [
        (SUMMARIZE, Some(ExtractionDirective::Summary)),
        (
            "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.",
            Some(ExtractionDirective::Summary),
        ),
        (
            "Provide a detailed prompt for continuing our conversation above.",
            Some(ExtractionDirective::Summary),
        ),
        (
            "First, reason in your scratchpad. Then generate the <state_snapshot>.",
            Some(ExtractionDirective::Summary),
        ),
        ("Please summarise the conversation; text only.", Some(ExtractionDirective::Summary)),
        ("Update the session notes file /home/u/notes.md, every section.", Some(ExtractionDirective::Notes)),
        ("Extract durable memories into the memory directory /p/memory/.", Some(ExtractionDirective::Memory)),
        ("Generate a short title for this session in 3-6 words.", Some(ExtractionDirective::Title)),
        ("Say in 3-5 words, present tense, what you are doing.", Some(ExtractionDirective::Progress)),
        ("Summarize the file README.md for me", None),
        ("Fix the title of the page", None),
        ("Add a progress bar to the importer", None),
        ("Why does the program run out of memory?", None),
        ("write notes about the release to NOTES.md", None),
    ];
    for (words, wanted) in cases {
        assert_eq!(directive::directive_in_text(words), wanted, "{words}");
    }
}

#[test]
fn a_directive_is_found_where_clients_put_it() {
    let mut last = session();
    last.push(said(
        Role::User,
        json!([{"type": "text", "text": "and now?"}, {"type": "text", "text": SUMMARIZE}]),
    ));
    let found = recognize_directive(&ask(last, &[])).unwrap();
    assert_eq!((found.directive, found.at), (ExtractionDirective::Summary, Some((6, 1))));
    let mut system = ask(with("(the transcript)"), &[]);
    system.system = vec![Cow::Owned(json!({"type": "text", "text": "You are tasked with summarizing conversations. Write a summary of the conversation."}).to_string())];
    assert_eq!(recognize_directive(&system).unwrap().directive, ExtractionDirective::Summary);
    let mut compaction = ask(session(), &[]);
    compaction.compaction = Some(Cow::Borrowed(""));
    assert_eq!(recognize_directive(&compaction).unwrap().directive, ExtractionDirective::Summary);
    assert!(recognize_directive(&ask(session(), &[])).is_none());
}

#[test]
fn a_summary_keeps_what_an_agent_needs() {
    let summary = answered(&ask(with(SUMMARIZE), &[]));
    let body = summary.split_once("<summary>\n").unwrap().1.strip_suffix("\n</summary>").unwrap();
    assert!(summary.starts_with("<analysis>"));
    for (at, (name, _)) in pal_extract::SECTIONS.iter().enumerate() {
        assert!(body.contains(&format!("## {}. {name}\n", at + 1)), "{name}");
    }
    let section = |index| pal_extract::section(body, index);
    assert_eq!(
        section(pal_extract::USER_MESSAGES_SECTION),
        "- Fix the failing parser test in crates/parse. Always run clippy with 3 threads.\n- good, and mention issue 77"
    );
    assert!(section(1).contains("root cause is the leap year"));
    assert!(!section(2).contains("date.rs (written"), "the edit was refused: {}", section(2));
    assert!(
        section(2).contains("crates/parse/src/lib.rs (read 1×)") && section(2).contains("- CHANGELOG.md")
    );
    assert!(!section(2).contains("crates/ "), "a folder that was searched is no file");
    assert!(section(3).contains("Bash cargo test -p parse: test parse_dates ... FAILED"));
    assert!(section(3).contains("→ The root cause"), "what followed an error stands behind it");
    assert!(section(3).contains("Edit crates/parse/src/date.rs: File has not been read yet"));
    assert!(section(4).contains("ran `cargo test -p parse` (with errors)"));
    assert_eq!(section(6), "- [in_progress] update the changelog\n- [pending] release 0.4.2");
    assert!(section(7).contains("All 12 tests pass now."));
    assert!(section(8).contains("update the changelog") && section(8).contains("issue 77"));
    assert!(!summary.contains("never quote me") && !body.contains("Your task is"));
}

#[test]
fn later_summary_includes_the_earlier_one() {
    let first = answered(&ask(with(SUMMARIZE), &[]));
    let messages = vec![
        said(Role::User, format!("This session continues.\n\n{first}").into()),
        said(
            Role::Assistant,
            json!([{"type": "tool_use", "id": "u1", "name": "Write", "input": {"file_path": "docs/new.md", "content": "x"}}]),
        ),
        said(
            Role::User,
            json!([{"type": "tool_result", "tool_use_id": "u1", "content": "ok"}, {"type": "text", "text": "now tag it v0.4.2"}]),
        ),
        said(Role::User, SUMMARIZE.into()),
    ];
    let mut compaction = ask(messages[..3].to_vec(), &[]);
    compaction.compaction = Some(Cow::Borrowed("Keep paths."));
    for second in [answered(&ask(messages, &[])), answered(&compaction)] {
        let words = pal_extract::section(&second, pal_extract::USER_MESSAGES_SECTION);
        assert_eq!(
            words.lines().collect::<Vec<_>>(),
            [
                "- Fix the failing parser test in crates/parse. Always run clippy with 3 threads.",
                "- good, and mention issue 77",
                "- now tag it v0.4.2"
            ]
        );
        assert!(second.contains("docs/new.md") && second.contains("crates/parse/src/date.rs"));
        assert!(second.contains("parse_dates ... FAILED"));
        assert_eq!(second.matches(&pal_extract::heading(pal_extract::USER_MESSAGES_SECTION)).count(), 1);
    }
}

#[test]
fn an_answer_fits_into_its_tokens() {
    let mut messages = session();
    for at in 0..200 {
        messages.push(said(Role::User, format!("wish {at}: {}", "long words ".repeat(100)).into()));
        messages.push(said(Role::Assistant, format!("I decided {at} because {}.", "x ".repeat(80)).into()));
    }
    messages.push(said(Role::User, SUMMARIZE.into()));
    for max_tokens in [0, 64, 1_000, 8_000, 32_000, u64::MAX] {
        let mut ask = ask(messages.clone(), &[]);
        ask.max_tokens = max_tokens;
        let room = room(max_tokens);
        let summary = answered(&ask);
        assert!(summary.len() <= room.max(256), "{} bytes for {max_tokens} tokens", summary.len());
        if max_tokens >= 32_000 {
            assert!(
                (0..200).all(|at| summary.contains(&format!("wish {at}: "))),
                "every message is there, if cut"
            );
        }
    }
}

#[test]
fn notes_are_written_edited_or_returned() {
    let directive = "Update the session notes in /s/notes.md, section by section.";
    let notes = answered(&ask(with(directive), &[]));
    assert_eq!(notes.lines().filter(|line| line.starts_with("# ")).count(), 10);
    assert!(
        notes.contains("date.rs") && notes.contains("cargo test -p parse") && notes.contains("release 0.4.2")
    );

    let write = json!({"name": "Write", "input_schema": {"type": "object", "properties": {"file_path": {}, "content": {}}}});
    let answer = ExtractiveModel.answer(&ask(with(directive), &[json!({"name": "Bash"}), write]));
    let [OutputBlock::ToolUse { name, input, .. }] = &answer.blocks[..] else { panic!("{answer:?}") };
    let input: Value = serde_json::from_str(input).unwrap();
    assert_eq!((name.as_str(), &input["file_path"]), ("Write", &json!("/s/notes.md")));
    assert_eq!(input["content"], notes);

    let edit = json!({"name": "Edit", "input_schema": {"properties": {"file_path": {}, "old_string": {}, "new_string": {}}}});
    let shown = format!(
        "{directive} The notes now:\n<notes>\n# Current state\n_What is going on_\nold words\n\n# Worklog\n_Step by step_\n</notes>\nEdit that file only."
    );
    let answer = ExtractiveModel.answer(&ask(with(&shown), &[edit]));
    let edits: Vec<Value> = answer
        .blocks
        .iter()
        .map(|block| match block {
            OutputBlock::ToolUse { input, .. } => serde_json::from_str(input).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(edits.len(), 2);
    assert_eq!(edits[0]["old_string"], "_What is going on_\nold words");
    assert!(
        edits[0]["new_string"].as_str().unwrap().starts_with("_What is going on_\nLast said: All 12 tests")
    );
    assert_eq!(edits[1]["old_string"], "_Step by step_");
}

#[test]
fn memories_are_kept_with_front_matter_or_not_at_all() {
    let directive = "Today is 2026-11-15. Extract durable memories into the directory /p/memory/ with topic files.\n- [old](old.md): an older one";
    let text = answered(&ask(with(directive), &[]));
    assert!(text.starts_with("---\nname: fix-failing-parser-test-crates-parse\n"), "{text}");
    assert!(
        text.contains("\ntype: feedback\nmodified: 2026-11-15\n---\n\n- Always run clippy with 3 threads.\n")
    );

    let editor = json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"});
    let answer = ExtractiveModel.answer(&ask(with(directive), &[editor]));
    let [OutputBlock::ToolUse { input: topic, .. }, OutputBlock::ToolUse { input: index, .. }] =
        &answer.blocks[..]
    else {
        panic!("{answer:?}")
    };
    let (topic, index): (Value, Value) =
        (serde_json::from_str(topic).unwrap(), serde_json::from_str(index).unwrap());
    assert_eq!((&topic["command"], &topic["file_text"]), (&json!("create"), &json!(text)));
    assert_eq!(topic["path"], "/p/memory/fix-failing-parser-test-crates-parse.md");
    assert_eq!(index["path"], "/p/memory/MEMORY.md");
    assert_eq!(index["file_text"].as_str().unwrap().lines().count(), 2);

    let idle = |words: &str| {
        vec![
            said(Role::User, words.into()),
            said(Role::Assistant, "ok".into()),
            said(Role::User, directive.into()),
        ]
    };
    assert_eq!(answered(&ask(idle("What is 2 + 2?"), &[])), "Nothing to keep.");
    assert_eq!(
        answered(&ask(idle("Always use the password hunter2."), &[])),
        "Nothing to keep.",
        "secrets are not kept"
    );
}

#[test]
fn titles_and_progress_lines_are_short() {
    let title = answered(&ask(with("Write a short title for this session, 3-6 words."), &[]));
    assert_eq!(title, "Fix failing parser test crates/parse");
    let progress = answered(&ask(with("Describe the current work in 3-5 words, present tense."), &[]));
    assert_eq!(progress, "Running the command apply_patch");
    for words in ["", "hi", "ok do it", "漢字"] {
        let asked = |directive: &str| {
            let said = vec![
                said(Role::User, words.into()),
                said(Role::Assistant, "ok".into()),
                said(Role::User, directive.into()),
            ];
            answered(&ask(said, &[])).split_whitespace().count()
        };
        assert!((3..=6).contains(&asked("Create a concise title of this conversation.")), "{words}");
        assert!((3..=5).contains(&asked("3-5 words, present tense: what happens?")), "{words}");
    }
}

#[test]
fn an_ordinary_question_gets_an_honest_answer() {
    let answer = answered(&ask(
        vec![said(Role::User, "What is the capital of Peru?".into())],
        &[json!({"name": "Bash"})],
    ));
    for words in ["simulator", "\"What is the capital of Peru?\"", "1 message(s)", "1 tool(s) (Bash)"] {
        assert!(answer.contains(words), "{answer}");
    }
    let mut results = session();
    results.truncate(3);
    assert_eq!(answered(&ask(results, &[])), "Done; 2 tool result(s) received.");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(pal_testkit::cases(100)))]

    #[test]
    fn any_conversation_gets_a_deterministic_answer(
        texts in prop::collection::vec("(.|\\s|\\*\\*\\* Update File: |## 6. All user messages|error: |_a_|# Title\n){0,60}", 0..6),
        raw in prop::collection::vec(".{0,40}|\\{\"type\":\"tool_use\",\"input\":.{0,20}\\}", 0..4),
        directive in 0usize..6, max_tokens in 0u64..4_000,
    ) {
        let directives = [
            SUMMARIZE, "Update the session notes file /a/b.md, each section.\n# Title\n_x_\n",
            "Extract durable memories into the memory directory /m/memory.", "Write a short title for this session.",
            "3-5 words, present tense.", "hello",
        ];
        let mut messages: Vec<PromptMessage<'static>> = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            messages.push(said([Role::User, Role::Assistant, Role::System][at % 3], text.as_str().into()));
        }
        messages.push(PromptMessage { role: Role::User, blocks: raw.into_iter().map(Cow::Owned).collect() });
        messages.push(said(Role::User, format!("{}{}", texts.concat(), directives[directive]).into()));
        let edit = json!({"name": "E", "input_schema": {"properties": {"path": {}, "old_str": {}, "new_str": {}}}});
        let mut ask = ask(messages, &[edit]);
        ask.max_tokens = max_tokens;
        prop_assert_eq!(&ExtractiveModel.answer(&ask).blocks, &ExtractiveModel.answer(&ask).blocks);
    }
}
