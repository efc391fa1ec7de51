//! Cost of masking ordinary text, as for every memory, log line and export.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn ordinary_text() -> String {
    let source = include_str!("../src/tests.rs").to_owned() + include_str!("../src/ordinary.txt");
    source.repeat(1_000_000 / source.len() + 1)
}

fn masking(criterion: &mut Criterion) {
    let text = ordinary_text();
    let code = include_str!("../src/value_checks.rs").repeat(100);
    let mut group = criterion.benchmark_group("mask_secrets");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("text about secrets", |bencher| bencher.iter(|| pal_secrets::mask_secrets(&text)));
    group.throughput(Throughput::Bytes(code.len() as u64));
    group.bench_function("code", |bencher| bencher.iter(|| pal_secrets::mask_secrets(&code)));
    group.finish();
}

criterion_group!(benches, masking);
criterion_main!(benches);
