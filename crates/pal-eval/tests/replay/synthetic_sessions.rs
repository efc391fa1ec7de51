//! Synthetic recordings, each built to show one behavior.

use pal_eval::replay::{RecordedSession, ReplayError, ReplayOptions, RestartPoint, replay, replay_watched};
use pal_model::{
    Boundary, BreakCause, Content, EntryDraft, EntryId, IdSource, LogEntry, MessageOrigin,
    PreservedPlacement, PreservedRange, PromptPrefix, RequestRecord, RequestSource, ResponseRecord,
    SharedText, Timestamp, Usage,
};

/// A log that is being made up.
pub(crate) struct Made {
    ids: IdSource,
    entries: Vec<LogEntry>,
    second: i64,
    responses: usize,
    model: &'static str,
}

impl Made {
    /// A session with an unrecorded prompt.
    pub(crate) fn new(unseen_tokens: u64) -> Made {
        let mut made = Made {
            ids: IdSource::seeded(5),
            entries: Vec::new(),
            second: 1_800_000_000,
            responses: 0,
            model: "claude-opus-4-6",
        };
        made.push(EntryDraft::prefix(&PromptPrefix {
            system: SharedText::from("[]"),
            tools: SharedText::from(r#"[{"name":"Read","input_schema":{"type":"object"}}]"#),
            context: Content::default(),
            unseen_tokens,
            notes: Default::default(),
        }));
        made
    }

    fn push(&mut self, draft: EntryDraft) -> EntryId {
        let at = Timestamp::from_milliseconds(self.second * 1_000);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
        self.entries.last().unwrap().id
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        self.second += seconds;
    }

    pub(crate) fn person(&mut self, words: &str) -> EntryId {
        self.push(EntryDraft::user(MessageOrigin::Person, &serde_json::to_string(words).unwrap()))
    }

    /// A request and its answer, which reads a file and gets this number of words back.
    pub(crate) fn turn(&mut self, words: usize) -> EntryId {
        let path = format!("/src/file{}.rs", self.responses + 1);
        self.call("Read", &serde_json::json!({"file_path": path}), &"word ".repeat(words))
    }

    /// A request and its answer, which calls a tool and gets this result.
    pub(crate) fn call(&mut self, tool: &str, input: &serde_json::Value, result: &str) -> EntryId {
        self.responses += 1;
        let number = self.responses;
        let last = self.entries.last().map(|entry| entry.id);
        let source = RequestSource::main();
        let request = RequestRecord::new(source.clone(), last, self.model.into());
        self.wait(2);
        self.push(EntryDraft::request(&request));
        self.wait(1);
        let response = format!("msg_{number}").as_str().into();
        let call = format!(r#"[{{"type":"tool_use","id":"t{number}","name":"{tool}","input":{input}}}]"#);
        self.push(EntryDraft::assistant(Some(&response), Some(self.model), &call));
        let usage =
            Usage { input_tokens: 3, cache_read_input_tokens: 9_000, output_tokens: 20, ..Usage::default() };
        self.push(EntryDraft::response(&ResponseRecord {
            response,
            source,
            model: self.model.into(),
            usage,
            stop_reason: Some("tool_use".into()),
            cost: None,
            cache_break: None,
        }));
        self.wait(1);
        let result = serde_json::json!([{"type": "tool_result", "tool_use_id": format!("t{number}"), "content": result}]);
        self.push(EntryDraft::user(MessageOrigin::Tool, &result.to_string()))
    }

    fn boundary(&mut self, summary: &str, kept: Option<(EntryId, EntryId)>) {
        let preserved = kept.map(|(head, tail)| PreservedRange {
            head,
            tail,
            placement: PreservedPlacement::AfterSummary,
            offset: Some(1),
        });
        let summary = Content::parse(&SharedText::from(serde_json::to_string(summary).unwrap()));
        self.push(EntryDraft::boundary(&Boundary {
            trigger: "auto".into(),
            method: "imported".into(),
            summary,
            preserved,
            ..Boundary::default()
        }));
    }

    pub(crate) fn recorded(self) -> RecordedSession {
        RecordedSession::new("made", self.entries)
    }
}

/// Some turns, a compaction that keeps the newest messages, and some more.
fn compacted() -> RecordedSession {
    let mut made = Made::new(12_000);
    made.person("Fix the parser in src/file1.rs.");
    for _ in 0..4 {
        made.turn(500);
    }
    let head = made.person("And keep the tests green.");
    let tail = made.turn(300);
    made.boundary("They want: Fix the parser in src/file1.rs. See also src/file9.rs.", Some((head, tail)));
    for _ in 0..3 {
        made.turn(200);
    }
    made.recorded()
}

fn bodies(recorded: &RecordedSession, restart: RestartPoint) -> Vec<String> {
    let mut bodies = Vec::new();
    let options = ReplayOptions { restart, ..ReplayOptions::plain() };
    replay_watched(recorded, &options, &mut |step| bodies.push(step.body.to_owned())).unwrap();
    bodies
}

#[test]
fn a_session_costs_what_its_requests_cost() {
    let report = replay(&compacted(), &ReplayOptions::plain()).unwrap();
    assert_eq!((report.requests, report.rejected, report.lost.len(), report.breaks.len()), (8, 0, 0, 0));
    let measured = report.measured;
    assert_eq!((measured.responses, report.window), (8, 1_000_000));
    assert!(measured.tokens.cache_read > 4 * measured.tokens.cache_write, "{:?}", measured.tokens);
    assert!(measured.tokens.output >= 8 * 10 && measured.cost_usd.unwrap() > 0.0);
    assert_eq!((report.recorded.responses, report.recorded.tokens.cache_read), (8, 72_000));
    assert!(report.engine_us.p50 <= report.engine_us.p99 && report.engine_us.p99 <= report.engine_us.max);
    let [compaction] = report.compactions.as_slice() else { panic!("{:?}", report.compactions) };
    assert!(compaction.after.unwrap() < compaction.before, "{compaction:?}");
    let audit = compaction.audit;
    assert_eq!((audit.user_messages, audit.user_messages_verbatim), (1, 1), "what is kept is not summarised");
    assert_eq!((audit.paths, audit.paths_kept, audit.invented), (4, 1, 1));
}

#[test]
fn a_restart_between_any_two_turns_changes_no_byte() {
    let recorded = compacted();
    let through = bodies(&recorded, RestartPoint::Never);
    assert_eq!(through.len(), 8);
    assert!(through[7].contains("And keep the tests green.") && through[7].contains("They want: Fix"));
    assert!(!through[7].contains("t2"), "what was summarised is gone");
    for restart in [RestartPoint::Never, RestartPoint::EveryTurn, RestartPoint::OneIn(3)] {
        assert!(bodies(&recorded, restart) == through, "{restart:?}");
    }
}

#[test]
fn cache_expires_by_the_recorded_clock() {
    let mut made = Made::new(12_000);
    made.person("Go on.");
    made.turn(2_000);
    made.turn(10);
    made.wait(3_000);
    made.turn(10);
    made.turn(10);
    let report = replay(&made.recorded(), &ReplayOptions::plain()).unwrap();
    let breaks: Vec<_> = report.breaks.iter().map(|found| (found.request, &found.cause)).collect();
    assert!(matches!(breaks[..], [(3, BreakCause::Expired { lifetime_ms: 300_000, .. })]), "{breaks:?}");
}

#[test]
fn time_does_not_go_back() {
    let mut made = Made::new(12_000);
    made.person("Go on.");
    made.turn(10);
    made.wait(-7_200);
    made.turn(10);
    let mut starts = Vec::new();
    replay_watched(&made.recorded(), &ReplayOptions::plain(), &mut |step| starts.push(step.started)).unwrap();
    assert!(starts.len() == 2 && starts.is_sorted(), "{starts:?}");
}

#[test]
fn a_small_window_refuses_and_another_model_takes_over() {
    let recorded = compacted();
    let small = replay(&recorded, &ReplayOptions { window: Some(2_500), ..ReplayOptions::plain() }).unwrap();
    assert!(small.rejected > 0 && small.window == 2_500, "{}", small.rejected);
    assert!(small.rejections[0].message.contains("prompt is too long"), "{:?}", small.rejections);
    assert_eq!((small.requests, small.lost.len()), (8, 0), "refused or not, nothing is lost");
    for model in ["claude-opus-5-5", "gpt-6-sol", "nobody-knows-it"] {
        let report =
            replay(&recorded, &ReplayOptions { model: Some(model.into()), ..ReplayOptions::plain() })
                .unwrap();
        assert_eq!((report.models[model], report.rejected), (8, 0), "{:?}", report.rejections);
        assert_eq!(report.notices.len(), usize::from(model.starts_with("nobody")));
    }
    let nothing = RecordedSession::new("empty", Vec::new());
    assert!(matches!(replay(&nothing, &ReplayOptions::plain()), Err(ReplayError::NoModel)));
}

#[test]
fn the_log_is_kept_in_the_chosen_directory() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("session");
    let recorded = compacted();
    let options = ReplayOptions { out: Some(out.clone()), ..ReplayOptions::plain() };
    replay(&recorded, &options).unwrap();
    let log = pal_store::LogReader::open(&out.join("log.jsonl")).unwrap().whole_branch().unwrap();
    assert!(log.problems.is_empty());
    let ids = |entries: &[LogEntry]| entries.iter().map(|entry| entry.id).collect::<Vec<_>>();
    assert_eq!(ids(&log.entries), ids(recorded.entries()), "every entry under its own id");
    // What is there stays as it is.
    let again = replay(&recorded, &options);
    assert!(matches!(again, Err(ReplayError::Engine(pal_engine::EngineError::Open(_)))));
}
