//! Real sessions of other agents: counts against the list, and laws about preserved content.

use std::collections::{BTreeMap, HashSet};

use pal_import::{ImportedSession, InternalReason, SessionFormat, detect};
use pal_model::{EntryBody, LogEntry, MessageOrigin, SharedText, UsageBasis, array_items, object_fields};
use serde_json::Value;

use crate::support::{imported, sessions, typed};

/// One imported session with its row in the list.
struct SessionFigures {
    row: Value,
    source: Vec<u8>,
    imported: ImportedSession,
    entries: Vec<LogEntry>,
}

/// Imports all sessions of an agent and prints the counts beside the list's.
fn read_all(agent: &str) -> Vec<SessionFigures> {
    let read = |(row, source): (Value, Vec<u8>)| {
        let (imported, entries) = imported(&source);
        let report = &imported.report;
        println!(
            "{} {:58} lines {:>5} calls {}/{} typed {}/{} tools {}/{} results {} boundaries {} unseen {} aside {}",
            agent,
            row["file"].as_str().unwrap().rsplit('/').next().unwrap(),
            report.lines,
            report.responses,
            row["api_calls"],
            report.user_messages,
            row["user_turns"],
            report.tool_calls,
            row["tool_calls"],
            report.tool_results,
            report.boundaries,
            report.unseen_tokens,
            report.internal_records.len(),
        );
        SessionFigures { row, source, imported, entries }
    };
    sessions(agent).into_iter().map(read).collect()
}

