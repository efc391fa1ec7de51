//! What happens in a session, as the updates that a client is sent.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use agent_client_protocol::v1::schema::{
    CompactionStatus, CompactionUpdate, ContentBlock, ContentChunk, Cost, CurrentModeUpdate, Notice,
    NoticeSeverity, SessionUpdate, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, UsageUpdate,
};
use pal_agent::{End, Ended, Event};
use pal_model::{Block, BlockType, Body, Boundary, Entry, ToolUseId};
use serde_json::{Map, Value, json};

use crate::calls::{Called, TODO, plan, result, words};
use crate::content::{fenced, shown};

/// How often at most a client is told what a running command printed.
const PRINTED_EVERY: Duration = Duration::from_millis(150);
/// Bytes at the end of what a running command printed that are shown.
const PRINTED_BYTES_MAX: usize = 16 << 10;

/// What a client can show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Abilities {
    pub(crate) compaction: bool,
    pub(crate) notices: bool,
}

/// How a session stands when it is opened.
pub(crate) struct Standing {
    pub(crate) directory: PathBuf,
    /// Tokens of the window.
    pub(crate) window: u64,
}

/// Turns what happens into updates.
pub(crate) struct Teller {
    can: Abilities,
    standing: Standing,
    /// Tokens of the context.
    tokens: u64,
    /// What was spent, in US dollars.
    cost: f64,
    /// Calls that are not answered.
    calls: HashMap<ToolUseId, Open>,
    /// A compaction that is under way.
    compaction: Option<String>,
    /// Tells ids of messages and compactions from those of other runs.
    run: u128,
    /// Answers and compactions so far.
    count: u64,
}

/// A call that is not answered.
struct Open {
    name: String,
    input: String,
    printed: String,
    told: Instant,
}

impl Teller {
    pub(crate) fn new(can: Abilities, standing: Standing) -> Teller {
        let run = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let calls = HashMap::new();
        Teller { can, standing, tokens: 0, cost: 0.0, calls, compaction: None, run, count: 0 }
    }

    /// The updates that tell of an event.
    pub(crate) fn told(&mut self, event: &Event) -> Vec<SessionUpdate> {
        match event {
            Event::Began(_) | Event::CacheBroke(_) => Vec::new(),
            Event::Text(text) => vec![SessionUpdate::AgentMessageChunk(self.chunk(text))],
            Event::Thinking(text) => vec![SessionUpdate::AgentThoughtChunk(self.chunk(text))],
            Event::Void { why } => {
                self.count += 1;
                self.notice(NoticeSeverity::Info, why)
            }
            Event::Waiting { why, attempt, of, left } => {
                let words = format!("{why}; asked again in {} s ({attempt} of {of})", left.as_secs());
                self.notice(NoticeSeverity::Warning, &words)
            }
            Event::Doing { agent, doing } => self.notice(NoticeSeverity::Info, &format!("{agent}: {doing}")),
            Event::Mode(name) => {
                vec![SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(name.to_string()))]
            }
            Event::Notice(text) => self.notice(NoticeSeverity::Info, text),
            Event::Warning(text) => self.notice(NoticeSeverity::Warning, text),
            Event::Message { entry, .. } => self.message(entry, true),
            Event::ToolBegan { call, name, input } => self.began(call, name, input),
            Event::ToolPrinted { call, text } => self.printed(call, text),
            Event::ToolEnded { call, name, is_error, .. } => self.ended_call(call, name, *is_error),
            Event::Exchanged(exchanged) => {
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
            Event::Compacting { tokens } => self.compacting(*tokens),
            Event::Compacted(boundary) => {
                self.tokens = boundary.tokens_after.unwrap_or(self.tokens);
                self.compacted(boundary).into_iter().chain([self.usage()]).collect()
            }
            Event::Ended(ended) => self.ended(ended),
        }
    }

    /// How large the context is, and what was spent so far, as the session itself says it.
    pub(crate) fn stands_at(&mut self, tokens: u64, cost: f64) -> SessionUpdate {
        // What was spent since the session was opened may not all be in its books yet.
        (self.tokens, self.cost) = (tokens, self.cost.max(cost));
        self.usage()
    }

    /// The same session, told by another one from now on.
    pub(crate) fn followed_by(&self, other: Teller) -> Teller {
        Teller { cost: self.cost, ..other }
    }

