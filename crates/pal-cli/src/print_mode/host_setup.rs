//! The `initialize` request of a driving program: everything that it adds to the options of the session.

use std::sync::Arc;

use pal_agent::{AgentOptions, OutputSchema};
use pal_hooks::{HookConfig, HookHost};
use pal_mcp::{McpHost, McpServerConfig, ServerTransport};
use pal_model::SharedText;
use serde_json::{Value, json};

use super::control_channel::ControlChannel;
use crate::agent::agents_of_program;
use crate::arguments::AgentArgs;
use crate::failure::Failure;
use crate::slash::SlashCommands;

/// Version of Claude Code whose stream-json protocol this program follows.
pub(super) const PROTOCOL_VERSION: &str = "2.1.0";

/// The request of a driving program.
pub(super) struct HostSetup {
    pub(super) request_id: String,
    request: Value,
}

impl HostSetup {
    pub(super) fn new(request_id: String, request: Value) -> HostSetup {
        HostSetup { request_id, request }
    }

    /// Arguments with the prompts of the request. A continued session keeps its own system prompt.
    pub(super) fn arguments(&self, args: &AgentArgs) -> AgentArgs {
        let mut args = args.clone();
        let text = |name: &str| match self.request.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(parts)) => {
                Some(parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n\n"))
            }
            _ => None,
        };
        args.model.system_prompt = text("systemPrompt").or(args.model.system_prompt);
        args.model.append_system_prompt = text("appendSystemPrompt").or(args.model.append_system_prompt);
        if args.session.is_continued || args.session.resume.is_some() {
            args.model.leave_out_system_prompts();
        }
        args
    }

    /// Adds the hooks, the servers, the agents and the output schema of the request. Returns notices.
    pub(super) fn apply(
        &self,
        options: &mut AgentOptions,
        control: &Arc<ControlChannel>,
    ) -> Result<Vec<String>, Failure> {
        let host: Arc<dyn HookHost> = Arc::clone(control) as Arc<dyn HookHost>;
        let hooks = self.request.get("hooks").unwrap_or(&Value::Null);
        let mut hooks = HookConfig::of_callbacks(hooks, &host).map_err(|why| invalid(&why))?;
        let notices = std::mem::take(&mut hooks.notices);
        options.hooks.push(hooks);
        let names = self.request.get("sdkMcpServers").and_then(Value::as_array);
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            options.mcp.servers.push(McpServerConfig {
                name: name.to_owned(),
                transport: ServerTransport::Host,
                start_limit: None,
                call_limit: None,
                source: String::from("the driving program"),
            });
        }
        let agents = agents_of_program(self.request.get("agents").unwrap_or(&Value::Null));
        options.subagent.definitions.extend(agents.map_err(|why| invalid(&why))?);
        if let Some(schema) = self.request.get("jsonSchema").filter(|schema| !schema.is_null()) {
            options.tools.output_schema = Some(output_schema(&schema.to_string(), "jsonSchema")?);
        }
        Ok(notices)
    }

    /// Reply to the request, once the session is open.
    pub(super) fn reply(&self, commands: &SlashCommands, facts: &HostReplyFacts) -> Value {
        let command = |command: &pal_tui::CommandInfo| json!({"name": command.name, "description": command.about, "argumentHint": command.arguments});
        let model = json!({"value": facts.model, "displayName": facts.model, "description": ""});
        let agent = |name: &String| json!({"name": name, "description": ""});
        let mut reply = json!({
            "commands": commands.list().iter().map(command).collect::<Vec<_>>(),
            "agents": facts.agents.iter().map(agent).collect::<Vec<_>>(),
            "output_style": "default", "available_output_styles": ["default"], "models": [model], "account": {},
            "hook_on_failure_supported": true, "claude_code_version": PROTOCOL_VERSION,
            "pid": std::process::id(),
        });
        if self.request.get("hooks").is_some_and(|hooks| !hooks.is_null()) {
            reply["hooks_applied"] = json!(true);
        }
        reply
    }
}

/// Facts of the open session that the reply names.
pub(super) struct HostReplyFacts {
    pub(super) model: String,
    pub(super) agents: Vec<String>,
}

/// Lets the driving program run MCP servers.
pub(super) fn connect_host(options: &mut AgentOptions, control: &Arc<ControlChannel>) {
    options.mcp.host = Some(Arc::clone(control) as Arc<dyn McpHost>);
}

/// Compiles the schema of structured output. `origin` is the flag or member that gives it.
pub(super) fn output_schema(text: &str, origin: &str) -> Result<OutputSchema, Failure> {
    let hint = "give a JSON Schema of an object, such as {\"type\":\"object\",\"properties\":{…}}";
    let wrong = |why: String| Failure::usage_error(format!("{origin}: {why}"), hint);
    let schema: Value =
        serde_json::from_str(text).map_err(|error| wrong(format!("not valid JSON: {error}")))?;
    if schema.get("type").is_some_and(|kind| kind != "object") || !schema.is_object() {
        return Err(wrong(String::from("the schema must describe an object")));
    }
    let validator = jsonschema::validator_for(&schema).map_err(|error| wrong(error.to_string()))?;
    let check = move |output: &str| {
        let output: Value = serde_json::from_str(output).map_err(|error| error.to_string())?;
        let problems: Vec<String> = validator
            .iter_errors(&output)
            .take(5)
            .map(|problem| format!("{}: {problem}", problem.instance_path()))
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    };
    Ok(OutputSchema { schema: SharedText::from(text), check: Arc::new(check) })
}

fn invalid(why: &str) -> Failure {
    Failure::new(format!("the `initialize` request is invalid: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_checked_against_the_schema() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
        let wanted = output_schema(schema, "--json-schema").unwrap();
        assert_eq!((wanted.check)(r#"{"n":3}"#), Ok(()));
        let why = (wanted.check)(r#"{"n":"three"}"#).unwrap_err();
        assert!(why.starts_with("/n: "), "{why}");
        assert!((wanted.check)("{}").unwrap_err().contains("\"n\""));
        for (text, problem) in [
            ("{", "not valid JSON"),
            (r#"{"type":"string"}"#, "must describe an object"),
            ("[]", "must describe an object"),
            (r#"{"type":"object","properties":{"a":{"type":"thing"}}}"#, "--json-schema: "),
        ] {
            let failure = output_schema(text, "--json-schema").err().map(|failure| failure.to_string());
            assert!(failure.as_ref().is_some_and(|failure| failure.contains(problem)), "{failure:?}");
        }
    }
}
