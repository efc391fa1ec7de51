//! Translation of agent events to session updates.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, CurrentModeUpdate, Notice,
    NoticeSeverity, SessionUpdate, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use pal_events::{AgentEvent, PromptEnd, PromptResult};
use pal_model::{BlockType, Boundary, ContentBlock as LogBlock, EntryBody, LogEntry, ToolUseId};
use serde_json::{Map, Value, json};

use crate::prompt_content::{fenced, shown};
use crate::tool_calls::{TODO, ToolCallView, plan, result, result_text};

/// Minimum interval between output updates of a running command.
const PRINTED_EVERY: Duration = Duration::from_millis(150);
/// Maximum size of the shown tail of a running command's output, in bytes.
const PRINTED_BYTES_MAX: usize = 16 << 10;

/// Optional features that the client supports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ClientCapabilities {
    pub(crate) compaction: bool,
    pub(crate) notices: bool,
    /// Forms that ask the user.
    pub(crate) forms: bool,
}

/// Session properties that updates need.
pub(crate) struct UpdateContext {
    pub(crate) directory: PathBuf,
    /// Context window, in tokens.
    pub(crate) window: u64,
}

/// Turns events of a session into updates.
pub(crate) struct UpdateTranslator {
    capabilities: ClientCapabilities,
    context: UpdateContext,
    /// Size of the context, in tokens.
    tokens: u64,
    /// Cost in US dollars.
    cost: f64,
    /// Calls without a result.
    calls: HashMap<ToolUseId, OpenCall>,
    /// Id of the running compaction.
    compaction: Option<String>,
    /// Makes ids of messages and compactions unique across runs.
    run: u128,
    /// Number of answers and compactions in this run.
    count: u64,
}

/// A call without a result.
struct OpenCall {
    name: String,
    input: String,
    printed: String,
    sent_at: Instant,
}

impl UpdateTranslator {
    pub(crate) fn new(capabilities: ClientCapabilities, context: UpdateContext) -> UpdateTranslator {
        let run = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let calls = HashMap::new();
        UpdateTranslator {
            capabilities,
            context,
            tokens: 0,
            cost: 0.0,
            calls,
            compaction: None,
            run,
            count: 0,
        }
    }

