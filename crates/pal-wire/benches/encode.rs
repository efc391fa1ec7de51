//! What a turn costs: a request of a million tokens whose history was spelled before.

#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pal_model::{Role, Text};
use pal_wire::{Breakpoints, ChatServer, Conversation, Encoder, Piece};

/// Ten thousand blocks of four hundred bytes and more: about four megabytes, a million tokens.
fn history() -> Vec<Piece> {
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
            pieces.push(Piece { opens: Some(role), block: Text::from(block), is_marked: false });
        }
    }
    pieces
}

fn conversation<'a>(system: &'a [Text], pieces: &'a [Piece]) -> Conversation<'a> {
    Conversation {
        model: "gpt-6-sol",
        max_tokens: 32_000,
        stream: true,
        effort: Some("high"),
        cache_key: Some("project:main"),
        system,
        tools: &[],
        pieces,
    }
}

fn encode(criterion: &mut Criterion) {
    let system = [Text::from(r#"{"type":"text","text":"Be good."}"#)];
    let mut pieces = history();
    if let Some(last) = pieces.last_mut() {
        last.is_marked = true;
    }
    measure(
        criterion,
        "responses",
        || Encoder::responses(Breakpoints::Turns),
        &conversation(&system, &pieces),
    );
    let chat = || Encoder::chat(ChatServer::Compatible, Breakpoints::Never);
    measure(criterion, "chat", chat, &conversation(&system, &pieces));
}

fn measure(criterion: &mut Criterion, name: &str, make: fn() -> Encoder, conversation: &Conversation<'_>) {
    let mut encoder = make();
    let bytes = encoder.encode(conversation).body.bytes();
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
