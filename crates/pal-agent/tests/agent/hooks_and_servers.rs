//! Hooks, and MCP servers that do not come up.

use pal_agent_testkit::AgentWorld;
use pal_events::{AgentEvent, PromptEnd};
use serde_json::json;

use crate::{BYPASS, bash, caller};

#[test]
fn hooks_deny_and_change_calls_and_block_the_end() {
    let world = AgentWorld::new(caller(vec![bash("echo secret > denied.txt"), bash("echo plain")]));
    let mut agent = world.start(&format!(
        "{BYPASS}{}",
        r#"
[[hooks.PreToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = "if grep -q secret; then echo 'No secrets here.' >&2; exit 2; fi" }]

[[hooks.PostToolUse]]
matcher = "Bash"
hooks = [{ type = "command", command = """echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"replaced by a hook"}}'""" }]

[[hooks.Stop]]
hooks = [{ type = "command", command = "test -e stopped || { touch stopped; echo 'One more look, please.' >&2; exit 2; }" }]
"#
    ));
    let ended = agent.prompt("work");
    assert_eq!((ended.end, ended.denials.len()), (PromptEnd::Done, 1));
    assert!(!world.has_file("denied.txt"));
    let heard = world.provider.heard();
    let sent = heard.asked.last().unwrap().text();
    for words in ["No secrets here.", "replaced by a hook", "One more look, please."] {
        assert_eq!(sent.matches(words).count(), 1, "{words}\n{sent}");
    }
    assert!(!sent.contains(r#""text":"plain"#), "{sent}");
    assert_eq!(heard.asked.len(), 4, "the end was blocked once");
}

/// A failing hook is a warning, which every form of output shows; repeated failures are notices.
#[test]
fn a_failing_hook_is_a_warning_once() {
    let world = AgentWorld::new(caller(vec![bash("echo one"), bash("echo two")]));
    let mut agent = world.start(&format!(
        "{BYPASS}{}",
        r#"
[[hooks.PreToolUse]]
hooks = [{ type = "command", command = "echo 'jq is not installed' >&2; exit 1" }]
"#
    ));
    assert_eq!(agent.prompt("work").end, PromptEnd::Done);
    let warnings = agent.events(|event| match event {
        AgentEvent::Warning(line) => Some(line.clone()),
        _ => None,
    });
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("hook `echo") && warnings[0].contains("jq is not installed"),
        "{warnings:?}"
    );
    assert_eq!(agent.notices().matches("jq is not installed").count(), 4, "twice, with its command");
}

#[test]
fn a_session_works_without_its_mcp_server() {
    let world = AgentWorld::new(caller(vec![bash("echo works")]));
    let servers = json!({"gone": {"command": "sh", "args": ["-c", "exit 7"]}});
    let servers = pal_mcp::parse_servers(&servers, "test", &|_| None).unwrap().servers;
    let mut agent = world.start_with(BYPASS, |options| options.mcp.servers = servers);
    let ended = agent.prompt("go");
    assert_eq!((ended.end, ended.text.as_str()), (PromptEnd::Done, "Done."));
    assert_eq!(agent.prompt("again").end, PromptEnd::Done);
    let heard = world.provider.heard();
    assert!(heard.asked[1].text().contains("works"));
    assert!(heard.asked.iter().all(|asked| asked.head == heard.asked[0].head));
}
