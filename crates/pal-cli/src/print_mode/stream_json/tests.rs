//! Checks every line of the documentation and of synthetic events against its schema.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pal_events::{BlockGrowth, ExchangeReport, McpServerInfo, PromptEnd, PromptResult, ToolDenial};
use pal_model::{
    BreakCause, EntryDraft, IdSource, ModelCatalog, RequestSource, SharedText, Timestamp, UsageTotals,
};

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn page() -> String {
    std::fs::read_to_string(root().join("../../docs/stream-json.md")).unwrap()
}

/// Schemas by name.
fn schemas() -> BTreeMap<String, Value> {
    let files = std::fs::read_dir(root().join("schemas")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    paths
        .map(|path| {
            let schema = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), schema)
        })
        .collect()
}

/// Name of a line's schema.
fn name(line: &Value) -> String {
    match (line["type"].as_str().unwrap(), line["subtype"].as_str()) {
        ("system", Some(subtype)) => format!("system-{subtype}"),
        (kind, _) => kind.to_owned(),
    }
}

/// Checks a line against its schema, and that the schema describes all of it.
#[track_caller]
fn validate(name: &str, line: &Value) {
    let schemas = schemas();
    let schema = schemas.get(name).unwrap_or_else(|| panic!("`{name}` has no schema"));
    let errors: Vec<String> = jsonschema::validator_for(schema)
        .unwrap()
        .iter_errors(line)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:?}\n{line}");
    for member in line.as_object().unwrap().keys() {
        assert!(schema["properties"].get(member).is_some(), "`{member}` of `{name}` is not described");
    }
}

/// Examples of the documentation with their schema names.
fn examples() -> Vec<(String, Value)> {
    let page = page();
    let (output, input) = page.split_once("\n## Input").unwrap();
    let of = |part: &str, prefix: &str| -> Vec<(String, Value)> {
        let fences = part.split("```json\n").skip(1).map(|rest| rest.split_once("```").unwrap().0);
        let read = |text: &str| {
            serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        };
        fences.map(read).map(|line| (format!("{prefix}{}", name(&line)), line)).collect()
    };
    [of(output, ""), of(input, "input-")].concat()
}

fn entry(draft: EntryDraft, seed: u64) -> LogEntry {
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let id = IdSource::seeded(seed).next_id(at);
    let parent = (seed > 1).then(|| IdSource::seeded(seed - 1).next_id(at));
    LogEntry::parse(SharedText::from(draft.into_line(id, parent, at, None))).unwrap()
}

fn began() -> AgentEvent {
    AgentEvent::SessionStarted(Box::new(SessionInfo {
        session_id: "0199a8f2-7b10-7000-9c1e-5a2f4d6e8b01".into(),
        transcript_path: "/p/log.jsonl".into(),
        cwd: "/p".into(),
        model: "m".into(),
        tools: vec!["Read".into()],
        permission_mode: "accept-edits".into(),
        is_resumed: true,
        version: "0.1.0".into(),
        mcp_servers: vec![McpServerInfo { name: "calc".into(), status: "connected".into() }],
        agents: Vec::new(),
        skills: Vec::new(),
        output_style: None,
    }))
}

fn ended(end: PromptEnd, turns: u64) -> AgentEvent {
    let denial = ToolDenial {
        tool_name: "Bash".into(),
        tool_use_id: "toolu_1".into(),
        tool_input: "not json".into(),
        reason: "no".into(),
        rule: None,
    };
    AgentEvent::Ended(PromptResult {
        end,
        text: "bye".into(),
        turns,
        took: Duration::from_millis(10),
        took_provider: Duration::from_millis(9),
        spent: UsageTotals { output_tokens: 7, cost: 0.5, ..UsageTotals::default() },
        denials: vec![denial],
        structured_output: None,
    })
}

const CONTENT: &str = r#"[{"type":"text","text":"a \u00e9","n":1e2},{"type":"new_thing","x" : [1]}]"#;

