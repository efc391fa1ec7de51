//! Memory search in an open directory, in a freshly opened one, and in one without an index; with a model if
//! the crate is built with `--features embeddings` and PAL_EMBEDDINGS names its directory.

// A benchmark that panics has failed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pal_memory::{EmbeddingModel, MemoryStore};
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

/// Writes `count` memories of about 700 bytes.
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

const QUESTION: &str = "how does the parser keep the cache of a session";

fn search(criterion: &mut Criterion) {
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
    let question = QUESTION;
    let mut group = criterion.benchmark_group("search");
    group.sample_size(20);
    for count in [100, 1_000, 10_000] {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("memory");
        fill(&directory, count);
        let mut memory = MemoryStore::open(&directory, now).unwrap();
        assert!(!memory.search(question, 5, now).unwrap().is_empty());
        // Fresh files are read once more; from then on their state is cached.
        memory
            .write_file("memory-0", "---\nname: again\n---\ntext\n", &pal_memory::Author::Person, now)
            .unwrap();
        group.bench_function(BenchmarkId::new("warm", count), |bench| {
            bench.iter(|| black_box(memory.search(question, 5, now).unwrap()));
        });
        group.bench_function(BenchmarkId::new("cold", count), |bench| {
            bench.iter(|| {
                let mut memory = MemoryStore::open(&directory, now).unwrap();
                black_box(memory.search(question, 5, now).unwrap())
            });
        });
        group.bench_function(BenchmarkId::new("never searched", count), |bench| {
            bench.iter(|| {
                for ending in ["", "-wal", "-shm"] {
                    let _ = fs::remove_file(directory.join(format!(".index.db{ending}")));
                }
                let mut memory = MemoryStore::open(&directory, now).unwrap();
                black_box(memory.search(question, 5, now).unwrap())
            });
        });
    }
    group.finish();
}

/// Searches 1,000 memories that have vectors.
fn search_by_meaning(criterion: &mut Criterion) {
    let Some(model) = std::env::var_os("PAL_EMBEDDINGS") else {
        println!("SKIPPED: PAL_EMBEDDINGS does not name the folder of a model");
        return;
    };
    let now: Timestamp = "2026-11-30T00:00:00Z".parse().unwrap();
    let open = || EmbeddingModel::open(model.as_ref()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("memory");
    fill(&directory, 1_000);
    let embeddings = open();
    let opened = |embeddings| MemoryStore::open(&directory, now).unwrap().with_embeddings(Some(embeddings));
    let mut memory = opened(Arc::clone(&embeddings));
    assert!(memory.embed_missing(|| false).unwrap());
    assert!(!memory.search(QUESTION, 5, now).unwrap().is_empty());
    let mut group = criterion.benchmark_group("search by meaning");
    group.sample_size(20);
    group.bench_function("the question alone", |bench| {
        bench.iter(|| black_box(embeddings.embed(QUESTION).unwrap()));
    });
    group.bench_function(BenchmarkId::new("warm", 1_000), |bench| {
        bench.iter(|| black_box(memory.search(QUESTION, 5, now).unwrap()));
    });
    group.bench_function(BenchmarkId::new("cold", 1_000), |bench| {
        bench.iter(|| black_box(opened(open()).search(QUESTION, 5, now).unwrap()));
    });
    group.finish();
}

criterion_group!(benches, search_by_meaning, search);
criterion_main!(benches);
