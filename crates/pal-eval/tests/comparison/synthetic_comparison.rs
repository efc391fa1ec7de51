//! Comparisons over synthetic sessions, each built to show one effect.

use pal_eval::comparison::{EvalPlan, POLICY_ROWS, PolicyComparison, find_policy_row, run_evaluation};
use pal_eval::replay::RecordedSession;
use pal_model::{
    CacheCreation, Content, EntryDraft, IdSource, LogEntry, MessageOrigin, ModelCatalog, PromptPrefix,
    RequestRecord, RequestSource, ResponseRecord, SharedText, Timestamp, Usage,
};
use pal_view::CacheTtl;

/// A session that is being made up.
pub(crate) struct Made {
    ids: IdSource,
    entries: Vec<LogEntry>,
    second: i64,
    calls: usize,
    /// TTL that the recorded client asked for, and that rows without a choice of their own repeat.
    ttl: CacheTtl,
}

impl Made {
    pub(crate) fn new() -> Made {
        Made::with_ttl(CacheTtl::Minutes5)
    }

    pub(crate) fn with_ttl(ttl: CacheTtl) -> Made {
        let mut made =
            Made { ids: IdSource::seeded(5), entries: Vec::new(), second: 1_800_000_000, calls: 0, ttl };
        made.push(EntryDraft::prefix(&PromptPrefix {
            system: SharedText::from("[]"),
            tools: SharedText::from(
                r#"[{"name":"Read","input_schema":{"type":"object"}},{"name":"Edit","input_schema":{"type":"object"}}]"#,
            ),
            context: Content::default(),
            unseen_tokens: 8_000,
            notes: Default::default(),
        }));
        made.push(EntryDraft::user(MessageOrigin::Person, "\"Mend the parser.\""));
        made
    }

    fn push(&mut self, draft: EntryDraft) {
        let at = Timestamp::from_milliseconds(self.second * 1_000);
        let parent = self.entries.last().map(|entry| entry.id);
        let line = draft.into_line(self.ids.next_id(at), parent, at, None);
        self.entries.push(LogEntry::parse(SharedText::from(line)).unwrap());
    }

    /// A message of a person after a pause.
    pub(crate) fn person_after(&mut self, pause: std::time::Duration) {
        self.second += i64::try_from(pause.as_secs()).unwrap();
        self.push(EntryDraft::user(MessageOrigin::Person, "\"And now the next part.\""));
    }

