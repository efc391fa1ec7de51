//! Speed of token estimates for different kinds of text.
#![allow(missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pal_model::TokenGeneration;
use pal_view::Estimator;

/// About the size of a usual tool result.
const RESULT_BYTES: usize = 8 * 1024;

const CODE: &str = "
    /// Opens the store, or makes one where there is none yet.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Store, OpenError> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Store { file, next_id: 0, max_bytes: options.max_bytes.unwrap_or(4_096) }),
            Err(_) => Err(OpenError::Locked { path: path.to_path_buf() }),
        }
    }
";
const JSON: &str = r#"{"id":"toolu_01A9xYz","type":"tool_use","name":"Grep","input":{"pattern":"fn \\w+","path":"/src/lib.rs","-n":true,"limit":250},"usage":{"input_tokens":1204,"cache_read_input_tokens":98213}},"#;
const CJK: &str = "这个函数打开存储文件，如果文件不存在就创建一个新的。\nこの関数はストアを開きます。\n이 함수는 저장소를 엽니다.\n";
const PROSE: &str = "The log is the only thing that is stored; every view is computed from it, so a session\nresumes by replaying what happened and never by trusting a snapshot of its own making.\n";

fn estimates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("estimate");
    let estimator = Estimator::shipped(TokenGeneration::Claude47);
    for (name, piece) in [("code", CODE), ("json", JSON), ("cjk", CJK), ("prose", PROSE)] {
        let text = piece.repeat(RESULT_BYTES.div_ceil(piece.len()));
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(name), &text, |bencher, text| {
            bencher.iter(|| estimator.text(black_box(text)));
        });
    }
    group.finish();
}

criterion_group!(benches, estimates);
criterion_main!(benches);
