//! The engine's work for one tool round: append to the log, grow the view, render the request. It must not depend
//! on how long the session already is.

// Any error fails the benchmark.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use pal_model::{
    Content, EntryDraft, IdSource, MessageOrigin, ModelCatalog, PromptPrefix, RequestRecord, RequestSource,
    ResponseRecord, Role, SharedText, Timestamp, Usage,
};
use pal_store::Log;
use pal_view::{Estimator, Lens, RenderOptions, View, ViewScope};
use pal_wire::{BreakpointMode, ChatServer, ConversationBlock, DialectEncoder, WireConversation};

const OPTIONS: RenderOptions = RenderOptions { max_tokens: 8_000, stream: true, spell_out_unseen: false };

/// A session that grows round by round.
struct BenchSession {
    log: Log,
    view: View,
    round: usize,
    _directory: tempfile::TempDir,
}

/// A prefix of the usual size: about 80 KB of instructions and tools.
fn prefix() -> PromptPrefix {
    let text = "Prefer small steps, say what you do, and keep the tests green while you work.\\n".repeat(700);
    let tools: Vec<String> = (0..20)
        .map(|at| {
            let description = "Reads, writes or searches files of the project. ".repeat(20);
            format!(
                r#"{{"name":"Tool{at}","description":"{description}","input_schema":{{"type":"object"}}}}"#
            )
        })
        .collect();
    PromptPrefix {
        system: SharedText::from(format!(r#"[{{"type":"text","text":"{text}"}}]"#)),
        tools: SharedText::from(format!("[{}]", tools.join(","))),
        context: Content::default(),
        unseen_tokens: 0,
        notes: Default::default(),
    }
}

fn result_text(round: usize, bytes: usize) -> String {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < bytes {
        text.push_str(&format!(
            "{line:>6}\\tlet value_{round} = compute(&input[{line}..], Options {{ depth: {line} }})?;\\n"
        ));
        line += 1;
    }
    text.truncate(bytes);
    // A cut may leave half of an escape behind.
    text.truncate(text.trim_end_matches('\\').len());
    text
}

impl BenchSession {
    fn new() -> BenchSession {
        // In memory where that is possible: how fast a disk takes the pages later is not what is measured.
        let memory = std::path::Path::new("/dev/shm");
        let directory =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        let log = Log::create(&directory.path().join("log.jsonl"), IdSource::seeded(1)).unwrap();
        let card = ModelCatalog::built_in().find("claude-opus-5-5").card;
        let estimator = Estimator::shipped(card.generation);
        let view = View::new(Lens { card, estimator, scope: ViewScope::Current });
        let mut session = BenchSession { log, view, round: 0, _directory: directory };
        session.add(EntryDraft::prefix(&prefix()));
        session
    }

    /// Grows to about this many tokens by rounds whose results have `bytes` bytes.
    fn grown(tokens: u64, bytes: usize) -> BenchSession {
        let mut session = BenchSession::new();
        session.add(EntryDraft::user(MessageOrigin::Person, "\"Fix the failing test.\""));
        while session.view.estimate() < tokens as f64 {
            let round = session.next_round(bytes);
            session.play(round);
        }
        session
    }

    fn add(&mut self, draft: EntryDraft) {
        let at = Timestamp::from_milliseconds(1_800_000_000_000 + self.round as i64);
        let entry = self.log.append(draft, at).unwrap();
        self.view.push(entry);
    }

    /// Drafts of a tool round: answer, result, next request.
    fn next_round(&mut self, bytes: usize) -> [EntryDraft; 4] {
        self.round += 1;
        let round = self.round;
        let response = format!("msg_{round}").as_str().into();
        let call = format!(
            r#"[{{"type":"tool_use","id":"toolu_{round}","name":"Read","input":{{"file_path":"/src/file_{round}.rs"}}}}]"#
        );
        let result = format!(
            r#"[{{"type":"tool_result","tool_use_id":"toolu_{round}","content":"{}"}}]"#,
            result_text(round, bytes)
        );
        let usage = Usage { input_tokens: 10, output_tokens: 50, ..Usage::default() };
        [
            EntryDraft::assistant(Some(&response), Some("claude-opus-5-5"), &call),
            EntryDraft::response(&ResponseRecord {
                response,
                source: RequestSource::main(),
                model: "claude-opus-5-5".into(),
                usage,
                stop_reason: None,
                cost: None,
                cache_break: None,
            }),
            EntryDraft::user(MessageOrigin::Tool, &result),
            EntryDraft::request(&RequestRecord::new(
                RequestSource::main(),
                self.log.head(),
                "claude-opus-5-5".into(),
            )),
        ]
    }

    /// One tool round as the engine runs it.
    fn play(&mut self, [call, response, result, request]: [EntryDraft; 4]) -> usize {
        let at = Timestamp::from_milliseconds(1_800_000_000_000 + self.round as i64);
        for entry in self.log.append_all(vec![call, response], at).unwrap() {
            self.view.push(entry);
        }
        self.add(result);
        let body = self.view.render(OPTIONS);
        let blocks = black_box(&body).block_count();
        self.add(request);
        blocks
    }
}

fn turn(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tool_round_8k");
    for (tokens, rounds) in [(10_000u64, 8), (100_000, 16), (500_000, 32), (1_000_000, 64)] {
        let mut session = BenchSession::grown(tokens, 8 << 10);
        bench(&mut group, &format!("{}k_tokens", tokens / 1000), rounds, &mut session);
    }
    // Twenty thousand rounds of two tiny messages each.
    let mut session = BenchSession::new();
    for _ in 0..20_000 {
        let round = session.next_round(16);
        session.play(round);
    }
    bench(&mut group, "40000_tiny_messages", 256, &mut session);
    group.finish();
}

/// Measures rounds one by one. After every `rounds` of them the session goes back to where it was, by a branch, so
/// that its length stays about what the name says; that is not measured.
fn bench(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    name: &str,
    rounds: u64,
    session: &mut BenchSession,
) {
    group.sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_secs(1));
    let base = session.log.head().unwrap();
    group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
        bencher.iter_custom(|iterations| {
            let mut taken = Duration::ZERO;
            for at in 0..iterations {
                if at % rounds == 0 {
                    let _ = session.log.rewind(base).unwrap();
                    session.add(EntryDraft::user(MessageOrigin::Person, "\"Go on.\""));
                    // Deriving a view leaves cold caches behind and lists without room to grow.
                    for _ in 0..2 {
                        let round = session.next_round(8 << 10);
                        session.play(round);
                    }
                }
                let round = session.next_round(8 << 10);
                let began = Instant::now();
                black_box(session.play(round));
                taken += began.elapsed();
            }
            taken
        });
    });
}

