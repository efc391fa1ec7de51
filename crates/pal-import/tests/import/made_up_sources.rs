//! Made-up sources for what the real sessions lack.

use pal_import::{ImportError, ImportOptions, InternalReason, LineProblem, SessionFormat, detect, import};
use pal_model::{DecisionKind, EntryBody, LogEntry, MessageOrigin, PreservedPlacement, UsageBasis};

use crate::support::{imported, lenient, typed};
use pal_testkit::ByteThirds;

/// A record of Claude Code: `fields` before the message or attachment that `rest` holds.
fn claude(kind: &str, uuid: &str, rest: &str) -> String {
    let second = uuid.bytes().map(u64::from).sum::<u64>() % 60;
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","sessionId":"s1","cwd":"/w","version":"2.1.0","timestamp":"2026-11-15T09:00:{second:02}.000Z",{rest}}}"#
    )
}

fn user(uuid: &str, text: &str) -> String {
    claude(
        "user",
        uuid,
        &format!(r#""message":{{"role":"user","content":{}}}"#, serde_json::to_string(text).unwrap()),
    )
}

fn assistant(uuid: &str, response: &str, block: &str, output_tokens: u64) -> String {
    claude(
        "assistant",
        uuid,
        &format!(
            r#""message":{{"id":"{response}","model":"m1","role":"assistant","content":[{block}],"stop_reason":null,"usage":{{"input_tokens":5,"cache_creation_input_tokens":30000,"output_tokens":{output_tokens}}}}}"#
        ),
    )
}

fn says(text: &str) -> String {
    format!(r#"{{"type":"text","text":"{text}"}}"#)
}

fn calls(id: &str, tool: &str) -> String {
    format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{}}}}"#)
}

