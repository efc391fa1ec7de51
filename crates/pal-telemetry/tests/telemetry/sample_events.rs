//! Events of one finished prompt, with a canary string in all content.

use std::time::Duration;

use pal_events::{AgentEvent, ExchangeReport, PromptEnd, PromptResult, SessionInfo, ToolDenial};
use pal_model::{
    Boundary, BreakCause, CacheBreak, Content, EntryDraft, IdSource, LogEntry, MessageOrigin, RequestSource,
    ResponseId, SharedText, Timestamp, ToolUseId, Usage, UsageTotals,
};
use pal_telemetry::{Telemetry, TelemetryTarget};
use smol_str::SmolStr;

/// Marker in every message.
pub(crate) const CANARY: &str = "canary-7f3a";

/// A token that a user pasted.
pub(crate) const SECRET: &str = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");

pub(crate) fn target(endpoint: &str, with_content: bool) -> TelemetryTarget {
    TelemetryTarget {
        endpoint: Some(endpoint.to_owned()),
        headers: Some(String::from("authorization=Bearer%20abc")),
        service_name: String::from("tested"),
        version: String::from("1.2.3"),
        with_content,
        allows_plain_http: false,
    }
}

/// Exports all of it; what there was to tell about the collector.
pub(crate) fn export(endpoint: &str, with_content: bool) -> Option<String> {
    let mut telemetry = Telemetry::start(target(endpoint, with_content)).unwrap();
    for event in events() {
        telemetry.event(&event);
    }
    telemetry.finish()
}

pub(crate) fn events() -> Vec<AgentEvent> {
    let call = ToolUseId::from("call-1");
    let message =
        |draft: EntryDraft| AgentEvent::Message { entry: Box::new(entry(draft)), usage: None, cost: None };
    let said = format!(r#"[{{"type":"text","text":"{CANARY} asked, with the token {SECRET}"}}]"#);
    let answered = format!(
        r#"[{{"type":"text","text":"{CANARY} answered"}},{{"type":"tool_use","id":"call-1","name":"Bash","input":{{"command":"{CANARY} run"}}}}]"#
    );
    let result = format!(r#"[{{"type":"tool_result","tool_use_id":"call-1","content":"{CANARY} printed"}}]"#);
    vec![
        AgentEvent::SessionStarted(Box::new(began())),
        message(EntryDraft::user(MessageOrigin::Person, &said)),
        exchanged("main", None, usage(10, 90, 0, 5), Some(0.25)),
        AgentEvent::Text(format!("{CANARY} answered")),
        message(EntryDraft::assistant(Some(&ResponseId::from("r")), Some("m"), &answered)),
        AgentEvent::ToolStarted {
            call: call.clone(),
            name: "Bash".into(),
            input: format!(r#"{{"command":"{CANARY} run"}}"#),
        },
        AgentEvent::ToolPrinted { call: call.clone(), text: CANARY.to_owned() },
        AgentEvent::ToolEnded {
            call,
            name: "Bash".into(),
            is_error: true,
            took: Duration::from_millis(20),
            bytes: 17,
        },
        message(EntryDraft::user(MessageOrigin::Tool, &result)),
        exchanged("compact", None, usage(7, 0, 0, 3), Some(0.5)),
        AgentEvent::Compacted(Box::new(Boundary {
            method: "fork".into(),
            trigger: "auto".into(),
            summary: Content::from_text(CANARY),
            tokens_before: Some(900),
            tokens_after: Some(100),
            instructions: Some(CANARY.to_owned()),
            ..Boundary::default()
        })),
        AgentEvent::CacheBroken(Box::new(CacheBreak {
            tokens: 80,
            cause: BreakCause::Section {
                name: CANARY.into(),
                change: pal_model::RequestChange::Changed,
                characters: 3,
            },
            also: Vec::new(),
            cost: None,
            provider: None,
            diff: Some(CANARY.to_owned()),
        })),
        AgentEvent::Waiting { why: CANARY.to_owned(), attempt: 2, of: 10, left: Duration::from_secs(1) },
        exchanged("main", Some("overloaded"), None, None),
        exchanged("main", None, usage(0, 0, 100, 5), Some(0.125)),
        AgentEvent::Notice(CANARY.to_owned()),
        AgentEvent::Ended(ended()),
    ]
}

fn began() -> SessionInfo {
    SessionInfo {
        session_id: String::from("session-1"),
        transcript_path: format!("/home/{CANARY}/log.jsonl"),
        cwd: format!("/home/{CANARY}"),
        model: "claude-x".into(),
        tools: vec!["Bash".into()],
        permission_mode: "default".into(),
        is_resumed: false,
        version: String::from("1.2.3"),
        mcp_servers: Vec::new(),
        agents: Vec::new(),
        skills: Vec::new(),
        output_style: None,
    }
}

fn ended() -> PromptResult {
    PromptResult {
        end: PromptEnd::Failed(format!("{CANARY} failed")),
        text: CANARY.to_owned(),
        turns: 3,
        took: Duration::from_secs(2),
        took_provider: Duration::from_secs(1),
        spent: UsageTotals {
            responses: 3,
            simulated: 0,
            input_tokens: 17,
            cache_creation_input_tokens: 90,
            cache_read_input_tokens: 100,
            output_tokens: 13,
            cost: 0.875,
        },
        denials: vec![ToolDenial {
            tool_name: "Write".into(),
            tool_use_id: String::from("call-2"),
            tool_input: CANARY.to_owned(),
            reason: CANARY.to_owned(),
            rule: Some(CANARY.to_owned()),
        }],
        structured_output: None,
    }
}

fn usage(input: u64, written: u64, read: u64, output: u64) -> Option<Usage> {
    Some(Usage {
        input_tokens: input,
        cache_creation_input_tokens: written,
        cache_read_input_tokens: read,
        output_tokens: output,
        ..Usage::default()
    })
}

fn exchanged(
    source: &str,
    failed: Option<&'static str>,
    usage: Option<Usage>,
    cost: Option<f64>,
) -> AgentEvent {
    AgentEvent::ExchangeEnded(Box::new(ExchangeReport {
        source: RequestSource::from_name(source),
        provider: "anthropic",
        model: SmolStr::new("claude-x"),
        window: None,
        max_tokens: 8_000,
        answered: usage.as_ref().map(|_| (ResponseId::from("answer"), "claude-x-1".into())),
        stop_reason: usage.as_ref().map(|_| "tool_use".into()),
        usage,
        cost,
        failed,
        took: Duration::from_millis(300),
        took_to_start: Some(Duration::from_millis(100)),
    }))
}

fn entry(draft: EntryDraft) -> LogEntry {
    let at = Timestamp::from_milliseconds(1_800_000_000_000);
    let line = draft.into_line(IdSource::seeded(1).next_id(at), None, at, None);
    LogEntry::parse(SharedText::from(line)).unwrap()
}
