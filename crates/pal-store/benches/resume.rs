//! Cost of an append, and of a resume, which depends on the tail and not on the length of the log.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use pal_model::{
    Boundary, ContentBlock, EntryDraft, EntryRef, IdSource, MessageOrigin, PreservedRange, PromptPrefix,
    SessionSnapshot, SharedText, Timestamp,
};
use pal_store::{Log, LogReader};
use tempfile::TempDir;

const MEGABYTE: u64 = 1 << 20;

fn now() -> Timestamp {
    Timestamp::from_milliseconds(1_800_000_000_000)
}

/// A turn of about 4 KB: a call and its result, as in real sessions.
fn turn(number: u64) -> [EntryDraft; 2] {
    let code = "    let value = map.get(\\\"key\\\").unwrap_or(&0); // und so weiter\\n".repeat(45);
    let call = format!(
        r#"[{{"type":"text","text":"Let me look."}},{{"type":"tool_use","id":"toolu_{number}","name":"Read","input":{{"file_path":"/src/{number}.rs","limit":200}}}}]"#
    );
    let result = format!(
        r#"[{{"type":"tool_result","tool_use_id":"toolu_{number}","content":[{{"type":"text","text":"{code}"}}]}}]"#
    );
    [
        EntryDraft::assistant(Some(&"msg_1".into()), Some("a-model"), &call),
        EntryDraft::user(MessageOrigin::Tool, &result),
    ]
}

fn fill(log: &mut Log, path: &Path, until: u64) {
    let mut number = 0;
    while std::fs::metadata(path).unwrap().len() < until {
        log.append_all((number..number + 10).flat_map(turn).collect(), now()).unwrap();
        number += 10;
    }
}

/// A log of `bytes` whose last boundary lies 2 MB before the end and preserves the 200 KB before it.
fn generate(directory: &TempDir, bytes: u64) -> PathBuf {
    let path = directory.path().join(format!("{bytes}.jsonl"));
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let empty = SharedText::from("[]");
    let prefix = PromptPrefix {
        system: empty.clone(),
        tools: empty,
        context: Default::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    };
    let prefix = log.append(EntryDraft::prefix(&prefix), now()).unwrap().id;
    fill(&mut log, &path, bytes - 2 * MEGABYTE - 200_000);
    let kept = log.append(EntryDraft::user(MessageOrigin::Person, "\"go on\""), now()).unwrap().id;
    fill(&mut log, &path, bytes - 2 * MEGABYTE);
    let tail = log.head().unwrap();
    let preserved =
        Some(PreservedRange { head: kept, tail, placement: Default::default(), offset: log.offset(kept) });
    let prefix = Some(EntryRef { id: prefix, offset: log.offset(prefix) });
    let snapshot = SessionSnapshot { prefix, ..SessionSnapshot::default() };
    log.append(
        EntryDraft::boundary(&Boundary {
            preserved,
            snapshot,
            summary: [ContentBlock::text("what was said before")].into_iter().collect(),
            ..Boundary::default()
        }),
        now(),
    )
    .unwrap();
    fill(&mut log, &path, bytes);
    path
}

fn append(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.jsonl");
    let mut log = Log::create(&path, IdSource::seeded(1)).unwrap();
    let draft = EntryDraft::user(MessageOrigin::Person, &format!("\"{}\"", "a few words ".repeat(170)));
    criterion.bench_function("append 2 KB", |bencher| {
        bencher.iter(|| black_box(log.append(draft.clone(), now()).unwrap()));
    });
}

fn resume(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let mut group = criterion.benchmark_group("resume, boundary in the last 2 MB");
    group.sample_size(50);
    for megabytes in [10, 100] {
        let path = generate(&directory, megabytes * MEGABYTE);
        group.bench_function(format!("{megabytes} MB"), |bencher| {
            bencher.iter(|| black_box(Log::open(&path, IdSource::seeded(2)).unwrap()));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("read everything");
    group.sample_size(10);
    let path = directory.path().join(format!("{}.jsonl", 100 * MEGABYTE));
    group.bench_function("100 MB", |bencher| {
        bencher.iter(|| black_box(LogReader::open(&path).unwrap().whole_branch().unwrap()));
    });
    group.finish();
}

criterion_group!(benches, append, resume);
criterion_main!(benches);
