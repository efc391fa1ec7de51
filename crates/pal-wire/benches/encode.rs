//! Encoding of a turn: a request of a million tokens whose history was encoded before.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pal_model::{Role, SharedText};
use pal_wire::{BreakpointMode, ChatServer, ConversationBlock, DialectEncoder, WireConversation};

/// Ten thousand blocks of four hundred bytes and more: about four megabytes, a million tokens.
fn history() -> Vec<ConversationBlock> {
    let words = "It is what a tool returned, line by line. ".repeat(10);
    let mut pieces = Vec::new();
    for number in 0..5_000 {
        let call = format!(
            r#"{{"type":"tool_use","id":"call_{number}","name":"Read","input":{{"path":"src/{number}.rs"}},"item":{{"type":"function_call","id":"fc_{number}","call_id":"call_{number}","name":"Read","arguments":"{{\"path\":\"src/{number}.rs\"}}"}}}}"#
        );
        let result = format!(
            r#"{{"type":"tool_result","tool_use_id":"call_{number}","content":"{number} {words}{words}"}}"#
        );
        for (role, block) in [(Role::Assistant, call), (Role::User, result)] {
            pieces.push(ConversationBlock {
                starts_message: Some(role),
                block: SharedText::from(block),
                has_breakpoint: false,
            });
        }
    }
    pieces
}

fn conversation<'a>(system: &'a [SharedText], pieces: &'a [ConversationBlock]) -> WireConversation<'a> {
    WireConversation {
        model: "gpt-6-sol",
        max_tokens: 32_000,
        stream: true,
        effort: Some("high"),
        cache_key: Some("project:main"),
        system,
        tools: &[],
        blocks: pieces,
    }
}

fn encode(criterion: &mut Criterion) {
    let system = [SharedText::from(r#"{"type":"text","text":"Be good."}"#)];
    let mut pieces = history();
    if let Some(last) = pieces.last_mut() {
        last.has_breakpoint = true;
    }
    measure(
        criterion,
        "responses",
        || DialectEncoder::responses(BreakpointMode::TurnEnds),
        &conversation(&system, &pieces),
    );
    let chat = || DialectEncoder::chat(ChatServer::Compatible, BreakpointMode::Never);
    measure(criterion, "chat", chat, &conversation(&system, &pieces));
}

fn measure(
    criterion: &mut Criterion,
    name: &str,
    make: fn() -> DialectEncoder,
    conversation: &WireConversation<'_>,
) {
    let mut encoder = make();
    let bytes = encoder.encode(conversation).body.byte_len();
    assert!(bytes > 4_000_000, "{bytes}");
    criterion.bench_function(&format!("encode/{name}/unchanged"), |bencher| {
        bencher.iter(|| black_box(encoder.encode(conversation)));
    });
    criterion.bench_function(&format!("encode/{name}/fresh"), |bencher| {
        bencher.iter(|| black_box(make().encode(conversation)));
    });
}

criterion_group!(benches, encode);
criterion_main!(benches);
