//! `--output-format stream-json`: one object a line for everything that happens. docs/stream-json.md describes each, and
//! `schemas` has their JSON Schemas.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::process::ExitCode;

use pal_agent::{Began, Event};
use pal_model::{Block, Body, Boundary, CacheBreak, Content, Entry, ToolUseId, Usage, escape_into};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::line::{milliseconds, read};
use super::{Lines, Show, exit_code};
use crate::failure::Failure;

/// Prints lines as things happen.
pub(crate) struct StreamJson<'a> {
    lines: Lines<'a>,
    /// Whether an answer is printed while it grows.
    is_partial: bool,
    /// Whether it is told what tools do.
    is_verbose: bool,
    grown: Option<Grown>,
    /// The attempt that is being waited for: the time that is left is told once, not as it runs down.
    awaited: Option<u32>,
    tools: HashMap<ToolUseId, SmolStr>,
    code: u8,
}

/// What of an answer was printed while it grew: stretches of one kind are counted as its blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Grown {
    is_thinking: bool,
    index: u64,
}

impl<'a> StreamJson<'a> {
    pub(crate) fn new(lines: Lines<'a>, is_partial: bool, is_verbose: bool) -> StreamJson<'a> {
        StreamJson {
            lines,
            is_partial,
            is_verbose,
            grown: None,
            awaited: None,
            tools: HashMap::new(),
            code: 0,
        }
    }

    fn init(&mut self, began: &Began) -> Result<(), Failure> {
        self.lines.belong_to(began);
        self.lines.write(json!({
            "type": "system", "subtype": "init", "cwd": began.cwd, "model": began.model, "tools": began.tools,
            "permissionMode": began.permission_mode, "is_resumed": began.is_resumed,
            "transcript_path": began.transcript_path, "version": began.version,
        }))
    }

    /// A message of the log: its blocks go out as they stand there, because putting them through a JSON tree would change
    /// their bytes.
    fn message(&mut self, entry: &Entry, usage: Option<&Usage>, cost: Option<f64>) -> Result<(), Failure> {
        self.grown = None;
        let tail = self.lines.tail(entry);
        match &entry.body {
            Body::User(user) => {
                let content = blocks(&user.content);
                let origin = user.origin.name();
                let message = format!(r#"{{"role":"user","content":{content}}}"#);
                self.lines
                    .write_text(&format!(r#"{{"type":"user","message":{message},"origin":"{origin}",{tail}"#))
            }
            Body::Assistant(assistant) => {
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

    fn grew(&mut self, is_thinking: bool, text: &str) -> Result<(), Failure> {
        if !self.is_partial {
            return Ok(());
        }
        let index = match self.grown {
            Some(before) if before.is_thinking == is_thinking => before.index,
            Some(before) => before.index + 1,
            None => 0,
        };
        self.grown = Some(Grown { is_thinking, index });
        let delta = match is_thinking {
            true => json!({"type": "thinking_delta", "thinking": text}),
            false => json!({"type": "text_delta", "text": text}),
        };
        let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
        self.lines.write(json!({"type": "stream_event", "event": event, "parent_tool_use_id": null}))
    }

    fn tool(&mut self, call: &ToolUseId, mut told: Value) -> Result<(), Failure> {
        if !self.is_verbose {
            return Ok(());
        }
        let mut object = json!({
            "type": "tool_progress", "tool_use_id": call, "tool_name": self.tools.get(call),
            "parent_tool_use_id": null,
        });
        if let (Value::Object(object), Value::Object(told)) = (&mut object, &mut told) {
            object.append(told);
        }
        self.lines.write(object)
    }

    fn system(&mut self, subtype: &str, mut told: Value) -> Result<(), Failure> {
        let mut object = json!({"type": "system", "subtype": subtype});
        if let (Value::Object(object), Value::Object(told)) = (&mut object, &mut told) {
            object.append(told);
        }
        self.lines.write(object)
    }
}

impl Show for StreamJson<'_> {
    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if !matches!(event, Event::Waiting { .. }) {
            self.awaited = None;
        }
        match event {
            Event::Began(began) => self.init(began),
            Event::Message { entry, usage, cost } => self.message(entry, usage.as_deref(), *cost),
            Event::Text(text) => self.grew(false, text),
            Event::Thinking(text) => self.grew(true, text),
            Event::Void { why } => {
                self.grown = None;
                self.system("void", json!({"reason": why}))
            }
            Event::Waiting { attempt, .. } if self.awaited == Some(*attempt) => Ok(()),
            Event::Waiting { why, attempt, of, left } => {
                self.awaited = Some(*attempt);
                let told = json!({
                    "attempt": attempt, "max_attempts": of, "retry_delay_ms": milliseconds(*left), "error": why,
                });
                self.system("retry", told)
            }
            Event::ToolBegan { call, name, input } => {
                self.tools.insert(call.clone(), name.clone());
                self.tool(call, json!({"state": "began", "input": read(input)}))
            }
            Event::ToolPrinted { call, text } => self.tool(call, json!({"state": "printed", "text": text})),
            Event::ToolEnded { call, name, is_error, took, bytes } => {
                self.tools.insert(call.clone(), name.clone());
                let told = json!({
                    "state": "ended", "is_error": is_error, "duration_ms": (took.as_secs_f64() * 1e6).round() / 1e3, "bytes": bytes,
                });
                let done = self.tool(call, told);
                self.tools.remove(call);
                done
            }
            // What an answer took stands in its message, what summaries took in the result.
            Event::Exchanged(_) | Event::Compacting { .. } => Ok(()),
            // The result of the call that changed it says so.
            Event::Mode(_) => Ok(()),
            Event::Compacted(boundary) => self.system("compact_boundary", compacted(boundary)),
            Event::CacheBroke(fall) => self.system("cache_break", broke(fall)),
            Event::Doing { agent, doing } => {
                self.system("agent_doing", json!({"agent": agent, "doing": doing}))
            }
            Event::Notice(text) => self.system("notice", json!({"text": text})),
            Event::Warning(text) => self.system("warning", json!({"text": text})),
            Event::Ended(ended) => {
                self.grown = None;
                self.code = exit_code(&ended.end);
                self.lines.result(ended)
            }
        }
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

/// Content as a list of raw blocks. What is no object has no place in a message of the provider's; it becomes text.
fn blocks(content: &Content) -> String {
    let raw = |block: &Block| match block.fields() {
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
        "trigger": boundary.trigger, "how": boundary.how, "pre_tokens": boundary.tokens_before,
        "post_tokens": boundary.tokens_after, "messages_summarised": boundary.messages_summarised,
    }})
}

fn broke(fall: &CacheBreak) -> Value {
    json!({
        "tokens": fall.tokens, "expected": fall.cause.is_expected(), "cause": fall.cause,
        "reason": fall.cause.to_string(), "cost_usd": fall.cost, "provider": fall.provider, "diff": fall.diff,
    })
}
