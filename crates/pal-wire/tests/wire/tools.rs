//! Tool definitions, choice and references.

use pal_wire::{Beta, BetaSet, RequestRules};
use serde_json::{Value, json};

use crate::{FINE, check, check_all, counts_of, error_of, old_rules, request, tool, tool_use, user};

fn tools(tools: Value) -> Value {
    request(&json!({"tools": tools}))
}

#[test]
fn definitions() {
    let full = json!({
        "type": "custom", "name": "a", "description": "d", "strict": true, "allowed_callers": ["direct"],
        "input_schema": {"type": "object", "properties": {}}, "eager_input_streaming": true, "input_examples": [{}]
    });
    let with = |field: &str, value: Value| {
        let mut tool = tool("a");
        tool[field] = value;
        tools(json!([tool]))
    };
    check_all(
        &RequestRules::newest(),
        &[
            ("none", tools(json!([])), FINE),
            ("small", tools(json!([tool("a"), tool("b")])), FINE),
            ("full", tools(json!([full])), FINE),
            ("no schema", tools(json!([{"name": "a"}])), "tools.0.custom.input_schema: Field required"),
            (
                "no name",
                tools(json!([{"input_schema": {"type": "object"}}])),
                "tools.0.custom.name: Field required",
            ),
            (
                "name",
                with("name", json!("a b")),
                "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            ),
            (
                "long name",
                with("name", json!("a".repeat(129))),
                "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
            ),
            (
                "schema type",
                with("input_schema", json!({})),
                "tools.0.custom.input_schema.type: Field required",
            ),
            (
                "schema of a string",
                with("input_schema", json!({"type": "string"})),
                "tools.0.custom.input_schema.type: Input should be 'object'",
            ),
            (
                "extra",
                with("parameters", json!({})),
                "tools.0.custom.parameters: Extra inputs are not permitted",
            ),
            (
                "callers",
                with("allowed_callers", json!(["me"])),
                "tools.0.custom.allowed_callers.0: Input should be 'direct', 'code_execution_20250825', \
             'code_execution_20260120' or 'code_execution_20260521'",
            ),
            ("same name", tools(json!([tool("a"), tool("a")])), "tools: Tool names must be unique."),
        ],
    );
    assert_eq!(counts_of(&tools(json!([tool("a"), tool("b")]))).tools, 2);
}

#[test]
fn provider_defined() {
    let server = json!([{"type": "url", "url": "https://a", "name": "s"}]);
    let set = json!([{"type": "mcp_toolset", "mcp_server_name": "s", "configs": {}}]);
    check_all(
        &RequestRules::newest(),
        &[
            ("bash", tools(json!([{"type": "bash_20250124", "name": "bash"}])), FINE),
            ("memory", tools(json!([{"type": "memory_20250818", "name": "memory"}])), FINE),
            (
                "search",
                tools(json!([{"type": "web_search_20260318", "name": "web_search", "max_uses": 3}])),
                FINE,
            ),
            ("toolset", tools(json!([{"type": "computer_toolset_20260801"}])), FINE),
            ("advisor", tools(json!([{"type": "advisor_20260301", "name": "advisor"}])), FINE),
            ("mcp", request(&json!({"tools": set, "mcp_servers": server})), FINE),
            ("mcp without server", tools(set), "tools: MCP server 's' not found in mcp_servers"),
            (
                "other name",
                tools(json!([{"type": "bash_20250124", "name": "sh"}])),
                "tools.0.bash_20250124.name: Input should be 'bash'",
            ),
        ],
    );
    let error =
        error_of(&tools(json!([{"type": "telepathy_20250101", "name": "t"}])), &RequestRules::newest());
    let start = "tools.0: Input tag 'telepathy_20250101' found using 'type' does not match any of the expected tags: 'custom', 'bash_<date>'";
    assert!(error.message.starts_with(start), "{error}");
    let plain = RequestRules { betas: BetaSet::public().without(Beta::Advisor), ..RequestRules::newest() };
    let error = error_of(&tools(json!([{"type": "advisor_20260301", "name": "advisor"}])), &plain);
    assert!(error.message.starts_with("tools.0: Input tag 'advisor_20260301'"), "{error}");
}

#[test]
fn deferral() {
    let deferred = |marked: bool| {
        let mut tool = tool("late");
        tool["defer_loading"] = json!(true);
        if marked {
            tool["cache_control"] = json!({"type": "ephemeral"});
        }
        tool
    };
    check_all(
        &RequestRules::newest(),
        &[
            ("some", tools(json!([tool("a"), deferred(false)])), FINE),
            (
                "all",
                tools(json!([deferred(false)])),
                "tools: At least one tool must have defer_loading=false. All tools cannot be deferred.",
            ),
            (
                "marked",
                tools(json!([tool("a"), deferred(true)])),
                "Tool 'late' cannot have both defer_loading=true and cache_control set. \
             Tools with defer_loading cannot use prompt caching.",
            ),
        ],
    );
}

#[test]
fn choice() {
    let choose = |choice: Value| request(&json!({"tools": [tool("a")], "tool_choice": choice}));
    check_all(
        &RequestRules::newest(),
        &[
            ("auto", choose(json!({"type": "auto", "disable_parallel_tool_use": true})), FINE),
            ("none", choose(json!({"type": "none"})), FINE),
            (
                "any",
                choose(json!({"type": "any"})),
                "tool_choice.type: 'any' is not supported for this model",
            ),
            (
                "tool",
                choose(json!({"type": "tool", "name": "a"})),
                "tool_choice.type: 'tool' is not supported for this model",
            ),
            (
                "none, parallel",
                choose(json!({"type": "none", "disable_parallel_tool_use": true})),
                "tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted",
            ),
            (
                "no tools",
                request(&json!({"tool_choice": {"type": "auto"}})),
                "tool_choice may only be specified while providing tools.",
            ),
        ],
    );
    let mut thinks = choose(json!({"type": "any"}));
    thinks["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    check_all(
        &old_rules(),
        &[
            ("any", choose(json!({"type": "any"})), FINE),
            ("tool", choose(json!({"type": "tool", "name": "a"})), FINE),
            ("tool without name", choose(json!({"type": "tool"})), "tool_choice.tool.name: Field required"),
            (
                "unknown tool",
                choose(json!({"type": "tool", "name": "b"})),
                "tool_choice: Tool 'b' not found in provided tools",
            ),
            ("with thinking", thinks, "Thinking may not be enabled when tool_choice forces tool use."),
        ],
    );
}

#[test]
fn references() {
    let searched = |name: &str, offered: Value| {
        let found = json!([{"type": "tool_reference", "tool_name": name}]);
        let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": found});
        let messages = json!([
            user("a"), {"role": "assistant", "content": [tool_use("toolu_1")]}, {"role": "user", "content": [result]}
        ]);
        request(&json!({"messages": messages, "tools": offered}))
    };
    let bad = searched("grep", json!([tool("a")]));
    check("known", &searched("grep", json!([tool("a"), tool("grep")])), &RequestRules::newest(), FINE);
    check(
        "in a toolset",
        &searched("grep", json!([{"type": "browser_toolset_20260801"}])),
        &RequestRules::newest(),
        FINE,
    );
    check(
        "unknown",
        &bad,
        &RequestRules::newest(),
        "messages.2.content.0: Tool reference 'grep' not found in available tools",
    );
    let error = error_of(&bad, &RequestRules::newest());
    assert_eq!(error.error_code, Some("tool_reference_unresolved"));
    assert!(
        error
            .to_json("r")
            .contains(r#""details":{"error_code":"tool_reference_unresolved"}},"request_id":"r"}"#)
    );
}
