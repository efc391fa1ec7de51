//! Any source, however damaged, gives a valid log or a clear error, never a panic.

use pal_import::{ImportOptions, import};
use proptest::prelude::*;

use crate::support::{check_log, lenient};
use pal_testkit::ByteThirds;

/// Lines as agents write them, at least one of every kind.
const LINES: &[&str] = &[
    r#"{"type":"summary","summary":"x","leafUuid":"l1"}"#,
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-15T09:00:00.000Z","message":{"role":"user","content":"fix \"it\""}}"#,
    r#"{"type":"user","uuid":"u2","parentUuid":"a1","sessionId":"s","timestamp":"2026-11-15T09:00:05.000Z","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"},{"type":"text","text":"and \ud83d\ude42"}]}}"#,
    r#"{"type":"assistant","uuid":"a1","sessionId":"s","requestId":"q","message":{"id":"r1","model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"c":[1]}}],"usage":{"input_tokens":9,"output_tokens":1}}}"#,
    r#"{"type":"assistant","uuid":"a2","sessionId":"s","message":{"id":"r1","model":"m","content":[{"type":"text","text":"x"}],"usage":{"output_tokens":null}}}"#,
    r#"{"type":"system","subtype":"compact_boundary","uuid":"b1","sessionId":"s","compactMetadata":{"trigger":"auto","preservedMessages":{"anchorUuid":"s1","uuids":["u2","a2","gone"]}}}"#,
    r#"{"type":"user","uuid":"s1","sessionId":"s","isCompactSummary":true,"message":{"content":"summary"}}"#,
    r#"{"type":"system","subtype":"microcompact_boundary","uuid":"m1","sessionId":"s","microcompactMetadata":{"compactedToolIds":["t1",7]}}"#,
    r#"{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"wait"}"#,
    r#"{"type":"queue-operation","operation":"remove","sessionId":"s"}"#,
    r#"{"type":"attachment","uuid":"t2","sessionId":"s","attachment":{"type":"file","filename":"/a","content":{"type":"text","file":{"content":"x"}}}}"#,
    r#"{"timestamp":"t","type":"session_meta","payload":{"id":"c","base_instructions":{"text":"sys"}}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"f","call_id":"k","arguments":"{\"a\":\"\\ud83d\"}"}}"#,
    r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"k","output":["x",{"text":""}]}}"#,
    r#"{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":5,"cached_input_tokens":9},"total_token_usage":{"a":1}}}}"#,
    r#"{"timestamp":"t","type":"compacted","payload":{"message":"","replacement_history":[{"type":"compaction"}]}}"#,
    r#"{"type":"session","id":"p","timestamp":"t","cwd":"/"}"#,
    r#"{"type":"message","timestamp":"t","id":"e1","message":{"role":"assistant","responseId":"z","content":[{"type":"toolCall","id":"a|b","name":"r","arguments":null},{"type":"text","text":"x"}]}}"#,
    r#"{"type":"message","timestamp":"t","id":"e2","message":{"role":"toolResult","toolCallId":"a|b","content":"str"}}"#,
    r#"{"type":"compaction","id":"e3","summary":"s","firstKeptEntryIndex":1}"#,
    r#"{"type":"user.message","data":{"content":"hi"},"id":"1","timestamp":"t","parentId":null}"#,
    r#"{"type":"assistant.message","data":{"messageId":"m","apiCallId":"x","content":"y","toolRequests":[{"name":"b"}]},"id":"2","timestamp":"t","parentId":"1"}"#,
    r#"{"type":"tool.execution_complete","data":{"toolCallId":"t","result":{"content":7}},"id":"3","timestamp":"t","parentId":"2"}"#,
    r#"{"sessionId":"g","projectHash":"h","messages":[{"type":"gemini","content":"x","toolCalls":[{"id":"a","result":[]}]}]}"#,
    r#"{"sessionId":"g","projectHash":"h"}"#,
    r#"{"id":"g1","type":"gemini","content":"x"}"#,
    r#"{"info":{},"messages":[{"role":"assistant","content":"x"},{"role":"user","content":["y"]},7]}"#,
];

/// Damage done to a source.
#[derive(Clone, Debug)]
enum SourceDamage {
    Cut(usize),
    Byte(usize, u8),
    Drop(usize, usize),
    Twice(usize, usize),
}

fn harm() -> impl Strategy<Value = SourceDamage> {
    prop_oneof![
        any::<usize>().prop_map(SourceDamage::Cut),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| SourceDamage::Byte(at, byte)),
        (any::<usize>(), 1..40usize).prop_map(|(at, count)| SourceDamage::Drop(at, count)),
        (any::<usize>(), 1..200usize).prop_map(|(at, count)| SourceDamage::Twice(at, count)),
    ]
}

fn harmed(mut source: Vec<u8>, harms: &[SourceDamage]) -> Vec<u8> {
    for harm in harms {
        let length = source.len().max(1);
        match *harm {
            SourceDamage::Cut(at) if at % 8 == 0 => source.truncate(at / 8 % length),
            SourceDamage::Cut(_) => {}
            SourceDamage::Byte(at, byte) => {
                if let Some(slot) = source.get_mut(at % length) {
                    *slot = byte;
                }
            }
            SourceDamage::Drop(at, count) => {
                let from = (at % length).min(source.len());
                drop(source.drain(from..(from + count).min(source.len())));
            }
            SourceDamage::Twice(at, count) => {
                let from = (at % length).min(source.len());
                let part = source[from..(from + count).min(source.len())].to_vec();
                source.splice(from..from, part);
            }
        }
    }
    source
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mixed_lines_give_valid_logs(lines in prop::collection::vec(0..LINES.len(), 1..24), harms in prop::collection::vec(harm(), 0..6)) {
        let source: String = lines.iter().map(|line| format!("{}\n", LINES[*line])).collect();
        let source = harmed(source.into_bytes(), &harms);
        if let Ok(imported) = import(&source, &lenient()) {
            check_log(&imported);
        }
        let _ = import(&source, &ImportOptions { measure: &ByteThirds, strict: true });
    }

    #[test]
    fn out_of_order_session_gives_a_valid_log(order in Just((0..11usize).collect::<Vec<_>>()).prop_shuffle(), from in 0..3usize) {
        // The records of Claude Code, of Codex with a head, of pi with a head.
        let lines = [&LINES[..11], &LINES[11..17], &LINES[17..21]][from];
        let source: String = order.iter().map(|at| format!("{}\n", lines[at % lines.len()])).collect();
        let imported = import(source.as_bytes(), &lenient()).unwrap();
        check_log(&imported);
        prop_assert_eq!(imported.report.records, 11);
    }

    #[test]
    fn any_bytes_do_not_panic(source in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = import(&source, &lenient());
    }
}