    /// A call on a file, with this number of words in its result.
    pub(crate) fn call(&mut self, tool: &str, path: &str, words: usize) {
        self.calls += 1;
        let number = self.calls;
        let last = self.entries.last().map(|entry| entry.id);
        self.second += 5;
        self.push(EntryDraft::request(&RequestRecord::new(
            RequestSource::main(),
            last,
            "claude-opus-4-6".into(),
        )));
        let response = format!("msg_{number}").as_str().into();
        let call = format!(
            r#"[{{"type":"tool_use","id":"t{number}","name":"{tool}","input":{{"file_path":"{path}"}}}}]"#
        );
        self.push(EntryDraft::assistant(Some(&response), Some("claude-opus-4-6"), &call));
        self.push(EntryDraft::response(&ResponseRecord {
            response,
            source: RequestSource::main(),
            model: "claude-opus-4-6".into(),
            usage: self.usage(),
            stop_reason: Some("tool_use".into()),
            cost: None,
            cache_break: None,
        }));
        let text: String = (0..words).map(|word| format!("word{word} ")).collect();
        let result = format!(r#"[{{"type":"tool_result","tool_use_id":"t{number}","content":"{text}"}}]"#);
        self.push(EntryDraft::user(MessageOrigin::Tool, &result));
    }

    fn usage(&self) -> Usage {
        let written = CacheCreation { ephemeral_1h_input_tokens: 10, ..CacheCreation::default() };
        Usage {
            input_tokens: 10,
            output_tokens: 30,
            cache_creation: (self.ttl == CacheTtl::Hour1).then_some(written),
            ..Usage::default()
        }
    }

    fn recorded(&self) -> RecordedSession {
        RecordedSession::new("made", self.entries.clone())
    }
}

pub(crate) fn measured(made: &Made, windows: &[u64]) -> PolicyComparison {
    let plan = EvalPlan {
        rows: POLICY_ROWS.iter().collect(),
        models: vec![None],
        windows: windows.to_vec(),
        cards: ModelCatalog::built_in(),
    };
    let findings = run_evaluation(&plan, 1, &|_| Ok(made.recorded()), &mut |_| {});
    assert!(findings.failures.is_empty(), "{:?}", findings.failures);
    findings
}

/// A file is read, many others after it, and then it is edited.
fn long() -> Made {
    let mut made = Made::new();
    made.call("Read", "/src/first.rs", 2_000);
    for number in 0..30 {
        made.call("Read", &format!("/src/other{number}.rs"), 2_000);
    }
    made.call("Edit", "/src/first.rs", 5);
    made.call("Read", "/src/other29.rs", 2_000);
    made
}

#[test]
fn content_that_was_dropped_and_is_used_is_a_page_fault() {
    let findings = measured(&long(), &[1_000_000]);
    let table = &findings.tables[0];
    let of = |name: &str| table.row(name).unwrap();
    assert_eq!((of("none").page_faults, of("none").compactions), (0, 0));
    let early = of("compact-100k");
    assert!(early.compactions > 0, "{early:?}");
    // The edited file was read long before the compaction; the other one was just read.
    assert_eq!(early.page_faults, 1, "{early:?}");
    assert!(early.fault_characters > 10_000 && early.total_usd > early.cost_usd, "{early:?}");
    assert_eq!(of("none").total_usd, of("none").cost_usd, "who drops nothing loses nothing");
    let cleared = of("clear-100k");
    assert!(cleared.page_faults == 1 && cleared.compactions == 0, "{cleared:?}");
    let slid = of("slide-100k");
    assert!(slid.page_faults == 1 && slid.compactions == 0, "{slid:?}");
    // No policy of those above can know that the session is about to end.
    assert!(table.rows.iter().all(|row| row.against_clairvoyant.unwrap() > 0.99), "{:?}", table.rows);
}

#[test]
fn a_replay_that_would_give_the_same_is_not_made() {
    let mut made = Made::new();
    for number in 0..4 {
        made.call("Read", &format!("/src/file{number}.rs"), 400);
    }
    let findings = measured(&made, &[200_000, 1_000_000]);
    let [small, large] = findings.tables.as_slice() else { panic!("two windows") };
    assert_eq!((small.window, large.window), (200_000, 1_000_000));
    let replays = |name: &str| (small.row(name).unwrap().replays, large.row(name).unwrap().replays);
    assert_eq!(replays("none"), (0, 1));
    assert_eq!(replays("compact-50"), (0, 0));
    let cost = |name: &str| small.row(name).unwrap().cost_usd;
    assert!(cost("none") > 0.0 && cost("none") == cost("compact-50"));
}

#[test]
fn the_report_is_written_whole() {
    let findings = measured(&long(), &[200_000]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let files = findings.write(&out).unwrap();
    let names: Vec<_> =
        files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["cost.svg", "faults-200000.svg", "forecast.svg", "report.json", "report.md"]);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    let rows = json["tables"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), POLICY_ROWS.len());
    for row in POLICY_ROWS {
        assert!(
            read("report.md").contains(&format!("`{}`", row.name)) && read("cost.svg").contains(row.name)
        );
    }
    assert!(read("cost.svg").contains("prefers-color-scheme:dark"));
    // Of every call but the first it is known whether a pause came before it.
    let said = |bins: &[pal_context::cost_aware::ForecastReliability]| {
        bins.iter().map(|bin| bin.cases).sum::<u64>() as usize
    };
    assert_eq!(said(&findings.forecast.pauses), findings.calls - 1);
    assert_eq!(said(&findings.forecast.turns), 6 * findings.calls);
    // Once more over what is there.
    assert_eq!(findings.write(&out).unwrap(), files);
    let in_the_way = folder.path().join("file");
    std::fs::write(&in_the_way, "").unwrap();
    assert!(findings.write(&in_the_way).unwrap_err().to_string().contains("cannot be written"));
}

#[test]
fn a_session_that_cannot_be_read_is_told() {
    let plan = EvalPlan {
        rows: vec![find_policy_row("threshold").unwrap()],
        models: vec![None],
        windows: vec![200_000],
        cards: ModelCatalog::built_in(),
    };
    let made = long();
    let read =
        |at: usize| if at == 0 { Ok(made.recorded()) } else { Err(String::from("b.jsonl is no session")) };
    let mut seen = Vec::new();
    let findings =
        run_evaluation(&plan, 2, &read, &mut |progress| seen.push((progress.done, progress.count)));
    assert_eq!(
        (findings.sessions, findings.failures.as_slice()),
        (1, &[String::from("b.jsonl is no session")][..])
    );
    assert_eq!(seen, [(0, 2), (1, 2), (2, 2)]);
    assert!(findings.tables[0].row("none").is_some(), "what others are compared with is always there");
    assert!(findings.markdown().contains("b.jsonl is no session"));
}