    /// Translates an event.
    pub(crate) fn translate(&mut self, event: &AgentEvent) -> Vec<SessionUpdate> {
        match event {
            AgentEvent::SessionStarted(_) | AgentEvent::Progress(_) | AgentEvent::CacheBroken(_) => {
                Vec::new()
            }
            AgentEvent::Text(text) => vec![SessionUpdate::AgentMessageChunk(self.chunk(text))],
            AgentEvent::Thinking(text) => vec![SessionUpdate::AgentThoughtChunk(self.chunk(text))],
            AgentEvent::AnswerDiscarded { why } => {
                self.count += 1;
                self.notice(NoticeSeverity::Info, why)
            }
            AgentEvent::Waiting { why, attempt, of, left } => {
                let text = format!("{why}; retry in {} s ({attempt} of {of})", left.as_secs());
                self.notice(NoticeSeverity::Warning, &text)
            }
            AgentEvent::SubagentActivity { agent, doing } => {
                self.notice(NoticeSeverity::Info, &format!("{agent}: {doing}"))
            }
            AgentEvent::Mode(name) => {
                vec![SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(name.to_string()))]
            }
            AgentEvent::Notice(text) => self.notice(NoticeSeverity::Info, text),
            AgentEvent::Warning(text)
            | AgentEvent::ColdTurn { text, .. }
            | AgentEvent::Alarm { text, .. } => self.notice(NoticeSeverity::Warning, text),
            AgentEvent::Message { entry, .. } => self.message(entry, true),
            AgentEvent::ToolStarted { call, name, input } => self.start_call(call, name, input),
            AgentEvent::ToolPrinted { call, text } => self.add_output(call, text),
            AgentEvent::ToolEnded { call, name, is_error, .. } => self.end_call(call, name, *is_error),
            AgentEvent::ExchangeEnded(exchanged) => {
                self.cost += exchanged.cost.unwrap_or(0.0);
                let mut updates = Vec::new();
                if exchanged.source.is_conversation() {
                    updates.extend(self.compaction_ended(CompactionStatus::Failed, None));
                    let usage = exchanged.usage.as_ref();
                    self.tokens =
                        usage.map_or(self.tokens, |usage| usage.prompt_tokens() + usage.output_tokens);
                }
                updates.push(self.usage());
                updates
            }
            AgentEvent::Compacting { tokens } => self.compacting(*tokens),
            AgentEvent::Compacted(boundary) => {
                self.tokens = boundary.tokens_after.unwrap_or(self.tokens);
                self.compacted(boundary).into_iter().chain([self.usage()]).collect()
            }
            AgentEvent::Ended(ended) => self.ended(ended),
        }
    }

    /// Sets context size (tokens) and cost (US dollars) as the session reports them.
    pub(crate) fn set_usage(&mut self, tokens: u64, cost: f64) -> SessionUpdate {
        // The session may not have recorded all recent costs yet.
        (self.tokens, self.cost) = (tokens, self.cost.max(cost));
        self.usage()
    }

    /// Continues the same session with another translator, which keeps the cost.
    pub(crate) fn hand_over_to(&self, other: UpdateTranslator) -> UpdateTranslator {
        UpdateTranslator { cost: self.cost, ..other }
    }

    /// Translates a log entry; with `is_live` its text was streamed already and is left out.
    pub(crate) fn message(&mut self, entry: &LogEntry, is_live: bool) -> Vec<SessionUpdate> {
        match &entry.body {
            EntryBody::Assistant(assistant) => {
                self.count += 1;
                let blocks = assistant.content.blocks().iter();
                blocks.flat_map(|block| self.assistant_block(block, is_live)).collect()
            }
            EntryBody::User(user) => {
                let mut updates: Vec<SessionUpdate> = Vec::new();
                for block in user.content.blocks() {
                    match block.kind() {
                        BlockType::ToolResult => updates.extend(self.tool_result(block)),
                        _ if is_live || user.origin != pal_model::MessageOrigin::Person => {}
                        _ => updates.extend(shown(std::slice::from_ref(block)).into_iter().map(|content| {
                            let id = format!("u-{}", entry.id);
                            SessionUpdate::UserMessageChunk(ContentChunk::new(content).message_id(&*id))
                        })),
                    }
                }
                updates
            }
            EntryBody::Boundary(boundary) if !is_live => self.compacted(boundary).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Marks calls without a result as failed: the process that made them is gone.
    pub(crate) fn give_up_calls(&mut self) -> Vec<SessionUpdate> {
        let open = std::mem::take(&mut self.calls).into_iter().filter(|(_, open)| open.name != TODO);
        open.map(|(call, _)| update(&call, ToolCallUpdateFields::new().status(ToolCallStatus::Failed)))
            .collect()
    }

    /// Ends the running compaction, if any, without a summary.
    pub(crate) fn compaction_ended(
        &mut self,
        status: CompactionStatus,
        why: Option<String>,
    ) -> Option<SessionUpdate> {
        let id = self.compaction.take().filter(|_| self.capabilities.compaction)?;
        let ended = CompactionUpdate::new(id, status);
        let ended = match why {
            Some(why) => ended.error(why),
            None => ended,
        };
        Some(SessionUpdate::CompactionUpdate(ended))
    }

    fn chunk(&self, text: &str) -> ContentChunk {
        let id = format!("a-{}-{}", self.run, self.count);
        ContentChunk::new(ContentBlock::from(text)).message_id(&*id)
    }

    /// Notice for the user; goes to the program's log if the client does not support notices.
    fn notice(&self, severity: NoticeSeverity, text: &str) -> Vec<SessionUpdate> {
        if !self.capabilities.notices || text.trim().is_empty() {
            tracing::info!(notice = text, "not shown");
            return Vec::new();
        }
        vec![SessionUpdate::Notice(Notice::new(severity, text))]
    }

    fn assistant_block(&mut self, block: &LogBlock, is_live: bool) -> Vec<SessionUpdate> {
        let words = |name: &str| block.string(name).filter(|text| !is_live && !text.is_empty());
        match block.kind() {
            BlockType::Text => words("text")
                .map(|text| SessionUpdate::AgentMessageChunk(self.chunk(&text)))
                .into_iter()
                .collect(),
            BlockType::Thinking => {
                let thought = words("thinking");
                thought.map(|text| SessionUpdate::AgentThoughtChunk(self.chunk(&text))).into_iter().collect()
            }
            BlockType::ToolUse => {
                let Some(call) = block.tool_use_id() else { return Vec::new() };
                let name = block.string("name").unwrap_or_default().into_owned();
                let input = block.field("input").unwrap_or("{}").to_owned();
                self.add_call(call, name, input, is_live)
            }
            _ => Vec::new(),
        }
    }

    fn add_call(
        &mut self,
        call: &ToolUseId,
        name: String,
        input: String,
        is_live: bool,
    ) -> Vec<SessionUpdate> {
        let shown = (name != TODO).then(|| {
            let directory = &self.context.directory;
            let called = ToolCallView { id: call.as_str(), name: &name, input: &input, directory };
            SessionUpdate::ToolCall(called.shown(is_live))
        });
        let open = OpenCall { name, input, printed: String::new(), sent_at: Instant::now() };
        self.calls.insert(call.clone(), open);
        shown.into_iter().collect()
    }

    fn start_call(&mut self, call: &ToolUseId, name: &str, input: &str) -> Vec<SessionUpdate> {
        let known = self.calls.get_mut(call);
        let is_same = known.as_ref().is_some_and(|open| open.name == name && open.input == input);
        if let Some(open) = known {
            (open.name, open.input) = (name.to_owned(), input.to_owned());
        }
        if name == TODO {
            return Vec::new();
        }
        let fields = if is_same {
            ToolCallUpdateFields::new()
        } else {
            // A hook may have changed the input, or another tool may have called this one.
            let directory = &self.context.directory;
            let called = ToolCallView { id: call.as_str(), name, input, directory };
            ToolCallUpdate::from(called.shown(true)).fields
        };
        vec![update(call, fields.status(ToolCallStatus::InProgress))]
    }

    fn add_output(&mut self, call: &ToolUseId, text: &str) -> Vec<SessionUpdate> {
        let Some(open) = self.calls.get_mut(call) else { return Vec::new() };
        open.printed.push_str(text);
        if open.printed.len() > 2 * PRINTED_BYTES_MAX {
            let from = open.printed.ceil_char_boundary(open.printed.len() - PRINTED_BYTES_MAX);
            open.printed.drain(..from);
        }
        if open.sent_at.elapsed() < PRINTED_EVERY {
            return Vec::new();
        }
        open.sent_at = Instant::now();
        let from = open.printed.ceil_char_boundary(open.printed.len().saturating_sub(PRINTED_BYTES_MAX));
        let content = vec![fenced(&open.printed[from..]).into()];
        vec![update(call, ToolCallUpdateFields::new().content(content))]
    }

    /// Ends a call. A successful call of the to-do tool updates the plan.
    fn end_call(&mut self, call: &ToolUseId, name: &str, is_error: bool) -> Vec<SessionUpdate> {
        let open = self.calls.get(call).filter(|_| name == TODO && !is_error);
        open.and_then(|open| plan(&open.input)).map(SessionUpdate::Plan).into_iter().collect()
    }

    fn tool_result(&mut self, block: &LogBlock) -> Option<SessionUpdate> {
        let call = block.tool_use_id()?;
        let open = self.calls.remove(call)?;
        let is_error = block.field("is_error") == Some("true");
        let content = block.content();
        if open.name == TODO {
            return None;
        }
        let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
        let fields = ToolCallUpdateFields::new()
            .status(status)
            .content(result(&open.name, is_error, content.blocks()))
            .raw_output(Value::from(result_text(content.blocks())));
        Some(update(call, fields))
    }

    fn usage(&self) -> SessionUpdate {
        let usage = UsageUpdate::new(self.tokens, self.context.window);
        SessionUpdate::UsageUpdate(usage.cost(Cost::new(self.cost, "USD")))
    }

    fn compacting(&mut self, tokens: u64) -> Vec<SessionUpdate> {
        self.count += 1;
        let id = format!("c-{}-{}", self.run, self.count);
        self.compaction = Some(id.clone());
        if !self.capabilities.compaction {
            return Vec::new();
        }
        let began = CompactionUpdate::new(id, CompactionStatus::InProgress);
        vec![SessionUpdate::CompactionUpdate(began.meta(sizes(Some(tokens), None)))]
    }

    fn compacted(&mut self, boundary: &Boundary) -> Option<SessionUpdate> {
        self.count += 1;
        let id = self.compaction.take().unwrap_or_else(|| format!("c-{}-{}", self.run, self.count));
        let ended = CompactionUpdate::new(id, CompactionStatus::Completed)
            .summary(shown(boundary.summary.blocks()))
            .meta(sizes(boundary.tokens_before, boundary.tokens_after));
        self.capabilities.compaction.then_some(SessionUpdate::CompactionUpdate(ended))
    }

    fn ended(&mut self, ended: &PromptResult) -> Vec<SessionUpdate> {
        let status = match ended.end {
            PromptEnd::Interrupted => CompactionStatus::Cancelled,
            _ => CompactionStatus::Failed,
        };
        let mut updates: Vec<SessionUpdate> = self.compaction_ended(status, None).into_iter().collect();
        updates.extend(self.give_up_calls());
        // A stop reason has no text, and the user needs to know which limit it was.
        if let PromptEnd::Limit(why) | PromptEnd::Refused(why) = &ended.end {
            self.count += 1;
            updates.push(SessionUpdate::AgentMessageChunk(self.chunk(&format!("Stopped: {why}."))));
        }
        self.count += 1;
        updates
    }
}

pub(crate) fn update(call: &ToolUseId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call.as_str().to_owned(), fields))
}

/// Context sizes around a compaction, as metadata: the protocol has no field for them.
fn sizes(before: Option<u64>, after: Option<u64>) -> Map<String, Value> {
    let sizes = json!({"tokensBefore": before, "tokensAfter": after});
    Map::from_iter([(String::from("palimpsest"), sizes)])
}
