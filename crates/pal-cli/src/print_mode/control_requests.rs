//! Requests of the driving program while the session runs. The thread that reads the input answers them, so that they work
//! while the agent does.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use pal_mcp::ServerState;
use pal_permissions::PermissionMode;
use serde_json::{Value, json};

use super::control_channel::ControlChannel;
use super::run_step::RunStep;
use crate::slash::LiveSessionCell;

/// Answers requests of the driving program.
pub(super) struct RequestHandler {
    pub(super) control: Arc<ControlChannel>,
    pub(super) live: LiveSessionCell,
    pub(super) steps: Sender<RunStep>,
    /// Whether the session was started without permission checks, which is what allows to return to that.
    pub(super) may_bypass: bool,
}

impl RequestHandler {
    /// Answers a request other than `interrupt`.
    pub(super) fn handle(&self, id: &str, subtype: &str, request: &Value) {
        let text = |name: &str| request.get(name).and_then(Value::as_str).unwrap_or_default();
        let answer = match subtype {
            "initialize" => Err(String::from("the session is already initialized")),
            "set_permission_mode" => self.set_mode(text("mode")),
            "set_model" => {
                let model = request.get("model").and_then(Value::as_str).map(str::to_owned);
                // The model changes between two prompts.
                let _ = self.steps.send(RunStep::SetModel(model));
                Ok(json!({}))
            }
            "mcp_status" => self.server_states(),
            "mcp_reconnect" => self.restart(text("serverName")),
            "mcp_message" => {
                let message = request.get("message").unwrap_or(&Value::Null);
                self.control.deliver_server_message(text("server_name"), message).map(|()| json!({}))
            }
            other => Err(format!("pal has no control request `{other}`")),
        };
        self.control.respond(id, answer);
    }

    fn set_mode(&self, name: &str) -> Result<Value, String> {
        let mode: PermissionMode =
            name.parse().map_err(|error: pal_permissions::UnknownPermissionMode| error.to_string())?;
        if mode == PermissionMode::Bypass && !self.may_bypass {
            return Err(String::from(
                "permission checks can be turned off only in a session that started with --permission-mode bypassPermissions",
            ));
        }
        let handle = self.live.handle().ok_or("no session is open yet")?;
        handle.choose_mode(mode);
        Ok(json!({"mode": mode.claude_code_name()}))
    }

    fn server_states(&self) -> Result<Value, String> {
        let servers = self.live.servers().ok_or("no session is open yet")?;
        let tools = servers.tools();
        let described = servers.states().into_iter().map(|(name, state)| {
            let (status, error) = match state {
                ServerState::Starting => ("pending", None),
                ServerState::Ready { .. } => ("connected", None),
                ServerState::Failed(why) | ServerState::Gone(why) => ("failed", Some(why)),
            };
            let own = tools.iter().filter(|tool| tool.server == name);
            let own: Vec<Value> = own.map(|tool| json!({"name": tool.name})).collect();
            let mut server = json!({"name": name, "status": status, "tools": own});
            if let Some(error) = error {
                server["error"] = json!(error);
            }
            server
        });
        Ok(json!({"mcpServers": described.collect::<Vec<_>>()}))
    }

    fn restart(&self, name: &str) -> Result<Value, String> {
        let servers = self.live.servers().ok_or("no session is open yet")?;
        servers.restart(name).map(|()| json!({}))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The response to a request of a session that is not open.
    fn response(subtype: &str, request: &Value) -> (Value, Vec<RunStep>) {
        let (sender, lines) = channel();
        let write = move |line: &str| {
            let _ = sender.send(serde_json::from_str::<Value>(line).unwrap());
        };
        let (steps, taken) = channel();
        let handler = RequestHandler {
            control: ControlChannel::new(Box::new(write)),
            live: LiveSessionCell::default(),
            steps,
            may_bypass: false,
        };
        handler.handle("r1", subtype, request);
        drop(handler);
        (lines.recv().unwrap()["response"].clone(), taken.iter().collect())
    }

    #[test]
    fn every_request_is_answered() {
        for (subtype, request, error) in [
            ("set_permission_mode", json!({"mode": "dance"}), "unknown permission mode"),
            ("set_permission_mode", json!({"mode": "bypassPermissions"}), "only in a session that started"),
            ("set_permission_mode", json!({"mode": "plan"}), "no session is open"),
            ("initialize", json!({}), "already initialized"),
            ("mcp_message", json!({"server_name": "x", "message": {}}), "no MCP server"),
            ("mcp_reconnect", json!({"serverName": "x"}), "no session is open"),
            ("dance", json!({}), "no control request `dance`"),
        ] {
            let (response, _) = response(subtype, &request);
            assert_eq!((&response["subtype"], &response["request_id"]), (&json!("error"), &json!("r1")));
            assert!(response["error"].as_str().unwrap().contains(error), "{response}");
        }
        let (response, steps) = response("set_model", &json!({"model": "claude-haiku-4-5"}));
        assert_eq!(response["subtype"], "success");
        assert!(matches!(&steps[..], [RunStep::SetModel(Some(model))] if model == "claude-haiku-4-5"));
    }
}
