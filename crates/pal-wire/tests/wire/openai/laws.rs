//! Laws of encoding and decoding.

use pal_model::{Role, SharedText};
use pal_wire::{
    BreakpointMode, ChatServer, ConversationBlock, Dialect, DialectEncoder, ResponseDecoder, ResponseEvent,
    WireConversation, decode_response,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::decoded;

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z\"\\\\\n🙂é]{0,12}",
        1 => Just("long \"words\"\n".repeat(200)),
    ]
}

/// Generates blocks of every kind, some of them unusual.
fn block() -> impl Strategy<Value = String> {
    let id = || prop_oneof![Just("call_1"), Just("call_2"), Just("")];
    prop_oneof![
        words().prop_map(|text| json!({"type": "text", "text": text})),
        (id(), words())
            .prop_map(|(id, text)| json!({"type": "tool_result", "tool_use_id": id, "content": text})),
        (id(), words(), any::<bool>()).prop_map(|(id, text, failed)| json!({"type": "tool_result",
            "tool_use_id": id, "is_error": failed, "content": [{"type": "text", "text": text},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]})),
        (id(), words())
            .prop_map(|(id, text)| json!({"type": "tool_use", "id": id, "name": "R", "input": {"a": text}})),
        words()
            .prop_map(|text| json!({"type": "text", "text": text, "item": {"type": "message", "x": text}})),
        Just(json!({"type": "thinking", "thinking": "t", "signature": "s"})),
        Just(json!({"type": "reasoning", "item": {"type": "reasoning", "id": "rs"}})),
        words().prop_map(
            |text| json!({"type": "document", "title": text, "source": {"type": "text", "data": text}})
        ),
        Just(json!({"type": "tool_use"})),
        Just(json!(["odd", null])),
    ]
    .prop_map(|block: Value| block.to_string())
}

fn piece() -> impl Strategy<Value = ConversationBlock> {
    let opens = prop_oneof![
        2 => Just(None),
        2 => Just(Some(Role::User)),
        2 => Just(Some(Role::Assistant)),
        1 => Just(Some(Role::System)),
    ];
    (opens, block(), proptest::bool::weighted(0.2)).prop_map(|(opens, block, is_marked)| ConversationBlock {
        starts_message: opens,
        block: SharedText::from(block),
        has_breakpoint: is_marked,
    })
}

/// Generates steps between requests: how much of the previous one stays, and what is appended.
fn steps() -> impl Strategy<Value = Vec<(prop::sample::Index, bool, Vec<ConversationBlock>)>> {
    prop::collection::vec(
        (any::<prop::sample::Index>(), proptest::bool::weighted(0.3), prop::collection::vec(piece(), 0..6)),
        1..6,
    )
}

fn encoders() -> Vec<fn() -> DialectEncoder> {
    vec![
        || DialectEncoder::responses(BreakpointMode::Never),
        || DialectEncoder::responses(BreakpointMode::Explicit),
        || DialectEncoder::responses(BreakpointMode::TurnEnds),
        || DialectEncoder::chat(ChatServer::OpenAi, BreakpointMode::TurnEnds),
        || DialectEncoder::chat(ChatServer::Compatible, BreakpointMode::Never),
    ]
}

