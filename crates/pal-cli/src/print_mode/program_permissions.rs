//! Permission questions that a program answers: the one that drives pal, or a tool of an MCP server
//! (`--permission-prompt-tool`).

use std::sync::Arc;
use std::time::Duration;

use pal_events::{CallApproval, PermissionAnswer, PermissionAsker, PermissionQuestion};
use pal_mcp::{McpTool, ServerPool};
use pal_permissions::PermissionRule;
use pal_process::CancelToken;
use serde_json::{Value, json};

use super::control_channel::ControlChannel;
use crate::slash::LiveSessionCell;

/// Value of `--permission-prompt-tool` for the driving program.
pub(super) const DRIVING_PROGRAM: &str = "stdio";

/// Maximum wait for the server of a permission tool, from its start.
const SERVER_WAIT: Duration = Duration::from_secs(10);

/// Asks the driving program.
pub(super) fn ask_driving_program(control: &Arc<ControlChannel>, live: &LiveSessionCell) -> PermissionAsker {
    let (control, live) = (Arc::clone(control), live.clone());
    Arc::new(move |question| {
        let input = input_of(question);
        let reply = control.ask(&json!({
            "subtype": "can_use_tool", "tool_name": question.tool, "input": input,
            "tool_use_id": question.call, "agent_id": question.agent, "decision_reason": question.why,
            "permission_suggestions": suggestions(&question.rule),
        }));
        answer_of(reply, &input, &live)
    })
}

/// Asks a tool of an MCP server, which answers with JSON text.
pub(super) fn ask_permission_tool(name: &str, live: &LiveSessionCell) -> PermissionAsker {
    let (name, live) = (name.to_owned(), live.clone());
    Arc::new(move |question| {
        let input = input_of(question);
        let call = json!({"tool_name": question.tool, "input": input, "tool_use_id": question.call});
        let reply = live.servers().ok_or_else(|| String::from("no session is open yet"));
        let reply = reply.and_then(|servers| call_permission_tool(&servers, &name, &call));
        answer_of(reply, &input, &live)
    })
}

fn call_permission_tool(servers: &ServerPool, name: &str, call: &Value) -> Result<Value, String> {
    let cancel = CancelToken::new();
    let is_it = |tool: &McpTool| wire_name(tool) == name;
    let found = || servers.tools().into_iter().find(is_it);
    let mut tool = found();
    while tool.is_none() && servers.wait_for_server(SERVER_WAIT, &cancel) {
        tool = found();
    }
    let tool = tool.ok_or_else(|| format!("no MCP server offers the tool `{name}`"))?;
    let blocks = servers.call(&tool.server, &tool.name, &call.to_string(), &cancel)?;
    let texts: Vec<_> = blocks.iter().filter_map(|block| block.string("text")).collect();
    serde_json::from_str(texts.concat().trim()).map_err(|error| format!("its answer is not JSON: {error}"))
}

