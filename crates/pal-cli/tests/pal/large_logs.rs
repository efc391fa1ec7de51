//! Sessions of hundreds of megabytes: what `pal` takes to resume, view, search and check them. Ignored, since it writes
//! gigabytes: `cargo test -p pal-cli --test pal large -- --ignored --nocapture`. `PAL_LARGE_MB` sets the size, `PAL` another
//! program than that of the tests, such as a release build; `PAL_LARGE_KEEP` keeps what was written.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pal_model::{
    Boundary, ContentBlock, EntryDraft, EntryId, EntryRef, IdSource, MessageOrigin, PreservedRange,
    PromptPrefix, RequestRecord, RequestSource, ResponseRecord, SessionSnapshot, SessionStart, SharedText,
    Timestamp, Usage,
};
use pal_store::{Log, log_path, project_directory};

use crate::program::TestHome;

/// Composition of a long log.
#[derive(Clone, Copy, Debug)]
struct LargeLogShape {
    name: &'static str,
    /// Bytes of one tool result.
    result: usize,
    /// Bytes between two boundaries; none without any.
    compacted_every: Option<u64>,
}

const SHAPES: [LargeLogShape; 4] = [
    LargeLogShape { name: "small entries, boundaries", result: 400, compacted_every: Some(2 << 20) },
    LargeLogShape { name: "usual entries, boundaries", result: 4_000, compacted_every: Some(2 << 20) },
    LargeLogShape { name: "huge entries, boundaries", result: 2 << 20, compacted_every: Some(16 << 20) },
    LargeLogShape { name: "usual entries, no boundary", result: 4_000, compacted_every: None },
];

/// Writes a session of this shape and size in the project of `home`; its id and its log.
fn write(home: &TestHome, shape: LargeLogShape, bytes: u64, number: u64) -> (String, PathBuf) {
    let directory = home.path().join("project");
    std::fs::create_dir_all(directory.join(".git")).unwrap();
    let mut ids = IdSource::seeded(number);
    let mut clock = 1_780_000_000_000;
    let mut now = move || {
        clock += 900;
        Timestamp::from_milliseconds(clock)
    };
    let id = ids.next_id(now()).to_string();
    let folder = project_directory(&home.path().join("pal"), &directory).join("sessions").join(&id);
    pal_store::create_private_directory(&folder).unwrap();
    let path = log_path(&folder);
    let mut log = Log::create(&path, ids).unwrap();
    let began = SessionStart {
        program: String::from("pal"),
        cwd: Some(directory.display().to_string()),
        ..SessionStart::default()
    };
    log.append(EntryDraft::session(&began), now()).unwrap();
    let prefix = PromptPrefix {
        system: SharedText::from(r#"[{"type":"text","text":"You are an agent."}]"#),
        tools: SharedText::from("[]"),
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    let prefix = log.append(EntryDraft::prefix(&prefix), now()).unwrap().id;
    let model = "claude-opus-4-6";
    let line = "    let value = map.get(key).copied().unwrap_or_default(); // turn over\\n";
    let result = line.repeat(shape.result / line.len() + 1);
    let (mut written, mut last_boundary, mut turn) = (0, 0, 0_u64);
    while written < bytes {
        turn += 1;
        let call = format!(
            r#"[{{"type":"text","text":"I look at file {turn}."}},{{"type":"tool_use","id":"toolu_{turn}","name":"Read","input":{{"file_path":"/src/{turn}.rs"}}}}]"#
        );
        let returned = format!(
            r#"[{{"type":"tool_result","tool_use_id":"toolu_{turn}","content":[{{"type":"text","text":"zebra{turn} {result}"}}]}}]"#
        );
        let response = format!("msg_{turn}").as_str().into();
        let got = ResponseRecord {
            response: format!("msg_{turn}").as_str().into(),
            source: RequestSource::main(),
            model: model.into(),
            usage: Usage { input_tokens: 1_000, output_tokens: 50, ..Usage::default() },
            stop_reason: Some("tool_use".into()),
            cost: Some(0.01),
            cache_break: None,
        };
        let request = RequestRecord::new(RequestSource::main(), log.head(), model.into());
        let mut drafts = Vec::new();
        if turn % 10 == 1 {
            drafts.push(EntryDraft::user(MessageOrigin::Person, &format!("\"Please look at part {turn}.\"")));
        }
        drafts.extend([
            EntryDraft::request(&request),
            EntryDraft::assistant(Some(&response), Some(model), &call),
            EntryDraft::response(&got),
            EntryDraft::user(MessageOrigin::Tool, &returned),
        ]);
        let entries = log.append_all(drafts, now()).unwrap();
        written += entries.iter().map(|entry| entry.line.len() as u64 + 1).sum::<u64>();
        if shape.compacted_every.is_some_and(|every| written - last_boundary > every) {
            last_boundary = written;
            compact(&mut log, prefix, entries[entries.len() - 2].id, now());
        }
    }
    log.sync().unwrap();
    (id, path)
}

fn compact(log: &mut Log, prefix: EntryId, tail: EntryId, now: Timestamp) {
    let snapshot = SessionSnapshot {
        model: Some("claude-opus-4-6".into()),
        prefix: Some(EntryRef { id: prefix, offset: log.offset(prefix) }),
        ..SessionSnapshot::default()
    };
    let preserved = PreservedRange {
        head: tail,
        tail: log.head().unwrap(),
        placement: Default::default(),
        offset: log.offset(tail),
    };
    let boundary = Boundary {
        trigger: "auto".into(),
        method: "extractive".into(),
        summary: [ContentBlock::text("What was said before, in short.")].into_iter().collect(),
        preserved: Some(preserved),
        snapshot,
        ..Boundary::default()
    };
    log.append(EntryDraft::boundary(&boundary), now).unwrap();
}

/// Time and most memory of a run; the output must hold `expected`.
fn measure(home: &TestHome, arguments: &[&str], expected: &str) -> (Duration, u64) {
    let program = std::env::var("PAL").unwrap_or_else(|_| env!("CARGO_BIN_EXE_pal").to_owned());
    let begun = Instant::now();
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "peak %M KB", &program]).args(arguments).current_dir(home.path().join("project"));
    command.env_clear().env("PAL_HOME", home.path().join("pal")).env("HOME", home.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let took = begun.elapsed();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.contains(expected), "{arguments:?}: {}\n{}", &out[..out.len().min(2_000)], err);
    let peak = err.split("peak ").last().and_then(|rest| rest.split(' ').next()?.parse().ok());
    (took, peak.unwrap_or(0))
}

