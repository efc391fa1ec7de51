//! Finding memories: in a directory that is open, in one that is opened for it, and in one that was never searched.

// A bench that cannot go on has failed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::hint::black_box;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pal_memory::Memory;
use pal_model::Timestamp;

const WORDS: [&str; 24] = [
    "parser",
    "lexer",
    "release",
    "cache",
    "prefix",
    "token",
    "session",
    "window",
    "editor",
    "terminal",
    "memory",
    "index",
    "journal",
    "provider",
    "request",
    "answer",
    "commit",
    "branch",
    "worktree",
    "formatter",
    "schema",
    "migration",
    "queue",
    "socket",
];

fn word(seed: usize) -> &'static str {
    WORDS[seed.wrapping_mul(2_654_435_761) / 7 % WORDS.len()]
}

/// So many memories of about 700 bytes.
fn fill(directory: &Path, count: usize) {
    fs::create_dir_all(directory).unwrap();
    for at in 0..count {
        let sentence = |from: usize| {
            let words: Vec<&str> = (0..10).map(|offset| word(at * 31 + from * 17 + offset)).collect();
            format!("The {} keeps number {}.", words.join(" "), at * 7 + from)
        };
        let body: Vec<String> = (0..8).map(sentence).collect();
        let file = format!(
            "---\nname: {} {at}\ndescription: about the {} of the {}\ntype: project\nmodified: 2026-11-{:02}T00:00:00Z\n---\n\n{}\n",
            word(at),
            word(at + 1),
            word(at + 2),
            at % 28 + 1,
            body.join("\n")
        );
        fs::write(directory.join(format!("memory-{at}.md")), file).unwrap();
    }
}

fn search(criterion: &mut Criterion) {
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
    let question = "how does the parser keep the cache of a session";
    let mut group = criterion.benchmark_group("search");
    group.sample_size(20);
    for count in [100, 1_000, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("memory");
        fill(&directory, count);
        let mut memory = Memory::open(&directory, now).unwrap();
        assert!(!memory.search(question, 5, now).unwrap().is_empty());
        // What was written a moment ago is read once more; from then on it is known.
        memory
            .write_file("memory-0", "---\nname: again\n---\ntext\n", &pal_memory::Author::Person, now)
            .unwrap();
        group.bench_function(BenchmarkId::new("warm", count), |bench| {
            bench.iter(|| black_box(memory.search(question, 5, now).unwrap()));
        });
        group.bench_function(BenchmarkId::new("cold", count), |bench| {
            bench.iter(|| {
                let mut memory = Memory::open(&directory, now).unwrap();
                black_box(memory.search(question, 5, now).unwrap())
            });
        });
        group.bench_function(BenchmarkId::new("never searched", count), |bench| {
            bench.iter(|| {
                for ending in ["", "-wal", "-shm"] {
                    let _ = fs::remove_file(directory.join(format!(".index.db{ending}")));
                }
                let mut memory = Memory::open(&directory, now).unwrap();
                black_box(memory.search(question, 5, now).unwrap())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, search);
criterion_main!(benches);
