//! End-to-end tests of provider-side context management: the provider's own summaries and clears.

use std::path::Path;

use pal_model::{
    Content, DecisionKind, EntryBody, EntryDraft, IdSource, LogEntry, MessageOrigin, PromptPrefix,
    RequestRecord, RequestSource, ResponseRecord, SharedText, Timestamp, Usage,
};
use serde_json::{Value, json};

use crate::replay::recorded_session::RecordedSession;
use crate::replay::replay_options::{ReplayOptions, ReplayPolicy, RestartPoint};
use crate::replay::replay_report::ReplayReport;
use crate::replay::replay_run::replay_watched;

/// A log that is being made up.
struct MadeSession {
    ids: IdSource,
    entries: Vec<LogEntry>,
    second: i64,
    model: &'static str,
}

impl MadeSession {
    fn new(model: &'static str) -> MadeSession {
        let ids = IdSource::seeded(9);
        let mut made = MadeSession { ids, entries: Vec::new(), second: 1_800_000_000, model };
        made.push(EntryDraft::prefix(&PromptPrefix {
            system: SharedText::from(r#"[{"type":"text","text":"You help."}]"#),
            tools: SharedText::from(r#"[{"name":"Read","input_schema":{"type":"object"}}]"#),
            context: Content::parse(&SharedText::from(
                r#""<system-reminder>The instructions.</system-reminder>""#,
            )),
            unseen_tokens: 0,
            notes: Default::default(),
        }));
        made
    }

    fn push(&mut self, draft: EntryDraft) {
        self.second += 1;
        let at = Timestamp::from_milliseconds(self.second * 1_000);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }

    fn person(&mut self, words: &str) {
        self.push(EntryDraft::user(MessageOrigin::Person, &json!(words).to_string()));
    }

    /// A request and its answer; its thinking has an unknown signature.
    fn answer(&mut self, number: usize, block: &Value) {
        let source = RequestSource::main();
        let model = self.model;
        self.push(EntryDraft::request(&RequestRecord::new(
            source.clone(),
            self.entries.last().map(|entry| entry.id),
            model.into(),
        )));
        let response = format!("msg_{number}").as_str().into();
        let thought = json!({"type": "thinking", "thinking": format!("Thought {number}"), "signature": format!("c2ln{number:04}")});
        let said = json!([thought, block]).to_string();
        self.push(EntryDraft::assistant(Some(&response), Some(model), &said));
        let usage = Usage { input_tokens: 3, output_tokens: 20, ..Usage::default() };
        let stop_reason = Some("tool_use".into());
        let model = model.into();
        self.push(EntryDraft::response(&ResponseRecord {
            response,
            source,
            model,
            usage,
            stop_reason,
            cost: None,
            cache_break: None,
        }));
    }

    /// A session of user turns, each with calls whose results have this number of words.
    fn session(model: &'static str, turns: usize, calls: usize, words: usize) -> RecordedSession {
        let mut made = MadeSession::new(model);
        let mut number = 0;
        for turn in 0..turns {
            made.person(&format!("Question {turn} about src/part{turn}.rs"));
            for _ in 0..calls {
                number += 1;
                let input = json!({"file_path": format!("/src/file{number}.rs")});
                made.answer(
                    number,
                    &json!({"type": "tool_use", "id": format!("t{number}"), "name": "Read", "input": input}),
                );
                let content = format!("file {number}: {}", "some words of it ".repeat(words / 4));
                let result =
                    json!([{"type": "tool_result", "tool_use_id": format!("t{number}"), "content": content}]);
                made.push(EntryDraft::user(MessageOrigin::Tool, &result.to_string()));
            }
            number += 1;
            made.answer(number, &json!({"type": "text", "text": format!("Answer {turn}")}));
        }
        RecordedSession::new("made", made.entries)
    }
}

fn options(window: u64) -> ReplayOptions {
    let mut options =
        ReplayOptions { policy: ReplayPolicy::Threshold, window: Some(window), ..ReplayOptions::plain() };
    options.auto_compact = true;
    options.layers = pal_context::ContextPolicy {
        spill: false,
        condense: false,
        ..pal_context::ContextPolicy::threshold()
    };
    options
}

fn run(recorded: &RecordedSession, options: &ReplayOptions) -> (ReplayReport, Vec<Value>) {
    let mut bodies = Vec::new();
    let report = replay_watched(recorded, options, &mut |step| {
        bodies.push(serde_json::from_str(step.body).unwrap());
    });
    (report.unwrap(), bodies)
}

fn summaries(body: &Value) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, message) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (index, block) in message["content"].as_array().unwrap().iter().enumerate() {
            if block["type"] == "compaction" {
                found.push((at, index));
            }
        }
    }
    found
}

