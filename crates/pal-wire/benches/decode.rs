//! Decoding of streamed Messages responses, in bytes per second: many small deltas (the usual case), long deltas, tool
//! input.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pal_model::escape_into;
use pal_wire::{Dialect, ResponseDecoder, ResponseEvent};

/// Bytes per read from a socket.
const PIECE_BYTES: usize = 16 << 10;

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"cache_read_input_tokens":8000,"output_tokens":1}}}"#;
const END: [&str; 3] = [
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":77}}"#,
    r#"{"type":"message_stop"}"#,
];

fn say(body: &mut String, data: &str) {
    let name = data.split('"').nth(3).unwrap_or_default();
    body.push_str(&format!("event: {name}\ndata: {data}\n\n"));
}

/// Returns a stream of one block, whose deltas hold `piece` bytes each.
fn stream(block: &str, kind: &str, field: &str, text: &str, piece: usize) -> String {
    let mut body = String::new();
    say(&mut body, START);
    say(&mut body, &format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#));
    for piece in text.as_bytes().chunks(piece) {
        let mut quoted = String::new();
        escape_into(&mut quoted, &String::from_utf8_lossy(piece));
        let delta = format!(r#"{{"type":"{kind}","{field}":{quoted}}}"#);
        say(&mut body, &format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#));
    }
    for data in END {
        say(&mut body, data);
    }
    body
}

fn decode(body: &str, events: &mut Vec<ResponseEvent>) {
    let mut decoder = ResponseDecoder::new(Dialect::Messages);
    for piece in body.as_bytes().chunks(PIECE_BYTES) {
        // A caller consumes the events of each piece before it reads the next.
        events.clear();
        decoder.push(piece, events);
    }
    decoder.finish(events);
}

fn bench(criterion: &mut Criterion) {
    let words = "The borrow checker says that `frames` is used after it was moved;\n    let (answer, has_ended) = (&mut self.answer, &mut self.has_ended);\n";
    let text = words.repeat(16_000);
    let input =
        format!(r#"{{"file_path":"/src/lib.rs","content":"{}"}}"#, words.replace('\n', "\\n").repeat(16_000));
    let block = r#"{"type":"text","text":""}"#;
    let call = r#"{"type":"tool_use","id":"toolu_1","name":"Write","input":{}}"#;
    let streams = [
        ("small deltas of text, 12 bytes", stream(block, "text_delta", "text", &text, 12)),
        ("deltas of text, 60 bytes", stream(block, "text_delta", "text", &text, 60)),
        ("long deltas of text, 4 KB", stream(block, "text_delta", "text", &text, 4096)),
        (
            "small deltas of tool input, 12 bytes",
            stream(call, "input_json_delta", "partial_json", &input, 12),
        ),
        ("long deltas of tool input, 4 KB", stream(call, "input_json_delta", "partial_json", &input, 4096)),
    ];
    let mut group = criterion.benchmark_group("decode");
    for (name, body) in &streams {
        let mut events = Vec::new();
        decode(body, &mut events);
        assert!(matches!(events.last(), Some(ResponseEvent::Finished(_))), "{name}: {events:?}");
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(*name, |bencher| bencher.iter(|| decode(black_box(body), &mut events)));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
