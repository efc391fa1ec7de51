//! Logs that were never compacted and that no window holds: a resume takes the newest messages, what people said and what is
//! in force, and counts what the rest used up.

use pal_model::{
    Body, Decision, DecisionKind, Draft, Entry, EntryId, Origin, Prefix, ResponseGot, Session, Source, Text,
    Totals, Usage,
};
use pal_store::{Log, Reader};

use crate::common::{Place, now, said};

/// Bytes of one tool result, and how many there are: more than is taken.
const RESULT: usize = 200_000;
const TURNS: usize = 200;

/// A log of turns, each with words of a person, a call, a result and what the answer took. The ids of the persons' words.
fn write(log: &mut Log) -> Vec<EntryId> {
    let mut words = Vec::new();
    log.append(Draft::session(&Session { title: Some("Long".into()), ..Session::default() }), now()).unwrap();
    let prefix = Prefix {
        system: Text::from(r#"[{"type":"text","text":"You are an agent."}]"#),
        tools: Text::from("[]"),
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    log.append(Draft::prefix(&prefix), now()).unwrap();
    log.append(decision(DecisionKind::Pin { text: "never forget".into() }), now()).unwrap();
    for turn in 0..TURNS {
        words.push(log.append(said(&format!("wish {turn}")), now()).unwrap().id);
        let call = format!(r#"[{{"type":"tool_use","id":"call_{turn}","name":"Read","input":{{}}}}]"#);
        let response = format!("msg_{turn}").as_str().into();
        let got = ResponseGot {
            response: format!("msg_{turn}").as_str().into(),
            source: Source::main(),
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
            Draft::assistant(Some(&response), None, &call),
            Draft::response(&got),
            Draft::user(Origin::Tool, &result),
        ];
        log.append_all(drafts, now()).unwrap();
    }
    words
}

fn decision(kind: DecisionKind) -> Draft {
    Draft::decision(&Decision { kind, reason: String::new(), cost: Default::default() })
}

fn results(entries: &[Entry]) -> usize {
    let is_result = |entry: &&Entry| matches!(&entry.body, Body::User(user) if user.origin == Origin::Tool);
    entries.iter().filter(is_result).count()
}

fn totals(entries: &[Entry]) -> Totals {
    let mut totals = Totals::default();
    for entry in entries {
        if let Body::Response(response) = &entry.body {
            totals.add(&response.usage, response.cost);
        }
    }
    totals
}

#[test]
fn the_newest_messages_what_people_said_and_what_is_in_force_are_taken() {
    let place = Place::new();
    let mut log = place.create();
    let words = write(&mut log);
    drop(log);
    let opened = place.open();
    let (entries, left_out) = (&opened.branch.entries, opened.branch.left_out.as_ref().unwrap());
    let taken: Vec<EntryId> = entries.iter().map(|entry| entry.id).collect();
    assert!(words.iter().all(|word| taken.contains(word)), "every word of a person is there");
    assert!(taken.is_sorted(), "in the order of the log");
    let kinds: Vec<String> = entries.iter().take(3).map(|entry| entry.kind().0.to_string()).collect();
    assert_eq!(kinds, ["session", "prefix", "pin"]);
    let kept = results(entries);
    assert!((60..70).contains(&kept), "{kept} of {TURNS} results: as many as a window may hold");
    assert_eq!(left_out.messages as usize, 2 * (TURNS - kept), "calls and results");
    assert_eq!((left_out.entries, left_out.by_people), (3 * (TURNS - kept) as u64, 0));
    assert!(left_out.bytes as usize > (TURNS - kept) * RESULT);
    let here = totals(entries);
    assert_eq!(here.responses + left_out.totals.responses, TURNS as u64);
    assert_eq!(here.input_tokens + left_out.totals.input_tokens, 100 * TURNS as u64);
    assert!((here.cost + left_out.totals.cost - 0.25 * TURNS as f64).abs() < 1e-6);
    // The log goes on behind its last entry, and gives all of itself to who asks for it.
    drop(opened);
    let mut log = place.open().log;
    let newest = log.append(said("and now?"), now()).unwrap();
    let whole = Reader::open(&place.path).unwrap().whole_branch().unwrap();
    assert_eq!((results(&whole.entries), whole.left_out.is_some()), (TURNS, false));
    assert_eq!(whole.entries.last().map(|entry| entry.id), Some(newest.id));
}

#[test]
fn what_is_not_in_sight_does_not_count() {
    let place = Place::new();
    let mut log = place.create();
    write(&mut log);
    let calls = (0..TURNS - 20).map(|turn| format!("call_{turn}").as_str().into()).collect();
    let clear = DecisionKind::Clear { tool_use_ids: calls, text: "[cleared]".into() };
    let clear = log.append(decision(clear), now()).unwrap().id;
    drop(log);
    let opened = place.open();
    assert_eq!((results(&opened.branch.entries), opened.branch.left_out.is_some()), (TURNS, false));
    let mut log = opened.log;
    log.append(decision(DecisionKind::Undo { target: clear }), now()).unwrap();
    drop(log);
    assert!(place.open().branch.left_out.is_some(), "what is undone counts again");
}