    /// What an entry says; `is_live` if its words were streamed already, else it is told from the beginning.
    pub(crate) fn message(&mut self, entry: &Entry, is_live: bool) -> Vec<SessionUpdate> {
        match &entry.body {
            Body::Assistant(assistant) => {
                self.count += 1;
                let blocks = assistant.content.blocks().iter();
                blocks.flat_map(|block| self.said(block, is_live)).collect()
            }
            Body::User(user) => {
                let mut updates: Vec<SessionUpdate> = Vec::new();
                for block in user.content.blocks() {
                    match block.kind() {
                        BlockType::ToolResult => updates.extend(self.returned(block)),
                        _ if is_live || user.origin != pal_model::Origin::Person => {}
                        _ => updates.extend(shown(std::slice::from_ref(block)).into_iter().map(|content| {
                            let id = format!("u-{}", entry.id);
                            SessionUpdate::UserMessageChunk(ContentChunk::new(content).message_id(&*id))
                        })),
                    }
                }
                updates
            }
            Body::Boundary(boundary) if !is_live => self.compacted(boundary).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Calls that will never be answered, because the program that made them is gone.
    pub(crate) fn give_up_calls(&mut self) -> Vec<SessionUpdate> {
        let open = std::mem::take(&mut self.calls).into_iter().filter(|(_, open)| open.name != TODO);
        open.map(|(call, _)| update(&call, ToolCallUpdateFields::new().status(ToolCallStatus::Failed)))
            .collect()
    }

    /// A compaction that was under way has ended without a summary.
    pub(crate) fn compaction_ended(
        &mut self,
        status: CompactionStatus,
        why: Option<String>,
    ) -> Option<SessionUpdate> {
        let id = self.compaction.take().filter(|_| self.can.compaction)?;
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

    /// A line for the user. Where a client has no place for such lines, they go to the program's own log.
    fn notice(&self, severity: NoticeSeverity, text: &str) -> Vec<SessionUpdate> {
        if !self.can.notices || text.trim().is_empty() {
            tracing::info!(notice = text, "not shown");
            return Vec::new();
        }
        vec![SessionUpdate::Notice(Notice::new(severity, text))]
    }

    fn said(&mut self, block: &Block, is_live: bool) -> Vec<SessionUpdate> {
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
                self.wanted(call, name, input, is_live)
            }
            _ => Vec::new(),
        }
    }

    fn wanted(&mut self, call: &ToolUseId, name: String, input: String, is_live: bool) -> Vec<SessionUpdate> {
        let shown = (name != TODO).then(|| {
            let directory = &self.standing.directory;
            let called = Called { id: call.as_str(), name: &name, input: &input, directory };
            SessionUpdate::ToolCall(called.shown(is_live))
        });
        let open = Open { name, input, printed: String::new(), told: Instant::now() };
        self.calls.insert(call.clone(), open);
        shown.into_iter().collect()
    }

    fn began(&mut self, call: &ToolUseId, name: &str, input: &str) -> Vec<SessionUpdate> {
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
            // A hook may have changed the input, and a tool may be called through another one.
            let directory = &self.standing.directory;
            let called = Called { id: call.as_str(), name, input, directory };
            ToolCallUpdate::from(called.shown(true)).fields
        };
        vec![update(call, fields.status(ToolCallStatus::InProgress))]
    }

    fn printed(&mut self, call: &ToolUseId, text: &str) -> Vec<SessionUpdate> {
        let Some(open) = self.calls.get_mut(call) else { return Vec::new() };
        open.printed.push_str(text);
        if open.printed.len() > 2 * PRINTED_BYTES_MAX {
            let from = open.printed.ceil_char_boundary(open.printed.len() - PRINTED_BYTES_MAX);
            open.printed.drain(..from);
        }
        if open.told.elapsed() < PRINTED_EVERY {
            return Vec::new();
        }
        open.told = Instant::now();
        let from = open.printed.ceil_char_boundary(open.printed.len().saturating_sub(PRINTED_BYTES_MAX));
        let content = vec![fenced(&open.printed[from..]).into()];
        vec![update(call, ToolCallUpdateFields::new().content(content))]
    }

    /// The list of what is to be done is in force once its call has succeeded.
    fn ended_call(&mut self, call: &ToolUseId, name: &str, is_error: bool) -> Vec<SessionUpdate> {
        let open = self.calls.get(call).filter(|_| name == TODO && !is_error);
        open.and_then(|open| plan(&open.input)).map(SessionUpdate::Plan).into_iter().collect()
    }

    fn returned(&mut self, block: &Block) -> Option<SessionUpdate> {
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
            .raw_output(Value::from(words(content.blocks())));
        Some(update(call, fields))
    }

    fn usage(&self) -> SessionUpdate {
        let usage = UsageUpdate::new(self.tokens, self.standing.window);
        SessionUpdate::UsageUpdate(usage.cost(Cost::new(self.cost, "USD")))
    }

    fn compacting(&mut self, tokens: u64) -> Vec<SessionUpdate> {
        self.count += 1;
        let id = format!("c-{}-{}", self.run, self.count);
        self.compaction = Some(id.clone());
        if !self.can.compaction {
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
        self.can.compaction.then_some(SessionUpdate::CompactionUpdate(ended))
    }

    fn ended(&mut self, ended: &Ended) -> Vec<SessionUpdate> {
        let status = match ended.end {
            End::Interrupted => CompactionStatus::Cancelled,
            _ => CompactionStatus::Failed,
        };
        let mut updates: Vec<SessionUpdate> = self.compaction_ended(status, None).into_iter().collect();
        updates.extend(self.give_up_calls());
        // A stop reason has no words, and whoever reads along wants to know which limit it was.
        if let End::Limit(why) | End::Refused(why) = &ended.end {
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

/// The size of the context around a compaction: the protocol has no member of its own for it.
fn sizes(before: Option<u64>, after: Option<u64>) -> Map<String, Value> {
    let sizes = json!({"tokensBefore": before, "tokensAfter": after});
    Map::from_iter([(String::from("palimpsest"), sizes)])
}
