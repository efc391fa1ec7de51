//! Logs that were never compacted and exceed every window: resume takes the newest messages, the user's
//! messages and the decisions in force, and sums up the usage of the rest.

use pal_model::{
    Decision, DecisionKind, EntryBody, EntryDraft, EntryId, LogEntry, MessageOrigin, PromptPrefix,
    RequestSource, ResponseRecord, SessionStart, SharedText, Usage, UsageTotals,
};
use pal_store::{Log, LogReader};

use crate::test_log::{TestLog, now, said};

/// Bytes of one tool result; [`TURNS`] of them exceed the limit.
const RESULT: usize = 200_000;
const TURNS: usize = 200;

/// Writes turns of a user message, a call, a response and a result. Returns the ids of the user messages.
fn write(log: &mut Log) -> Vec<EntryId> {
    let mut words = Vec::new();
    log.append(
        EntryDraft::session(&SessionStart { title: Some("Long".into()), ..SessionStart::default() }),
        now(),
    )
    .unwrap();
    let prefix = PromptPrefix {
        system: SharedText::from(r#"[{"type":"text","text":"You are an agent."}]"#),
        tools: SharedText::from("[]"),
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    log.append(EntryDraft::prefix(&prefix), now()).unwrap();
    log.append(decision(DecisionKind::Pin { text: "never forget".into() }), now()).unwrap();
    for turn in 0..TURNS {
        words.push(log.append(said(&format!("wish {turn}")), now()).unwrap().id);
        let call = format!(r#"[{{"type":"tool_use","id":"call_{turn}","name":"Read","input":{{}}}}]"#);
        let response = format!("msg_{turn}").as_str().into();
        let got = ResponseRecord {
            response: format!("msg_{turn}").as_str().into(),
            source: RequestSource::main(),
            model: "claude-opus-4-6".into(),
            usage: Usage { input_tokens: 100, output_tokens: 7, ..Usage::default() },
            stop_reason: None,
            cost: Some(0.25),
            cache_break: None,
        };
        let result = format!(
            r#"[{{"type":"tool_result","tool_use_id":"call_{turn}","content":"{}"}}]"#,
            "x".repeat(RESULT)
        );
        let drafts = vec![
            EntryDraft::assistant(Some(&response), None, &call),
            EntryDraft::response(&got),
            EntryDraft::user(MessageOrigin::Tool, &result),
        ];
        log.append_all(drafts, now()).unwrap();
    }
    words
}

fn decision(kind: DecisionKind) -> EntryDraft {
    EntryDraft::decision(&Decision { kind, reason: String::new(), cost: Default::default() })
}

fn results(entries: &[LogEntry]) -> usize {
    let is_result = |entry: &&LogEntry| matches!(&entry.body, EntryBody::User(user) if user.origin == MessageOrigin::Tool);
    entries.iter().filter(is_result).count()
}

fn totals(entries: &[LogEntry]) -> UsageTotals {
    let mut totals = UsageTotals::default();
    for entry in entries {
        if let EntryBody::Response(response) = &entry.body {
            totals.add(&response.usage, response.cost);
        }
    }
    totals
}

#[test]
fn resume_takes_newest_messages_user_messages_and_decisions() {
    let place = TestLog::new();
    let mut log = place.create();
    let words = write(&mut log);
    drop(log);
    let opened = place.open();
    let (entries, left_out) = (&opened.branch.entries, opened.branch.omitted.as_ref().unwrap());
    let taken: Vec<EntryId> = entries.iter().map(|entry| entry.id).collect();
    assert!(words.iter().all(|word| taken.contains(word)), "every word of a person is there");
    assert!(taken.is_sorted(), "in the order of the log");
    let kinds: Vec<String> = entries.iter().take(3).map(|entry| entry.kind().0.to_string()).collect();
    assert_eq!(kinds, ["session", "prefix", "pin"]);
    let kept = results(entries);
    assert!((60..70).contains(&kept), "{kept} of {TURNS} results: as many as a window may hold");
    assert_eq!(left_out.messages as usize, 2 * (TURNS - kept), "calls and results");
    assert_eq!((left_out.entries, left_out.user_messages), (3 * (TURNS - kept) as u64, 0));
    assert!(left_out.bytes as usize > (TURNS - kept) * RESULT);
    let here = totals(entries);
    assert_eq!(here.responses + left_out.totals.responses, TURNS as u64);
    assert_eq!(here.input_tokens + left_out.totals.input_tokens, 100 * TURNS as u64);
    assert!((here.cost + left_out.totals.cost - 0.25 * TURNS as f64).abs() < 1e-6);
    // The log continues after its last entry, and a full read still gives everything.
    drop(opened);
    let mut log = place.open().log;
    let newest = log.append(said("and now?"), now()).unwrap();
    let whole = LogReader::open(&place.path).unwrap().whole_branch().unwrap();
    assert_eq!((results(&whole.entries), whole.omitted.is_some()), (TURNS, false));
    assert_eq!(whole.entries.last().map(|entry| entry.id), Some(newest.id));
}

#[test]
fn hidden_content_does_not_count() {
    let place = TestLog::new();
    let mut log = place.create();
    write(&mut log);
    let calls = (0..TURNS - 20).map(|turn| format!("call_{turn}").as_str().into()).collect();
    let clear = DecisionKind::Clear { tool_use_ids: calls, text: "[cleared]".into() };
    let clear = log.append(decision(clear), now()).unwrap().id;
    drop(log);
    let opened = place.open();
    assert_eq!((results(&opened.branch.entries), opened.branch.omitted.is_some()), (TURNS, false));
    let mut log = opened.log;
    log.append(decision(DecisionKind::Undo { target: clear }), now()).unwrap();
    drop(log);
    assert!(place.open().branch.omitted.is_some(), "what is undone counts again");
}
