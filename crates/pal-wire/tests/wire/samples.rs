//! Sample requests of a coding agent, used by other tests.

use pal_wire::RequestRules;
use serde_json::{Value, json};

use crate::{counts_of, thinking, tool, tool_result, tool_use};

/// A typical tool loop.
pub(crate) fn agent() -> Value {
    json!({
        "model": "claude-opus-5-5", "max_tokens": 32000, "stream": true,
        "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}},
        "output_config": {"effort": "medium"},
        "diagnostics": {"previous_message_id": "msg_01Prev"},
        "metadata": {"user_id": "u"},
        "context_management": {"edits": [
            {"type": "clear_thinking_20251015", "keep": "all"},
            {"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 5}},
        ]},
        "system": [
            {"type": "text", "text": "You are a coding agent", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        ],
        "tools": [tool("read"), tool("grep"), {"type": "memory_20250818", "name": "memory"}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Fix \u{201c}it\u{201d} \\ \n", "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ]},
            {"role": "system", "content": "Plan mode is on.", "clear_at": "next_user_message"},
            {"role": "assistant", "content": [
                thinking(), {"type": "text", "text": "Looking"}, tool_use("toolu_1"), tool_use("toolu_2")
            ]},
            {"role": "user", "content": [
                tool_result("toolu_1"),
                {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "content": [
                    {"type": "text", "text": "no such file"}, {"type": "tool_reference", "tool_name": "grep"},
                ]},
                {"type": "text", "text": "reminder", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
            ]},
        ],
    })
}

/// A conversation after a compaction, with the provider's own tools.
pub(crate) fn compacted() -> Value {
    json!({
        "model": "claude-opus-5-5", "max_tokens": 1,
        "tools": [tool("read"), {"type": "web_search_20260318", "name": "web_search", "max_uses": 2}],
        "messages": [
            {"role": "assistant", "content": [
                {"type": "compaction", "content": "so far", "signature": "c2ln", "tool_changes": []}
            ]},
            {"role": "user", "content": "go on"},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"a": [1, 2.5e3, null]}]},
                {"type": "redacted_thinking", "data": "ZA=="},
                tool_use("toolu_1"),
            ]},
            {"role": "user", "content": [tool_result("toolu_1")]},
            {"role": "system", "content": [], "output_config": {"effort": "low"}},
        ],
    })
}

#[test]
fn samples_are_valid() {
    let checked = counts_of(&agent());
    assert_eq!((checked.messages, checked.blocks, checked.tools, checked.breakpoints), (4, 10, 3, 3));
    assert_eq!((checked.tool_uses, checked.tool_results, checked.thinking, checked.media), (2, 2, 1, 1));
    crate::check("compacted", &compacted(), &RequestRules::newest(), crate::FINE);
}
