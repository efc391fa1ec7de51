//! `--output-format stream-json`: one JSON object per line and event. docs/stream-json.md describes them, `schemas` contains
//! their JSON Schemas.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::process::ExitCode;

use pal_events::{AgentEvent, ResponseProgress, SessionInfo};
use pal_model::{
    Boundary, CacheBreak, Content, ContentBlock, EntryBody, LogEntry, MessageOrigin, ToolUseId, Usage,
    UsageTotals, escape_into,
};
use pal_permissions::PermissionMode;
use pal_settings::ClaudePlugin;
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::host_setup::PROTOCOL_VERSION;
use super::json_lines::{JsonLines, json_or_string, milliseconds, usage};
use super::output_format::Show;
use super::partial_message::stream_events;
use crate::exit_codes::prompt_exit_code;
use crate::failure::Failure;

/// Lines that are printed only on request.
#[derive(Clone, Copy)]
pub(crate) struct StreamJsonOptions {
    /// Print parts of answers as they arrive.
    pub(crate) is_partial: bool,
    /// Print the progress of tools.
    pub(crate) is_verbose: bool,
    /// Print prompts to a driving program, too.
    pub(crate) replays_prompts: bool,
    /// A denied call is not success.
    pub(crate) is_strict: bool,
}

/// Prints events as they happen.
pub(crate) struct StreamJson<'a> {
    lines: JsonLines<'a>,
    options: StreamJsonOptions,
    /// Slash commands of the session.
    commands: Vec<String>,
    /// Installed plugins: name, directory and marketplace.
    plugins: Vec<Value>,
    /// Print prompts as the log records them; a driving program knows what it sent.
    prints_prompts: bool,
    /// Attempt whose delay has been printed: each is printed once.
    awaited: Option<u32>,
    tools: HashMap<ToolUseId, SmolStr>,
    code: u8,
}

impl<'a> StreamJson<'a> {
    pub(crate) fn new(lines: JsonLines<'a>, options: StreamJsonOptions) -> StreamJson<'a> {
        StreamJson {
            lines,
            options,
            commands: Vec::new(),
            plugins: Vec::new(),
            prints_prompts: true,
            awaited: None,
            tools: HashMap::new(),
            code: 0,
        }
    }

    /// Names the installed plugins in `init`.
    pub(crate) fn with_plugins(mut self, plugins: &[ClaudePlugin]) -> StreamJson<'a> {
        let row = |plugin: &ClaudePlugin| json!({"name": plugin.name, "path": plugin.root, "source": plugin.source});
        self.plugins = plugins.iter().map(row).collect();
        self
    }

    fn init(&mut self, began: &SessionInfo) -> Result<(), Failure> {
        self.lines.set_session(began);
        self.lines.write(json!({
            "type": "system", "subtype": "init", "cwd": began.cwd, "model": began.model, "tools": began.tools,
            "mcp_servers": began.mcp_servers, "slash_commands": self.commands, "agents": began.agents,
            "skills": began.skills, "plugins": self.plugins, "output_style": began.output_style.as_deref().unwrap_or("default"),
            "permissionMode": mode_name(&began.permission_mode), "apiKeySource": "none",
            "is_resumed": began.is_resumed, "transcript_path": began.transcript_path, "version": began.version,
            "claude_code_version": PROTOCOL_VERSION,
        }))
    }