fn encode(encoder: &mut DialectEncoder, system: &[SharedText], pieces: &[ConversationBlock]) -> String {
    let conversation = WireConversation {
        model: "m",
        max_tokens: 1,
        stream: false,
        effort: None,
        cache_key: None,
        system,
        tools: &[],
        blocks: pieces,
    };
    encoder.encode(&conversation).body.to_joined_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn used_encoder_gives_the_same_bytes_as_a_new_one(steps in steps()) {
        for make in encoders() {
            let mut encoder = make();
            let mut pieces: Vec<ConversationBlock> = Vec::new();
            for (keep, has_system, new) in &steps {
                pieces.truncate(keep.index(pieces.len() + 1).max(pieces.len() / 2));
                for piece in &mut pieces {
                    piece.has_breakpoint = false;
                }
                pieces.extend(new.iter().cloned());
                let system = if *has_system { vec![SharedText::from(r#"{"type":"text","text":"s"}"#)] } else { Vec::new() };
                let body = encode(&mut encoder, &system, &pieces);
                prop_assert_eq!(&body, &encode(&mut make(), &system, &pieces));
                // Equal text at another address compares equal.
                let moved: Vec<ConversationBlock> = pieces
                    .iter()
                    .map(|piece| ConversationBlock { block: SharedText::from(piece.block.as_str()), ..piece.clone() })
                    .collect();
                prop_assert_eq!(&body, &encode(&mut encoder, &system, &moved));
                prop_assert!(serde_json::from_str::<Value>(&body).is_ok(), "{}", body);
            }
        }
    }

    #[test]
    fn model_output_is_sent_back_unchanged(texts in prop::collection::vec(words(), 1..5)) {
        let items: Vec<Value> = texts.iter().enumerate().map(|(at, text)| match at % 3 {
            0 => json!({"id": format!("rs_{at}"), "type": "reasoning", "summary": [], "encrypted_content": text}),
            1 => json!({"id": format!("msg_{at}"), "type": "message", "role": "assistant", "content":
                [{"type": "output_text", "text": text, "annotations": []}, {"type": "output_text", "text": text}]}),
            _ => json!({"id": format!("fc_{at}"), "type": "function_call", "call_id": format!("call_{at}"),
                "name": "R", "arguments": json!({"a": text}).to_string()}),
        }).collect();
        let response = json!({"id": "resp_1", "model": "m", "status": "completed", "output": items});
        let events = decode_response(Dialect::Responses, response.to_string().as_bytes());
        let pieces: Vec<ConversationBlock> = events.iter().filter_map(|event| match event {
            ResponseEvent::Block { index, block } => Some(ConversationBlock {
                starts_message: (*index == 0).then_some(Role::Assistant),
                block: block.raw().clone(),
                has_breakpoint: false,
            }),
            _ => None,
        }).collect();
        let body = encode(&mut DialectEncoder::responses(BreakpointMode::TurnEnds), &[], &pieces);
        let input: Vec<String> = items.iter().map(Value::to_string).collect();
        let expected = format!(r#""input":[{}]"#, input.join(","));
        prop_assert!(body.contains(&expected), "{}", body);
    }

    #[test]
    fn no_stream_makes_a_decoder_panic(
        frames in prop::collection::vec(frame(), 0..12),
        sizes in prop::collection::vec(1usize..40, 1..6),
    ) {
        let bytes: Vec<u8> = frames.concat().into_bytes();
        for dialect in [Dialect::Responses, Dialect::Chat] {
            let whole = decoded(dialect, &bytes);
            let ends = whole.iter().filter(|event| matches!(event, ResponseEvent::Finished(_) | ResponseEvent::Failed(_))).count();
            prop_assert_eq!(ends, 1);
            let mut said = std::collections::BTreeSet::new();
            let is_once = whole.iter().all(|event| match event {
                ResponseEvent::BlockStart { index, .. } => said.insert((*index, false)),
                ResponseEvent::Block { index, .. } => said.insert((*index, true)),
                _ => true,
            });
            prop_assert!(is_once, "a block was opened or said twice: {whole:#?}");
            let mut decoder = ResponseDecoder::new(dialect);
            let (mut events, mut rest, mut sizes) = (Vec::new(), bytes.as_slice(), sizes.iter().cycle());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                decoder.push(piece, &mut events);
                rest = after;
            }
            decoder.finish(&mut events);
            prop_assert_eq!(events, whole);
        }
    }
}

/// Generates frames of both dialects in any order.
fn frame() -> impl Strategy<Value = String> {
    let item = prop_oneof![
        Just(json!({"type": "message", "content": [{"type": "output_text", "text": "w"}]})),
        Just(json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{"})),
        Just(json!({"type": "reasoning", "summary": [{"text": "s"}]})),
        Just(json!({"type": 7})),
        Just(json!(null)),
    ];
    let kind = prop::sample::select(vec![
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.function_call_arguments.delta",
        "response.reasoning_summary_part.added",
        "response.reasoning_text.delta",
        "response.completed",
        "response.incomplete",
        "response.other",
    ]);
    let place = (prop::option::of(0usize..3), prop::option::of("[ab]?"));
    let responses = (kind, item, place, words()).prop_map(|(kind, mut item, (index, id), text)| {
        if let Some(item) = item.as_object_mut() {
            item.insert(String::from("id"), json!(id));
        }
        json!({"type": kind, "output_index": index, "item_id": id, "summary_index": index, "delta": text,
            "item": item, "response": {"id": "r", "status": "completed", "output": [item]}})
    });
    let call = (prop::option::of(0u64..2), prop::option::of("[ab]"), words()).prop_map(|(index, id, text)| {
        json!({"tool_calls": [{"index": index, "id": id, "function": {"name": id, "arguments": text}}]})
    });
    let delta = prop_oneof![
        words().prop_map(|text| json!({"content": text})),
        words().prop_map(|text| json!({"reasoning": text})),
        call,
    ];
    let chat = (delta, prop::option::weighted(0.2, Just("stop"))).prop_map(
        |(delta, reason)| json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}),
    );
    let json = prop_oneof![responses, chat].prop_map(|json: Value| format!("data: {json}\n\n"));
    prop_oneof![
        20 => json,
        1 => Just(String::from("data: [DONE]\n\n")),
        1 => Just(String::from("data: {\"usage\":{},\"choices\":[]}\n\n")),
        1 => Just(String::from(": comment\r\n\r\n")),
        1 => Just(String::from("data: {")),
    ]
}
