//! Time to answer a cached conversation of about 100,000 tokens that grows by a tool round each time.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pal_model::{SharedText, Timestamp};
use pal_sim::{
    HttpRequest, ModelOutput, ModelPrompt, OutputBlock, SimSettings, SimulatedModel, SimulatedProvider,
};

/// Model that calls a tool each time.
struct BenchModel(u64);

impl SimulatedModel for BenchModel {
    fn answer(&mut self, _ask: &ModelPrompt<'_>) -> ModelOutput {
        self.0 += 1;
        let input = SharedText::from(format!(r#"{{"file_path":"src/part_{}.rs"}}"#, self.0));
        let call =
            OutputBlock::ToolUse { id: Some(format!("toolu_b{}", self.0)), name: "Read".into(), input };
        ModelOutput { blocks: vec![OutputBlock::Text("I look at the next file.".into()), call], stop: None }
    }
}

/// Text as tools return it: code, with line numbers, tabs, quotes and line ends.
fn output(seed: usize, lines: usize) -> String {
    let line = |line: usize| {
        let value = (seed * 7919 + line * 104_729) % 65_521;
        format!(
            "{line}\\t        let content = source.read_part(\\\"part_{value}\\\").expect(\\\"the part exists and was written before\\\");\\n"
        )
    };
    (0..lines).map(line).collect()
}

struct BenchConversation {
    simulator: SimulatedProvider,
    head: String,
    messages: String,
    rounds: usize,
    now: i64,
}

impl BenchConversation {
    fn new() -> BenchConversation {
        let head = format!(
            r#"{{"model":"claude-opus-4-6","max_tokens":1000,"tools":[{{"name":"Read","description":"Reads","input_schema":{{"type":"object"}}}}],"system":[{{"type":"text","text":"{}","cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Start"}}"#,
            output(0, 100)
        );
        let simulator = SimulatedProvider::new(SimSettings::plain(), Box::new(BenchModel(0)));
        BenchConversation { simulator, head, messages: String::new(), rounds: 0, now: 1_800_000_000_000 }
    }

    /// Next request: one more round, with a breakpoint on the last result.
    fn body(&mut self) -> String {
        self.rounds += 1;
        let round = self.rounds;
        let call = format!(
            r#",{{"role":"assistant","content":[{{"type":"text","text":"I look at the next file."}},{{"type":"tool_use","id":"toolu_{round}","name":"Read","input":{{"file_path":"src/part_{round}.rs"}}}}]}}"#
        );
        let result = |mark: &str| {
            format!(
                r#",{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{round}","content":"{}"{mark}}}]}}"#,
                output(round, 40)
            )
        };
        let marked = result(r#","cache_control":{"type":"ephemeral"}"#);
        let body = format!("{}{}{call}{marked}]}}", self.head, self.messages);
        self.messages.push_str(&call);
        self.messages.push_str(&result(""));
        body
    }

    /// Sends a request; returns its prompt tokens.
    fn send(&mut self, body: &str) -> u64 {
        self.now += 1_000;
        let headers = [("anthropic-version".to_owned(), "2026-10-21".to_owned())];
        let request =
            HttpRequest { method: "POST", path: "/v1/messages", headers: &headers, body: body.as_bytes() };
        let reply = self.simulator.handle(Timestamp::from_milliseconds(self.now), &request);
        let usage = reply.exchange.as_ref().unwrap().usage.clone();
        assert!(self.rounds < 2 || usage.cache_read_input_tokens > usage.cache_creation_input_tokens);
        black_box(reply.body());
        usage.prompt_tokens()
    }
}

/// A conversation of that size, fully cached.
fn grown() -> BenchConversation {
    let mut conversation = BenchConversation::new();
    loop {
        let body = conversation.body();
        if conversation.send(&body) >= TOKENS {
            return conversation;
        }
    }
}

const TOKENS: u64 = 100_000;

fn cached_requests(criterion: &mut Criterion) {
    let mut conversation = grown();
    let (n_bytes, n_rounds) = (conversation.body().len(), conversation.rounds);
    println!("{TOKENS} tokens: {n_bytes} bytes, {n_rounds} rounds");
    conversation = grown();
    let mut group = criterion.benchmark_group("simulator");
    group.throughput(Throughput::Bytes(n_bytes as u64));
    group.bench_function("cached_100k", |bencher| {
        // Each request is one round longer than the last, so that each has new blocks to count and write.
        // Building the body is the client's work and not measured.
        bencher.iter_custom(|times| {
            let mut taken = Duration::ZERO;
            for _ in 0..times {
                if conversation.rounds > n_rounds * 6 / 5 {
                    conversation = grown();
                }
                let body = conversation.body();
                let start = Instant::now();
                black_box(conversation.send(&body));
                taken += start.elapsed();
            }
            taken
        });
    });
    group.finish();
}

criterion_group!(benches, cached_requests);
criterion_main!(benches);