/// The request of a long session whose history did not change, as parts that can be sent.
fn encode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("encode_1m_tokens");
    group.sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_secs(1));
    let session = BenchSession::grown(1_000_000, 2 << 10);
    group.bench_function("messages", |bencher| {
        bencher.iter(|| session.view.render(OPTIONS).parts().byte_len())
    });
    for (name, mut encoder) in [
        ("responses", DialectEncoder::responses(BreakpointMode::TurnEnds)),
        ("chat", DialectEncoder::chat(ChatServer::OpenAi, BreakpointMode::Never)),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let request = session.view.render(OPTIONS);
                let piece =
                    |(opens, block, is_marked): (Option<Role>, &SharedText, bool)| ConversationBlock {
                        starts_message: opens,
                        block: block.clone(),
                        has_breakpoint: is_marked,
                    };
                let pieces: Vec<ConversationBlock> = request.pieces().map(piece).collect();
                let conversation = WireConversation {
                    model: "gpt-6-sol",
                    max_tokens: 8_000,
                    stream: true,
                    effort: None,
                    cache_key: Some("one"),
                    system: request.system_blocks(),
                    tools: request.tools(),
                    blocks: &pieces,
                };
                encoder.encode(&conversation).body.byte_len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, turn, encode);
criterion_main!(benches);
