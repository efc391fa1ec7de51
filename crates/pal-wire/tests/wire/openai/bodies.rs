//! Encoding of log conversations in OpenAI's dialects.

use pal_model::{Role, SharedText};
use pal_wire::{BreakpointMode, ChatServer, ConversationBlock, DialectEncoder, WireConversation};
use serde_json::{Value, json};

const SYSTEM: [&str; 2] =
    [r#"{"type":"text","text":"Be good."}"#, r#"{"type":"text","text":"Be \"brief\"."}"#];
const TOOLS: [&str; 2] = [
    r#"{"name":"Read","description":"Reads a file.","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}"#,
    r#"{"type":"web_search_20250305","name":"web_search"}"#,
];

/// Blocks with their roles: `u`, `a` and `s` start a message, a blank continues it, and `!` sets a breakpoint.
pub(super) fn pieces(blocks: &[(&str, &str)]) -> Vec<ConversationBlock> {
    let piece = |(how, block): &(&str, &str)| ConversationBlock {
        starts_message: match how.as_bytes()[0] {
            b'u' => Some(Role::User),
            b'a' => Some(Role::Assistant),
            b's' => Some(Role::System),
            _ => None,
        },
        block: SharedText::from(*block),
        has_breakpoint: how.ends_with('!'),
    };
    blocks.iter().map(piece).collect()
}

fn texts(blocks: &[&str]) -> Vec<SharedText> {
    blocks.iter().map(|block| SharedText::from(*block)).collect()
}

fn body(encoder: &mut DialectEncoder, blocks: &[(&str, &str)]) -> Value {
    let (system, tools, pieces) = (texts(&SYSTEM), texts(&TOOLS), pieces(blocks));
    let call = encoder.encode(&WireConversation {
        model: "gpt-6-sol",
        max_tokens: 900,
        stream: true,
        effort: Some("high"),
        cache_key: Some("p:main"),
        system: &system,
        tools: &tools,
        blocks: &pieces,
    });
    assert!(call.stream);
    serde_json::from_str(&call.body.to_joined_string()).unwrap()
}

#[track_caller]
fn check_input(breakpoints: BreakpointMode, blocks: &[(&str, &str)], expected: Value) {
    assert_eq!(body(&mut DialectEncoder::responses(breakpoints), blocks)["input"], expected);
}

#[track_caller]
fn check_messages(server: ChatServer, blocks: &[(&str, &str)], expected: Value) {
    let mut body = body(&mut DialectEncoder::chat(server, BreakpointMode::Never), blocks);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.remove(0);
    assert_eq!(body["messages"], expected);
}

const RESULT: &str = r#"{"type":"tool_result","tool_use_id":"call_1","content":"line\n"}"#;
const FAILED: &str = r#"{"type":"tool_result","tool_use_id":"call_2","is_error":true,"content":[{"type":"text","text":"no such file"}]}"#;
const PICTURED: &str = r#"{"type":"tool_result","tool_use_id":"call_3","content":[{"type":"text","text":"shot"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}"#;
const CALL: &str = r#"{"type":"tool_use","id":"call_1","name":"Read","input":{"path":"a \"b\""}}"#;
const THINKING: &str = r#"{"type":"thinking","thinking":"hm","signature":"x"}"#;

#[test]
fn responses_request_is_stateless_and_complete() {
    let found = body(
        &mut DialectEncoder::responses(BreakpointMode::Never),
        &[("u!", r#"{"type":"text","text":"go"}"#)],
    );
    let expected = json!({
        "model": "gpt-6-sol",
        "instructions": "Be good.\n\nBe \"brief\".",
        "tools": [{"type": "function", "name": "Read", "description": "Reads a file.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}, "strict": false}],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}],
        "max_output_tokens": 900,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high"},
        "prompt_cache_key": "p:main",
        "stream": true,
    });
    assert_eq!(found, expected);
}

#[test]
fn system_messages_become_developer_messages() {
    let blocks = [("u", r#"{"type":"text","text":"go"}"#), ("s", r#"{"type":"text","text":"note"}"#)];
    check_input(
        BreakpointMode::Never,
        &blocks,
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "note"}]},
        ]),
    );
}

#[test]
fn chat_request_depends_on_the_server() {
    let blocks = [("u", r#"{"type":"text","text":"go"}"#), ("s", r#"{"type":"text","text":"note"}"#)];
    let openai = body(&mut DialectEncoder::chat(ChatServer::OpenAi, BreakpointMode::Never), &blocks);
    let tools = json!([{"type": "function", "function": {"name": "Read", "description": "Reads a file.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]);
    assert_eq!(
        openai,
        json!({
            "model": "gpt-6-sol",
            "tools": tools,
            "messages": [
                {"role": "developer", "content": "Be good.\n\nBe \"brief\"."},
                {"role": "user", "content": "go"},
                {"role": "developer", "content": "note"},
            ],
            "max_completion_tokens": 900,
            "reasoning_effort": "high",
            "store": false,
            "prompt_cache_key": "p:main",
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
    let other = body(&mut DialectEncoder::chat(ChatServer::Compatible, BreakpointMode::Never), &blocks);
    assert_eq!(
        other,
        json!({
            "model": "gpt-6-sol",
            "tools": tools,
            "messages": [
                {"role": "system", "content": "Be good.\n\nBe \"brief\"."},
                {"role": "user", "content": "go"},
                {"role": "system", "content": "note"},
            ],
            "max_tokens": 900,
            "reasoning_effort": "high",
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn calls_and_results_become_items() {
    check_input(
        BreakpointMode::Never,
        &[
            ("u", r#"{"type":"text","text":"go"}"#),
            ("a", THINKING),
            (" ", r#"{"type":"text","text":"I look."}"#),
            (" ", CALL),
            (" ", r#"{"type":"tool_use","id":"call_2","name":"Read","input":{}}"#),
            (" ", r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#),
            ("u", RESULT),
            (" ", FAILED),
            (" ", r#"{"type":"text","text":"and now?"}"#),
            (" ", PICTURED),
            (" ", r#"{"type":"tool_result","tool_use_id":"call_4"}"#),
        ],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "call_1", "name": "Read", "arguments": "{\"path\":\"a \\\"b\\\"\"}"},
            {"type": "function_call", "call_id": "call_2", "name": "Read", "arguments": "{}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text":
                "[server_tool_use block, kept as text] {\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web_search\",\"input\":{}}"}]},
            {"type": "function_call_output", "call_id": "call_1", "output": "line\n"},
            {"type": "function_call_output", "call_id": "call_2", "output": "[the call failed]\nno such file"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]},
            {"type": "function_call_output", "call_id": "call_3", "output": [
                {"type": "input_text", "text": "shot"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA=="}]},
            {"type": "function_call_output", "call_id": "call_4", "output": ""},
        ]),
    );
}

#[test]
fn chat_results_directly_follow_their_calls() {
    check_messages(
        ChatServer::Compatible,
        &[
            ("u", r#"{"type":"text","text":"go"}"#),
            ("a", THINKING),
            ("u", r#"{"type":"text","text":"well?"}"#),
            ("a", r#"{"type":"text","text":"I look."}"#),
            (" ", r#"{"type":"reasoning","item":{"type":"reasoning"}}"#),
            (" ", CALL),
            (" ", r#"{"type":"tool_use","id":"call_3","name":"Shot","input":{}}"#),
            ("u", r#"{"type":"text","text":"and now?"}"#),
            (" ", RESULT),
            (" ", PICTURED),
        ],
        json!([
            {"role": "user", "content": "go"},
            {"role": "user", "content": "well?"},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": "{\"path\":\"a \\\"b\\\"\"}"}},
                {"id": "call_3", "type": "function", "function": {"name": "Shot", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "line\n"},
            {"role": "tool", "tool_call_id": "call_3", "content": "shot\n[what else it returned follows the results]"},
            {"role": "user", "content": [
                {"type": "text", "text": "and now?"},
                {"type": "text", "text": "[from the result of call_3]"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        ]),
    );
}

#[test]
fn documents_and_images_keep_their_bytes() {
    let blocks = [
        ("u", r#"{"type":"image","source":{"type":"url","url":"https://a/b.png"}}"#),
        (
            " ",
            r#"{"type":"document","title":"P","source":{"type":"base64","media_type":"application/pdf","data":"BB"}}"#,
        ),
        (" ", r#"{"type":"document","source":{"type":"url","url":"https://a/c.pdf"}}"#),
    ];
    check_input(
        BreakpointMode::Never,
        &blocks,
        json!([{"type": "message", "role": "user", "content": [
            {"type": "input_image", "detail": "auto", "image_url": "https://a/b.png"},
            {"type": "input_file", "filename": "P", "file_data": "data:application/pdf;base64,BB"},
            {"type": "input_file", "file_url": "https://a/c.pdf"}]}]),
    );
    check_messages(
        ChatServer::OpenAi,
        &blocks,
        json!([{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
            {"type": "file", "file": {"filename": "P", "file_data": "data:application/pdf;base64,BB"}},
            {"type": "text", "text": "[file at https://a/c.pdf]"}]}]),
    );
}

#[test]
fn breakpoints_stay_where_requests_ended() {
    let mark = json!({"mode": "explicit"});
    let mut encoder = DialectEncoder::responses(BreakpointMode::TurnEnds);
    let first = body(&mut encoder, &[("u!", r#"{"type":"text","text":"go"}"#)]);
    assert_eq!(first["prompt_cache_options"], mark);
    assert_eq!(first["input"][0]["content"][0]["prompt_cache_breakpoint"], mark);
    let blocks = [("u", r#"{"type":"text","text":"go"}"#), ("a", CALL), ("u!", RESULT)];
    let second = body(&mut encoder, &blocks);
    assert_eq!(second["input"][0], first["input"][0]);
    assert_eq!(
        second["input"][2],
        json!({"type": "function_call_output", "call_id": "call_1", "output": [
            {"type": "input_text", "text": "line\n", "prompt_cache_breakpoint": mark}]})
    );
    let mut chat = DialectEncoder::chat(ChatServer::OpenAi, BreakpointMode::TurnEnds);
    let chat = body(&mut chat, &blocks);
    assert_eq!(chat["prompt_cache_options"], mark);
    assert_eq!(
        chat["messages"][3],
        json!({"role": "tool", "tool_call_id": "call_1", "content": [
            {"type": "text", "text": "line\n", "prompt_cache_breakpoint": mark}]})
    );
    assert_eq!(chat["messages"][1]["content"][0]["prompt_cache_breakpoint"], mark);
    let unmarked = body(&mut DialectEncoder::responses(BreakpointMode::TurnEnds), &[("u", RESULT)]);
    assert_eq!(unmarked.get("prompt_cache_options"), None);
}
