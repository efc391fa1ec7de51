//! `--output-format stream-json`: one JSON object per line and event. docs/stream-json.md describes them, `schemas` contains
//! their JSON Schemas.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::process::ExitCode;

use pal_events::{AgentEvent, SessionInfo};
use pal_model::{
    Boundary, CacheBreak, Content, ContentBlock, EntryBody, LogEntry, ToolUseId, Usage, UsageTotals,
    escape_into,
};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::json_lines::{JsonLines, json_or_string, milliseconds, usage};
use super::output_format::Show;
use crate::exit_codes::prompt_exit_code;
use crate::failure::Failure;

/// Prints events as they happen.
pub(crate) struct StreamJson<'a> {
    lines: JsonLines<'a>,
    /// Print parts of answers as they arrive.
    is_partial: bool,
    /// Print the progress of tools.
    is_verbose: bool,
    partial: Option<PartialAnswer>,
    /// Attempt whose delay has been printed: each is printed once.
    awaited: Option<u32>,
    tools: HashMap<ToolUseId, SmolStr>,
    code: u8,
}

/// Position in an answer that is printed as it arrives; each change of kind starts a new block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PartialAnswer {
    is_thinking: bool,
    index: u64,
}

impl<'a> StreamJson<'a> {
    pub(crate) fn new(lines: JsonLines<'a>, is_partial: bool, is_verbose: bool) -> StreamJson<'a> {
        StreamJson {
            lines,
            is_partial,
            is_verbose,
            partial: None,
            awaited: None,
            tools: HashMap::new(),
            code: 0,
        }
    }

    fn init(&mut self, began: &SessionInfo) -> Result<(), Failure> {
        self.lines.set_session(began);
        self.lines.write(json!({
            "type": "system", "subtype": "init", "cwd": began.cwd, "model": began.model, "tools": began.tools,
            "permissionMode": began.permission_mode, "is_resumed": began.is_resumed,
            "transcript_path": began.transcript_path, "version": began.version,
        }))
    }

    /// Writes a message with the raw blocks of the log; a JSON tree would change their bytes.
    fn message(&mut self, entry: &LogEntry, usage: Option<&Usage>, cost: Option<f64>) -> Result<(), Failure> {
        self.partial = None;
        let tail = self.lines.tail(entry);
        match &entry.body {
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

    fn partial_text(&mut self, is_thinking: bool, text: &str) -> Result<(), Failure> {
        if !self.is_partial {
            return Ok(());
        }
        let index = match self.partial {
            Some(before) if before.is_thinking == is_thinking => before.index,
            Some(before) => before.index + 1,
            None => 0,
        };
        self.partial = Some(PartialAnswer { is_thinking, index });
        let delta = match is_thinking {
            true => json!({"type": "thinking_delta", "thinking": text}),
            false => json!({"type": "text_delta", "text": text}),
        };
        let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
        self.lines.write(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}))
    }

    fn tool(&mut self, call: &ToolUseId, mut members: Value) -> Result<(), Failure> {
        if !self.is_verbose {
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
            AgentEvent::Text(text) => self.partial_text(false, text),
            AgentEvent::Thinking(text) => self.partial_text(true, text),
            AgentEvent::AnswerDiscarded { why } => {
                self.partial = None;
                self.system("void", json!({"reason": why}))
            }
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
            AgentEvent::ExchangeEnded(_) | AgentEvent::Compacting { .. } => Ok(()),
            // The result of the call that changed the mode reports it.
            AgentEvent::Mode(_) => Ok(()),
            AgentEvent::Compacted(boundary) => self.system("compact_boundary", compacted(boundary)),
            AgentEvent::CacheBroken(fall) => self.system("cache_break", cache_break(fall)),
            AgentEvent::SubagentActivity { agent, doing } => {
                self.system("agent_doing", json!({"agent": agent, "doing": doing}))
            }
            AgentEvent::Notice(text) => self.system("notice", json!({"text": text})),
            AgentEvent::Warning(text) => self.system("warning", json!({"text": text})),
            AgentEvent::Ended(ended) => {
                self.partial = None;
                self.code = prompt_exit_code(&ended.end);
                self.lines.result(ended)
            }
        }
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