fn log(folder: &Path) -> Vec<LogEntry> {
    let text = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    text.lines().map(|line| LogEntry::parse(SharedText::from(line)).unwrap()).collect()
}

#[test]
fn the_provider_summarizes_again_and_again_and_takes_every_request() {
    for model in ["claude-opus-5-5", "claude-opus-4-6"] {
        let recorded = MadeSession::session(model, 26, 4, 1_000);
        let mut options = options(48_000);
        options.layers.provider_compaction = true;
        let (report, bodies) = run(&recorded, &options);
        assert_eq!((report.rejected, report.lost.len()), (0, 0), "{model}: {:?}", report.rejections);
        assert!(report.compactions.len() >= 3, "{model}: {:?}", report.compactions);
        for compaction in &report.compactions {
            assert_eq!(compaction.how, "provider", "{model}: {:?}", report.notices);
            let audit = compaction.audit;
            assert_eq!(audit.user_messages, audit.user_messages_verbatim, "{model}: {compaction:?}");
            assert!(compaction.after.unwrap() < compaction.before, "{compaction:?}");
        }
        let asked = bodies.iter().filter(|body| !body["compaction"].is_null()).count();
        assert_eq!(asked, report.compactions.len());
        assert!(
            bodies.iter().all(|body| body["context_management"].is_null()),
            "it does not clear beside that"
        );
        let first = bodies.iter().position(|body| !body["compaction"].is_null()).unwrap();
        for body in &bodies[first + 1..] {
            assert_eq!(
                summaries(body),
                [(0, 0)],
                "{model}: the block opens the messages, and is the only one"
            );
            assert_eq!(body["messages"][0]["role"], "assistant");
            assert!(!body.to_string().contains("[The conversation starts here.]"), "{body}");
        }
        let restarted = run(&recorded, &ReplayOptions { restart: RestartPoint::EveryTurn, ..options });
        assert!(restarted.1 == bodies, "{model}: a resumed session sends the same bytes");
    }
}

#[test]
fn a_model_that_cannot_read_the_block_gets_its_words() {
    let mut made = MadeSession::session("claude-opus-5-5", 8, 4, 1_000).entries().to_vec();
    // The last turns are asked of another model.
    let from = made.len() * 3 / 4;
    for entry in &mut made[from..] {
        let line = entry.line.replace("claude-opus-5-5", "claude-opus-4-5");
        *entry = LogEntry::parse(SharedText::from(line)).unwrap();
    }
    let mut options = options(40_000);
    options.layers.provider_compaction = true;
    let (report, bodies) = run(&RecordedSession::new("made", made), &options);
    assert_eq!((report.rejected, report.lost.len()), (0, 0), "{:?}", report.rejections);
    let switched = bodies.iter().position(|body| body["model"] == "claude-opus-4-5").unwrap();
    assert_eq!(summaries(&bodies[switched - 1]), [(0, 0)]);
    let block = bodies[switched - 1]["messages"][0]["content"][0]["content"].as_str().unwrap().to_owned();
    assert!(bodies[switched..].iter().all(|body| summaries(body).is_empty()));
    let told = bodies[switched]["messages"][0]["content"].as_array().unwrap();
    let told: Vec<&str> = told.iter().filter_map(|block| block["text"].as_str()).collect();
    assert!(told.iter().any(|text| text.contains(block.trim())), "{told:?}");
}

#[test]
fn provider_clears_are_logged_once() {
    let recorded = MadeSession::session("claude-opus-5-5", 3, 12, 4_000);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let options = ReplayOptions { out: Some(out.clone()), auto_compact: false, ..options(200_000) };
    let (report, bodies) = run(&recorded, &options);
    assert_eq!(report.rejected, 0, "{:?}", report.rejections);
    assert!(bodies.iter().any(|body| !body["context_management"].is_null()));
    let mut cleared = Vec::new();
    for entry in log(&out) {
        if let EntryBody::Decision(decision) = &entry.body
            && let DecisionKind::ProviderClear { cleared_tokens } = decision.kind
        {
            cleared.push((cleared_tokens, decision.cost.tokens_freed));
        }
    }
    assert!(!cleared.is_empty() && cleared.len() < bodies.len() / 2, "{cleared:?}");
    assert!(cleared.windows(2).all(|pair| pair[0].0 < pair[1].0), "only what is more: {cleared:?}");
    let freed: u64 = cleared.iter().map(|(_, freed)| freed).sum();
    assert_eq!(Some(freed), cleared.last().map(|(tokens, _)| *tokens), "what was freed, each token once");
    assert_eq!(report.layers["microcompact"].tokens_freed, freed);
}
