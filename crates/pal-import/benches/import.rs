//! Import of real Claude Code transcripts, in bytes of source a second. Skipped, with a note, without the data.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pal_import::{ImportOptions, import};
use pal_testkit::ByteThirds;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn bench(criterion: &mut Criterion) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/sessions");
    for agent in ["claude", "codex", "pi", "copilot", "mini-swe-agent"] {
        let mut found = Vec::new();
        files(&data.join(agent), &mut found);
        let sources: Vec<Vec<u8>> = found.iter().filter_map(|path| std::fs::read(path).ok()).collect();
        if sources.is_empty() {
            println!("no sessions of {agent} at {}: skipped", data.display());
            continue;
        }
        let mut group = criterion.benchmark_group("import");
        group.throughput(Throughput::Bytes(sources.iter().map(|source| source.len() as u64).sum()));
        group.sample_size(10);
        group.bench_function(agent, |bencher| {
            bencher.iter(|| {
                for source in &sources {
                    let options = ImportOptions { measure: &ByteThirds, strict: false };
                    let imported = import(black_box(source), &options);
                    black_box(imported.map(|imported| imported.log.len()).unwrap_or(0));
                }
            });
        });
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