    /// Writes a message with the raw blocks of the log; a JSON tree would change their bytes.
    fn message(&mut self, entry: &LogEntry, usage: Option<&Usage>, cost: Option<f64>) -> Result<(), Failure> {
        let tail = self.lines.tail(entry);
        match &entry.body {
            EntryBody::User(user) if user.origin == MessageOrigin::Person && !self.prints_prompts => Ok(()),
            EntryBody::User(user) => {
                let content = blocks(&user.content);
                let origin = user.origin.name();
                let message = format!(r#"{{"role":"user","content":{content}}}"#);
                self.lines
                    .write_text(&format!(r#"{{"type":"user","message":{message},"origin":"{origin}",{tail}"#))
            }
            EntryBody::Assistant(assistant) => {
                let head = json!({
                    "id": assistant.response.as_ref().map(pal_model::ResponseId::as_str), "type": "message",
                    "role": "assistant", "model": assistant.model, "stop_reason": null, "usage": usage,
                })
                .to_string();
                let head = head.strip_suffix('}').unwrap_or(&head);
                let content = blocks(&assistant.content);
                let cost = json!(cost);
                self.lines.write_text(&format!(
                    r#"{{"type":"assistant","message":{head},"content":{content}}},"cost_usd":{cost},{tail}"#
                ))
            }
            _ => Ok(()),
        }
    }

    fn progress(&mut self, progress: &ResponseProgress) -> Result<(), Failure> {
        if !self.options.is_partial {
            return Ok(());
        }
        for event in stream_events(progress) {
            self.lines.write(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}))?;
        }
        Ok(())
    }

    fn tool(&mut self, call: &ToolUseId, mut members: Value) -> Result<(), Failure> {
        if !self.options.is_verbose {
            return Ok(());
        }
        let mut object = json!({
            "type": "tool_progress", "tool_use_id": call, "tool_name": self.tools.get(call),
            "parent_tool_use_id": null,
        });
        if let (Value::Object(object), Value::Object(members)) = (&mut object, &mut members) {
            object.append(members);
        }
        self.lines.write(object)
    }

    fn system(&mut self, subtype: &str, mut members: Value) -> Result<(), Failure> {
        let mut object = json!({"type": "system", "subtype": subtype});
        if let (Value::Object(object), Value::Object(members)) = (&mut object, &mut members) {
            object.append(members);
        }
        self.lines.write(object)
    }
}

impl Show for StreamJson<'_> {
    fn event(&mut self, event: &AgentEvent) -> Result<(), Failure> {
        if !matches!(event, AgentEvent::Waiting { .. }) {
            self.awaited = None;
        }
        match event {
            AgentEvent::SessionStarted(began) => self.init(began),
            AgentEvent::Message { entry, usage, cost } => {
                self.message(entry, usage.as_deref().filter(|usage| usage.is_reported()), *cost)
            }
            // Each is part of a step.
            AgentEvent::Text(_) | AgentEvent::Thinking(_) => Ok(()),
            AgentEvent::Progress(progress) => self.progress(progress),
            AgentEvent::AnswerDiscarded { why } => self.system("void", json!({"reason": why})),
            AgentEvent::Waiting { attempt, .. } if self.awaited == Some(*attempt) => Ok(()),
            AgentEvent::Waiting { why, attempt, of, left } => {
                self.awaited = Some(*attempt);
                let members = json!({
                    "attempt": attempt, "max_attempts": of, "retry_delay_ms": milliseconds(*left), "error": why,
                });
                self.system("retry", members)
            }
            AgentEvent::ToolStarted { call, name, input } => {
                self.tools.insert(call.clone(), name.clone());
                self.tool(call, json!({"state": "began", "input": json_or_string(input)}))
            }
            AgentEvent::ToolPrinted { call, text } => {
                self.tool(call, json!({"state": "printed", "text": text}))
            }
            AgentEvent::ToolEnded { call, name, is_error, took, bytes } => {
                self.tools.insert(call.clone(), name.clone());
                let members = json!({
                    "state": "ended", "is_error": is_error, "duration_ms": (took.as_secs_f64() * 1e6).round() / 1e3, "bytes": bytes,
                });
                let done = self.tool(call, members);
                self.tools.remove(call);
                done
            }
            // Usage of answers is in their messages, usage of summaries in the result.
            AgentEvent::ExchangeEnded(report) => {
                self.lines.count(report);
                Ok(())
            }
            AgentEvent::Compacting { .. } => Ok(()),
            // The result of the call that changed the mode reports it.
            AgentEvent::Mode(_) => Ok(()),
            AgentEvent::Compacted(boundary) => self.system("compact_boundary", compacted(boundary)),
            AgentEvent::CacheBroken(fall) => self.system("cache_break", cache_break(fall)),
            AgentEvent::ColdTurn { expired_for, tokens, cost, text } => self.system(
                "cold_turn",
                json!({"expired_s": expired_for.as_secs(), "tokens": tokens, "cost_usd": cost, "text": text}),
            ),
            AgentEvent::Alarm { kind, cost, text } => {
                self.system("alarm", json!({"alarm": kind, "cost_usd": cost, "text": text}))
            }
            AgentEvent::SubagentActivity { agent, doing } => {
                self.system("agent_doing", json!({"agent": agent, "doing": doing}))
            }
            AgentEvent::Notice(text) => self.system("notice", json!({"text": text})),
            AgentEvent::Warning(text) => self.system("warning", json!({"text": text})),
            AgentEvent::Ended(ended) => {
                self.code = prompt_exit_code(ended, self.options.is_strict);
                self.lines.result(ended)
            }
        }
    }

    fn set_commands(&mut self, names: Vec<String>) {
        self.commands = names;
    }

    fn set_driven(&mut self) {
        self.prints_prompts = self.options.replays_prompts;
    }

    fn background(&mut self, spent: &UsageTotals) -> Result<(), Failure> {
        self.system("background_usage", json!({"total_cost_usd": spent.cost, "usage": usage(spent)}))
    }

    fn bad_line(&mut self, number: u64, why: &str) -> Result<(), Failure> {
        self.system("input_error", json!({"line": number, "error": why}))
    }

    fn finish(&mut self, failure: Option<&Failure>) -> Result<ExitCode, Failure> {
        match failure {
            Some(failure) => {
                self.lines.failure(failure)?;
                Ok(failure.exit_code())
            }
            None => Ok(ExitCode::from(self.code)),
        }
    }
}

/// Name of a permission mode in the protocol.
fn mode_name(mode: &str) -> &str {
    let known: Option<PermissionMode> = mode.parse().ok();
    known.map_or(mode, |known| known.claude_code_name())
}

/// Content as an array of raw blocks; a block that is not an object becomes a text block.
fn blocks(content: &Content) -> String {
    let raw = |block: &ContentBlock| match block.fields() {
        Some(_) => block.raw().to_string(),
        None => {
            let mut text = String::from(r#"{"type":"text","text":"#);
            escape_into(&mut text, block.raw());
            text.push('}');
            text
        }
    };
    format!("[{}]", content.blocks().iter().map(raw).collect::<Vec<_>>().join(","))
}

fn compacted(boundary: &Boundary) -> Value {
    json!({"compact_metadata": {
        "trigger": boundary.trigger, "how": boundary.method, "pre_tokens": boundary.tokens_before,
        "post_tokens": boundary.tokens_after, "messages_summarised": boundary.messages_summarised,
    }})
}

fn cache_break(fall: &CacheBreak) -> Value {
    json!({
        "tokens": fall.tokens, "expected": fall.cause.is_expected(), "cause": fall.cause, "also": fall.also,
        "reason": fall.reason(), "cost_usd": fall.cost, "provider": fall.provider, "diff": fall.diff,
    })
}