/// A whole response: thinking, text and a tool call.
fn response_steps() -> Vec<AgentEvent> {
    let block = |raw: &str| ContentBlock::parse(SharedText::from(raw));
    let grew = |index, growth| ResponseProgress::BlockGrew { index, growth };
    let started = |index, kind| ResponseProgress::BlockStarted { index, kind, tool: None, call: None };
    let steps = [
        ResponseProgress::Started { response: "msg_1".into(), model: "m".into(), usage: Usage::default() },
        started(0, "thinking"),
        grew(0, BlockGrowth::Thinking("hm".into())),
        ResponseProgress::BlockEnded {
            index: 0,
            block: block(r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#),
        },
        started(1, "text"),
        grew(1, BlockGrowth::Text("a".into())),
        ResponseProgress::BlockEnded { index: 1, block: block(r#"{"type":"text","text":"a"}"#) },
        ResponseProgress::BlockStarted {
            index: 2,
            kind: "tool_use",
            tool: Some("Read".into()),
            call: Some("toolu_1".into()),
        },
        grew(2, BlockGrowth::Input(r#"{"file_path":"x"}"#.into())),
        ResponseProgress::BlockEnded {
            index: 2,
            block: block(r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"x"}}"#),
        },
        ResponseProgress::Finished { stop_reason: Some("tool_use".into()), usage: Usage::default() },
    ];
    steps.into_iter().map(|step| AgentEvent::Progress(Box::new(step))).collect()
}

fn exchanged() -> AgentEvent {
    AgentEvent::ExchangeEnded(Box::new(ExchangeReport {
        source: RequestSource::main(),
        provider: "anthropic",
        model: "claude-opus-5-5".into(),
        window: Some(1_234_567),
        max_tokens: 1_000,
        answered: None,
        usage: Some(Usage { input_tokens: 3, output_tokens: 7, ..Usage::default() }),
        cost: Some(0.25),
        stop_reason: None,
        failed: None,
        took: Duration::ZERO,
        took_to_start: None,
    }))
}

/// Events of every kind. A new kind does not compile here until it has its line.
fn events() -> Vec<AgentEvent> {
    let call = ToolUseId::from("toolu_1");
    let said = entry(EntryDraft::user(MessageOrigin::Person, CONTENT), 1);
    let answer = entry(EntryDraft::assistant(Some(&"msg_1".into()), Some("m"), CONTENT), 2);
    let fall = CacheBreak {
        tokens: 3,
        cause: BreakCause::Provider,
        also: Vec::new(),
        cost: Some(0.1),
        provider: None,
        diff: None,
    };
    let events = vec![
        began(),
        AgentEvent::Message { entry: Box::new(said), usage: None, cost: None },
        AgentEvent::Thinking("hm".into()),
        AgentEvent::Text("a".into()),
        AgentEvent::AnswerDiscarded { why: "cut".into() },
        AgentEvent::Waiting { why: "529".into(), attempt: 2, of: 10, left: Duration::from_millis(1_500) },
        AgentEvent::Waiting { why: "529".into(), attempt: 2, of: 10, left: Duration::from_millis(500) },
        AgentEvent::Message {
            entry: Box::new(answer.clone()),
            usage: Some(Box::default()),
            cost: Some(0.25),
        },
        AgentEvent::Message { entry: Box::new(answer), usage: None, cost: None },
        AgentEvent::ToolStarted {
            call: call.clone(),
            name: "Read".into(),
            input: r#"{"file_path":"x"}"#.into(),
        },
        AgentEvent::ToolPrinted { call: call.clone(), text: "x\n".into() },
        AgentEvent::ToolEnded { call, name: "Read".into(), is_error: true, took: Duration::ZERO, bytes: 4 },
        AgentEvent::Compacted(Box::new(Boundary { trigger: "auto".into(), ..Boundary::default() })),
        AgentEvent::CacheBroken(Box::new(fall)),
        AgentEvent::SubagentActivity { agent: "scout".into(), doing: "Reading tests".into() },
        AgentEvent::ColdTurn {
            expired_for: Duration::from_secs(740),
            tokens: 412_300,
            cost: Some(2.06),
            text: "cache expired".into(),
        },
        AgentEvent::Alarm { kind: "cache_break", cost: 2.5, text: "cache break".into() },
        AgentEvent::Notice("look".into()),
        AgentEvent::Warning("damaged".into()),
        AgentEvent::Mode("plan".into()),
        ended(PromptEnd::Done, 2),
        ended(PromptEnd::Refused("no".into()), 2),
        ended(PromptEnd::Limit("turns".into()), 3),
        ended(PromptEnd::Limit("money".into()), 2),
        ended(PromptEnd::Failed("broke".into()), 2),
        ended(PromptEnd::Interrupted, 2),
    ];
    let events: Vec<AgentEvent> = events.into_iter().chain(response_steps()).chain([exchanged()]).collect();
    for event in &events {
        match event {
            AgentEvent::SessionStarted(_)
            | AgentEvent::Message { .. }
            | AgentEvent::Text(_)
            | AgentEvent::Progress(_)
            | AgentEvent::Thinking(_) => {}
            AgentEvent::AnswerDiscarded { .. }
            | AgentEvent::Waiting { .. }
            | AgentEvent::ColdTurn { .. }
            | AgentEvent::Alarm { .. }
            | AgentEvent::Notice(_)
            | AgentEvent::Ended(_) => {}
            AgentEvent::ToolStarted { .. }
            | AgentEvent::ToolPrinted { .. }
            | AgentEvent::ToolEnded { .. } => {}
            AgentEvent::Compacted(_)
            | AgentEvent::CacheBroken(_)
            | AgentEvent::ExchangeEnded(_)
            | AgentEvent::Mode(_) => {}
            AgentEvent::SubagentActivity { .. } | AgentEvent::Compacting { .. } | AgentEvent::Warning(_) => {}
        }
    }
    events
}

/// Lines printed for events, a malformed input line and a failure, and the exit code.
fn printed(events: &[AgentEvent], is_partial: bool, is_verbose: bool) -> (Vec<String>, ExitCode) {
    let mut out = Vec::new();
    let now = || Timestamp::from_milliseconds(1_800_000_000_000);
    let lines = JsonLines::new(&mut out, 7, now, Some(3), ModelCatalog::built_in());
    let options = StreamJsonOptions { is_partial, is_verbose, replays_prompts: false, is_strict: false };
    let mut show = StreamJson::new(lines, options);
    show.set_commands(vec![String::from("compact")]);
    events.iter().for_each(|event| show.event(event).unwrap());
    show.bad_line(3, "not JSON").unwrap();
    show.background(&UsageTotals { responses: 1, cost: 0.01, ..UsageTotals::default() }).unwrap();
    let code = show.finish(None).unwrap();
    show.finish(Some(&Failure::with_hint("no key", "set one"))).unwrap();
    (String::from_utf8(out).unwrap().lines().map(str::to_owned).collect(), code)
}

fn parsed(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_line_matches_its_schema() {
    let (lines, _) = printed(&events(), true, true);
    for line in parsed(&lines) {
        validate(&name(&line), &line);
        assert!(line["session_id"] == "0199a8f2-7b10-7000-9c1e-5a2f4d6e8b01", "{line}");
    }
}

#[test]
fn every_example_matches_its_schema_and_every_line_has_one() {
    let examples = examples();
    for (name, line) in &examples {
        validate(name, line);
    }
    let shown: BTreeSet<String> = examples.into_iter().map(|(name, _)| name).collect();
    let known: BTreeSet<String> = schemas().into_keys().collect();
    assert_eq!(shown, known, "each schema has an example on the page, and each example a schema");
    let (lines, _) = printed(&events(), true, true);
    let printed: BTreeSet<String> = parsed(&lines).iter().map(name).collect();
    let output: BTreeSet<String> = known.into_iter().filter(|name| !name.starts_with("input-")).collect();
    assert_eq!(printed, output, "each line that is described is printed");
    let page = page();
    for schema in schemas().values() {
        let subtypes = schema["properties"]["subtype"]["enum"].as_array().cloned().unwrap_or_default();
        for subtype in subtypes {
            assert!(
                page.contains(&format!("`{}`", subtype.as_str().unwrap())),
                "{subtype} is not on the page"
            );
        }
    }
}

#[test]
fn input_examples_are_accepted() {
    let examples = examples().into_iter().filter(|(name, _)| name.starts_with("input-"));
    let text: String = examples.map(|(_, line)| format!("{line}\n")).collect();
    let lines: Vec<_> =
        crate::print_mode::stream_input::read_messages(std::io::Cursor::new(text)).iter().collect();
    assert!(lines.len() >= 4 && lines.iter().all(|line| line.message.is_ok()), "{lines:?}");
}

#[test]
fn content_keeps_the_bytes_of_the_log() {
    let (lines, _) = printed(&events(), false, false);
    let said: Vec<&String> = lines.iter().filter(|line| line.contains("new_thing")).collect();
    assert_eq!(said.len(), 3);
    let blocks = CONTENT.strip_prefix('[').unwrap().strip_suffix(']').unwrap();
    assert!(said.iter().all(|line| line.contains(blocks)), "{said:?}");
}

#[test]
fn partial_and_verbose_lines_are_optional() {
    let kinds = |is_partial, is_verbose| {
        let (lines, _) = printed(&events(), is_partial, is_verbose);
        parsed(&lines).iter().map(name).collect::<BTreeSet<_>>()
    };
    assert!(!kinds(false, false).contains("stream_event") && !kinds(false, false).contains("tool_progress"));
    assert!(kinds(true, false).contains("stream_event") && kinds(false, true).contains("tool_progress"));
    let (lines, _) = printed(&events(), true, false);
    let lines = parsed(&lines);
    let steps: Vec<String> = lines
        .iter()
        .filter(|line| line["type"] == "stream_event")
        .map(|line| {
            let event = &line["event"];
            let detail = [&event["delta"]["type"], &event["content_block"]["type"]];
            let detail = detail.into_iter().find_map(Value::as_str).unwrap_or_default();
            let index = event["index"].as_u64().map_or(String::new(), |index| format!(" {index}"));
            format!("{}{index} {detail}", event["type"].as_str().unwrap()).trim_end().to_owned()
        })
        .collect();
    assert_eq!(
        steps,
        [
            "message_start",
            "content_block_start 0 thinking",
            "content_block_delta 0 thinking_delta",
            "content_block_delta 0 signature_delta",
            "content_block_stop 0",
            "content_block_start 1 text",
            "content_block_delta 1 text_delta",
            "content_block_stop 1",
            "content_block_start 2 tool_use",
            "content_block_delta 2 input_json_delta",
            "content_block_stop 2",
            "message_delta",
            "message_stop",
        ]
    );
    assert_eq!(lines.iter().filter(|line| line["subtype"] == "retry").count(), 1, "one line a wait");
}

#[test]
fn ends_have_their_names_and_exit_codes() {
    let names = [
        (PromptEnd::Done, 2, "success", 0),
        (PromptEnd::Refused("r".into()), 2, "error_refused", 1),
        (PromptEnd::Limit("l".into()), 3, "error_max_turns", 3),
        (PromptEnd::Limit("l".into()), 2, "error_limit", 3),
        (PromptEnd::Failed("f".into()), 2, "error_during_execution", 1),
        (PromptEnd::Interrupted, 2, "error_interrupted", 130),
    ];
    for (end, turns, name, code) in names {
        let (lines, exit) = printed(&[began(), ended(end.clone(), turns)], false, false);
        let result = &parsed(&lines)[1];
        assert_eq!((result["subtype"].as_str(), exit), (Some(name), ExitCode::from(code)));
        assert_eq!(result["is_error"], name != "success");
        assert_eq!(result["error"].is_null(), name == "success");
    }
}

#[test]
fn results_count_usage_by_model() {
    let events = [began(), exchanged(), exchanged(), ended(PromptEnd::Done, 2)];
    let (lines, _) = printed(&events, false, false);
    let lines = parsed(&lines);
    assert_eq!(lines[0]["permissionMode"], "acceptEdits");
    assert_eq!(lines[0]["slash_commands"], json!(["compact"]));
    let used = &lines[1]["modelUsage"]["claude-opus-5-5"];
    assert_eq!((&used["inputTokens"], &used["outputTokens"]), (&json!(6), &json!(14)));
    assert_eq!(used["costUSD"], 0.5);
    assert_eq!(used["contextWindow"], 1_234_567, "the window of the model in use");
}

#[test]
fn prompts_are_not_repeated_to_a_driving_program() {
    let said = entry(EntryDraft::user(MessageOrigin::Person, CONTENT), 1);
    let said = AgentEvent::Message { entry: Box::new(said), usage: None, cost: None };
    for (is_driven, replays_prompts, count) in [(false, false, 1), (true, false, 0), (true, true, 1)] {
        let mut out = Vec::new();
        let now = || Timestamp::from_milliseconds(1_800_000_000_000);
        let lines = JsonLines::new(&mut out, 7, now, None, ModelCatalog::built_in());
        let options =
            StreamJsonOptions { is_partial: false, is_verbose: false, replays_prompts, is_strict: false };
        let mut show = StreamJson::new(lines, options);
        if is_driven {
            show.set_driven();
        }
        show.event(&said).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), count, "{is_driven} {replays_prompts}");
    }
}