fn megabytes(path: &Path) -> u64 {
    path.metadata().unwrap().len() >> 20
}

#[test]
#[ignore = "writes gigabytes"]
fn large_sessions_are_resumed_viewed_searched_and_checked() {
    let size = std::env::var("PAL_LARGE_MB").ok().and_then(|size| size.parse().ok()).unwrap_or(500_u64);
    let only = std::env::var("PAL_LARGE_SHAPE").unwrap_or_default();
    for (number, shape) in SHAPES.into_iter().enumerate().filter(|(_, shape)| shape.name.contains(&only)) {
        let home = TestHome::new();
        let (id, log) = write(&home, shape, size << 20, number as u64 + 1);
        println!("{}: {} MB", shape.name, megabytes(&log));
        let resumed = ["-p", "Go on.", "--resume", &id, "--provider", "sim", "--max-turns", "1"];
        let commands: [(&str, &[&str], &str); 6] = [
            ("view", &["view", &id], "claude-opus-4-6"),
            ("first recall", &["recall", "--session", &id, "zebra12", "turn"], "zebra12"),
            ("second recall", &["recall", "--session", &id, "zebra12", "turn"], "zebra12"),
            ("check", &["check", &id], "no damage"),
            ("resume", &resumed, ""),
            ("second resume", &resumed, ""),
        ];
        for (name, arguments, expected) in commands {
            let (took, peak) = measure(&home, arguments, expected);
            println!("  {name}: {:.2} s, {} MB", took.as_secs_f64(), peak >> 10);
        }
        if std::env::var_os("PAL_LARGE_KEEP").is_some() {
            println!("  kept: {}", home.path().display());
            std::mem::forget(home);
        }
    }
}