fn result(uuid: &str, id: &str, more: &str) -> String {
    let content = format!(r#"[{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}{more}]"#);
    claude("user", uuid, &format!(r#""message":{{"role":"user","content":{content}}},"toolUseResult":"ok""#))
}

fn boundary(uuid: &str, metadata: &str) -> String {
    let rest = format!(r#""subtype":"compact_boundary","parentUuid":null,"compactMetadata":{{{metadata}}}"#);
    claude("system", uuid, &rest)
}

fn summary(uuid: &str) -> String {
    claude("user", uuid, r#""isCompactSummary":true,"message":{"role":"user","content":"what was before"}"#)
}

fn join(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Compact form of the log: one word per entry, with its distinguishing data.
fn short(entries: &[LogEntry]) -> String {
    let word = |entry: &LogEntry| match &entry.body {
        EntryBody::User(user) => format!("user:{}", user.origin.name()),
        EntryBody::Assistant(assistant) => format!("assistant:{}", assistant.response.as_ref().unwrap()),
        EntryBody::Attachment(attachment) => format!("attachment:{}", attachment.what),
        EntryBody::Response(response) => {
            format!("response:{}:{}", response.response, response.usage.output_tokens)
        }
        EntryBody::Decision(_) => format!("decision:{}", entry.kind().0),
        EntryBody::Internal => {
            let line: serde_json::Value = serde_json::from_str(&entry.line).unwrap();
            format!("internal:{}", line["what"].as_str().unwrap())
        }
        _ => entry.kind().0.to_string(),
    };
    entries.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn check(lines: &[String], expected: &str) -> (pal_import::ImportedSession, Vec<LogEntry>) {
    let (imported, entries) = imported(join(lines).as_bytes());
    assert_eq!(short(&entries), expected);
    (imported, entries)
}

#[test]
fn placeholder_output_counts_are_estimated_and_marked() {
    let story = "The parser reads one token after another. ".repeat(400);
    let stopped = assistant("a2", "r2", &says(&story), 9)
        .replace(r#""stop_reason":null"#, r#""stop_reason":"end_turn""#);
    let lines = [
        user("u1", "tell it"),
        assistant("a1", "r1", &says(&story), 9),
        user("u2", "again"),
        stopped,
        user("u3", "shorter"),
        assistant("a3", "r3", &says("No."), 9),
    ];
    let (imported, entries) = imported(join(&lines).as_bytes());
    let counts: Vec<(u64, UsageBasis)> = entries
        .iter()
        .filter_map(|entry| match &entry.body {
            EntryBody::Response(response) => Some((response.usage.output_tokens, response.usage.basis)),
            _ => None,
        })
        .collect();
    assert!(counts[0].0 > 2_000 && counts[0].1 == UsageBasis::Estimated, "{counts:?}");
    assert_eq!(counts[1..], [(9, UsageBasis::Reported), (9, UsageBasis::Reported)]);
    assert_eq!(imported.report.estimated_outputs, 1);
    assert!(imported.report.to_string().contains("output tokens estimated: 1 responses"));
}

#[test]
fn one_response_over_several_records() {
    let lines = [
        user("u1", "fix it"),
        assistant("a1", "r1", &calls("t1", "Bash"), 1),
        result("u2", "t1", ""),
        assistant("a2", "r1", &calls("t2", "Read"), 70),
        result("u3", "t2", ""),
        assistant("a3", "r2", &says("done"), 9),
    ];
    let (imported, entries) = check(
        &lines,
        "session prefix user:person request assistant:r1 user:tool assistant:r1 response:r1:70 user:tool request assistant:r2 response:r2:9",
    );
    let report = &imported.report;
    assert_eq!(
        (report.responses, report.tool_calls, report.tool_results, report.user_messages),
        (2, 2, 2, 1)
    );
    assert_eq!(report.usage.output_tokens, 79, "of several records the last has the final figure");
    assert_eq!(report.unseen_tokens, 30005 - 2, "the first prompt less `fix it`");
    let EntryBody::Prefix(prefix) = &entries[1].body else { panic!() };
    let tools: serde_json::Value = serde_json::from_str(&prefix.tools).unwrap();
    assert_eq!(
        (&tools[0]["name"], &tools[1]["name"], tools.as_array().unwrap().len()),
        (&"Bash".into(), &"Read".into(), 2)
    );
    assert_eq!(tools[0]["input_schema"]["type"], "object");
    let EntryBody::Session(session) = &entries[0].body else { panic!() };
    assert_eq!(
        (session.program.as_str(), session.foreign_id.as_deref(), session.cwd.as_deref()),
        ("claude-code", Some("s1"), Some("/w"))
    );
}

#[test]
fn sidechains_replays_and_unknown_records_become_internal() {
    let side = user("x1", "look around").replace(r#""sessionId""#, r#""isSidechain":true,"sessionId""#);
    let lines = [
        r#"{"type":"summary","summary":"Its own","leafUuid":"u1"}"#.to_owned(),
        r#"{"type":"summary","summary":"Earlier","leafUuid":"z"}"#.to_owned(),
        user("u1", "fix it"),
        side.clone(),
        user("u1", "fix it"),
        claude("hologram", "h1", r#""beam":1"#),
        claude("ai-title", "t1", r#""aiTitle":"Fixing \"it\"""#),
    ];
    let (imported, _) = check(
        &lines,
        "session prefix internal:summary internal:summary user:person internal:sidechain internal:replayed internal:hologram internal:ai-title",
    );
    let reasons: Vec<InternalReason> =
        imported.report.internal_records.iter().map(|kept| kept.reason).collect();
    assert_eq!(
        reasons,
        [
            InternalReason::Bookkeeping,
            InternalReason::Bookkeeping,
            InternalReason::Sidechain,
            InternalReason::Replayed,
            InternalReason::UnknownRecord,
            InternalReason::Bookkeeping
        ]
    );
    assert_eq!(imported.report.title.as_deref(), Some("Fixing \"it\""));
    let (untitled, _) = imported_lines(&lines[..3]);
    assert_eq!(untitled.report.title.as_deref(), Some("Its own"), "the other one names another session");
    assert!(
        imported.log.contains(&format!(r#""what":"sidechain","raw":{side}}}"#)),
        "the whole record is kept"
    );
}

#[test]
fn a_rewind_is_counted_and_both_prompts_stay() {
    let under = |uuid: &str, text: &str| {
        user(uuid, text).replace(r#""sessionId""#, r#""parentUuid":"a1","sessionId""#)
    };
    let lines =
        [user("u1", "go"), assistant("a1", "r1", &says("yes"), 1), under("u2", "left"), under("u3", "right")];
    let (imported, entries) = check(
        &lines,
        "session prefix user:person request assistant:r1 response:r1:1 user:person user:person",
    );
    assert_eq!(
        (imported.report.rewinds, typed(&entries)),
        (1, vec!["go".into(), "left".into(), "right".into()])
    );
}

#[test]
fn text_typed_beside_a_result_is_its_own_message() {
    let reminder = r#",{"type":"text","text":"<system-reminder>x</system-reminder>"}"#;
    let lines = [
        assistant("a1", "r1", &calls("t1", "Bash"), 1),
        result("u1", "t1", &format!(r#"{reminder},{}"#, says("stop that"))),
        result("u2", "t2", reminder),
    ];
    let (imported, entries) =
        check(&lines, "session prefix request assistant:r1 response:r1:1 user:tool user:person user:tool");
    assert_eq!(typed(&entries), ["stop that"]);
    assert_eq!(imported.report.tool_results, 2);
    let EntryBody::User(tool) = &entries[5].body else { panic!() };
    assert_eq!(tool.content.blocks().len(), 2, "the reminder stays with the result");
}

#[test]
fn api_errors_are_display_only() {
    let error =
        assistant("a1", "r1", &says("API Error"), 0).replace(r#""model":"m1""#, r#""model":"<synthetic>""#);
    let (imported, _) = check(&[user("u1", "go"), error], "session prefix user:person virtual");
    assert_eq!((imported.report.responses, imported.report.unseen_tokens), (0, 0));
}

fn queued(uuid: &str, operation: &str, content: &str) -> String {
    claude("queue-operation", uuid, &format!(r#""operation":"{operation}"{content}"#))
        .replace(&format!(r#""uuid":"{uuid}","#), "")
}

#[test]
fn queued_messages_are_added_once() {
    let prompt = |uuid: &str, text: &str, mode: &str| {
        claude(
            "attachment",
            uuid,
            &format!(r#""attachment":{{"type":"queued_command","prompt":"{text}","commandMode":"{mode}"}}"#),
        )
    };
    let text = |text: &str| format!(r#","content":"{text}""#);
    let cases: &[(&str, Vec<String>, &[&str])] = &[
        (
            "without a trace",
            vec![queued("q1", "enqueue", &text("hurry")), queued("q2", "remove", "")],
            &["go", "hurry"],
        ),
        (
            "as an attachment",
            vec![
                queued("q1", "enqueue", &text("hurry")),
                queued("q2", "remove", &text("hurry")),
                prompt("p1", "hurry", "prompt"),
            ],
            &["go", "hurry"],
        ),
        (
            "as a prompt",
            vec![queued("q1", "enqueue", &text("hurry")), queued("q2", "dequeue", ""), user("u2", "hurry")],
            &["go", "hurry"],
        ),
        (
            "joined",
            vec![
                queued("q1", "enqueue", &text("one")),
                queued("q2", "enqueue", &text("two")),
                queued("q3", "dequeue", ""),
                queued("q4", "dequeue", ""),
                user("u2", "one\ntwo"),
            ],
            &["go", "one\ntwo"],
        ),
        (
            "twice the same",
            vec![
                queued("q1", "enqueue", &text("more")),
                queued("q2", "remove", ""),
                queued("q3", "enqueue", &text("more")),
                queued("q4", "dequeue", ""),
                user("u2", "more"),
            ],
            &["go", "more", "more"],
        ),
        (
            "taken back",
            vec![queued("q1", "enqueue", &text("no")), queued("q2", "popAll", &text("no"))],
            &["go"],
        ),
        ("still waiting", vec![queued("q1", "enqueue", &text("later"))], &["go", "later"]),
        (
            "by the agent",
            vec![queued("q1", "enqueue", r#","content":"{\"task_id\":\"b1\"}""#), queued("q2", "remove", "")],
            &["go"],
        ),
        ("a notice", vec![prompt("p1", "<task-notification>x", "task-notification")], &["go"]),
    ];
    for (name, lines, expected) in cases {
        let mut all = vec![user("u1", "go")];
        all.extend_from_slice(lines);
        let (imported, entries) = imported(join(&all).as_bytes());
        assert_eq!(typed(&entries), *expected, "{name}");
        assert_eq!(imported.report.withdrawn, u64::from(*name == "taken back"), "{name}");
    }
}

#[test]
fn boundary_has_its_summary_and_preserved_range() {
    let kept = r#""trigger":"auto","preTokens":171000,"postTokens":9800,"preservedSegment":{"headUuid":"u2","anchorUuid":"s1","tailUuid":"a2"}"#;
    let lines = [
        user("u1", "go"),
        assistant("a1", "r1", &says("yes"), 1),
        user("u2", "on"),
        assistant("a2", "r2", &says("yes"), 2),
        boundary("b1", kept),
        summary("s1"),
        user("u3", "and now"),
    ];
    let (imported, entries) = check(
        &lines,
        "session prefix user:person request assistant:r1 response:r1:1 user:person request assistant:r2 response:r2:2 internal:compact_boundary boundary user:person",
    );
    let EntryBody::Boundary(boundary) = &entries[11].body else { panic!() };
    let preserved = boundary.preserved.as_ref().unwrap();
    assert_eq!(
        (preserved.head, preserved.tail, preserved.placement),
        (entries[6].id, entries[8].id, PreservedPlacement::AfterSummary)
    );
    let head = &imported.log[preserved.offset.unwrap() as usize..];
    assert!(head.starts_with(entries[6].line.as_str()), "the offset is where the head's line starts");
    assert_eq!((boundary.tokens_before, boundary.tokens_after), (Some(171000), Some(9800)));
    assert_eq!(boundary.summary.blocks()[0].string("text").unwrap(), "what was before");
    assert_eq!(
        (boundary.snapshot.totals.responses, boundary.snapshot.prefix.unwrap().id),
        (2, entries[1].id)
    );
    assert_eq!(imported.report.user_messages, 3, "a summary is no user message");
    // The oldest messages are kept: the range is anchored at the boundary itself.
    let before = kept.replace(r#""anchorUuid":"s1""#, r#""anchorUuid":"b1""#);
    let lines = [
        user("u2", "on"),
        assistant("a2", "r2", &says("yes"), 2),
        self::boundary("b1", &before),
        summary("s1"),
    ];
    let (_, entries) = imported_lines(&lines);
    let EntryBody::Boundary(boundary) = &entries.last().unwrap().body else { panic!() };
    assert_eq!(boundary.preserved.as_ref().unwrap().placement, PreservedPlacement::BeforeSummary);
}

fn imported_lines(lines: &[String]) -> (pal_import::ImportedSession, Vec<LogEntry>) {
    imported(join(lines).as_bytes())
}

/// Preserved messages after the boundary simply follow it; their responses were given before it, so that
/// their reported size is not taken for that of the new context.
#[test]
fn preserved_messages_behind_the_boundary_follow_it() {
    let kept = r#""trigger":"auto","preservedMessages":{"anchorUuid":"s1","uuids":["u2","a2","a3"]}"#;
    let lines = [
        user("u1", "go"),
        assistant("a1", "r1", &calls("t1", "Bash"), 1),
        boundary("b1", kept),
        summary("s1"),
        result("u2", "t1", ""),
        assistant("a2", "r2", &says("yes"), 2),
        assistant("a3", "r2", &says("and"), 3),
        user("u3", "now"),
    ];
    let (_, entries) = check(
        &lines,
        "session prefix user:person request assistant:r1 response:r1:1 internal:compact_boundary request response:r2:3 boundary user:tool assistant:r2 assistant:r2 user:person",
    );
    let EntryBody::Boundary(boundary) = &entries[9].body else { panic!() };
    assert_eq!((boundary.preserved.as_ref(), boundary.snapshot.totals.responses), (None, 2));
    // A response that a boundary cuts through ends before it.
    let lines = [
        assistant("a1", "r1", &calls("t1", "Bash"), 1),
        self::boundary("b1", ""),
        summary("s1"),
        assistant("a2", "r1", &says("yes"), 8),
    ];
    check(
        &lines,
        "session prefix request assistant:r1 internal:compact_boundary response:r1:8 boundary assistant:r1",
    );
}

#[test]
fn a_boundary_without_a_summary_drops_no_history() {
    let lines = [
        user("u1", "go"),
        boundary("b1", ""),
        user("u2", "on"),
        assistant("a1", "r1", &says("x"), 1),
        summary("s1"),
    ];
    let (imported, _) = check(
        &lines,
        "session prefix user:person internal:compact_boundary user:person request assistant:r1 response:r1:1 boundary",
    );
    assert_eq!(imported.report.internal_records[0].reason, InternalReason::NoSummary);
}

#[test]
fn commands_in_system_records_are_prompts() {
    let command = |arguments: &str| {
        let content =
            format!("<command-name>/plan</command-name>\\n<command-args>{arguments}</command-args>");
        claude("system", "c1", &format!(r#""subtype":"local_command","content":"{content}""#))
    };
    check(&[command("the next step")], "session prefix user:person");
    check(&[command("")], "session prefix internal:local_command");
    let empty = claude("user", "u1", r#""message":{"role":"user","content":[]}"#);
    check(&[empty], "session prefix internal:user");
}

#[test]
fn microcompaction_becomes_a_clear_decision() {
    let micro = claude(
        "system",
        "m1",
        r#""subtype":"microcompact_boundary","microcompactMetadata":{"trigger":"auto","tokensSaved":900,"compactedToolIds":["t1","t2"]}"#,
    );
    let (_, entries) = check(
        &[user("u1", "go"), micro],
        "session prefix user:person internal:microcompact_boundary decision:clear",
    );
    let EntryBody::Decision(decision) = &entries[4].body else { panic!() };
    assert!(matches!(&decision.kind, DecisionKind::Clear { tool_use_ids, .. } if tool_use_ids.len() == 2));
    assert_eq!(decision.cost.tokens_freed, 900);
}

#[test]
fn attachments_become_text() {
    let cases = [
        (r#"{"type":"date_change","newDate":"2026-11-16"}"#, Some("2026-11-16")),
        (
            r#"{"type":"file","filename":"/a.rs","content":{"type":"text","file":{"filePath":"/a.rs","content":"fn a() {}"}}}"#,
            Some("fn a() {}"),
        ),
        (
            r#"{"type":"file","filename":"/a.png","content":{"type":"image","file":{"base64":"AAAA","type":"image/png"}}}"#,
            Some("\"media_type\":\"image/png\""),
        ),
        (r#"{"type":"edited_text_file","filename":"/a.rs","snippet":"1\tx"}"#, Some("1\\tx")),
        (r#"{"type":"task_reminder","content":[]}"#, None),
        (
            r#"{"type":"task_reminder","content":[{"id":"3","subject":"ship","status":"pending"}]}"#,
            Some("#3 [pending] ship"),
        ),
        (r#"{"type":"hook_success","hookName":"Stop","content":""}"#, None),
        (r#"{"type":"hook_success","hookName":"Stop","content":"well done"}"#, Some("well done")),
        (r#"{"type":"hook_additional_context","hookName":"H","content":["a","b"]}"#, Some("a\\nb")),
        (r#"{"type":"command_permissions","allowedTools":["Bash"]}"#, None),
        (
            r#"{"type":"deferred_tools_delta","addedNames":["A"],"addedLines":["A: does"],"removedNames":["B"]}"#,
            Some("A: does\\nNo longer there:\\nB"),
        ),
        (r#"{"type":"deferred_tools_delta","addedNames":[],"removedNames":[]}"#, None),
        (r#"{"type":"invoked_skills","skills":[{"name":"s","content":"do so"}]}"#, Some("## s\\ndo so")),
        (
            r#"{"type":"async_hook_response","response":{"hookSpecificOutput":{"additionalContext":"heed"}}}"#,
            Some("heed"),
        ),
        (r#"{"type":"a_later_kind","content":"words"}"#, Some("a later kind:\\nwords")),
        (r#"{"type":"a_later_kind","setting":1}"#, None),
    ];
    for (attachment, expected) in cases {
        let line = claude("attachment", "a1", &format!(r#""attachment":{attachment}"#));
        let (imported, entries) = imported_lines(std::slice::from_ref(&line));
        let entry = &entries[2];
        assert_eq!(matches!(entry.body, EntryBody::Attachment(_)), expected.is_some(), "{attachment}");
        assert!(entry.line.contains(expected.unwrap_or(&line)), "{}", entry.line);
        assert!(imported.log.contains(attachment), "the payload stays raw beside it");
    }
}

#[test]
fn bad_lines_are_kept_and_refused_when_strict() {
    let good = user("u1", "go");
    let cases: &[(&[u8], &str, LineProblem)] = &[
        (
            b"nonsense",
            r#""raw":"nonsense""#,
            LineProblem::NotJson("expected ident at line 1 column 2".into()),
        ),
        (b"{\"type\":\"user\",\"mess", r#""raw":"{\"type\":\"user\",\"mess""#, LineProblem::Truncated),
        (b"\0\0\0", r#""raw":"\u0000\u0000\u0000""#, LineProblem::NulBytes),
        (b"{\"a\":\"\xff\"}", r#""raw":{"base64":"eyJhIjoi/yJ9"}"#, LineProblem::NotUtf8(6)),
        (b"[1,2]", r#""raw":"[1,2]""#, LineProblem::NotAnObject),
        (
            b"{\"a\":1}{\"b\":",
            r#""raw":"{\"a\":1}{\"b\":""#,
            LineProblem::NotJson("trailing characters at line 1 column 8".into()),
        ),
    ];
    for (bad, kept, problem) in cases {
        let source = [good.as_bytes(), b"\n", bad, b"\n\n"].concat();
        let (imported, entries) = imported(&source);
        assert_eq!(short(&entries), "session prefix user:person internal:bad_line", "{problem}");
        let line = &entries[3].line;
        assert!(line.contains(kept) && line.contains(r#""line":2"#), "{line}");
        let aside = imported.report.bad_lines().next().unwrap();
        assert_eq!((aside.line, aside.detail.as_deref()), (2, Some(problem.to_string().as_str())));
        let strict = import(&source, &ImportOptions { measure: &ByteThirds, strict: true });
        assert_eq!(strict.unwrap_err(), ImportError::Strict { line: 2, reason: problem.clone() });
    }
    let two = format!("{good}{}\n", assistant("a1", "r1", &says("yes"), 1));
    let (imported, entries) = imported(two.as_bytes());
    assert_eq!(short(&entries), "session prefix user:person request assistant:r1 response:r1:1");
    assert_eq!((imported.report.mended_lines, imported.report.records, imported.report.lines), (1, 2, 1));
    let strict = import(two.as_bytes(), &ImportOptions { measure: &ByteThirds, strict: true }).unwrap_err();
    assert_eq!(strict.to_string(), "line 1: 2 objects on one line");
}

#[test]
fn extremes_stay_bounded() {
    let good = user("u1", "go");
    for depth in [200, 100_000] {
        let deep = format!(
            r#"{{"type":"user","uuid":"d","sessionId":"s1","message":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        let (imported, _) = imported(format!("{good}\n{deep}\n{}\n", "[".repeat(depth)).as_bytes());
        assert_eq!(imported.report.bad_lines().count(), 2);
    }
    let long = user("u2", &"x".repeat(50 << 20));
    let imported = import(long.as_bytes(), &lenient()).unwrap();
    assert_eq!(imported.report.user_messages, 1);
    assert!(imported.log.len() < long.len() + 4096);
    let garbage = vec![b'x'; 8 << 20];
    assert!(matches!(import(&garbage, &lenient()), Err(ImportError::NotRecognised { .. })));
    let imported = import(&[good.as_bytes(), b"\n", &garbage].concat(), &lenient()).unwrap();
    assert_eq!(imported.report.bad_lines().count(), 1);
}

#[test]
fn formats_are_detected_from_content() {
    let cases: &[(&str, Option<SessionFormat>)] = &[
        ("", None),
        ("{}", None),
        ("[]\nhello", None),
        (r#"{"type":"user"}"#, None),
        (r#"{"v":1,"id":"x","parent":null,"at":"t","kind":"session"}"#, Some(SessionFormat::Palimpsest)),
        (
            "broken\n\0\n{\"type\":\"summary\",\"summary\":\"a\",\"leafUuid\":\"b\"}",
            Some(SessionFormat::Claude),
        ),
        (r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#, Some(SessionFormat::Claude)),
        (r#"{"timestamp":"t","type":"session_meta","payload":{}}"#, Some(SessionFormat::Codex)),
        (r#"{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/"}"#, Some(SessionFormat::Pi)),
        (
            r#"{"type":"session.start","data":{},"id":"a","timestamp":"t","parentId":null}"#,
            Some(SessionFormat::Copilot),
        ),
        (
            "{\n \"sessionId\": \"a\",\n \"projectHash\": \"b\",\n \"messages\": []\n}",
            Some(SessionFormat::Gemini),
        ),
        ("{\"sessionId\":\"a\",\"projectHash\":\"b\"}\n{\"id\":\"1\"}", Some(SessionFormat::Gemini)),
        ("{\n \"info\": {},\n \"messages\": []\n}", Some(SessionFormat::MiniSweAgent)),
    ];
    for (source, expected) in cases {
        assert_eq!(detect(source.as_bytes()), *expected, "{source}");
    }
    let seen = |source: &str| import(source.as_bytes(), &lenient()).unwrap_err().to_string();
    assert!(seen(" \n").ends_with("it is empty"));
    assert!(seen("hello").contains("line 1: not JSON"), "{}", seen("hello"));
    assert!(
        seen(r#"{"a":1,"b":2}"#).ends_with("the first has the keys a, b"),
        "{}",
        seen(r#"{"a":1,"b":2}"#)
    );
    assert!(seen(cases[4].0).contains("already a Palimpsest log"));
}

/// A record of Codex.
fn codex(kind: &str, payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-11-15T09:00:00.000Z","type":"{kind}","payload":{payload}}}"#)
}

#[test]
fn codex_items_become_blocks() {
    let item = |payload: &str| codex("response_item", payload);
    let tokens = |input: u64, cached: u64, output: u64| {
        let usage = format!(
            r#"{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"total_tokens":{}}}"#,
            input + output
        );
        codex(
            "event_msg",
            &format!(
                r#"{{"type":"token_count","info":{{"last_token_usage":{usage},"total_token_usage":{{"x":{input}}}}}}}"#
            ),
        )
    };
    let lines = [
        codex(
            "session_meta",
            r#"{"id":"c1","cwd":"/w","cli_version":"0.1","base_instructions":{"text":"Be \"good\"."}}"#,
        ),
        codex("turn_context", r#"{"model":"gpt-x"}"#),
        item(
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"},{"type":"input_text","text":"fix"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}"#,
        ),
        codex("event_msg", r#"{"type":"user_message","message":"fix"}"#),
        item(r#"{"type":"reasoning","summary":[],"encrypted_content":"zzz"}"#),
        item(
            r#"{"type":"function_call","name":"_get","namespace":"mcp__hub","call_id":"c|1","arguments":"{\"a\": 1e2}"}"#,
        ),
        item(r#"{"type":"custom_tool_call","name":"apply.patch","call_id":"c2","input":"*** \"x\" \ud83d"}"#),
        item(r#"{"type":"function_call_output","call_id":"c|1","output":"fine"}"#),
        item(
            r#"{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/y.png"}]}"#,
        ),
        tokens(1000, 900, 50),
        tokens(1000, 900, 50),
        item(r#"{"type":"function_call","name":"sh","call_id":"c3","arguments":"not json"}"#),
        item(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#),
        tokens(1100, 1000, 7),
        codex(
            "compacted",
            r#"{"message":"so far so good","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"fix"}]},{"type":"compaction","encrypted_content":"q"}]}"#,
        ),
        codex(
            "event_msg",
            r#"{"type":"token_count","info":{"last_token_usage":{"input_tokens":0,"total_tokens":77},"total_token_usage":{"x":1100}}}"#,
        ),
        codex("event_msg", r#"{"type":"user_message","message":"lost otherwise"}"#),
        codex(
            "response_item",
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"cut"}]}"#,
        ),
        codex("event_msg", r#"{"type":"turn_aborted"}"#),
        codex("event_msg", r#"{"type":"user_message","message":"fix"}"#),
    ];
    let (imported, entries) = check(
        &lines,
        "session prefix internal:session_meta internal:turn_context attachment:environment user:person internal:user_message request internal:reasoning assistant:codex-1 assistant:codex-1 response:codex-1:50 user:tool user:tool internal:token_count internal:token_count request assistant:codex-2 assistant:codex-2 response:codex-2:7 internal:token_count internal:compacted boundary internal:token_count internal:user_message user:person request assistant:codex-3 response:codex-3:0 internal:turn_aborted internal:user_message user:person",
    );
    for expected in [
        r#""system":[{"type":"text","text":"Be \"good\"."}]"#,
        r#"{"type":"tool_use","id":"c_1","name":"mcp__hub__get","input":{"a": 1e2}}"#,
        r#"{"type":"tool_use","id":"c2","name":"apply_patch","input":{"input":"*** \"x\" \ufffd"}}"#,
        r#"{"type":"tool_use","id":"c3","name":"sh","input":{"input":"not json"}}"#,
        r#"{"type":"tool_result","tool_use_id":"c_1","content":"fine"}"#,
        r#"{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
        r#""input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":900,"output_tokens":50"#,
    ] {
        assert!(imported.log.contains(expected), "{expected}\n{}", imported.log);
    }
    assert_eq!(typed(&entries), ["fix", "lost otherwise", "fix"]);
    let boundary = entries.iter().find_map(|entry| match &entry.body {
        EntryBody::Boundary(boundary) => Some(boundary),
        _ => None,
    });
    let boundary = boundary.unwrap();
    assert_eq!((boundary.tokens_before, boundary.tokens_after), (Some(1107), Some(77)));
    let summary = boundary.summary.blocks()[0].string("text").unwrap().into_owned();
    assert!(summary.contains("so far so good") && summary.contains("<user>\nfix\n</user>"), "{summary}");
}

fn pi(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}","timestamp":"2026-11-15T09:00:00.000Z",{rest}}}"#)
}

#[test]
fn pi_messages_become_blocks() {
    let lines = [
        pi("session", r#""id":"p1","cwd":"/w","modelId":"m0""#),
        pi("message", r#""id":"e1","message":{"role":"user","content":"plain"}"#),
        pi(
            "message",
            r#""id":"e2","message":{"role":"assistant","api":"anthropic-messages","model":"m1","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4},"stopReason":"toolUse","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"thinking","thinking":"lost","thinkingSignature":""},{"type":"toolCall","id":"call|x","name":"read","arguments":{"p":"a"}}]}"#,
        ),
        pi(
            "message",
            r#""id":"e3","message":{"role":"toolResult","toolCallId":"call|x","content":[{"type":"image","data":"AAAA","mimeType":"image/png"}],"isError":true}"#,
        ),
        pi(
            "message",
            r#""id":"e4","message":{"role":"assistant","api":"openai-responses","model":"m2","content":[{"type":"thinking","thinking":"x","thinkingSignature":"{}"},{"type":"text","text":"ok"}]}"#,
        ),
        pi("message", r#""id":"e5","message":{"role":"assistant","content":[],"errorMessage":"aborted"}"#),
        pi("message", r#""id":"e6","message":{"role":"bashExecution","command":"ls","output":"a.rs"}"#),
        pi("model_change", r#""id":"e7","modelId":"m3""#),
        pi("compaction", r#""id":"e8","summary":"short","tokensBefore":9,"firstKeptEntryId":"e4""#),
    ];
    let (imported, entries) = check(
        &lines,
        "session prefix internal:session user:person internal:thinking request assistant:pi-1 response:pi-1:2 user:tool internal:thinking request assistant:pi-2 response:pi-2:0 internal:assistant user:person user:agent internal:model_change decision:model internal:compaction boundary",
    );
    for expected in [
        r#"{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"tool_use","id":"call_x","name":"read","input":{"p":"a"}}"#,
        r#"{"type":"tool_result","tool_use_id":"call_x","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}],"is_error":true}"#,
        r#""input_tokens":1,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2"#,
        r#""stop_reason":"tool_use""#,
    ] {
        assert!(imported.log.contains(expected), "{expected}\n{}", imported.log);
    }
    assert_eq!(typed(&entries), ["plain", "!ls"]);
    let EntryBody::Boundary(boundary) = &entries.last().unwrap().body else { panic!() };
    let preserved = boundary.preserved.as_ref().unwrap();
    assert_eq!((preserved.head, preserved.tail), (entries[9].id, entries[17].id));
}

#[test]
fn copilot_gemini_and_trajectories_become_blocks() {
    let event = |kind: &str, id: &str, data: &str| {
        format!(
            r#"{{"type":"{kind}","data":{data},"id":"{id}","timestamp":"2026-11-15T09:00:00.000Z","parentId":null}}"#
        )
    };
    let lines = [
        event("session.start", "1", r#"{"sessionId":"k1","copilotVersion":"1","context":{"cwd":"/w"}}"#),
        event("system.message", "2", r#"{"role":"system","content":"Be brief."}"#),
        event("user.message", "3", r#"{"content":"hi","transformedContent":"<now/>hi"}"#),
        event("user.message", "4", r#"{"content":"","transformedContent":"tools","source":"system"}"#),
        event(
            "assistant.message",
            "5",
            r#"{"messageId":"m1","apiCallId":"x","model":"g","content":"","toolRequests":[],"reasoningText":"hm"}"#,
        ),
        event(
            "assistant.message",
            "6",
            r#"{"messageId":"m2","apiCallId":"x","model":"g","content":"yes","toolRequests":[{"toolCallId":"t1","name":"bash","arguments":{"c":1}}],"outputTokens":5}"#,
        ),
        event(
            "assistant.message",
            "6b",
            r#"{"messageId":"m2b","apiCallId":"x","model":"g","content":"and more"}"#,
        ),
        event(
            "tool.execution_complete",
            "7",
            r#"{"toolCallId":"t1","success":false,"error":{"message":"no such file"}}"#,
        ),
        event(
            "assistant.message",
            "8",
            r#"{"messageId":"m3","parentToolCallId":"t9","content":"from below"}"#,
        ),
        event(
            "session.compaction_complete",
            "9",
            r#"{"success":true,"summaryContent":"short","preCompactionTokens":9}"#,
        ),
    ];
    let (imported, _) = check(
        &lines,
        "session prefix internal:session.start internal:system.message internal:user.message user:person attachment:user.message internal:assistant.message request assistant:m2 assistant:m2 response:m2:5 user:tool internal:assistant.message internal:session.compaction_complete boundary",
    );
    assert!(
        imported.log.contains(
            r#"{"type":"tool_result","tool_use_id":"t1","content":"no such file","is_error":true}"#
        )
    );
    assert!(imported.log.contains(r#""system":[{"type":"text","text":"Be brief."}]"#));

    let message = r#"{"id":"2","timestamp":"2026-11-15T09:00:01.000Z","type":"gemini","content":"reading","model":"g2","thoughts":[{"subject":"x"}],"tokens":{"input":100,"output":5,"cached":40,"thoughts":2},"toolCalls":[{"id":"t1","name":"read_file","args":{"p":"a"},"status":"success","result":[{"functionResponse":{"response":{"output":"text"}}}]}]}"#;
    let user =
        r#"{"id":"1","timestamp":"2026-11-15T09:00:00.000Z","type":"user","content":[{"text":"look"}]}"#;
    let info = r#"{"id":"3","type":"info","content":"cancelled"}"#;
    let whole = format!(
        "{{\n\"sessionId\": \"g1\",\n\"projectHash\": \"h\",\n\"messages\": [{user},\n{message},{info}]\n}}"
    );
    let said = "user:person internal:thoughts request assistant:gemini-1 response:gemini-1:7 user:tool internal:info virtual";
    let (first, entries) = imported_text(&whole);
    assert_eq!(short(&entries), format!("session prefix internal:sessionId internal:projectHash {said}"));
    assert!(first.log.contains(r#"{"type":"tool_result","tool_use_id":"t1","content":"text"}"#));
    assert!(first.log.contains(
        r#""input_tokens":60,"cache_creation_input_tokens":0,"cache_read_input_tokens":40,"output_tokens":7"#
    ));
    let early = message.replace(r#","toolCalls""#, r#","soFar""#);
    let lines =
        format!("{{\"sessionId\":\"g1\",\"projectHash\":\"h\"}}\n{user}\n{early}\n{message}\n{info}\n");
    let (_, entries) = imported_text(&lines);
    assert_eq!(
        short(&entries),
        format!(
            "session prefix internal:header {}",
            said.replacen("user:person", "user:person internal:replayed", 1)
        )
    );

    let trajectory = r#"{"info":{"mini_version":"1.0"},"instance_id":"i1","messages":[{"role":"system","content":"Act."},{"role":"user","content":"the task","timestamp":1776302204.25},{"role":"assistant","content":"```bash\nls\n```","extra":{"response":{"id":"x1","model":"q","usage":{"prompt_tokens":90,"completion_tokens":4}}}},{"role":"user","content":"a.py"},{"role":"assistant","content":"","tool_calls":[{"id":"t1","function":{"name":"bash","arguments":"{\"c\":1}"}}]},{"role":"tool","tool_call_id":"t1","content":"ok"}]}"#;
    let (imported, entries) = imported_text(trajectory);
    assert_eq!(
        short(&entries),
        "session prefix internal:info internal:instance_id internal:system user:person request assistant:x1 response:x1:4 internal:extra user:agent request assistant:mini-2 response:mini-2:0 user:tool"
    );
    assert_eq!(
        (entries[5].at.to_string().as_str(), imported.report.unseen_tokens),
        ("2026-04-16T01:16:44.250Z", 90 - 4)
    );
}

fn imported_text(source: &str) -> (pal_import::ImportedSession, Vec<LogEntry>) {
    imported(source.as_bytes())
}

#[test]
fn claude_records_have_the_right_origin() {
    let with = |text: &str, fields: &str| {
        user("u1", text).replace(r#""sessionId""#, &format!(r#"{fields}"sessionId""#))
    };
    let cases = [
        (with("hi", ""), MessageOrigin::Person),
        (with("hi", r#""origin":{"kind":"human"},"#), MessageOrigin::Person),
        (
            with("<task-notification>x", r#""origin":{"kind":"task-notification"},"promptSource":"system","#),
            MessageOrigin::Agent,
        ),
        (with("skill text", r#""isMeta":true,"#), MessageOrigin::Agent),
        (with("[Request interrupted by user]", ""), MessageOrigin::Agent),
        (with("<command-name>/exit</command-name>\n<command-args></command-args>", ""), MessageOrigin::Agent),
        (with("<command-name>/x</command-name>\n<command-args>y</command-args>", ""), MessageOrigin::Person),
    ];
    for (line, expected) in cases {
        let (_, entries) = imported_lines(std::slice::from_ref(&line));
        let EntryBody::User(user) = &entries[2].body else { panic!("{line}") };
        assert_eq!(user.origin, expected, "{line}");
    }
}
