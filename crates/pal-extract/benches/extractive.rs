//! Speed of summarizing a session of about 200,000 tokens without a model.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pal_extract::{ConversationFacts, extractive_summary};
use pal_model::{EntryDraft, EntryId, LogEntry, MessageOrigin, SharedText, Timestamp, escape_into};

/// Bytes of about 200,000 tokens of code, output and prose.
const SESSION_BYTES: usize = 700_000;

const CODE: &str = "    pub fn open(path: &Path) -> Result<Store, OpenError> {\n        let file = File::options().read(true).open(path)?;\n        Ok(Store { file, next_id: 0 })\n    }\n";
const OUTPUT: &str = "   Compiling store v0.1.0 (/home/user/project/crates/store)\ntest append::keeps_order ... ok\ntest resume::reads_the_tail ... FAILED\nerror[E0382]: use of moved value: `file`\n   --> crates/store/src/file.rs:118:9\n";
const PROSE: &str = "The test fails because the tail is read before the lock is taken. I'll take the lock first, instead of retrying. ";

fn quoted(text: &str) -> String {
    let mut out = String::new();
    escape_into(&mut out, text);
    out
}

/// A session of reads, commands, edits and texts of the given size.
fn session() -> Vec<LogEntry> {
    let mut drafts = Vec::new();
    let mut bytes = 0;
    let mut round = 0;
    while bytes < SESSION_BYTES {
        round += 1;
        let text = match round % 3 {
            0 => CODE.repeat(40),
            1 => OUTPUT.repeat(30),
            _ => format!("{}{}", OUTPUT.repeat(4), CODE.repeat(20)),
        };
        let input = match round % 3 {
            0 => format!(r#"{{"file_path":"/home/user/project/crates/store/src/part_{}.rs"}}"#, round % 50),
            1 => r#"{"command":"cargo test -p store 2>&1"}"#.to_owned(),
            _ => format!(
                r#"{{"file_path":"src/part_{}.rs","old_string":"a","new_string":{}}}"#,
                round % 20,
                quoted(CODE)
            ),
        };
        let name = ["Read", "Bash", "Edit"][round % 3];
        if round % 8 == 1 {
            drafts.push(EntryDraft::user(
                MessageOrigin::Person,
                &quoted(&format!("Wish {round}: keep the order. {PROSE}")),
            ));
        }
        let calls = format!(
            r#"[{{"type":"text","text":{}}},{{"type":"tool_use","id":"t{round}","name":"{name}","input":{input}}}]"#,
            quoted(&PROSE.repeat(6))
        );
        let result =
            format!(r#"[{{"type":"tool_result","tool_use_id":"t{round}","content":{}}}]"#, quoted(&text));
        bytes += calls.len() + text.len();
        drafts.push(EntryDraft::assistant(None, None, &calls));
        drafts.push(EntryDraft::user(MessageOrigin::Tool, &result));
    }
    let line = |(number, draft): (usize, EntryDraft)| {
        draft.into_line(EntryId::from_bits(number as u128), None, Timestamp::default(), None)
    };
    drafts
        .into_iter()
        .enumerate()
        .map(line)
        .map(|line| LogEntry::parse(SharedText::from(line)).unwrap())
        .collect()
}

fn extractive(criterion: &mut Criterion) {
    let entries = session();
    let bytes: usize = entries.iter().map(|entry| entry.line.len()).sum();
    let mut group = criterion.benchmark_group("extractive");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("facts", |bencher| {
        bencher.iter(|| ConversationFacts::from_entries(black_box(&entries)))
    });
    let facts = ConversationFacts::from_entries(&entries);
    group.bench_function("summary", |bencher| bencher.iter(|| extractive_summary(black_box(&facts), 60_000)));
    group.finish();
}

criterion_group!(benches, extractive);
criterion_main!(benches);