/// All objects of a JSONL source, two on one line included.
fn records(source: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(source).unwrap();
    text.lines()
        .flat_map(|line| {
            serde_json::Deserializer::from_str(line)
                .into_iter::<Value>()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_claude_counts_match_the_list() {
    for SessionFigures { row, source, imported, .. } in read_all("claude") {
        let report = &imported.report;
        assert_eq!(detect(&source), Some(SessionFormat::Claude));
        assert_eq!(report.responses, row["api_calls"]);
        assert_eq!(report.tool_calls, row["tool_calls"]);
        let clears = report.entries.get("decision").copied().unwrap_or(0);
        assert_eq!(report.boundaries + clears, row["compactions"], "the list counts microcompactions, too");
        for (model, count) in row["models"].as_object().unwrap() {
            assert_eq!(report.models[model], *count);
        }
        assert_eq!(report.bad_lines().count(), 0);
        assert_eq!(report.rewinds, 0);
        // The list counts plain prompts only. Others are texts beside results, prompt commands, shell
        // commands, and messages that left the queue.
        let more: BTreeMap<&str, u64> = extra_messages(&records(&source));
        assert_eq!(
            report.user_messages,
            row["user_turns"].as_u64().unwrap() + more.values().sum::<u64>(),
            "{more:?}"
        );
        assert!((20_000..50_000).contains(&report.unseen_tokens), "{}", report.unseen_tokens);
    }
}

/// User messages other than plain prompts by kind, counted independently of the importer.
fn extra_messages(records: &[Value]) -> BTreeMap<&'static str, u64> {
    let mut more = BTreeMap::new();
    let mut count = |sort| *more.entry(sort).or_default() += 1;
    let mut queue: Vec<&str> = Vec::new();
    for record in records {
        let content = &record["message"]["content"];
        let attachment = &record["attachment"];
        let first = content.as_str().unwrap_or_default();
        let kinds: Vec<&str> =
            content.as_array().into_iter().flatten().filter_map(|block| block["type"].as_str()).collect();
        match record["type"].as_str().unwrap() {
            "user" if kinds.contains(&"tool_result") && kinds.contains(&"text") => count("beside a result"),
            "user" if first.starts_with("<command-message>") => count("prompt command"),
            "user" if first.starts_with("<bash-input>") => count("shell command"),
            "attachment" if attachment["commandMode"] == "prompt" => count("queued attachment"),
            "queue-operation" => match record["operation"].as_str().unwrap() {
                "enqueue" => queue.push(record["content"].as_str().unwrap_or_default()),
                // Newer versions name the message, and log it as an attachment.
                "remove" if record["content"].is_null() => {
                    if !queue.remove(0).is_empty() {
                        count("left the queue without a trace");
                    }
                }
                "remove" | "dequeue" => {
                    queue.remove(0);
                }
                _ => queue.clear(),
            },
            _ => {}
        }
    }
    more
}

/// Each record of a transcript is in the log byte for byte: its content in the conversation, or the whole
/// record in an internal entry.
#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_claude_import_loses_nothing() {
    for SessionFigures { source, imported, .. } in read_all("claude") {
        let (mut raws, mut contents) = (HashSet::new(), HashSet::new());
        for line in imported.log.lines() {
            for (name, value) in object_fields(line).unwrap() {
                match name.as_ref() {
                    "raw" => drop(raws.insert(value)),
                    "content" | "summary" => {
                        contents.insert(value);
                        contents.extend(array_items(value).unwrap_or_default());
                    }
                    _ => {}
                }
            }
        }
        for line in std::str::from_utf8(&source).unwrap().lines() {
            for record in serde_json::Deserializer::from_str(line).into_iter::<&serde_json::value::RawValue>()
            {
                let record = record.unwrap().get();
                let find = |json, name| {
                    object_fields(json)
                        .unwrap()
                        .into_iter()
                        .find(|(key, _)| key == name)
                        .map(|(_, value)| value)
                };
                let is_kept = raws.contains(record)
                    || find(record, "attachment").is_some_and(|attachment| {
                        raws.contains(attachment)
                            || contents.contains(find(attachment, "prompt").unwrap_or("-"))
                    })
                    || find(record, "message").and_then(|message| find(message, "content")).is_some_and(
                        |content| {
                            // A boundary holds its summary as a list.
                            let listed = format!(r#"[{{"type":"text","text":{content}}}]"#);
                            contents.contains(content)
                                || contents.contains(listed.as_str())
                                || array_items(content)
                                    .is_ok_and(|blocks| blocks.iter().all(|block| contents.contains(block)))
                        },
                    );
                assert!(is_kept, "{record:.300}");
            }
        }
    }
}

/// Usage is that of the last record of each response. Only a placeholder, which a response without a stop reason may
/// have, is replaced by an estimate.
#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_claude_usage_is_final() {
    let mut estimated = 0;
    for SessionFigures { source, entries, imported, .. } in read_all("claude") {
        let before = estimated;
        let mut last = BTreeMap::new();
        for record in records(&source) {
            if record["type"] == "assistant" && record["message"]["model"] != "<synthetic>" {
                let id = record["message"]["id"].as_str().unwrap().to_owned();
                let message = &record["message"];
                let reported = message["usage"]["output_tokens"].as_u64().unwrap();
                last.insert(id, (reported, message["stop_reason"].is_string()));
            }
        }
        let mut behind = None;
        for entry in &entries {
            if let EntryBody::Response(response) = &entry.body {
                let (reported, is_complete) = last.remove(response.response.as_str()).unwrap();
                let output_tokens = response.usage.output_tokens;
                match response.usage.basis {
                    UsageBasis::Estimated => {
                        estimated += 1;
                        assert!(
                            !is_complete && output_tokens > 2 * reported,
                            "{output_tokens} for {reported}"
                        );
                    }
                    _ => assert_eq!(output_tokens, reported),
                }
            }
            if let EntryBody::Assistant(assistant) = &entry.body {
                behind = assistant.response.clone();
            }
        }
        assert!(last.is_empty() && behind.is_some());
        assert_eq!(imported.report.estimated_outputs, estimated - before);
    }
    assert!(estimated > 0);
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_claude_boundaries_keep_their_preserved_messages() {
    let mut preserved = 0;
    for SessionFigures { row, entries, .. } in read_all("claude") {
        for boundary in entries.iter().filter_map(|entry| match &entry.body {
            EntryBody::Boundary(boundary) => Some(boundary),
            _ => None,
        }) {
            assert_eq!((boundary.method.as_str(), boundary.tokens_before.is_some()), ("imported", true));
            assert!(
                boundary.summary.blocks()[0]
                    .string("text")
                    .unwrap()
                    .starts_with("This session is being continued")
            );
            assert!(boundary.snapshot.totals.responses > 0 && boundary.snapshot.model.is_some());
            preserved += u64::from(boundary.preserved.is_some());
        }
        drop(row);
    }
    // Six name preserved messages; those of one come after it in the file.
    assert!(preserved == 5, "{preserved}");
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_codex_counts_match_the_list() {
    for SessionFigures { row, source, imported, .. } in read_all("codex") {
        let report = &imported.report;
        let count = |kind: &str, name: &str| {
            let is = |record: &&Value| record["type"] == kind && record["payload"]["type"] == name;
            records(&source).iter().filter(is).count() as u64
        };
        assert_eq!(detect(&source), Some(SessionFormat::Codex));
        // A response interrupted by the user was never counted.
        assert_eq!(report.responses, row["api_calls"].as_u64().unwrap() + count("event_msg", "turn_aborted"));
        assert_eq!(report.user_messages, row["user_turns"]);
        // The list omits tool searches.
        assert_eq!(
            report.tool_calls,
            row["tool_calls"].as_u64().unwrap() + count("response_item", "tool_search_call")
        );
        assert_eq!(report.tool_results, report.tool_calls);
        assert_eq!(report.boundaries, row["compactions"]);
        assert_eq!(typed_in_events(&source), typed_texts(&imported));
    }
}

/// Typed prompts, from display events.
fn typed_in_events(source: &[u8]) -> Vec<String> {
    let records = records(source);
    let events = records.iter().filter(|record| record["payload"]["type"] == "user_message");
    events.map(|event| event["payload"]["message"].as_str().unwrap().trim().to_owned()).collect()
}

fn typed_texts(imported: &ImportedSession) -> Vec<String> {
    let entries: Vec<LogEntry> =
        imported.log.lines().map(|line| LogEntry::parse(SharedText::from(line)).unwrap()).collect();
    typed(&entries).into_iter().map(|text| text.trim().to_owned()).collect()
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_other_formats_count_their_records() {
    for SessionFigures { row, source, imported, .. } in read_all("copilot") {
        let calls: HashSet<String> = records(&source)
            .iter()
            .filter_map(|record| record["data"]["apiCallId"].as_str().map(str::to_owned))
            .collect();
        // The list counts messages; a call may have several.
        assert_eq!(imported.report.responses, calls.len() as u64);
        assert_eq!(imported.report.tool_calls, row["tool_calls"]);
        assert_eq!(imported.report.tool_results, row["tool_calls"]);
        let typed = records(&source)
            .iter()
            .filter(|record| record["type"] == "user.message" && record["data"]["source"].is_null())
            .count() as u64;
        assert_eq!(imported.report.user_messages, typed);
    }
    for SessionFigures { row, imported, .. } in read_all("gemini") {
        assert_eq!(imported.report.responses, row["api_calls"]);
        assert_eq!(imported.report.user_messages, row["user_turns"]);
        assert_eq!(imported.report.tool_calls, row["tool_calls"]);
    }
    for SessionFigures { source, imported, .. } in read_all("pi") {
        let records = records(&source);
        let count = |role: &str| {
            let is = |record: &&Value| record["message"]["role"] == role;
            records.iter().filter(is).count() as u64
        };
        let said = records.iter().filter(|record| {
            let parts = record["message"]["content"].as_array();
            let is_sent = |part: &Value| part["type"] != "thinking" || part["thinkingSignature"] != "";
            record["message"]["role"] == "assistant" && parts.is_some_and(|parts| parts.iter().any(is_sent))
        });
        assert_eq!(imported.report.responses, said.count() as u64);
        assert_eq!(imported.report.user_messages, count("user") + count("bashExecution"));
        assert_eq!(imported.report.tool_results, count("toolResult"));
    }
    for SessionFigures { source, imported, entries, .. } in read_all("mini-swe-agent") {
        let trajectory: Value = serde_json::from_slice(&source).unwrap();
        let count = |role: &str| {
            let messages = trajectory["messages"].as_array().unwrap();
            messages.iter().filter(|message| message["role"] == role).count() as u64
        };
        assert_eq!(imported.report.responses, count("assistant"));
        assert_eq!(imported.report.user_messages, 1);
        let agent = entries.iter().filter(
            |entry| matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Agent),
        );
        assert_eq!(agent.count() as u64, count("user") - 1);
        let EntryBody::Prefix(prefix) = &entries[1].body else { panic!() };
        assert!(prefix.system.contains("THOUGHT"), "the system prompt is in the prefix");
    }
}

/// Every text of a message, call or result is in some entry, conversation or internal.
#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_other_formats_lose_no_text() {
    for agent in ["codex", "pi", "copilot", "gemini", "mini-swe-agent"] {
        for SessionFigures { source, imported, .. } in read_all(agent) {
            let mut kept = HashSet::new();
            for line in imported.log.lines() {
                strings(&serde_json::from_str(line).unwrap(), true, &mut kept);
            }
            let all = kept.iter().map(String::as_str).collect::<Vec<_>>().join("\u{0}");
            let sources = match agent {
                "gemini" | "mini-swe-agent" => vec![serde_json::from_slice(&source).unwrap()],
                _ => records(&source),
            };
            let mut said = HashSet::new();
            sources.iter().for_each(|record| strings(record, false, &mut said));
            assert!(said.len() > 3);
            for text in said {
                assert!(kept.contains(&text) || all.contains(text.trim_end()), "{agent}: {text:.300}");
            }
        }
    }
}

/// Strings inside a value: all, or those under content names. Arguments are JSON in a string.
fn strings(value: &Value, all: bool, into: &mut HashSet<String>) {
    match value {
        Value::String(text) if all => drop(into.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| strings(item, all, into)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_content =
                    ["text", "content", "output", "input", "thinking", "summary", "command", "error"]
                        .contains(&name.as_str());
                match value {
                    Value::String(json) if name == "arguments" => {
                        let parsed: Value = serde_json::from_str(json).unwrap_or_default();
                        strings(&parsed, true, into);
                    }
                    Value::String(text) if is_content => drop(into.insert(text.clone())),
                    _ => strings(value, all, into),
                }
            }
        }
        _ => {}
    }
}

#[test]
#[ignore = "needs sessions of other agents: PAL_TEST_DATA"]
fn recorded_every_internal_record_has_a_reason() {
    for agent in ["claude", "codex", "pi", "copilot", "gemini", "mini-swe-agent"] {
        let mut reasons: BTreeMap<InternalReason, u64> = BTreeMap::new();
        for SessionFigures { imported, .. } in read_all(agent) {
            for (reason, count) in imported.report.internal_by_reason() {
                *reasons.entry(reason).or_default() += count;
            }
        }
        println!("{agent}: {reasons:?}");
        assert!(
            !reasons.contains_key(&InternalReason::BadLine)
                && !reasons.contains_key(&InternalReason::UnknownRecord),
            "{reasons:?}"
        );
    }
}