/// Name of a server's tool in rules and requests.
fn wire_name(tool: &McpTool) -> String {
    let part =
        |name: &str| name.replace(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-', "_");
    format!("mcp__{}__{}", part(&tool.server), part(&tool.name))
}

fn input_of(question: &PermissionQuestion) -> Value {
    serde_json::from_str(&question.input).unwrap_or_else(|_| json!({}))
}

/// The rule that would allow such calls, as an update that the program may return.
fn suggestions(rule: &str) -> Value {
    if rule.is_empty() {
        return json!([]);
    }
    let (tool, content) = match rule.strip_suffix(')').and_then(|rule| rule.split_once('(')) {
        Some((tool, content)) => (tool, Some(content)),
        None => (rule, None),
    };
    let mut entry = json!({"toolName": tool});
    if let Some(content) = content {
        entry["ruleContent"] = json!(content);
    }
    json!([{"type": "addRules", "rules": [entry], "behavior": "allow", "destination": "session"}])
}

/// Answer of a program. Without a clear approval the call is refused.
fn answer_of(reply: Result<Value, String>, input: &Value, live: &LiveSessionCell) -> PermissionAnswer {
    let reply = match reply {
        Ok(reply) => reply,
        Err(why) => {
            return PermissionAnswer::Refused(format!(
                "the program that decides about it gave no answer: {why}"
            ));
        }
    };
    let text = |name: &str| reply.get(name).and_then(Value::as_str);
    match text("behavior") {
        Some("allow") => match approval(&reply, input) {
            Ok(approval) => PermissionAnswer::Approved(approval),
            Err(why) => PermissionAnswer::Refused(why),
        },
        Some("deny") => {
            if reply.get("interrupt") == Some(&Value::Bool(true)) {
                live.interrupt();
            }
            PermissionAnswer::No(text("message").filter(|words| !words.trim().is_empty()).map(str::to_owned))
        }
        other => PermissionAnswer::Refused(format!(
            "the program that decides about it answered neither allow nor deny but {}",
            other.map_or_else(|| String::from("nothing"), |word| format!("`{word}`"))
        )),
    }
}

/// Changes that come with an approval. A deny rule that is not understood refuses the call.
fn approval(reply: &Value, input: &Value) -> Result<CallApproval, String> {
    let changed = reply.get("updatedInput").filter(|changed| changed.is_object() && *changed != input);
    let mut approval = CallApproval { input: changed.map(ToString::to_string), ..CallApproval::default() };
    let updates = reply.get("updatedPermissions").and_then(Value::as_array);
    for update in updates.into_iter().flatten() {
        let text = |name: &str| update.get(name).and_then(Value::as_str).unwrap_or_default();
        match (text("type"), text("behavior")) {
            ("addRules" | "replaceRules", behavior) => {
                let rules = update.get("rules").and_then(Value::as_array);
                for rule in rules.into_iter().flatten().map(rule_text) {
                    match behavior {
                        "allow" => approval.rules.push(rule),
                        "deny" | "ask" if rule.parse::<PermissionRule>().is_err() => {
                            return Err(format!("the program wants a rule that is not understood: {rule}"));
                        }
                        "deny" => approval.denied.push(rule),
                        "ask" => approval.asked.push(rule),
                        _ => {}
                    }
                }
            }
            ("setMode", _) => approval.mode = Some(text("mode").to_owned()),
            _ => {}
        }
    }
    Ok(approval)
}

fn rule_text(rule: &Value) -> String {
    let text = |name: &str| rule.get(name).and_then(Value::as_str);
    let tool = text("toolName").unwrap_or_default();
    text("ruleContent").map_or_else(|| tool.to_owned(), |content| format!("{tool}({content})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(reply: Value) -> PermissionAnswer {
        answer_of(Ok(reply), &json!({"command": "ls"}), &LiveSessionCell::default())
    }

    #[test]
    fn only_a_clear_approval_allows() {
        let plain = PermissionAnswer::Approved(CallApproval::default());
        assert_eq!(answered(json!({"behavior": "allow", "updatedInput": {"command": "ls"}})), plain);
        assert_eq!(
            answered(json!({"behavior": "deny", "message": "not now"})),
            PermissionAnswer::No(Some(String::from("not now")))
        );
        for unclear in [json!({}), json!({"behavior": "maybe"}), json!("allow"), Value::Null] {
            assert!(matches!(answered(unclear.clone()), PermissionAnswer::Refused(_)), "{unclear}");
        }
        let failed = answer_of(Err(String::from("gone")), &json!({}), &LiveSessionCell::default());
        assert!(matches!(failed, PermissionAnswer::Refused(why) if why.contains("gone")));
    }

    #[test]
    fn changes_of_input_rules_and_mode_are_taken_over() {
        let update = |behavior: &str, tool: &str, content: &str| {
            json!({"type": "addRules", "behavior": behavior, "destination": "session",
                   "rules": [{"toolName": tool, "ruleContent": content}]})
        };
        let reply = json!({"behavior": "allow", "updatedInput": {"command": "ls -l"}, "updatedPermissions": [
            update("allow", "Bash", "ls:*"), update("deny", "Read", ".env"),
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        ]});
        let approval = CallApproval {
            input: Some(String::from(r#"{"command":"ls -l"}"#)),
            rules: vec![String::from("Bash(ls:*)")],
            denied: vec![String::from("Read(.env)")],
            asked: Vec::new(),
            mode: Some(String::from("acceptEdits")),
        };
        assert_eq!(answered(reply), PermissionAnswer::Approved(approval));
        let unclear = json!({"behavior": "allow", "updatedPermissions": [update("deny", "", "x")]});
        assert!(matches!(answered(unclear), PermissionAnswer::Refused(_)), "a deny rule is never ignored");
    }

    #[test]
    fn a_suggestion_is_the_rule_in_parts() {
        let parts = &suggestions("Bash(git push:*)")[0]["rules"][0];
        assert_eq!(parts, &json!({"toolName": "Bash", "ruleContent": "git push:*"}));
        assert_eq!(rule_text(parts), "Bash(git push:*)");
        assert_eq!(suggestions("mcp__a__b")[0]["rules"][0], json!({"toolName": "mcp__a__b"}));
        assert_eq!(suggestions(""), json!([]));
    }
}
