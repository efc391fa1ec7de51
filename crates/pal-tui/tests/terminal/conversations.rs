//! Conversations as events, and their rendered lines.

use std::time::Duration;

use pal_events::{AgentEvent, PromptEnd, PromptResult};
use pal_model::{LogEntry, SharedText, ToolUseId, UsageTotals};
use pal_tui::{Theme, Transcript};

use crate::golden_pages::compare;

fn entry(body: &str) -> Box<LogEntry> {
    let line = format!(
        r#"{{"v":1,"id":"01890000-0000-7000-8000-000000000001","parent":null,"at":"2026-11-16T12:00:00.000Z",{body}}}"#
    );
    Box::new(LogEntry::parse(SharedText::from(line)).unwrap())
}

fn message(body: &str) -> AgentEvent {
    AgentEvent::Message { entry: entry(body), usage: None, cost: None }
}

fn ended(end: PromptEnd) -> AgentEvent {
    AgentEvent::Ended(PromptResult {
        end,
        text: String::new(),
        turns: 2,
        took: Duration::from_millis(4_200),
        took_provider: Duration::from_millis(4_000),
        spent: UsageTotals {
            cache_read_input_tokens: 9_000,
            input_tokens: 1_000,
            cost: 0.01,
            ..UsageTotals::default()
        },
        denials: Vec::new(),
        structured_output: None,
    })
}

fn tool(id: &str, name: &str, input: &str, result: &str, is_error: bool) -> Vec<AgentEvent> {
    let call = ToolUseId::from(id);
    let escaped = serde_json::Value::from(result).to_string();
    vec![
        AgentEvent::ToolStarted { call: call.clone(), name: name.into(), input: input.to_owned() },
        AgentEvent::ToolEnded {
            call,
            name: name.into(),
            is_error,
            took: Duration::from_millis(1_260),
            bytes: 4_321,
        },
        message(&format!(
            r#""kind":"user","origin":"tool","content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{is_error},"content":{escaped}}}]"#
        )),
    ]
}

fn conversation() -> Vec<AgentEvent> {
    let mut events = vec![message(r#""kind":"user","origin":"person","content":"Fix the greeting.""#)];
    events.push(AgentEvent::Thinking(String::from("Look at the file first.")));
    events.extend(
        ["I will ", "look at it.\n\nThen ", "change it."].map(|text| AgentEvent::Text(text.to_owned())),
    );
    events.extend(tool("t1", "Read", r#"{"file_path":"src/main.rs"}"#, "fn main() {}", false));
    events.extend(tool(
        "t2",
        "Edit",
        r#"{"file_path":"src/main.rs","old_string":"a\n  hello\nb\n","new_string":"a\n  hello, world\nb\n"}"#,
        "ok",
        false,
    ));
    events.extend(tool("t3", "Bash", r#"{"command":"cargo test"}"#, "one\ntwo\nthree\nfour\nfive\n", false));
    events.extend(tool("t4", "Bash", r#"{"command":"false"}"#, "it failed\nfor a reason", true));
    events.push(AgentEvent::Text(String::from("Done.")));
    events.push(ended(PromptEnd::Done));
    events
}

fn shown(events: &[AgentEvent], width: usize) -> String {
    let mut transcript = Transcript::new(width, Theme::default());
    let mut text = String::new();
    for event in events {
        transcript.apply(event);
        text.extend(transcript.take_finished().iter().map(|line| format!("{line}\n")));
    }
    text
}

#[test]
fn conversation_at_two_widths() {
    for width in [79, 199] {
        compare(&format!("talk-{width}.txt"), &shown(&conversation(), width));
    }
}

#[test]
fn live_lines_of_a_running_conversation() {
    let mut transcript = Transcript::new(79, Theme::default());
    for event in &conversation()[..6] {
        transcript.apply(event);
    }
    transcript
        .apply(&AgentEvent::ToolPrinted { call: "t1".into(), text: String::from("one\ntwo\nthree\nfour\n") });
    transcript.add_prompt("hurry up");
    let live: Vec<String> = transcript.live(20).iter().map(ToString::to_string).collect();
    assert_eq!(live, ["● Read src/main.rs  running", "  two", "  three", "  four", "› hurry up"]);
    assert_eq!(transcript.live(1).len(), 1, "no more than there is room for");
}

#[test]
fn a_discarded_answer_is_removed_or_reported() {
    let void = AgentEvent::AnswerDiscarded { why: String::from("it was cut") };
    let unseen = shown(
        &[
            AgentEvent::Text(String::from("Hal")),
            void.clone(),
            AgentEvent::Text(String::from("Whole.")),
            ended(PromptEnd::Done),
        ],
        79,
    );
    assert!(!unseen.contains("Hal") && unseen.contains("Whole."), "{unseen}");
    let seen = shown(&[AgentEvent::Text(String::from("One.\n\nTwo\n")), void, ended(PromptEnd::Done)], 79);
    assert!(seen.contains("One.") && seen.contains("was discarded"), "{seen}");
}

#[test]
fn calls_without_a_result_are_marked() {
    let mut events = conversation();
    events.truncate(6);
    events.push(ended(PromptEnd::Interrupted));
    let text = shown(&events, 79);
    assert!(text.contains("Read src/main.rs  given up") && text.contains("stopped"), "{text}");
}

#[test]
fn unfold_prints_results_of_the_last_prompt_once() {
    let mut transcript = Transcript::new(40, Theme::default());
    let unfolded = |transcript: &mut Transcript| {
        transcript.take_finished();
        transcript.unfold();
        let lines = transcript.take_finished();
        lines.iter().map(|line| format!("{line}\n")).collect::<String>()
    };
    conversation().iter().for_each(|event| transcript.apply(event));
    let text = unfolded(&mut transcript);
    let places = [
        "● Read src/main.rs",
        "  fn main() {}",
        "● Bash cargo test",
        "  one\n  two\n  three\n  four\n  five\n",
    ];
    let found: Vec<Option<usize>> = places.map(|place| text.find(place)).into();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{text}");
    assert!(unfolded(&mut transcript).contains("all results are already shown"));
    conversation().iter().for_each(|event| transcript.apply(event));
    transcript.apply(&message(r#""kind":"user","origin":"person","content":"Thanks.""#));
    assert!(unfolded(&mut transcript).contains("all results are already shown"));
    let long: String = (0..1_000).map(|number| format!("line {number}\n")).collect();
    tool("t9", "Grep", r#"{"pattern":"x"}"#, &long, false).iter().for_each(|event| transcript.apply(event));
    let text = unfolded(&mut transcript);
    assert!(
        text.contains("line 399\n") && !text.contains("line 400\n") && text.contains("600 more lines"),
        "{text}"
    );
}
